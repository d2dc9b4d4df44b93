"""Names of the folders that Gristmill keeps beside artifacts."""

from __future__ import annotations

WORK = ".gristmill"

PARTS = "parts"
