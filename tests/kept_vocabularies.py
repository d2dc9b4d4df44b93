"""The vocabularies of the tests: downloaded once into the checkout, then kept."""

from pathlib import Path

from gristmill.vocabularies.placing import fetch
from tests.paths import CHECKOUT
from tests.run_folder import alone

_KEPT = CHECKOUT / ".test-data"


def kept_vocabularies() -> Path:
    """A data root with both vocabularies in its drops; one process at a time fetches them."""
    _KEPT.mkdir(exist_ok=True)
    with alone(_KEPT / "lock"):
        fetch(_KEPT)
    return _KEPT
