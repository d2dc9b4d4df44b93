"""The drop that the SYNTH datasets are built from, and its files as inputs."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from assets.synth.records import FOLDER, HARMONY, RAW, READY, record_path
from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.provenance import Input, raw_inputs
from gristmill.synth.build import source as sources
from gristmill.synth.build.source import NUMBERS, Source
from gristmill.synth.raw import files as raw
from resources import Lake

_ASSETS = {sources.RAW: RAW, sources.READY: READY}


def raw_file_count(lake: Lake, folder: Path) -> int:
    """Returns how many raw files make a drop complete.

    lake: the data root.
    folder: the drop; its own `gristmill.toml` comes before that of the data root.

    Raises BadInput if the settings are wrong.
    """
    return int(lake.settings(RAW, folder).get("files", raw.FILES))


def source_of(lake: Lake) -> Source:
    """Returns the drop that `synth_harmony/` is built from.

    lake: the data root.

    Raises GristmillError if there is no drop, or several and the settings name none of them.
    """
    setting = lake.settings(HARMONY).get("drop")
    return sources.chosen(
        lake.root / "drops", setting, partial(raw_file_count, lake), lake.link_rule()
    )


def refuse_samples(lake: Lake, source: Source) -> None:
    """Raise GristmillError if samples would take the place of what another drop was built into.

    lake: the data root.
    source: the drop to build from. The sample drop may be named in gristmill.toml.

    A drop that was moved away, or that a copy left incomplete, must not end the dataset. A shard
    whose record is damaged does not say what it was built from: `publish` replaces it if asked to.
    """
    if not sources.is_sample(source.folder) or lake.settings(HARMONY).get("drop"):
        return
    for number in NUMBERS:
        path = record_path(lake, FOLDER, number)
        if not path.exists():
            continue
        try:
            record = provenance.read_record(path)
        except GristmillError:
            continue
        inputs = provenance.read_inputs(record, path)
        used = next((PurePosixPath(item.path).parent for item in inputs if item.path), None)
        if used is None or lake.root / used == source.folder:
            continue
        what = "is not complete" if (lake.root / used).is_dir() else "is gone"
        raise GristmillError(
            f"{lake.root / FOLDER}: its drop {what}: {used}; bring it back, or take the shards "
            f"away to build them from the samples: `gristmill remove {HARMONY} --partition "
            f"{number}`, and so on for each shard"
        )


def available(lake: Lake) -> Sequence[str]:
    """Returns the shards that can be built: all of them, or none without a drop in use.

    lake: the data root.
    """
    try:
        source_of(lake)
    except GristmillError:
        return ()  # the inboxes report which drop is refused and why
    return NUMBERS


def refusal(path: Path) -> str | None:
    """Returns why a drop is not built, or None.

    path: the drop, in `drops/synth/` or `drops/synth_harmony/`.
    """
    lake = Lake(data_root=str(path.parents[2]))
    drop = Source(path.parent.name, path)
    try:
        if reason := sources.refusal(drop, raw_file_count(lake, path), lake.link_rule()):
            return reason
        if (used := source_of(lake)) != drop:
            return (
                f"{used.name} is the drop in use: to use this drop, name it in gristmill.toml as "
                "[synth.harmony] drop"
            )
    except GristmillError as error:
        return str(error)
    return None


def drop_inputs(lake: Lake, source: Source, files: Iterable[Path], record: str) -> list[Input]:
    """Returns files of a drop as inputs; files that the record knows are not hashed again.

    lake: the data root.
    source: the drop.
    files: the files, all below the drop.
    record: name of the record in `synth_harmony/`: a shard's number, or `manifest`.
    """
    known = raw_inputs.known_hashes(record_path(lake, FOLDER, record))
    return raw_inputs.raw_inputs(
        lake.root,
        files,
        _ASSETS[source.inbox],
        source.folder.name,
        known=known,
        links=lake.link_rule(),
    )
