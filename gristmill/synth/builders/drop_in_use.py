"""The drop that a data root's Harmony dataset is built from, by its settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.contract import GristmillError
from gristmill.data_root import DataRoot, NotReady
from gristmill.inbox import ARRIVING, GONE, READY, REFUSED, UNREAD
from gristmill.inbox.account import Account, IsThere, Unread
from gristmill.inbox.readiness import judged_now
from gristmill.provenance import Input, raw_inputs
from gristmill.synth.builders import source as sources
from gristmill.synth.builders.source import NUMBERS, Source
from gristmill.synth.raw import files as raw
from gristmill.untrusted.files import LinkRule

HARMONY: Final = "synth/harmony"
RAW: Final = "synth/raw"
FOLDER: Final = "synth_harmony"
"""The folder of the Harmony dataset, below the data root."""
_ASSETS: Final = {sources.RAW: RAW, sources.READY: "synth/ready_harmony"}


def raw_file_count(lake: DataRoot, folder: Path) -> int:
    """Returns how many raw files make a drop complete.

    folder: the drop; its own `gristmill.toml` comes before that of the data root.
    """
    return int(lake.settings(RAW, folder).get("files", raw.FILES))


def source_of(lake: DataRoot) -> Source:
    """Returns the drop that `synth_harmony/` is built from.

    Raises NotReady if there is no drop, if none has arrived, or if several have and the settings
    name none of them; GristmillError with the reasons if one is refused and none is ready.
    """
    setting = lake.settings(HARMONY).get("drop")
    states = set()

    def files_of(folder: Path) -> int:
        found, _ = judged_now(folder, lake.asked(folder.parent.name, alone=True))
        states.add(found.state)
        if found.state != READY:
            named = "" if str(folder) in found.reason else f"{folder}: "
            raise GristmillError(f"{named}{found.reason}")
        return raw_file_count(lake, folder)

    try:
        return sources.chosen(lake.root / "drops", setting, files_of, lake.rules(sources.RAW)[0])
    except GristmillError as error:
        if REFUSED in states and READY not in states:
            raise
        state = UNREAD if READY in states else ARRIVING if states else GONE
        raise NotReady(state, str(error)) from error


def record_path(lake: DataRoot, artifact: str, partition: str) -> Path:
    """Returns the path of a shard's record in the folder that the shards share.

    lake: the data root.
    artifact: path of the folder relative to the data root.
    partition: number of the shard, or `manifest`.
    """
    return provenance.record_path(lake.root / artifact, partition, shared=True)


def drop_of_shard(lake: DataRoot, number: str) -> Path | None:
    """Returns the drop that a Harmony shard was built from, which may be gone, or None."""
    path = record_path(lake, FOLDER, number)
    if not path.exists():
        return None
    inputs = provenance.read_inputs(provenance.read_record(path), path)
    return next(((lake.root / item.path).parent for item in inputs if item.path), None)


def refuse_samples(lake: DataRoot, source: Source) -> None:
    """Raise GristmillError if samples would take the place of what another drop was built into.

    source: the drop to build from. The sample drop may be named in gristmill.toml.

    A drop that was moved away, or that a copy left incomplete, must not end the dataset. A shard
    whose record is damaged does not say what it was built from: `publish` replaces it if asked to.
    """
    if not sources.is_sample(source.folder) or lake.settings(HARMONY).get("drop"):
        return
    for number in NUMBERS:
        try:
            used = drop_of_shard(lake, number)
        except GristmillError:
            continue
        if used is None or used == source.folder:
            continue
        what = "is not complete" if used.is_dir() else "is gone"
        raise GristmillError(
            f"{lake.root / FOLDER}: its drop {what}: {used.relative_to(lake.root)}; bring it back, "
            f"or take the shards away to build them from the samples: `gristmill remove {HARMONY} "
            f"--partition {number}`, and so on for each shard"
        )


def available(lake: DataRoot) -> Sequence[str]:
    """Returns the shards that can be built: all of them, or none without a drop in use."""
    try:
        source_of(lake)
    except GristmillError:
        return ()  # the inboxes report which drop is refused and why
    return NUMBERS


def drop_inputs(lake: DataRoot, source: Source, files: Iterable[Path], record: str) -> list[Input]:
    """Returns files of a drop as inputs; files that the record knows are not hashed again."""
    known = raw_inputs.known_hashes(record_path(lake, FOLDER, record))
    asset, name = _ASSETS[source.inbox], source.folder.name
    inputs = raw_inputs.raw_inputs(lake.root, files, asset, name, known, lake.link_rule())
    if source.inbox == sources.RAW:
        raw_inputs.refuse_equal(lake.root, inputs)
    return inputs


def root_above(drop: Path) -> Path:
    """The folder in which `drops/` holds a drop; for a path of fewer folders the highest one."""
    return drop.parents[:3][-1]


def account(inbox: str, drop: Path, links: LinkRule) -> Account:
    """Returns what becomes of each file of a drop. Raises GristmillError for one that is refused.

    inbox: `RAW` or `READY` of `source.py`.
    """
    count = raw_file_count(DataRoot(root_above(drop)), drop)
    return sources.account(Source(inbox, drop), count, links)


def needs(drop: Path, root: Path, _is_there: IsThere) -> None:
    """Raise Unread for a drop that is not the one in use."""
    try:
        used = source_of(DataRoot(root))
    except GristmillError as error:
        raise Unread(str(error)) from error
    if used.folder != drop:
        raise Unread(
            f"{used.name} is the drop in use: to use this drop, name it in gristmill.toml as "
            "[synth.harmony] drop"
        )
