"""Which laws hold of which asset's artifacts.

The laws themselves stand in each family's wing; they are imported when they
are asked for, since they pull in what the family needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from gristmill.contract import Violation

FAMILIES: Final = ("macroxue", "synth", "chess")

# A law is called with the artifact's folder and, where its line says so, with
# the partition (of a folder that several share) or the folders of the
# artifacts that it was made from.
_FOLDER, _PARTITION, _INPUTS, _INPUTS_IF_THERE = range(4)
_LAWS: Final = {
    "macroxue/pack": (
        ("gristmill.macroxue.laws.pack:pack_laws", _FOLDER),
        ("gristmill.macroxue.laws.games:game_laws", _FOLDER),
    ),
    "macroxue/pool": (
        ("gristmill.macroxue.laws.pool:pool_laws", _FOLDER),
        ("gristmill.macroxue.laws.games:game_laws", _FOLDER),
    ),
    "macroxue/values": (("gristmill.macroxue.laws.values:value_laws", _INPUTS),),
    "chess/elite_pgn": (("gristmill.chess.laws.games_and_datasets:archive_laws", _FOLDER),),
    "chess/valid_games": (("gristmill.chess.laws.games_and_datasets:validated_laws", _FOLDER),),
    "chess/game_dataset": (("gristmill.chess.laws.games_and_datasets:dataset_laws", _FOLDER),),
    "chess/splice_cache": (("gristmill.chess.laws.splice_cache:cache_laws", _INPUTS_IF_THERE),),
    "chess/splice_dataset": (("gristmill.chess.laws.splice_dataset:splice_laws", _FOLDER),),
    "synth/harmony": (("gristmill.synth.laws.shards:harmony_laws", _PARTITION),),
    "synth/harmony_manifest": (
        ("gristmill.synth.laws.published:harmony_manifest_laws", _PARTITION),
    ),
    **{
        f"{prefix}/{name}": ((f"gristmill.synth.laws.published:{law}", _PARTITION),)
        for prefix in ("synth", "synth_smoke")
        for name, law in (
            ("kd_shards", "kd_shard_laws"),
            ("kd_manifest", "kd_manifest_laws"),
        )
    },
}

# Laws that recompute what takes long, and can do so for a sample (keyword `sampled`).
_SAMPLING: Final = frozenset({"validated_laws", "dataset_laws", "cache_laws"})


def check(
    asset: str,
    folder: Path,
    partition: str | None = None,
    inputs: Sequence[Path] = (),
    leave_out: str = "",
    sampled: bool = False,
) -> Iterator[Violation]:
    """Yield what `folder`, an artifact of `asset`, breaks; nothing where no laws are known.

    `where` of a violation is a path in the folder, or a place in its contents.
    inputs: folders of the artifacts it was made from; laws that compare with them
        are left out where they are not at hand. leave_out: the name of a
        law function that is not to be asked. sampled: what takes long to
        recompute may be recomputed for a sample, by a fixed seed: for a second
        look at what obeyed its laws whole before the commit.
    """
    for path, wants in _LAWS.get(asset, ()):
        module, name = path.split(":")
        if name == leave_out:
            continue
        there = tuple(inputs) if all(path.exists() for path in inputs) else ()
        if wants == _INPUTS and not there:
            continue
        law = getattr(import_module(module), name)
        more = {_FOLDER: (), _PARTITION: (partition,)}.get(wants, there)
        named = {"sampled": True} if sampled and name in _SAMPLING else {}
        yield from law(folder, *more, **named)
