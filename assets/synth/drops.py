"""Which drop the SYNTH dataset is built from, as the settings say, and its files as inputs."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from assets.synth.records import FOLDER, HARMONY, RAW, READY, record_path
from gristmill.contract import BadInput, GristmillError
from gristmill.provenance import Input, raw_inputs
from gristmill.synth.build import source as sources
from gristmill.synth.build.source import NUMBERS, Source
from gristmill.synth.raw import files as raw
from resources import Lake

_ASSETS = {sources.RAW: RAW, sources.READY: READY}


def raw_file_count(lake: Lake, folder: Path) -> int:
    """How many raw files make a drop complete. BadInput where the setting is no number."""
    count = lake.settings(RAW, folder).get("files", raw.FILES)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BadInput(
            "gristmill.toml", f"[synth.raw] files = {count!r}: must be a number of files"
        )
    return count


def source_of(lake: Lake) -> Source:
    """The drop that `synth_harmony/` is made from; GristmillError where that is not clear."""
    named = lake.settings(HARMONY).get("drop")
    return sources.chosen(lake.root / "drops", named, partial(raw_file_count, lake))


def available(lake: Lake) -> Sequence[str]:
    """The shards that a drop at hand feeds: all of them, or none."""
    try:
        source_of(lake)
    except GristmillError:
        return ()  # which drop is refused, and why, the inboxes tell
    return NUMBERS


def refusal(path: Path) -> str | None:
    """Why the drop at `path`, in either inbox, is not built from now; None where it is."""
    lake = Lake(data_root=str(path.parents[2]))
    mine = Source(path.parent.name, path)
    try:
        if reason := sources.refusal(mine, raw_file_count(lake, path)):
            return reason
        if (used := source_of(lake)) != mine:
            return f"{used.name} is the drop in use: name this one in gristmill.toml to change that"
    except GristmillError as error:
        return str(error)
    return None


def drop_inputs(lake: Lake, source: Source, files: Iterable[Path], record: str) -> list[Input]:
    """Files of a drop as inputs; those that the record of that name knows are not hashed again."""
    known = raw_inputs.known_hashes(record_path(lake, FOLDER, record))
    return raw_inputs.raw_inputs(
        lake.root, files, _ASSETS[source.inbox], source.folder.name, known=known
    )
