"""Which drop the Harmony dataset is built from: raw files, or a finished conversion.

The sample drop is used only if there is no other complete drop.
Source: `docs/formats/synth.md#complete-drop`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, GristmillError
from gristmill.inbox.account import Account
from gristmill.inbox.sample_mark import own_files, sums_of
from gristmill.synth.raw import drops as raw_drops
from gristmill.synth.raw import files
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.limits import explained

RAW: Final = raw_drops.RAW
"""Name of the inbox of raw files."""
READY: Final = raw_drops.READY
"""Name of the inbox of finished conversions."""
SAMPLES: Final = "samples"
"""Name of the sample drop."""

NUMBERS: Final = raw_drops.NUMBERS
"""The numbers of the shards, in file names and partitions."""

FilesOf = Callable[[Path], int]
"""Takes a drop; returns the configured number of its raw files."""


@dataclass(frozen=True)
class Source:
    """A drop.

    inbox: RAW or READY.
    folder: the drop, in that inbox.
    """

    inbox: str
    folder: Path

    @property
    def name(self) -> str:
        """Its name in settings, as `synth/first`."""
        return f"{self.inbox}/{self.folder.name}"


def account(source: Source, expected: int, links: LinkRule = REFUSE_LINKS) -> Account:
    """What becomes of each file of a drop.

    source: the drop.
    expected: number of its Parquet files, for raw files.
    links: what happens to files that are links; default: they are refused.

    Raises BadInput for a drop that cannot be built, whatever the other drops are.
    """
    if source.inbox == RAW:
        return raw_drops.raw_account(source.folder, links, expected)
    from gristmill.synth.builders import import_harmony

    found = raw_drops.ready_account(source.folder, links)
    for violation in import_harmony.folder_violations(source.folder, links):
        raise BadInput(source.folder, str(violation))
    return found


def refusal(source: Source, expected: int, links: LinkRule = REFUSE_LINKS) -> str | None:
    """Return why a drop cannot be built, whatever the other drops are, or None.

    source, expected, links: as for `account`.
    """
    try:
        account(source, expected, links)
    except BadInput as error:
        return str(error)
    return None


def present_sources(drops: Path) -> list[Source]:
    """Return the folders in both inboxes, complete or not. Hidden folders are left out."""
    return [
        Source(inbox, folder)
        for inbox in (RAW, READY)
        for folder in sorted((drops / inbox).glob("*"))
        if folder.is_dir() and not folder.name.startswith(".")
    ]


def chosen(
    drops: Path, name: str | None, files_of: FilesOf, links: LinkRule = REFUSE_LINKS
) -> Source:
    """Return the drop that the dataset is built from.

    drops: the folder `drops/` of the data root.
    name: `Source.name` of the configured drop, or None.
    files_of: returns the configured number of raw files of a drop. A drop for which it raises
        GristmillError is not complete.
    links: what happens to files that are links; default: they are refused.

    Raises GristmillError if there is no drop, if none is complete, or if several
    are and none is named.
    """
    present = present_sources(drops)
    if name is not None:
        present = [source for source in present if source.name == name]
        if not present:
            raise GristmillError(
                f"{drops}: there is no drop {name!r}, which gristmill.toml names: correct "
                "[synth.harmony] drop, or bring the drop back"
            )
    if not present:
        raise GristmillError(
            f"{drops}: there is no drop: put raw files into {RAW}/<name>/, or a finished "
            f"conversion into {READY}/<name>/"
        )
    refusals = {source: _refusal(source, files_of, links) for source in present}
    complete = _without_samples([source for source in present if refusals[source] is None])
    if not complete:
        raise GristmillError("\n".join(str(reason) for reason in refusals.values()))
    if len(complete) > 1:
        raise GristmillError(_several(complete))
    return complete[0]


def _refusal(source: Source, files_of: FilesOf, links: LinkRule) -> str | None:
    """Why a drop cannot be built. Whatever is wrong with one drop does not stop the others."""
    try:
        return refusal(source, files_of(source.folder), links)
    except Exception as error:  # noqa: BLE001  any error of one drop refuses that drop alone
        return explained(error)[0]


def _several(complete: Sequence[Source]) -> str:
    names = ", ".join(source.name for source in complete)
    return (
        f"several drops are complete ({names}) and there is one dataset: name the one to build "
        f'from in the data root\'s gristmill.toml, [synth.harmony] drop = "{complete[0].name}"'
    )


def _without_samples(sources: list[Source]) -> list[Source]:
    return [source for source in sources if not is_sample(source.folder)] or sources


def is_sample(folder: Path) -> bool:
    """Return whether a drop is the sample, without files of a person."""
    if not (own := own_files(folder)):
        return folder.name == SAMPLES and not sums_of(folder)
    return own.issuperset(path.name for path in files.files(folder))
