"""Proof of inputs: each file that a builder may read is the one that a record describes.

An input is compared before the builder reads it and after the build, and is hashed where size and
times cannot exclude a change. Source: docs/publishing-details.md#proof-of-inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gristmill import families, provenance
from gristmill.hashing import sha256_file
from gristmill.provenance import Input, Record, find_artifacts, verification
from gristmill.provenance.raw_inputs import RawFile, Stamp
from gristmill.provenance.record import generation
from gristmill.publish import doctor, stamps
from gristmill.publish.build import Build, InputChanged, InputDamaged
from gristmill.publish.stamps import stamp_of
from gristmill.run.progress import Progress, Stage
from gristmill.settings.tables import HASH

_TRIES = 10


@dataclass(frozen=True)
class _File:
    """A file and what it must hold.

    trusted_ns: until this time of its inode, equal size and `mtime_ns` say that it is as recorded.
    """

    path: Path
    bytes: int
    sha256: str
    mtime_ns: int | None
    trusted_ns: int
    noted: Stamp | None = None


@dataclass
class InputProof:
    """The inputs of one build, proved before and after it.

    progress: gets the stage "inputs" in bytes, one for all inputs, where files are hashed.
    """

    build: Build
    progress: Progress
    _records: dict[int, Record] = field(default_factory=dict)
    _stamps: dict[Path, Stamp] = field(default_factory=dict)
    _linked: set[Path] = field(default_factory=set)  # files that commits of others link
    _open: ExitStack = field(default_factory=ExitStack)
    _stage: Stage | None = None
    _hashes_all: bool = False

    def before(self) -> None:
        """Compare each file of each input with its record.

        An input that is gone is left to the builder, which knows what to do about it.

        Raises InputDamaged for a file that differs from the record of a published
        input, a file that no record lists, and a record that was changed; InputChanged
        for an input that builders replace again and again, and a raw file that is not
        as it was listed; BadInput where the table `[run]` of the data root is wrong.
        """
        placed = [(number, item) for number, item in enumerate(self.build.inputs) if item.path]
        if not placed:
            return
        self._hashes_all = doctor.settings_of(self.build.root)[0].prove == HASH
        with self._one_stage():
            for number, item in placed:
                if item.data_version is not None:
                    self._prove_artifact(number, item)
                else:
                    self._prove_raw(item, self.build.root / str(item.path))
            if self._hashes_all:
                self._hash_raw([item for _, item in placed if item.data_version is None])

    def digest(self) -> str:
        """Digest of the inode, size and times of each file that was proved.

        Of a file in a shared folder the time of the inode is left out: each commit there links the
        files of all partitions. So is the device, which is another one on each host.
        """
        stamps = sorted(
            (path.relative_to(self.build.root).as_posix(), *stamp[1:4], self._changed(path, stamp))
            for path, stamp in self._stamps.items()
        )
        return provenance.digest(stamps)

    def _changed(self, path: Path, stamp: Stamp) -> int | None:
        return None if path in self._linked else stamp[4]

    def after(self) -> None:
        """Compare each input with what it was before the build.

        Raises InputChanged for an input that was rebuilt, removed or written to, and
        InputDamaged as `before`.
        """
        with self._one_stage():
            for number, item in enumerate(self.build.inputs):
                if item.path is None:
                    continue
                if item.data_version is None:
                    self._compare_raw(item)
                    continue
                folder = self.build.root / item.path
                if provenance.published_version(folder, item.partition) != item.data_version:
                    raise InputChanged(f"{item.path}: rebuilt while it was being read: build again")
                self._prove_artifact(number, item)

    @contextmanager
    def _one_stage(self) -> Iterator[None]:
        """Let all that is hashed within be one stage, whose total grows by each input."""
        with ExitStack() as self._open:
            self._stage = None
            yield

    def _prove_artifact(self, number: int, item: Input) -> None:
        folder = self.build.root / str(item.path)
        for _ in range(_TRIES):
            before = generation(folder)
            if before is None:
                return
            try:
                self._prove_generation(number, item, folder)
            except (InputDamaged, InputChanged):
                if generation(folder) == before:
                    raise
                continue  # a commit into the folder came between: compare the new version
            if generation(folder) == before:
                return
        raise InputChanged(f"{item.path}: builders replace it all the time: build again later")

    def _prove_generation(self, number: int, item: Input, folder: Path) -> None:
        record_path = provenance.published_record_path(folder, item.partition)
        if record_path is None:
            return
        record = provenance.read_record(record_path)
        if record.digest != record.computed_digest():
            raise self._damaged(item, record_path, "the record was changed after it was written")
        if (record.artifact, record.partition) != (item.path, item.partition):
            found = f"the record is of {record.artifact}, partition {record.partition}"
            raise self._damaged(item, record_path, found)
        if not record.data_version == provenance.data_version(record.outputs) == item.data_version:
            raise self._damaged(item, record_path, "its data version is not that of its files")
        for violation in verification.unlisted(folder, find_artifacts.artifacts_in(folder)):
            raise self._damaged(item, Path(violation.where), violation.found)
        is_same = self._records.get(number) == record
        self._records[number] = record
        noted = stamps.read(folder)
        files = list(_files_of(folder, record, noted))
        is_shared = record_path.parent.name == provenance.SHARED_RECORDS
        if is_shared:
            self._linked.update(file.path for file in files)
        hashed = self._compare(item, files, is_same)
        if hashed and not any(map(provenance.holds_record, folder.parents)):
            paths = {path.relative_to(folder).as_posix(): path for path in hashed}
            known = {name: self._stamps[path] for name, path in paths.items()}
            stamps.add(folder, known, is_shared=is_shared)

    def _compare(self, item: Input, files: Sequence[_File], is_same: bool) -> list[Path]:
        """Compare files with what is recorded; hash and return those that may have changed.

        is_same: they were proved under this record before, so another stamp is a change since.
        """
        suspects: list[_File] = []
        for file in files:
            stamp = stamp_of(file.path)
            if stamp is None:
                raise self._damaged(item, file.path, "is missing or no regular file")
            known = self._stamps.get(file.path) if is_same else None
            self._stamps[file.path] = stamp
            if stamp == known:
                continue
            size, mtime_ns, ctime_ns = stamp[2:]
            if known is not None and (size, mtime_ns) != known[2:4]:
                raise InputChanged(f"{file.path}: written to while it was read: build again")
            if size != file.bytes:
                raise self._damaged(item, file.path, f"{size:,} bytes, recorded {file.bytes:,}")
            is_old = ctime_ns <= file.trusted_ns or stamp == file.noted
            if mtime_ns != file.mtime_ns or not is_old or self._hashes_all:
                suspects.append(file)
        for file, sha256 in self._differing(suspects):
            found = f"sha256 {sha256}, recorded {file.sha256}"
            raise self._damaged(item, file.path, found)
        return [file.path for file in suspects]

    def _differing(self, suspects: Sequence[_File]) -> Iterator[tuple[_File, str]]:
        """Hash files, and yield those with another sha256 than is expected, with it."""
        if not suspects:
            return
        size = sum(file.bytes for file in suspects)
        stage = self._stage
        if stage is None:
            opened = self.progress.stage("inputs", unit="bytes", total=size)
            stage = self._stage = self._open.enter_context(opened)
        else:
            stage.expect(size)
        with ThreadPoolExecutor() as threads:
            hashes = threads.map(lambda file: sha256_file(file.path, stage.advance), suspects)
            for file, sha256 in zip(suspects, hashes, strict=True):
                if sha256 != file.sha256:
                    yield file, sha256

    def _prove_raw(self, item: Input, path: Path) -> None:
        stamp = stamp_of(path, follow=True)
        if stamp is None:
            return
        if isinstance(item, RawFile) and item.stamp != stamp:
            self._compare_raw(item)
        self._stamps[path] = stamp

    def _hash_raw(self, items: Sequence[Input]) -> None:
        """Compare the bytes of raw files with what was listed, whatever their stamps say."""
        paths = ((self.build.root / str(item.path), item) for item in items)
        files = [
            _File(path, item.bytes or 0, item.sha256, item.mtime_ns, 0)
            for path, item in paths
            if item.sha256 is not None and path in self._stamps
        ]
        for file, sha256 in self._differing(files):
            raise InputDamaged(
                f"{self.build.title}: not built, since a raw file is damaged: {file.path}: sha256 "
                f"{sha256}, and {file.sha256} when it was first read, with the same size and time: "
                "bring the file back; or `touch` it, and it is built from as it is"
            )

    def _compare_raw(self, item: Input) -> None:
        if item.mtime_ns is None:
            return  # named by its hash alone: it need not lie in the data root
        path = self.build.root / str(item.path)
        stamp = stamp_of(path, follow=True)
        if stamp is None:
            raise InputChanged(
                f"{item.path}: gone while it was being read: put it back and build again"
            )
        size, mtime_ns, _ = stamp[2:]
        is_listed = (size, mtime_ns) == (item.bytes, item.mtime_ns)
        if is_listed and stamp != self._stamps.get(path) and item.sha256 is not None:
            is_listed = sha256_file(path) == item.sha256
        if not is_listed:
            raise InputChanged(
                f"{item.path}: changed since it was listed: build again once it is complete"
            )

    def _damaged(self, item: Input, path: Path, found: str) -> InputDamaged:
        # A record may name a partition where the asset has none, for its place in the folder.
        is_one = item.partition is None or not families.has_partitions(str(item.asset))
        partition = "" if is_one else f" --partition {item.partition}"
        return InputDamaged(
            f"{self.build.title}: not built, since its input {item.path} is damaged: {path}: "
            f"{found}: run `gristmill materialize {item.asset}{partition} --rebuild`"
        )


def _files_of(folder: Path, record: Record, noted: Mapping[str, Stamp]) -> Iterator[_File]:
    trusted_ns = record.trusted_ns
    for output in record.outputs:
        stamp = noted.get(output.path)
        path = folder / output.path
        yield _File(path, output.bytes, output.sha256, output.mtime_ns, trusted_ns, stamp)
    if (listed := record.inputs_file) is not None:
        # Its time is not recorded, so it is always hashed; it is small.
        yield _File(folder / listed.path, listed.bytes, listed.sha256, None, record.trusted_ns)
