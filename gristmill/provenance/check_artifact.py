"""One record against the disk: sizes, hashes, inputs, unlisted files, and the family's laws."""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from gristmill import families
from gristmill.contract import GristmillError, Violation, in_words, os_reason
from gristmill.hashing import sha256_file
from gristmill.provenance import inventory, record_file, record_place
from gristmill.provenance import record as provenance
from gristmill.provenance.drop_hashes import drop_of
from gristmill.provenance.find_artifacts import Artifact
from gristmill.provenance.record import Input, Record
from gristmill.run.progress import Stage

MALFORMED: Final = (GristmillError, OSError, ValueError, OverflowError, RecursionError)
"""What reading a record raises, whatever is in its place."""


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
        if wrong := next(record_place.wrong_paths(record), None):
            self._report(path, "record", wrong)
            return  # its paths lead anywhere: nothing they name is read
        if record.digest != digest:
            self._report(path, "record digest", "the record was changed after it was written")
        elif wrong := record_place.other_place(record, self._artifact):
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
        if not self._inputs_list_intact(record):
            return  # reported with the outputs; a changed list says nothing about inputs
        try:
            inputs = provenance.read_inputs(record, self._artifact.record_path)
        except MALFORMED as error:
            self._report(self._artifact.record_path, "inputs list", f"cannot be read: {error}")
            return
        if wrong := next(record_place.wrong_inputs(inputs), None):
            self._report(self._artifact.record_path, "inputs list", wrong)
            return
        for item in inputs:
            if item.path is None or item.path in record.deleted_inputs:
                continue
            path = root / item.path
            if item.data_version is not None:
                self._compare_version(root, item)
            elif not _is_gone(root, path):
                self._expect(path, item.bytes or 0, item.sha256 or "", "input", item.mtime_ns)

    def _inputs_list_intact(self, record: Record) -> bool:
        if record.inputs_file is None:
            return True
        try:
            listed = record_file.read_bytes(self._artifact.folder / record.inputs_file.path)
        except MALFORMED:
            return False
        return hashlib.sha256(listed).hexdigest() == record.inputs_file.sha256

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


def _is_gone(root: Path, path: Path) -> bool:
    """Whether the whole drop of a raw file is gone, which leaves what was made from it intact."""
    drop = drop_of(root, path)
    return drop is not None and not os.path.lexists(drop)


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
    item: Artifact, data_root: Path | None, sampled: bool, left_out: list[str]
) -> list[Violation]:
    """What an artifact breaks of its family's laws; a long law may recompute a sample if `sampled`.

    `left_out` takes a line for each law that was not asked, with the reason.
    """
    try:
        record = provenance.read_record(item.record_path)
        inputs = input_folders(item, data_root)
    except MALFORMED as error:
        return [Violation("record", str(item.record_path), str(error))]
    subject = families.Subject(item.folder, record.partition, inputs, record.config, sampled)
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
    except Exception as error:  # noqa: BLE001  verification goes on with the other artifacts
        # A sealed record can say anything of the partition, the config and the inputs.
        error = in_words(error)
        reason = str(error) if isinstance(error, GristmillError | OSError) else repr(error)
        return [Violation("laws", str(subject.folder), f"they cannot be checked: {reason}")]
