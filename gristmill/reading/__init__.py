"""What all readers of published artifacts share: one generation, three levels of verification.

`reader.py` is the base of the readers; `torch_batch.py` is for data loaders of torch. Formats of a
family do not belong here. User's page: `docs/publishing.md#reading`.
"""

from __future__ import annotations

from gristmill.reading.generation import Generation, StaleDataset
from gristmill.reading.verify_level import Verify

__all__ = ["Generation", "StaleDataset", "Verify"]
