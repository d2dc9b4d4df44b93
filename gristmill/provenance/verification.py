"""Verification: published artifacts against their records, without holding a lock.

No builder ever waits: an artifact that was replaced while it was read is read again. Source:
docs/publishing.md#verify.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gristmill import families
from gristmill.contract import GristmillError, Violation, in_words, os_reason
from gristmill.hashing import sha256_file
from gristmill.provenance import inventory
from gristmill.provenance import record as provenance
from gristmill.provenance.find_artifacts import Artifact, artifacts, artifacts_in, used_by
from gristmill.provenance.raw_inputs import drop_of, is_as_listed
from gristmill.provenance.record import MALFORMED, Input, Record
from gristmill.run.progress import SILENT, Progress, Stage


class Hashes:
    """sha256 of files, each computed once, by threads (hashing releases the GIL)."""

    def __init__(self, threads: ThreadPoolExecutor, stage: Stage) -> None:
        self._threads = threads
        self._stage = stage
        self._known: dict[Path, Future[str]] = {}

    def start(self, path: Path, size: int) -> None:
        """Begin to hash `path`, a file of `size` bytes, if no check asked for it before."""
        if path not in self._known:
            self._stage.expect(size)
            self._known[path] = self._threads.submit(self._hash, path)

    def result(self, path: Path) -> str:
        """The hex sha256 of `path`, which was started. Raises OSError as reading does."""
        return self._known[path].result()

    def sums(self) -> dict[Path, str]:
        """The sums of all files that could be read, after waiting for them."""
        return {path: one.result() for path, one in self._known.items() if not one.exception()}

    def _hash(self, path: Path) -> str:
        return sha256_file(path, self._stage.advance)


class ArtifactCheck:
    """One record against the disk, in two steps: `start` asks for all hashes, then `violations`.

    data_root: where paths of inputs start; None takes it from the artifact's place.
    hashes: shared by all checks, so that a file that several records name is read once.
    trusts_times: do not hash files whose size and time are as recorded; default False.
    """

    def __init__(
        self,
        artifact: Artifact,
        data_root: Path | None,
        hashes: Hashes,
        trusts_times: bool = False,
    ) -> None:
        self._artifact = artifact
        self._root = data_root
        self._hashes = hashes
        self._trusts_times = trusts_times
        self._violations: list[Violation] = []
        self._expected: list[tuple[Path, str, str]] = []  # path, sha256, law

    def start(self, check_inputs: bool) -> None:
        """Check the record and the sizes, and begin to hash what it lists."""
        path = self._artifact.record_path
        try:
            record = provenance.read_record(path)
            digest = record.computed_digest()
        except MALFORMED as error:
            self._report(path, "record", str(error))
            return
        if wrong := next(inventory.wrong_paths(record), None):
            self._report(path, "record", wrong)
            return  # its paths lead anywhere: nothing they name is read
        if record.digest != digest:
            self._report(path, "record digest", "the record was changed after it was written")
        elif wrong := inventory.other_place(record, self._artifact):
            self._report(path, "record", wrong)
        if record.data_version != provenance.data_version(record.outputs):
            self._report(path, "data version", "is not the digest of the recorded outputs")
        if (listed := record.inputs_file) is not None:
            self._expect(
                self._artifact.folder / listed.path, listed.bytes, listed.sha256, "inputs list"
            )
        for output in record.outputs:
            path = self._artifact.folder / output.path
            self._expect(path, output.bytes, output.sha256, "output", output.mtime_ns)
        if check_inputs:
            self._start_inputs(record)

    def violations(self) -> list[Violation]:
        """What differs from the record, after waiting for the hashes."""
        for path, sha256, law in self._expected:
            try:
                found = self._hashes.result(path)
            except OSError as error:
                self._report(path, law, f"cannot be read: {os_reason(error)}")
                continue
            if found != sha256:
                self._report(path, law, f"sha256 {found}, recorded {sha256}")
        return self._violations

    def _start_inputs(self, record: Record) -> None:
        root = self._root or self._artifact.data_root(record)
        if root is None:
            self._report(
                self._artifact.record_path,
                "inputs",
                f"the folder does not lie at {record.artifact} below a data root: "
                "name the root, or leave the inputs out",
            )
            return
        try:
            if not is_as_listed(self._artifact.folder, record):
                return  # reported with the outputs; a changed list says nothing about inputs
            inputs = provenance.read_inputs(record, self._artifact.record_path)
        except MALFORMED as error:
            self._report(self._artifact.record_path, "inputs list", f"cannot be read: {error}")
            return
        if wrong := next(inventory.wrong_inputs(inputs), None):
            self._report(self._artifact.record_path, "inputs list", wrong)
            return
        for item in inputs:
            if item.path is None or item.path in record.deleted_inputs:
                continue
            path = root / item.path
            if item.data_version is not None:
                self._compare_version(root, item)
            # That a whole drop is gone leaves what was made from it intact.
            elif os.path.lexists(path) or (
                (drop := drop_of(root, path)) is None or os.path.lexists(drop)
            ):
                self._expect(path, item.bytes or 0, item.sha256 or "", "input", item.mtime_ns)

    def _compare_version(self, root: Path, item: Input) -> None:
        folder = root / str(item.path)
        try:
            published = provenance.published_version(folder, item.partition)
        except MALFORMED as error:
            self._report(folder, "input", str(error))
            return
        if published is None:
            if not inventory.was_removed(root, str(item.path), item.partition):
                self._report(folder, "input", self._gone(root, item))
        elif published != item.data_version:
            recorded = (item.data_version or "")[:12]
            self._report(
                folder,
                "input",
                f"has data version {published[:12]}, recorded {recorded}: build again",
            )

    def _gone(self, root: Path, item: Input) -> str:
        """What is to be said of an artifact that is not there and was not removed on purpose."""
        if not inventory.is_unknown(root, str(item.path), item.partition):
            return "is gone"  # the inventory names it as missing, with the cure
        asset = str(item.asset)
        again = ["gristmill", "materialize", asset]
        if item.partition is not None and families.has_partitions(asset):
            again += ["--partition", item.partition]
        own = self._artifact
        unwanted = ["gristmill", "remove", str(own.folder)]
        unwanted += [] if own.partition is None else ["--partition", own.partition]
        return (
            "is gone, and the inventory does not name it: it was deleted together with its entry, "
            "or it never was in this data root. Bring it back, build it again "
            f"(`{shlex.join(again)}`), or remove what was made from it (`{shlex.join(unwanted)}`)"
        )

    def _expect(
        self, path: Path, size: int, sha256: str, law: str, mtime_ns: int | None = None
    ) -> None:
        try:
            # A person may lay raw files out as links; what is published has none.
            found = path.stat(follow_symlinks=law == "input")
        except (OSError, ValueError) as error:
            why = os_reason(error) if isinstance(error, OSError) else error
            self._report(path, law, f"cannot be read: {why}")
            return
        if not stat.S_ISREG(found.st_mode):
            self._report(path, law, "is not a regular file")
            return
        if found.st_size != size:
            self._report(path, law, f"{found.st_size:,} bytes, recorded {size:,}")
            return
        if not (self._trusts_times and found.st_mtime_ns == mtime_ns):
            self._hashes.start(path, size)
            self._expected.append((path, sha256, law))

    def _report(self, path: Path, law: str, found: str) -> None:
        self._violations.append(Violation(law, str(path), found))


def unlisted(folder: Path, items: Sequence[Artifact]) -> list[Violation]:
    """Files in `folder` that no record of its artifacts `items` lists."""
    listed: set[Path] = set()
    for item in items:
        listed.add(item.record_path)
        try:
            record = provenance.read_record(item.record_path)
        except MALFORMED:
            return []  # reported already; without the record every file would be unlisted
        listed.update(folder / output.path for output in record.outputs)
        if record.inputs_file is not None:
            listed.add(folder / record.inputs_file.path)
    violations: list[Violation] = []

    def unreadable(error: OSError) -> None:
        found = f"cannot be listed: {os_reason(error)}"
        violations.append(Violation("unlisted", str(error.filename), found))

    for here, folders, names in os.walk(folder, onerror=unreadable):
        inside = Path(here)
        names += [name for name in folders if (inside / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not provenance.holds_record(inside / name))
        violations += [
            Violation("unlisted", str(inside / name), "no record lists this file")
            for name in sorted(names)
            if inside / name not in listed
        ]
    return violations


def input_folders(item: Artifact, data_root: Path | None) -> list[Path]:
    """Folders of the artifacts that `item` was made from, none where its root is unknown."""
    record = provenance.read_record(item.record_path)
    root = data_root or item.data_root(record)
    return [
        root / given.path
        for given in provenance.read_inputs(record, item.record_path)
        if root is not None and given.path is not None and given.data_version is not None
    ]


def broken_laws(
    item: Artifact,
    data_root: Path | None,
    sampled: bool,
    left_out: list[str],
    sums: Mapping[Path, str],
) -> list[Violation]:
    """What an artifact breaks of its family's laws; a long law may recompute a sample if `sampled`.

    `left_out` takes a line for each law that was not asked, with the reason. sums: of its files, as
    they were hashed a moment ago.
    """
    try:
        record = provenance.read_record(item.record_path)
        inputs = input_folders(item, data_root)
    except MALFORMED as error:
        return [Violation("record", str(item.record_path), str(error))]
    subject = families.Subject(
        item.folder, record.partition, inputs, record.config, sampled, sums=sums
    )
    violations = broken_by(record.asset, subject)
    left_out.extend(f"{item.title}: not checked: {line}" for line in subject.left_out)
    return violations


def broken_by(asset: str, subject: families.Subject) -> list[Violation]:
    """What a folder breaks of the laws of an asset, also where they cannot be checked."""
    try:
        return [
            Violation(broken.law, f"{subject.folder}: {broken.where}", broken.found)
            for broken in families.check(asset, subject)
        ]
    except Exception as error:  # noqa: BLE001  verification continues with the other artifacts
        # A sealed record can say anything of the partition, the config and the inputs.
        error = in_words(error)
        reason = str(error) if isinstance(error, GristmillError | OSError) else repr(error)
        return [Violation("laws", str(subject.folder), f"they cannot be checked: {reason}")]


_PASSES = 5
"""How often an artifact is read that builders replace again and again."""


def verify(
    path: Path | str,
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
    path = Path(path).absolute()
    folders = list(dict.fromkeys(item.folder for item in artifacts(path)))
    unasked: list[str] = []
    checks = _Checks(
        data_root, check_inputs, True, check_laws, follow=check_inputs, unasked=unasked
    )
    found = checks.findings(folders, progress) if folders else []
    violations = [each.violation for each in found]
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


def is_committed(item: Artifact, since: datetime | None) -> bool:
    """Whether the commit checked these very files since some time."""
    if since is None:
        return False
    try:
        record = provenance.read_record(item.record_path)
        return record.created >= since and all(
            provenance.is_untouched(item.folder / output.path, output.bytes, output.mtime_ns)
            for output in record.outputs
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

    def findings(self, folders: Collection[Path], progress: Progress) -> list[Finding]:
        """What is wrong with the artifacts wanted in these folders, folder by folder."""
        by_folder: dict[Path, list[Finding]] = {}
        with (
            progress.stage("verify", unit="bytes", total=0) as stage,
            ThreadPoolExecutor(os.cpu_count()) as threads,
        ):
            for _ in range(_PASSES):
                before = {folder: provenance.generations(self._read(folder)) for folder in folders}
                by_folder |= self._pass(folders, Hashes(threads, stage))
                folders = [
                    folder
                    for folder, generations in before.items()
                    if by_folder[folder] and provenance.generations(generations) != generations
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
            if provenance.generation(folder) is not None
            for finding in findings
        ]

    def _read(self, folder: Path) -> set[Path]:
        """The folder, and the folders of the artifacts that those in it were made from."""
        read = {folder}
        items = self._items(folder)
        if self.follow:
            read.update(used.folder for used, *_ in used_by(items, self.data_root))
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

    def _pass(self, folders: Collection[Path], hashes: Hashes) -> dict[Path, list[Finding]]:
        items = [item for folder in folders for item in self._items(folder)]
        by_folder: dict[Path, list[Finding]] = {folder: [] for folder in folders}

        def add(item: Artifact | None, folder: Path, violations: Iterable[Violation]) -> None:
            by_folder[folder] += (Finding(item, folder, broken) for broken in violations)

        if self.check_bytes:
            followed = list(used_by(items, self.data_root)) if self.follow else []
            checks = [
                ArtifactCheck(
                    item, self.data_root, hashes, is_committed(item, self.committed_since)
                )
                for item in items
            ]
            inputs = [ArtifactCheck(used, self.data_root, hashes) for used, *_ in followed]
            for check in [*checks, *inputs]:
                check.start(self.check_inputs)
            for (*_, user), check in zip(followed, inputs, strict=True):
                add(user, user.folder, _as_input(user, check.violations()))
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
            sums = hashes.sums()
            for item in items:
                if not any(map(item.holds, bad)) and not is_committed(item, self.committed_since):
                    broken = broken_laws(item, self.data_root, self.sampled, self.unasked, sums)
                    add(item, item.folder, broken)
        return by_folder


def _as_input(user: Artifact, violations: Iterable[Violation]) -> Iterator[Violation]:
    """What is wrong with an artifact, as `user` is concerned, which was made from it."""
    for broken in violations:
        found = broken.found if broken.law == "input" else f"{broken.law}: {broken.found}"
        yield Violation("input", broken.where, f"{found}: {user.title} was made from it")
