"""Verification: published artifacts against their records, without holding a lock.

No builder ever waits: an artifact that was replaced while it was read is read again. Source:
docs/publishing.md#verify.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gristmill.contract import GristmillError, Violation
from gristmill.provenance import inventory, stable_listing
from gristmill.provenance import record as provenance
from gristmill.provenance.check_artifact import (
    MALFORMED,
    ArtifactCheck,
    Hashes,
    broken_laws,
    input_folders,
    unlisted,
)
from gristmill.provenance.find_artifacts import (
    Artifact,
    artifacts,
    artifacts_in,
    folders_of,
)
from gristmill.run.progress import SILENT, Progress

_PASSES = 5
"""How often an artifact is read that builders replace again and again."""


def verify(
    path: Path,
    *,
    data_root: Path | None = None,
    check_inputs: bool = True,
    check_laws: bool = True,
    progress: Progress = SILENT,
    left_out: list[str] | None = None,
) -> list[Violation]:
    """Check the artifact at `path`, or every artifact below it, against its records.

    Sizes and sha256 of all outputs, files that no record lists, the digests of
    the record itself, its inputs (raw files by hash; artifacts by their data version and
    the bytes of their files, on to the raw files that they were made from), the laws of the
    family, and what is missing by the inventory of the data root.

    path: an artifact's folder or any folder above some.
    data_root: where paths of inputs start; None takes it from the artifact's
        own place, which ends in the path that its record names.
    check_inputs: False where raw drops were archived elsewhere.
    check_laws: False compares bytes and records only.
    progress: counts bytes hashed; None counts nothing.
    left_out: takes a line for each law that was not asked of an artifact, with the reason;
        default: nobody wants them.

    Returns violations, none where all is well. An artifact that a builder
    replaces meanwhile is checked in its new version; an artifact that is removed
    meanwhile has no violations. Raises GristmillError where no artifact is at or
    below `path`.
    """
    path = path.absolute()
    folders = folders_of(artifacts(path))
    unasked: list[str] = []
    checks = _Checks(
        data_root, check_inputs, True, check_laws, follow=check_inputs, unasked=unasked
    )
    violations = checks.of(folders, progress) if folders else []
    if left_out is not None:
        left_out.extend(dict.fromkeys(unasked))  # what was replaced meanwhile was asked twice
    violations += inventory.missing(path)
    if not violations and not any(map(provenance.holds_record, folders)):
        raise GristmillError(f"{path}: no artifact with a provenance record is here or below")
    return violations


@dataclass(frozen=True)
class Finding:
    """One violation, and what it is about.

    item: the artifact; None for a file of a shared folder that belongs to no record.
    """

    item: Artifact | None
    folder: Path
    violation: Violation


def survey(
    items: Collection[Artifact],
    *,
    check_bytes: bool = True,
    check_laws: bool = True,
    sampled: bool = False,
    committed_since: datetime | None = None,
    whole_folders: bool = True,
) -> list[Finding]:
    """Returns what is wrong with some artifacts.

    check_bytes: check records, hashes and inputs.
    committed_since: the verdict of the commit counts for artifacts that were built since this
        time: files with the recorded size and time are not read again. Default None: everything
        is read.
    whole_folders: look in folders that partitions share for files of no record, which takes the
        records of all partitions in them; default True.
    """
    wanted: dict[Path, list[Artifact]] = {}
    for item in items:
        wanted.setdefault(item.folder, []).append(item)
    checks = _Checks(
        None,
        True,
        check_bytes,
        check_laws,
        sampled,
        committed_since=committed_since,
        only=wanted,
        whole_folders=whole_folders,
    )
    return checks.findings(wanted, SILENT)


def as_notes(item: Artifact, found: Iterable[Violation]) -> list[Finding]:
    """Returns what is unusual in an artifact, with its folder as the place."""
    return [
        Finding(item, item.folder, Violation(note.law, f"{item.folder}: {note.where}", note.found))
        for note in found
    ]


def is_committed(item: Artifact, since: datetime | None) -> bool:
    """Whether the commit checked these very files since some time."""
    if since is None:
        return False
    try:
        record = provenance.read_record(item.record_path)
        stats = [(output, (item.folder / output.path).stat()) for output in record.outputs]
        return record.created >= since and all(
            (stat.st_size, stat.st_mtime_ns) == (output.bytes, output.mtime_ns)
            for output, stat in stats
        )
    except (*MALFORMED, TypeError):
        return False  # TypeError: `created` has no time zone, as in no record of ours


@dataclass(frozen=True)
class _Checks:
    """What is checked of artifacts; those replaced while they were read are checked again."""

    data_root: Path | None
    check_inputs: bool
    check_bytes: bool
    check_laws: bool
    sampled: bool = False
    follow: bool = False
    committed_since: datetime | None = None
    only: Mapping[Path, Collection[Artifact]] | None = None
    whole_folders: bool = True
    unasked: list[str] = field(default_factory=list)

    def of(self, folders: Collection[Path], progress: Progress = SILENT) -> list[Violation]:
        """Violations of the artifacts wanted in these folders, folder by folder."""
        return [finding.violation for finding in self.findings(folders, progress)]

    def findings(self, folders: Collection[Path], progress: Progress) -> list[Finding]:
        """The same, with the artifact that each is about."""
        by_folder: dict[Path, list[Finding]] = {}
        with (
            progress.stage("verify", unit="bytes", total=0) as stage,
            ThreadPoolExecutor(os.cpu_count()) as threads,
        ):
            for _ in range(_PASSES):
                before = {
                    folder: stable_listing.generations(self._read(folder)) for folder in folders
                }
                by_folder |= self._pass(folders, Hashes(threads, stage))
                folders = [
                    folder
                    for folder, generations in before.items()
                    if by_folder[folder] and stable_listing.generations(generations) != generations
                ]
                if not folders:
                    break
        for folder in folders:
            reason = f"a builder replaced it during each of {_PASSES} passes: verify after it ends"
            replaced = Violation("replaced", str(folder), reason)
            by_folder[folder] = [Finding(next(iter(self._items(folder)), None), folder, replaced)]
        return [
            finding
            for folder, findings in by_folder.items()
            if stable_listing.generation(folder) is not None
            for finding in findings
        ]

    def _read(self, folder: Path) -> set[Path]:
        """The folder, and the folders of the artifacts that those in it were made from."""
        read = {folder}
        items = self._items(folder)
        if self.follow:
            read.update(used.artifact.folder for used in self._used(items))
        for item in items:
            try:
                read.update(input_folders(item, self.data_root))
            except MALFORMED:
                continue  # the pass that follows reports it
        return read

    def _items(self, folder: Path) -> list[Artifact]:
        """The artifacts of a folder that are checked, of those that are still there."""
        if self.only is None:
            return artifacts_in(folder)
        return [item for item in self.only[folder] if os.path.lexists(item.record_path)]

    def _used(self, items: Collection[Artifact]) -> Iterator[_Used]:
        return _used_by(items, self.data_root)

    def _pass(self, folders: Collection[Path], hashes: Hashes) -> dict[Path, list[Finding]]:
        items = [item for folder in folders for item in self._items(folder)]
        by_folder: dict[Path, list[Finding]] = {folder: [] for folder in folders}

        def add(item: Artifact | None, folder: Path, violations: Iterable[Violation]) -> None:
            by_folder[folder] += (Finding(item, folder, broken) for broken in violations)

        if self.check_bytes:
            followed = list(self._used(items)) if self.follow else []
            checks = [
                ArtifactCheck(
                    item, self.data_root, hashes, is_committed(item, self.committed_since)
                )
                for item in items
            ]
            inputs = [ArtifactCheck(used.artifact, self.data_root, hashes) for used in followed]
            for check in [*checks, *inputs]:
                check.start(self.check_inputs)
            for used, check in zip(followed, inputs, strict=True):
                add(used.user, used.user.folder, _as_input(used, check.violations()))
            for item, check in zip(items, checks, strict=True):
                add(item, item.folder, check.violations())
            for folder in folders:
                own = next((item for item in items if item.folder == folder), None)
                if own is None or (own.partition is not None and not self.whole_folders):
                    continue
                # Records of partitions that were not asked for list their files, too.
                about = own if own.partition is None else None
                add(about, folder, unlisted(folder, artifacts_in(folder)))
        if self.check_laws:
            # Laws read the files: check them only in artifacts that are as recorded.
            bad = [
                Path(finding.violation.where) for found in by_folder.values() for finding in found
            ]
            for item in items:
                if not any(map(item.holds, bad)) and not is_committed(item, self.committed_since):
                    add(
                        item,
                        item.folder,
                        broken_laws(item, self.data_root, self.sampled, self.unasked),
                    )
        return by_folder


def _as_input(used: _Used, violations: Iterable[Violation]) -> Iterator[Violation]:
    """What is wrong with an artifact, as its user is concerned."""
    for broken in violations:
        found = broken.found if broken.law == "input" else f"{broken.law}: {broken.found}"
        yield Violation("input", broken.where, f"{found}: {used.user.title} was made from it")


@dataclass(frozen=True)
class _Used:
    """An artifact that others were made from; `user` is the first of these."""

    artifact: Artifact
    user: Artifact


def _used_by(items: Iterable[Artifact], data_root: Path | None) -> Iterator[_Used]:
    """The artifacts that `items` were made from, over any number of steps, each once.

    One that is gone, was built again or has no readable record is left out: the check of the record
    that names it reports that.
    """
    todo = [(item, item) for item in items]
    known = {item.record_path for item, _ in todo}
    for item, user in todo:
        for artifact in _inputs(item, data_root):
            if artifact.record_path not in known:
                known.add(artifact.record_path)
                todo.append((artifact, user))
                yield _Used(artifact, user)


def _inputs(item: Artifact, data_root: Path | None) -> Iterator[Artifact]:
    """The artifacts that `item` was made from and that are still the version it used."""
    try:
        record = provenance.read_record(item.record_path)
        root = data_root or item.data_root(record)
        inputs = provenance.read_inputs(record, item.record_path)
    except MALFORMED:
        return
    for given in inputs:
        if root is None or given.path is None or given.data_version is None:
            continue
        folder = root / given.path
        try:
            path = provenance.published_record_path(folder, given.partition)
            if path is None or provenance.read_record(path).data_version != given.data_version:
                continue
        except MALFORMED:
            continue
        yield Artifact(folder, path)
