"""The drop that the SYNTH datasets are built from, and its files as inputs."""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from assets.synth.records import FOLDER, HARMONY, RAW, READY, record_path
from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.provenance import Input, raw_inputs
from gristmill.synth.builders import source as sources
from gristmill.synth.builders.drop_in_use import source_of
from gristmill.synth.builders.source import NUMBERS, Source
from resources import Lake

_ASSETS = {sources.RAW: RAW, sources.READY: READY}


def refuse_samples(lake: Lake, source: Source) -> None:
    """Raise GristmillError if samples would take the place of what another drop was built into.

    A drop that was moved away, or that a copy left incomplete, must not end the dataset. A shard
    whose record is damaged does not say what it was built from: `publish` replaces it if asked to.
    The sample drop may be named in gristmill.toml.
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


def drop_inputs(lake: Lake, source: Source, files: Iterable[Path], record: str) -> list[Input]:
    """Returns files of a drop as inputs; files that the record knows are not hashed again.

    Raises BadInput where two raw files have the same bytes.
    """
    known = raw_inputs.known_hashes(record_path(lake, FOLDER, record))
    inputs = raw_inputs.raw_inputs(
        lake.root,
        files,
        _ASSETS[source.inbox],
        source.folder.name,
        known=known,
        links=lake.link_rule(),
    )
    if source.inbox == sources.RAW:
        raw_inputs.refuse_equal(lake.root, inputs)
    return inputs
