"""Comparing published artifacts with their records, byte by byte.

`gristmill.provenance.verify` is the public name. The rules of a family's
content are its `laws.py`, found through `gristmill.families`. No lock is taken, so
that no builder ever waits: what was replaced while it was read is looked at again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gristmill import families
from gristmill.contract import GristmillError, Violation
from gristmill.hashing import sha256_file
from gristmill.layout import WORK
from gristmill.provenance import record as provenance
from gristmill.provenance import stable_listing
from gristmill.provenance.record import Input, Record
from gristmill.run.progress import Progress, silent

_LOOKS = 5
"""How often an artifact is looked at that builders replace again and again."""


@dataclass(frozen=True)
class Finding:
    """One thing that is not as a record says: the file, the rule it breaks, what was found."""

    path: str
    rule: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}: {self.rule}: {self.found}"


@dataclass(frozen=True)
class _Artifact:
    """A record on disk, and the folder that it speaks of."""

    folder: Path
    record_path: Path


def verify(
    path: Path,
    *,
    data_root: Path | None = None,
    check_inputs: bool = True,
    check_laws: bool = True,
    progress: Progress | None = None,
) -> list[Finding]:
    """Check the artifact at `path`, or every artifact below it, against its records.

    Sizes and sha256 of all outputs, files that no record lists, the digests of
    the record itself, its inputs (raw files by hash, artifacts by their data
    version), and the laws of the family.

    data_root: where paths of inputs start; None takes it from the artifact's
        own place, which ends in the path that its record names.
    check_inputs: False where raw drops were archived elsewhere.

    An artifact that a builder replaces meanwhile is judged as it stands afterwards;
    one that is taken away has no findings.

    Returns the findings, none where all is well. Raises GristmillError where
    no artifact is at or below `path`.
    """
    path = path.absolute()
    folders = _folders(_artifacts(path))
    looks = _Looks(lambda _: True, data_root, check_inputs, True, check_laws)
    findings = looks.of(folders, progress) if folders else []
    if not any(map(provenance.holds_record, folders)):
        raise GristmillError(f"{path}: no artifact with a provenance record is here or below")
    return findings


def _holds(artifact: _Artifact, path: Path) -> bool:
    return path == artifact.folder or artifact.folder in path.parents


def count(path: Path) -> int:
    """How many artifacts with a record are at or below `path`."""
    return sum(1 for _ in _artifacts(path.absolute()))


def survey(
    path: Path,
    asset: str,
    partitions: Collection[str] | None = None,
    *,
    check_bytes: bool = True,
    check_laws: bool = True,
    sampled: bool = False,
) -> tuple[int, list[Finding]]:
    """How many artifacts of `asset` are at or below `path`, and the findings among them.

    partitions: look at these alone; None for all.
    check_bytes: records, hashes and inputs; check_laws: the family's laws, of which
        `sampled` may recompute a sample. An asset of which nothing was published
        yet has no findings.
    """
    artifacts = [item for item in _artifacts(path.absolute()) if _is_of(item, asset, partitions)]
    looks = _Looks(
        lambda item: _is_of(item, asset, partitions), None, True, check_bytes, check_laws, sampled
    )
    return len(artifacts), looks.of(_folders(artifacts), None)


def notes(
    path: Path,
    asset: str,
    partitions: Collection[str] | None,
    law: Callable[[Path], Iterable[Violation]],
) -> tuple[int, list[Finding]]:
    """How many artifacts of `asset` are at or below `path`, and what `law` says of each."""
    artifacts = [item for item in _artifacts(path.absolute()) if _is_of(item, asset, partitions)]
    return len(artifacts), [
        Finding(f"{item.folder}: {said.where}", said.law, said.found)
        for item in artifacts
        for said in law(item.folder)
    ]


def _is_of(artifact: _Artifact, asset: str, partitions: Collection[str] | None) -> bool:
    try:
        record = provenance.read_record(artifact.record_path)
        return record.asset == asset and (partitions is None or record.partition in partitions)
    except GristmillError:
        return True  # whose it is cannot be told: let the check name it


def _own_root(artifact: _Artifact, record: Record) -> Path | None:
    """The data root below which the artifact lies where its record says, None if it does not."""
    folder, depth = artifact.folder, len(Path(record.artifact).parts)
    root = folder.parents[depth - 1] if len(folder.parents) >= depth else None
    return root if root is not None and root / record.artifact == folder else None


@dataclass(frozen=True)
class _Looks:
    """What is asked of artifacts; those replaced while they were read are asked again."""

    wanted: Callable[[_Artifact], bool]
    data_root: Path | None
    check_inputs: bool
    check_bytes: bool
    check_laws: bool
    sampled: bool = False

    def of(self, folders: Collection[Path], progress: Progress | None) -> list[Finding]:
        """The findings of the artifacts wanted in these folders, folder by folder."""
        found: dict[Path, list[Finding]] = {}
        progress = progress or silent()
        with ThreadPoolExecutor(os.cpu_count()) as threads, progress:
            for _ in range(_LOOKS):
                before = {
                    folder: stable_listing.generations(self._read(folder)) for folder in folders
                }
                found |= self._look(folders, _Hashes(threads, progress))
                folders = [
                    folder
                    for folder, stood in before.items()
                    if found[folder] and stable_listing.generations(stood) != stood
                ]
                if not folders:
                    break
        for folder in folders:
            told = f"a builder replaced it during each of {_LOOKS} looks: verify when it is done"
            found[folder] = [Finding(str(folder), "replaced", told)]
        return [
            finding
            for folder, findings in found.items()
            if stable_listing.generation(folder) is not None
            for finding in findings
        ]

    def _read(self, folder: Path) -> set[Path]:
        """The folder, and the artifacts that those in it were made from."""
        read = {folder}
        for item in _in_folder(folder):
            try:
                read.update(_made_from(item, self.data_root))
            except (GristmillError, OSError, ValueError):
                continue  # a finding of the look that follows
        return read

    def _look(self, folders: Collection[Path], hashes: _Hashes) -> dict[Path, list[Finding]]:
        items = [item for folder in folders for item in _in_folder(folder) if self.wanted(item)]
        found: dict[Path, list[Finding]] = {folder: [] for folder in folders}
        if self.check_bytes:
            checks = [_Check(item, self.data_root, hashes) for item in items]
            for check in checks:
                check.start(self.check_inputs)
            for item, check in zip(items, checks, strict=True):
                found[item.folder] += check.findings()
            for folder in folders:
                # Also of partitions that were not asked for: their files are not strays.
                found[folder] += _unlisted(folder, _in_folder(folder))
        if self.check_laws:
            # Laws read the files: ask them only of artifacts that are as recorded.
            bad = [Path(finding.path) for findings in found.values() for finding in findings]
            for item in items:
                if not any(_holds(item, path) for path in bad):
                    found[item.folder] += _broken_laws(item, self.data_root, self.sampled)
        return found


def _made_from(item: _Artifact, data_root: Path | None) -> list[Path]:
    """Folders of the artifacts that one was made from, none where its root cannot be told."""
    record = provenance.read_record(item.record_path)
    root = data_root or _own_root(item, record)
    return [
        root / given.path
        for given in provenance.read_inputs(record, item.record_path)
        if root is not None and given.path is not None and given.data_version is not None
    ]


def _broken_laws(item: _Artifact, data_root: Path | None, sampled: bool) -> list[Finding]:
    try:
        record = provenance.read_record(item.record_path)
        made_from = _made_from(item, data_root)
    except (GristmillError, OSError, ValueError) as error:
        return [Finding(str(item.record_path), "record", str(error))]
    try:
        return [
            Finding(f"{item.folder}: {violation.where}", violation.law, violation.found)
            for violation in families.check(
                record.asset,
                families.Subject(item.folder, record.partition, made_from, record.config, sampled),
            )
        ]
    except (GristmillError, OSError) as error:
        return [Finding(str(item.folder), "laws", f"they cannot be asked: {error}")]


def _artifacts(path: Path) -> Iterator[_Artifact]:
    folders, names = stable_listing.listing(path)
    if path.name == provenance.SHARED_RECORDS:
        records = (name for name in names if name.endswith(".json"))
        yield from (_Artifact(path.parent, path / name) for name in records)
    elif provenance.RECORD in names:
        yield _Artifact(path, path / provenance.RECORD)
    for name in folders:
        if name != WORK:
            yield from _artifacts(path / name)


def _folders(artifacts: Iterable[_Artifact]) -> list[Path]:
    return list(dict.fromkeys(item.folder for item in artifacts))


def _in_folder(folder: Path) -> list[_Artifact]:
    """The artifacts whose files lie in `folder` itself, not in a nested one."""
    _, names = stable_listing.listing(folder)
    own = [provenance.RECORD] if provenance.RECORD in names else []
    _, records = stable_listing.listing(folder / provenance.SHARED_RECORDS)
    shared = [f"{provenance.SHARED_RECORDS}/{name}" for name in records if name.endswith(".json")]
    return [_Artifact(folder, folder / name) for name in own + shared]


class _Hashes:
    """sha256 of files, each computed once, by threads (hashing releases the GIL)."""

    def __init__(self, threads: ThreadPoolExecutor, progress: Progress) -> None:
        self._threads = threads
        self._progress = progress
        self._known: dict[Path, Future[str]] = {}

    def start(self, path: Path, size: int) -> None:
        if path not in self._known:
            self._progress.expect(size)
            self._known[path] = self._threads.submit(self._hash, path)

    def result(self, path: Path) -> str:
        return self._known[path].result()

    def _hash(self, path: Path) -> str:
        return sha256_file(path, self._progress.advance)


class _Check:
    """One record against the disk, in two steps: ask for all hashes, then compare."""

    def __init__(self, artifact: _Artifact, data_root: Path | None, hashes: _Hashes) -> None:
        self._artifact = artifact
        self._root = data_root
        self._hashes = hashes
        self._found: list[Finding] = []
        self._expected: list[tuple[Path, str, str]] = []  # path, sha256, rule
        self._record: Record | None = None

    def start(self, check_inputs: bool) -> None:
        path = self._artifact.record_path
        try:
            self._record = record = provenance.read_record(path)
        except GristmillError as error:
            self._report(path, "record", str(error))
            return
        if record.digest != record.computed_digest():
            self._report(path, "record digest", "the record was changed after it was written")
        if record.data_version != provenance.data_version(record.outputs):
            self._report(path, "data version", "is not the digest of the recorded outputs")
        if record.inputs_file is not None:
            inputs_file = self._artifact.folder / record.inputs_file.path
            self._expect(
                inputs_file, record.inputs_file.bytes, record.inputs_file.sha256, "inputs list"
            )
        for output in record.outputs:
            self._expect(self._artifact.folder / output.path, output.bytes, output.sha256, "output")
        if check_inputs:
            self._start_inputs(record)

    def _start_inputs(self, record: Record) -> None:
        root = self._root or _own_root(self._artifact, record)
        if root is None:
            self._report(
                self._artifact.record_path,
                "inputs",
                f"the folder does not lie at {record.artifact} below a data root: "
                "name the root, or leave the inputs out",
            )
            return
        if not self._inputs_list_intact(record):
            return  # reported with the outputs; what it lists now means nothing
        try:
            inputs = provenance.read_inputs(record, self._artifact.record_path)
        except (OSError, ValueError) as error:
            self._report(self._artifact.record_path, "inputs list", f"cannot be read: {error}")
            return
        for item in inputs:
            if item.path is None or item.path in record.deleted_inputs:
                continue
            path = root / item.path
            if item.data_version is None:
                self._expect(path, item.bytes or 0, item.sha256 or "", "input")
            else:
                self._compare_version(path, item)

    def _inputs_list_intact(self, record: Record) -> bool:
        if record.inputs_file is None:
            return True
        try:
            found = sha256_file(self._artifact.folder / record.inputs_file.path)
        except OSError:
            return False
        return found == record.inputs_file.sha256

    def _compare_version(self, folder: Path, item: Input) -> None:
        try:
            found = provenance.published_version(folder, item.partition)
        except GristmillError as error:
            self._report(folder, "input", str(error))
            return
        if found is None:
            self._report(folder, "input", "is gone")
        elif found != item.data_version:
            made_from = (item.data_version or "")[:12]
            self._report(
                folder,
                "input",
                f"has data version {found[:12]}, this was made from {made_from}: build again",
            )

    def _expect(self, path: Path, size: int, sha256: str, rule: str) -> None:
        try:
            found = path.stat().st_size
        except OSError as error:
            self._report(path, rule, f"cannot be read: {error.strerror}")
            return
        if found != size:
            self._report(path, rule, f"{found:,} bytes, recorded {size:,}")
            return
        self._hashes.start(path, size)
        self._expected.append((path, sha256, rule))

    def findings(self) -> list[Finding]:
        for path, sha256, rule in self._expected:
            try:
                found = self._hashes.result(path)
            except OSError as error:
                self._report(path, rule, f"cannot be read: {error}")
                continue
            if found != sha256:
                self._report(path, rule, f"sha256 {found}, recorded {sha256}")
        return self._found

    def _report(self, path: Path, rule: str, found: str) -> None:
        self._found.append(Finding(str(path), rule, found))


def _unlisted(folder: Path, artifacts: list[_Artifact]) -> list[Finding]:
    """Files in an artifact's folder that no record speaks of."""
    listed: set[Path] = set()
    for item in artifacts:
        listed.add(item.record_path)
        try:
            record = provenance.read_record(item.record_path)
        except GristmillError:
            return []  # reported already; without the record every file would be unlisted
        listed.update(folder / output.path for output in record.outputs)
        if record.inputs_file is not None:
            listed.add(folder / record.inputs_file.path)
    findings = []
    for here, folders, names in os.walk(folder):
        inside = Path(here)
        names += [name for name in folders if (inside / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not provenance.holds_record(inside / name))
        for name in sorted(names):
            if inside / name not in listed:
                findings.append(
                    Finding(str(inside / name), "unlisted", "no record speaks of this file")
                )
    return findings
