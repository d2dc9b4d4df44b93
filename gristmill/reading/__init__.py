"""What all readers of published artifacts share: one generation, three levels of verification."""

from __future__ import annotations

from gristmill.reading.folder import Generation, StaleDataset, Verify

__all__ = ["Generation", "StaleDataset", "Verify"]
