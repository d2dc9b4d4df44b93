"""What must hold of SYNTH artifacts: asked before a commit, by `verify` and by asset checks.

How values are looked at belongs to `value_laws.py`, documents against their
trace to `trace_laws.py`. Source:
`docs/formats/synth.md#laws`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError, Violation
from gristmill.synth.build import import_harmony
from gristmill.synth.format import aligned, indexed
from gristmill.synth.format.indexed import Indexed
from gristmill.synth.laws import trace, values

SPLITS: Final = ("train", "valid")


def kd_laws(
    root: Path, partition: str | None = None, valid_fraction: float | None = None
) -> Iterator[Violation]:
    """Yield what the datasets in `root` break, of one shard ("00") or of all.

    valid_fraction: the configured share, against which the split is tested.
    Memory does not grow with the datasets: indices, values and trace are read in
    chunks.
    """
    numbers = [partition] if partition is not None else shard_numbers(root)
    if not numbers:
        yield Violation("shards", ".", "no shard in train or valid, and no trace of one")
    for number in numbers:
        opened: dict[str, Indexed | None] = dict.fromkeys(SPLITS)
        for split in SPLITS:
            tokens = root / split / f"shard_{number}_tokens"
            where = f"{split}/{tokens.name}"
            if not tokens.with_name(tokens.name + ".idx").exists():
                for path in sorted((root / split).glob(f"shard_{number}_*")):
                    yield Violation(
                        "empty split", f"{split}/{path.name}", "stands without its tokens"
                    )
                continue
            try:
                three = {
                    name: indexed.read(aligned.sibling(tokens, name)) for name in aligned.DTYPES
                }
            except (GristmillError, OSError) as error:
                yield Violation("readable", where, str(error))
                continue
            opened[split] = three["tokens"]
            broken = list(_aligned(where, three))
            yield from broken or values.check(where, three)
        yield from trace.check(root, number, opened, valid_fraction)


def shard_numbers(root: Path) -> list[str]:
    """The shards that `root` holds in either split or has a trace of, sorted."""
    found = {
        path.name.split("_")[1] for split in SPLITS for path in (root / split).glob("shard_*.idx")
    }
    found |= {path.stem.removeprefix("trace_") for path in root.glob("trace/trace_*.parquet")}
    return sorted(found)


def _aligned(where: str, three: dict[str, Indexed]) -> Iterator[Violation]:
    for name, dtype in aligned.DTYPES.items():
        if three[name].dtype != dtype:
            yield Violation("dtypes", where, f"{name} is {three[name].dtype}, not {dtype}")
        if not indexed.same_boundaries(three[name], three["tokens"]):
            yield Violation("equal boundaries", where, f"lengths of {name} and tokens differ")


def harmony_laws(root: Path, partition: str | None = None) -> Iterator[Violation]:
    """Yield what the Harmony shards in `root` break, of one shard ("00") or of all."""
    shards = import_harmony.shards(root)
    if partition is not None:
        shards = {partition: shards[partition]} if partition in shards else {}
    if not shards:
        yield Violation("shards", ".", "no such synth_harmony_shard_XX.parquet")
    for shard in shards.values():
        yield from import_harmony.shard_violations(shard)
