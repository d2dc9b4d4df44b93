"""The one law of all assets, `rebuilt`: what a record names is built again, and has its bytes."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from gristmill import provenance
from gristmill.asset import Asset, Wanted, declared
from gristmill.contract import GristmillError, NothingToBuild, Violation, in_words
from gristmill.data_root import DataRoot, NotBuilt
from gristmill.layout import PARTS, SLOTS, WORK
from gristmill.provenance import Input, Output, Record, environment
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import MALFORMED
from gristmill.publish import atomic_fs
from gristmill.publish.build import (
    Attempt,
    Build,
    DiskFull,
    InputChanged,
    InputDamaged,
    check_space,
    lock_of_slot,
    translate_disk_errors,
)
from gristmill.publish.input_proof import InputProof
from gristmill.publish.publish import hashes_of
from gristmill.run import interrupts, locks
from gristmill.run.parts import LatePartStore
from gristmill.run.progress import SILENT, Progress

LAW: Final = "rebuilt"
_SLOT: Final = "verify-rebuild"
"""`gristmill prune` removes what a kill leaves in it, as in the slot of a build."""
_TABLES: Final = (".db", ".parquet")
"""Libraries lay them out. A JSON file with a digest of its content has the time of its build."""
_NOT_JUDGED: Final = (DiskFull, InputChanged, InputDamaged, NotBuilt, NothingToBuild)


class _NotJudged(Exception):
    """Why nothing is compared."""


@dataclass(frozen=True)
class Rebuilt:
    """What building one artifact again has shown.

    not_judged: why nothing was compared; empty where the bytes were.
    """

    item: Artifact
    violations: list[Violation]
    not_judged: str = ""


def space(items: Iterable[Artifact]) -> int:
    """The bytes of the largest of some artifacts: they are built one after the other."""
    records = map(_record, items)
    return max((_bytes(record) for record in records if record is not None), default=0)


def rebuilt(
    items: Iterable[Artifact], data_root: Path | None = None, progress: Progress = SILENT
) -> Iterator[Rebuilt]:
    """Yield what building artifacts again shows: the files whose bytes are not those recorded.

    Each is built by its record's config and not by today's `gristmill.toml`, in a folder below
    `.gristmill` of the data root, which is removed. Nothing is compared where code, config, inputs
    or libraries are not the record's. What is published, and its locks, are left alone.

    data_root: where paths of inputs start; None takes it from the artifact's own place.

    Raises locks.NotWritable where nothing can be written in the data root.
    """
    for item in items:
        interrupts.raise_again()
        record = _record(item)
        if record is None:
            continue  # whoever verifies the record reports it
        try:
            found = list(_differences(item, record, data_root, progress))
        except _NotJudged as why:
            yield Rebuilt(item, [], str(why))
        except locks.NotWritable:
            raise
        except Exception as error:  # noqa: BLE001  the other artifacts are built, too
            reason = str(error) if isinstance(error, GristmillError) else repr(error)
            wrong = Violation(LAW, str(item.folder), f"cannot be built again: {reason}")
            yield Rebuilt(item, [wrong])
        else:
            yield Rebuilt(item, found)


def _record(item: Artifact) -> Record | None:
    try:
        return provenance.read_record(item.record_path)
    except MALFORMED:
        return None


def _bytes(record: Record) -> int:
    return sum(output.bytes for output in record.outputs)


def _differences(
    item: Artifact, record: Record, data_root: Path | None, progress: Progress
) -> Iterator[Violation]:
    root = data_root or item.data_root(record)
    if root is None:
        raise _NotJudged(f"it does not lie at {record.artifact} below a data root")
    build = _build(item, record, DataRoot(root))
    found = {output.path: output for output in _made_again(build, record, progress)}
    recorded = {output.path: output for output in record.outputs}
    is_exact = provenance.config_fields(build.config) == record.config and (
        environment.libraries(),
        environment.platform(),
    ) == (record.libraries, record.platform)
    for path in sorted(found.keys() | recorded.keys()):
        if wrong := _wrong(recorded.get(path), found.get(path), is_exact):
            yield Violation(LAW, str(item.folder / path), wrong)


def _wrong(recorded: Output | None, made: Output | None, is_exact: bool) -> str:
    """How a file differs from what its builder makes; empty where it does not."""
    if not any(each is not None and each.payload for each in (recorded, made)):
        return ""
    if made is None:
        return "is not made again"
    if recorded is None:
        return "is made again, and no record lists it"
    if made.content_sha256 is not None and not (is_exact and made.path.endswith(_TABLES)):
        is_same = made.content_sha256 == recorded.content_sha256
    else:
        is_same = made.sha256 == recorded.sha256
    return "" if is_same else "has other bytes when it is built again"


def _build(item: Artifact, record: Record, root: DataRoot) -> Build:
    """The build that a record describes. Raises _NotJudged where it would be another one."""
    asset = declared().get(record.asset)
    if asset is None:
        raise _NotJudged(f"nothing here builds {record.asset}")
    try:
        inputs = provenance.read_inputs(record, item.record_path)
        if gone := next((each for each in inputs if _is_gone(root.root, each)), None):
            raise _NotJudged(f"inputs gone ({gone.path})")
        partition = (record.partition or "") if asset.partitions else ""
        build = asset.build(
            Wanted(asset, root, partition, _chosen(asset, record), is_comparison=True)
        )
        if build.fetches:
            raise _NotJudged("inputs gone (it was downloaded)")
        if not build.made(record):
            raise _NotJudged("; ".join(build.changes(record)))
    except (*MALFORMED, TypeError) as error:
        raise _NotJudged(f"config changed or does not load: {in_words(error)}") from error
    return build


def _is_gone(root: Path, item: Input) -> bool:
    if item.path is None:
        return False
    if item.data_version is not None:
        return provenance.published_version(root / item.path, item.partition) is None
    return item.mtime_ns is not None and not (root / item.path).exists()


def _chosen(asset: Asset, record: Record) -> dict[str, Any]:
    """The values of a record's config, by the key of the asset's table."""
    if asset.table is None:
        return {}
    return {
        key: record.config[name]
        for key, name, _ in asset.choices()
        if name in record.config and key not in asset.filled_in
    }


def _made_again(build: Build, record: Record, progress: Progress) -> list[Output]:
    """The files that a build makes of proved inputs, with their hashes."""
    proof = InputProof(build, progress)
    try:
        with _scratch(build, progress) as slot, translate_disk_errors(build):
            check_space(replace(build, space=max(build.space, _bytes(record))), slot)
            proof.before()
            out = slot / "staging"
            parts = LatePartStore(slot / PARTS, keep_from=math.inf)
            with progress.current():
                summary = build.make(Attempt(out, build.folder, parts, build.recipe, progress))
            proof.after()
            hashes = hashes_of(out, summary.files, progress)
            return provenance.outputs_of(out, hashes, summary.files)
    except _NOT_JUDGED as error:
        raise _NotJudged(str(error)) from error


@contextmanager
def _scratch(build: Build, progress: Progress) -> Iterator[Path]:
    """A folder on the file system of the data root, empty, and removed at the end."""
    slot = build.root / WORK / SLOTS / _SLOT
    with locks.locked(lock_of_slot(slot), "verify --rebuild", wait=True, progress=progress):
        atomic_fs.remove_tree(slot)
        slot.mkdir(parents=True)
        try:
            yield slot
        except BaseException as error:
            # Frames of a traceback keep workers alive, which write into the folder.
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            atomic_fs.remove_tree(slot)
