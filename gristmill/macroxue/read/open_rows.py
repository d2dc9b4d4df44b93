"""Maps the rows of a pack and of its value sidecar, each in one generation.

See also `dataset.py`: what the rows mean.
"""

from __future__ import annotations

from gristmill.contract import BadInput
from gristmill.macroxue.format.foreign_packs import refuse_foreign_rows
from gristmill.macroxue.format.shards import open_steps, open_values, step_files, value_files
from gristmill.macroxue.read.gather import Gather
from gristmill.reading.folder import OpenFolder, made_from_another


def open_pack_rows(pack: OpenFolder) -> Gather:
    """The rows of all steps files of a pack or pool.

    Raises BadInput for a missing or damaged file, for foreign rows, and for files of different
    layouts.
    """
    names = [file.name for file in step_files(pack.inside)]
    maps = []
    for name in names:
        file = pack.file(name)
        refuse_foreign_rows(file)
        maps.append(open_steps(file))
        if maps[-1].dtype != maps[0].dtype:
            raise BadInput(
                pack.path / name,
                f"has another row layout than {names[0]}: pack or merge again",
            )
    return Gather(maps)


def open_sidecar_rows(sidecar: OpenFolder, steps: Gather) -> Gather:
    """The rows of all files of a value sidecar.

    Raises BadInput for a missing or damaged file, and for other shards than those of the pack.
    """
    names = [file.name for file in value_files(sidecar.inside)]
    values = Gather([open_values(sidecar.file(name)) for name in names])
    if values.counts != steps.counts:
        raise BadInput(
            sidecar.path,
            f"has shards of {values.counts} rows, the pack of {steps.counts}:"
            " build the sidecar of this pack",
        )
    return values


def refuse_values_of_another(sidecar: OpenFolder, pack: OpenFolder) -> None:
    """Raise BadInput where the records say that a sidecar was built from another version."""
    if made_from_another(sidecar, pack):
        raise BadInput(
            sidecar.path,
            f"was built from another version of {pack.path}: build the sidecar again",
        )
