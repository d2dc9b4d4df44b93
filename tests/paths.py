"""Where the tests find the checkout and the real data."""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
REAL_DATA = Path(os.environ.get("GRISTMILL_REAL_DATA", CHECKOUT.parent / "shared" / "data"))
