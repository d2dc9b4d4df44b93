"""Which drop a Harmony dataset is made from: raw files, or a ready Harmony folder.

There is one dataset `synth_harmony/`, so of several drops one has to be named;
the sample drop gives way to any other. What is in a drop belongs to `raw.py`
and `adoption.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.synth.raw import files

RAW: Final = "synth"
READY: Final = "synth_harmony"
SAMPLES: Final = "samples"
"""Name of the sample drop."""

NUMBERS: Final = tuple(f"{number:02d}" for number in range(files.SHARDS))
"""The shards of a dataset, as their files and partitions are numbered."""

FilesOf = Callable[[Path], int]


@dataclass(frozen=True)
class Source:
    """A drop: `inbox` is RAW or READY, `folder` lies in it."""

    inbox: str
    folder: Path

    @property
    def name(self) -> str:
        """As a person names it: `synth/first`."""
        return f"{self.inbox}/{self.folder.name}"


def raw_refusal(folder: Path, expected: int) -> str | None:
    """Why a folder of raw files cannot be built from yet, None where it can."""
    try:
        found = files.complete_files(folder, expected)
    except GristmillError as error:
        return str(error)
    if len(found) < len(NUMBERS):
        return f"{folder}: {len(found)} files do not fill {len(NUMBERS)} shards, which take runs"
    return None


def ready_refusal(folder: Path) -> str | None:
    """Why a ready Harmony folder cannot be adopted yet, None where it can."""
    from gristmill.synth.build import import_harmony

    found = import_harmony.shards(folder)
    if missing := [number for number in NUMBERS if number not in found]:
        return f"{folder}: there is no synth_harmony_shard_{missing[0]}.parquet"
    if strange := sorted(set(found) - set(NUMBERS)):
        return f"{folder}: shard {strange[0]} is none of {', '.join(NUMBERS)}"
    violation = next(import_harmony.folder_violations(folder), None)
    return None if violation is None else f"{folder}: {violation}"


def refusal(source: Source, expected: int) -> str | None:
    """Why a drop cannot be built from by itself, None where it can."""
    if source.inbox == RAW:
        return raw_refusal(source.folder, expected)
    return ready_refusal(source.folder)


def at_hand(drops: Path) -> list[Source]:
    """All folders in both inboxes, complete or not; hidden ones are a tool's own business."""
    return [
        Source(inbox, folder)
        for inbox in (RAW, READY)
        for folder in sorted((drops / inbox).glob("*"))
        if folder.is_dir() and not folder.name.startswith(".")
    ]


def chosen(drops: Path, name: str | None, files_of: FilesOf) -> Source:
    """The drop that the dataset is made from.

    name: as `Source.name`, where one is configured. files_of: the configured
        number of raw files of a drop.

    Raises GristmillError where there is none, it is not complete, or several
    are and none is named.
    """
    found = at_hand(drops)
    if name is not None:
        found = [source for source in found if source.name == name]
        if not found:
            raise GristmillError(f"{drops}: the drop {name!r} that gristmill.toml names is gone")
    if not found:
        raise GristmillError(
            f"{drops}: no drop is at hand: put raw files into {RAW}/<name>/, or a ready Harmony "
            f"folder into {READY}/"
        )
    reasons = {source: refusal(source, files_of(source.folder)) for source in found}
    usable = _without_samples([source for source in found if reasons[source] is None])
    if not usable:
        raise GristmillError("\n".join(str(reason) for reason in reasons.values()))
    if len(usable) > 1:
        raise GristmillError(several(usable))
    return usable[0]


def several(usable: Sequence[Source]) -> str:
    """What to do where several drops could be built from."""
    names = ", ".join(source.name for source in usable)
    return (
        f"several drops are complete ({names}) and there is one dataset: name the one to build "
        f'from in the data root\'s gristmill.toml, [synth.harmony] drop = "{usable[0].name}"'
    )


def _without_samples(found: list[Source]) -> list[Source]:
    others = [source for source in found if source.folder.name != SAMPLES]
    return others or found
