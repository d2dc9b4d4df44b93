"""How logs of a drop of 2048 are forgotten: each by its name, with the file of its facts.

Source: docs/takedowns.md#families
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gristmill.families import Forgets, Unit
from gristmill.untrusted.files import open_file
from gristmill.untrusted.lines import reads
from gristmill.untrusted.walk import unpack, visible_files

_ENDINGS: Final = (".jsonl.gz", ".meta.json")
_SHOWN: Final = 1 << 12


def forgets() -> Forgets:
    """How logs are forgotten."""
    return Forgets(_units)


def _units(_: Path, drop: Path) -> Iterator[Unit]:
    for name in visible_files(drop):
        ending = next((each for each in _ENDINGS if name.endswith(each)), None)
        if ending is None:
            continue
        digest, begin = hashlib.sha256(), b""
        with open_file(drop / name, root=drop) as file:
            for part in unpack(file, drop / name, "gz") if ending.endswith("gz") else reads(file):
                digest.update(part)
                begin += part[: max(_SHOWN - len(begin), 0)]
        # Numbers are not looked for: lists of a file have its sum.
        own = {"begin": begin.decode("utf-8", "replace"), "sum": list(digest.digest())}
        yield Unit(name, 0, name.rpartition("/")[2].removesuffix(ending), own)
