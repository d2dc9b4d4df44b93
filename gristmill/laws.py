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

# A law is called with the artifact's folder and, where its line says so, with
# the partition (of a folder that several share) or the folders of the
# artifacts that it was made from.
_FOLDER, _PARTITION, _INPUTS = range(3)
_LAWS: Final = {
    "macroxue/pack": (
        ("gristmill.macroxue.laws:pack_laws", _FOLDER),
        ("gristmill.macroxue.game_laws:game_laws", _FOLDER),
    ),
    "macroxue/pool": (
        ("gristmill.macroxue.pool_laws:pool_laws", _FOLDER),
        ("gristmill.macroxue.game_laws:game_laws", _FOLDER),
    ),
    "macroxue/values": (("gristmill.macroxue.value_laws:value_laws", _INPUTS),),
    "synth/harmony": (("gristmill.synth.laws:harmony_laws", _PARTITION),),
    "synth/kd_shards": (("gristmill.synth.laws:kd_laws", _PARTITION),),
    "synth_smoke/kd_shards": (("gristmill.synth.laws:kd_laws", _PARTITION),),
}


def check(
    asset: str,
    folder: Path,
    partition: str | None = None,
    inputs: Sequence[Path] = (),
    leave_out: str = "",
) -> Iterator[Violation]:
    """Yield what `folder`, an artifact of `asset`, breaks; nothing where no laws are known.

    `where` of a violation is a path in the folder, or a place in its contents.
    inputs: folders of the artifacts it was made from. leave_out: the name of a
        law function that is not to be asked.
    """
    for path, wants in _LAWS.get(asset, ()):
        module, name = path.split(":")
        if name == leave_out:
            continue
        law = getattr(import_module(module), name)
        more = {_FOLDER: (), _PARTITION: (partition,), _INPUTS: tuple(inputs)}[wants]
        yield from law(folder, *more)
