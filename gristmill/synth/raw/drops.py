"""Drops of SYNTH: which of their files are read. Raw Parquet files, or a finished conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gristmill.contract import BadInput
from gristmill.inbox.account import Account
from gristmill.inbox.division import contiguous_run
from gristmill.inbox.marks import SUMS
from gristmill.inbox.sample_mark import left_out_of
from gristmill.settings.tables import FILE
from gristmill.synth.raw.files import ENDING, FILES, SHARDS, complete_files
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, refuse_equal
from gristmill.untrusted.walk import visible_files

RAW: Final = "synth"
"""Name of the inbox of raw files."""
READY: Final = "synth_harmony"
"""Name of the inbox of finished conversions."""
NUMBERS: Final = tuple(f"{number:02d}" for number in range(SHARDS))
"""The numbers of the shards, in file names and partitions."""
_SHARD: Final = "synth_harmony_shard_"
READY_SHARDS: Final = tuple(f"{_SHARD}{number}{ENDING}" for number in NUMBERS)
"""The shards of a finished conversion."""
READY_FILES: Final = (*READY_SHARDS, "manifest.json", "metadata.json")
"""All files of a finished conversion."""


def account(drop: Path, links: LinkRule = REFUSE_LINKS, expected: int = FILES) -> Account:
    """What becomes of each file of a drop, by its inbox.

    drop: a folder in `drops/synth/` or `drops/synth_harmony/`.
    links: what happens to files that are links; default: they are refused.
    expected: number of Parquet files of a raw drop, default 500.

    Raises BadInput as `raw_account` and `ready_account`.
    """
    if drop.parent.name == READY:
        return ready_account(drop, links)
    return raw_account(drop, links, expected)


def raw_account(drop: Path, links: LinkRule = REFUSE_LINKS, expected: int = FILES) -> Account:
    """What becomes of each file of a drop of raw files."""
    sizes, left_out, inner = {}, {}, []
    for name, size in visible_files(drop, links, (SUMS, FILE)).items():
        if not name.lower().endswith(ENDING):
            left_out[name] = "no Parquet file"
        elif "/" in name:
            inner.append(name)
        elif not name.endswith(ENDING):
            raise BadInput(drop / name, f"rename it so that it ends in {ENDING} in lower case")
        else:
            sizes[name] = size
    if sizes and inner:
        rule = "is in a subfolder, which is not read beside the files of the drop itself"
        raise BadInput(drop / inner[0], f"{rule}: move it up, or take it out")
    paths = complete_files(drop, expected, links)
    names = [path.name for path in paths]
    if len(names) < SHARDS:
        raise BadInput(drop, f"{len(names)} files: {SHARDS} shards need a file each")
    refuse_equal(drop, {name: sizes[name] for name in names}, links)
    taken = {
        number: [path.name for path in contiguous_run(paths, int(number), SHARDS)]
        for number in NUMBERS
    }
    return Account(taken, left_out | left_out_of(drop, names))


def ready_account(drop: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a finished conversion, by the names alone."""
    sizes = visible_files(drop, links, (SUMS, FILE))
    others = [name for name in sizes if name not in READY_FILES]
    if shards := [name for name in others if name.startswith(_SHARD) and name.endswith(ENDING)]:
        number = shards[0].removeprefix(_SHARD).removesuffix(ENDING)
        raise BadInput(drop, f"shard {number} is none of {', '.join(NUMBERS)}")
    if missing := [name for name in READY_FILES if name not in sizes]:
        raise BadInput(drop, f"there is no {missing[0]}")
    refuse_equal(drop, {name: sizes[name] for name in READY_SHARDS}, links)
    taken = {number: [name] for number, name in zip(NUMBERS, READY_SHARDS, strict=True)}
    taken["manifest"] = [name for name in READY_FILES if name not in READY_SHARDS]
    return Account(taken, dict.fromkeys(others, "no file of a conversion"))
