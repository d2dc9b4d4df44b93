"""Names of the folders beside artifacts that hold what is not published."""

from __future__ import annotations

WORK = ".gristmill"

PARTS = "parts"

STAMPS = "stamps"
