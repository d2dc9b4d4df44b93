"""The readers of all families with their artifacts, made once."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.reading import readers as registry
from tests.reading.readers import MADE, READERS, Reader


@pytest.fixture(scope="session")
def reader_of(
    tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path
) -> Callable[[str], Reader]:
    """Gives the reader of a name in READERS; its artifacts are made at the first call."""
    registry.VOCABULARIES = vocabulary_root
    made, folder = {}, tmp_path_factory.mktemp("made")

    def of(name: str) -> Reader:
        kind, opens, _ = READERS[name]
        if kind not in made:
            made[kind] = MADE[kind](folder)
        parts, used = made[kind]
        return Reader(parts, opens, used)

    return of


@pytest.fixture(params=list(READERS))
def reader(request: pytest.FixtureRequest, reader_of: Callable[[str], Reader]) -> Iterator[Reader]:
    yield reader_of(request.param)
    # A loader whose worker failed prints its error when it is collected, and parses Python for the
    # traceback. Within another parse (NumPy parses headers so) Python 3.11 raises SystemError.
    gc.collect()
    # Torch and Megatron make millions of objects that stay: the next call need not look at them.
    gc.freeze()
