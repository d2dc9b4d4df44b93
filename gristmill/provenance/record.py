"""The provenance record: its fields, its digests, its place on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from gristmill import printable
from gristmill.contract import FileNote, GristmillError, Violation
from gristmill.inbox.listing import ColumnState, column_lines
from gristmill.inbox.marks import is_tombstones
from gristmill.settings.fields import ADDED_LATER, NO_EFFECT, Checked, fields_with, shown
from gristmill.untrusted.files import CLOCK_TICK_NS

_TRIES = 10

Generation = tuple[int, int, int, int] | None
"""Which folder is at a path, and when its entries last changed; None where there is none."""


def generation(folder: Path) -> Generation:
    """The generation of `folder`: it differs after a commit of it, or of a folder nested in it.

    It has times beside the inode number, which is soon reused after a removal.
    """
    try:
        stat = folder.stat()
    except (OSError, ValueError):  # ValueError: a damaged record names a path with a zero byte
        return None
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns


def generations(folders: Iterable[Path]) -> dict[Path, Generation]:
    """`generation` of each folder."""
    return {folder: generation(folder) for folder in folders}


class Listing(NamedTuple):
    """Names in a folder, each list sorted."""

    folders: list[str]
    names: list[str]
    links: list[str]


def listing(folder: Path) -> Listing:
    """The names in `folder` at one moment.

    Empty where the folder cannot be read. Of a folder that changes all the time the last listing
    counts.
    """
    listed: list[tuple[str, bool, bool]] = []
    for _ in range(_TRIES):
        before = generation(folder)
        try:
            with os.scandir(folder) as entries:
                listed = [
                    (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                    for entry in entries
                ]
        except OSError:
            listed = []
        if generation(folder) == before:
            break
    return Listing(
        sorted(name for name, is_folder, _ in listed if is_folder),
        sorted(name for name, is_folder, _ in listed if not is_folder),
        sorted(name for name, _, is_link in listed if is_link),
    )


LIMIT: Final = 1 << 28
"""Most bytes of a record or a list of inputs; a list of a million raw files has less."""


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file of at most LIMIT bytes.

    path: of a record or a list of inputs; the last part is not followed where it is a link.

    Raises OSError as opening does, and GristmillError for anything but such a file.
    """
    if path.is_symlink():
        raise GristmillError(f"{path}: is a link, where a record is a file of its own")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise GristmillError(f"{path}: is not a regular file")
        if found.st_size > LIMIT:
            raise GristmillError(f"{path}: has {found.st_size:,} bytes, at most {LIMIT:,} are read")
        return file.read(LIMIT)


def wrong_path(path: str) -> str | None:
    """Why a path in a record cannot be one below its folder, None where it can."""
    parts = PurePosixPath(path).parts
    if not parts or "\0" in path:
        return "is empty or has a null byte"
    if path.startswith("/"):
        return "is absolute"
    if ".." in parts:
        return "leads out of its folder"
    return None


def canonical(value: object) -> bytes:
    """JSON with sorted keys, no spaces, UTF-8: equal values give equal bytes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(value: object) -> str:
    """Hex sha256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def config_fields(config: object, affecting_output: bool = False) -> dict[str, Any]:
    """A config dataclass as JSON values.

    config: an instance of a dataclass.
    affecting_output: leave out fields that cannot change the output (`NO_EFFECT`: workers and the
        like), and those that came later (`ADDED_LATER`) while they have their default, which is
        how it was before; default False.

    Raises TypeError for another object or a value that has no JSON form.
    """
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"a config is an instance of a dataclass, not {config!r}")
    values = config.recorded() if isinstance(config, Checked) else dataclasses.asdict(config)
    if affecting_output:
        later, without = (
            fields_with(type(config), ADDED_LATER),
            fields_with(type(config), NO_EFFECT),
        )
        for field in dataclasses.fields(config):
            unchanged = field.name in later and values[field.name] == field.default
            if unchanged or field.name in without:
                del values[field.name]
    plain: dict[str, Any] = json.loads(json.dumps(values, default=_plain))
    return plain


def _plain(value: object) -> object:
    """A JSON value for one that has none, the same in every process."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, PurePath | Enum | date):
        return str(value)
    raise TypeError(f"a config holds plain values, paths, dates and sets, not {value!r}")


SCHEMA_VERSION = 4
READABLE_VERSIONS = (1, 2, 3, SCHEMA_VERSION)
RECORD = "provenance.json"
SHARED_RECORDS = "provenance"
INPUTS = "inputs.jsonl"
INPUTS_LIMIT = 100
INPUTS_LIMIT_BYTES = 100_000
_MOST_NOTES = 20
_LONGEST_NOTE = 700

# Fields that records of schema versions 1 to 3 do not have.
_NEW = frozenset({"code_digest", "platform", "replaced", "notes", "account"})


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Input(_Frozen):
    """One thing that an artifact was made from.

    Another artifact: asset, partition, data_version and path of its folder.
    A raw file: path, bytes, sha256, mtime_ns, and the asset and partition of
    the drop it belongs to; one of an evaluation set, whose questions are left
    out, has neither. Paths are POSIX and relative to the data root.
    """

    asset: str | None = None
    partition: str | None = None
    data_version: str | None = None
    path: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    mtime_ns: int | None = None

    @property
    def is_of_drop(self) -> bool:
        """Whether it is a raw file whose rows the artifact has."""
        is_raw = self.data_version is None and self.asset is not None
        return self.path is not None and is_raw and not is_tombstones(self.path)

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields of this input that can change the output; times cannot."""
        return (
            self.asset or "",
            self.partition or "",
            self.data_version or "",
            "" if self.data_version else self.path or "",
            self.sha256 or "",
        )


class Output(_Frozen):
    """One file of the artifact; `path` is POSIX and relative to the artifact's folder.

    mtime_ns: at the commit; an untouched file is recognised by it without hashing.
    """

    path: str
    bytes: int
    sha256: str
    mtime_ns: int
    rows: int | None = None
    payload: bool = True
    content_sha256: str | None = None


class InputsFile(_Frozen):
    """The file that lists the inputs where they are too many for the record."""

    path: str
    count: int
    bytes: int
    sha256: str


class Tokenizer(_Frozen):
    """The vocabulary that token ids in the artifact refer to."""

    name: str
    path: str
    sha256: str


class Replaced(_Frozen):
    """A published version that a build of the same fingerprint replaced, though it differed.

    data_version, digest: of its record.
    why: a sentence.
    """

    data_version: str
    digest: str
    why: str


class Notes(_Frozen):
    """What the laws found in an artifact before its commit that is unusual and breaks none.

    counts: of the notes, by law.
    named: the first notes, at most 20.
    """

    counts: dict[str, int] = {}
    named: list[Violation] = []

    @classmethod
    def of(cls, found: Iterable[Violation], folder: Path) -> Notes:
        """Count notes, and name the first; their texts are cut and made printable.

        folder: the artifact's when it was looked at, which no text names: its files are relative.
        """
        counts, named = Counter[str](), list[Violation]()
        for note in found:
            counts[note.law] += 1
            if len(named) < _MOST_NOTES:
                texts = (note.law, note.where, note.found)
                own = (text.replace(f"{folder}/", "") for text in texts)
                named.append(Violation(*(printable.plain(text, _LONGEST_NOTE) for text in own)))
        return cls(counts=dict(counts), named=named)

    def listed(self) -> Iterator[Violation]:
        """Yield the notes that are named, then of each law how many others there are."""
        yield from self.named
        more = Counter(self.counts) - Counter(note.law for note in self.named)
        for law, count in more.items():
            yield Violation(law, "further", f"{count:,} more notes")


class Accounted(_Frozen):
    """What became of the drop that an artifact was made from.

    files: a line for each split, and for what is left out. columns: what its recipe does with each.
    """

    files: list[str] = []
    columns: list[ColumnState] = []

    @classmethod
    def of(cls, files: Iterable[str], columns: Iterable[ColumnState]) -> Accounted:
        """An account whose texts are cut and made printable."""

        def printed(text: str) -> str:
            return printable.plain(text, _LONGEST_NOTE)

        states = [
            dataclasses.replace(
                each,
                name=printed(each.name),
                what=printed(each.what),
                values=printed(each.values),
                keep=printed(each.keep),
            )
            for each in columns
        ]
        return cls(files=[*map(printed, files)], columns=states)

    @property
    def lines(self) -> list[str]:
        """Its files, then its columns."""
        return [*self.files, *column_lines(self.columns)]


class Record(_Frozen):
    """What one artifact partition was built from, by which code, and with which outputs.

    artifact: POSIX path of its folder relative to the data root.
    code_version: the builder's number; code_digest: of its syntax trees, None in
        records of schema version 1.
    config: every field of the builder's config.
    libraries: versions by distribution, with `python` and `sqlite`.
    replaced: the version that this one replaced, where both have the same fingerprint
        and different data versions.
    notes: what the laws noted; None in records of schema versions 1 and 2.
    account: of the drop; None without one, and in records of schema versions 1 to 3.
    digest: sha256 over all other fields in canonical JSON; fields that an
        earlier schema version lacks count where they have a value.
    """

    schema_version: int = SCHEMA_VERSION
    artifact: str
    asset: str
    partition: str | None
    code_version: str
    code_digest: str | None = None
    git_sha: str | None
    config: dict[str, Any]
    config_sha256: str
    fingerprint: str
    data_version: str
    inputs: list[Input]
    inputs_file: InputsFile | None = None
    tokenizer: Tokenizer | None = None
    outputs: list[Output]
    counts: dict[str, int | float]
    deleted_inputs: list[str] = []
    libraries: dict[str, str]
    platform: str | None = None
    replaced: Replaced | None = None
    notes: Notes | None = None
    account: Accounted | None = None
    seconds: float
    peak_memory_bytes: int
    created: datetime
    digest: str = ""

    @property
    def trusted_ns(self) -> int:
        """Files whose inode changed after this time may hold other bytes than recorded.

        Until then, equal sizes and times say that the bytes are equal.
        """
        return int(self.created.timestamp() * 1e9) - CLOCK_TICK_NS

    def sealed(self) -> Record:
        """The same record with its digest filled in."""
        return self.model_copy(update={"digest": self.computed_digest()})

    def computed_digest(self) -> str:
        """The digest of all fields but `digest` itself."""
        fields = self.model_dump(mode="json", exclude={"digest"})
        return digest(
            {key: value for key, value in fields.items() if key not in _NEW or value is not None}
        )

    def to_bytes(self) -> bytes:
        """The record as it is on disk: JSON, two-space indent, final newline."""
        return self.model_dump_json(indent=2).encode() + b"\n"


def data_version(outputs: Iterable[Output]) -> str:
    """Digest of the payload: the sorted (path, content digest or sha256) of its files."""
    lines = sorted(
        f"{output.path}\0{output.content_sha256 or output.sha256}\n"
        for output in outputs
        if output.payload
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def changed(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield which values differ from those before, in one line; nothing where all are equal."""
    pairs = ((name, before.get(name, "none"), value) for name, value in now.items())
    show = shown if what == "config" else str
    if texts := [
        f"{name} {show(was)} -> {show(value)}" for name, was, value in pairs if was != value
    ]:
        yield f"{what} changed ({', '.join(texts)})"


def changed_inputs(before: Iterable[Input], now: Iterable[Input]) -> Iterator[str]:
    """Yield which inputs differ from those before, in one line; nothing where all are equal."""
    old, new = ({item.identity: item for item in items} for items in (before, now))
    if differing := old.keys() ^ new.keys():
        names = sorted(
            {each.path or each.asset or "" for each in ((old | new)[key] for key in differing)}
        )
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"input changed ({names[0]}{more})"


def record_path(folder: Path, partition: str | None, shared: bool) -> Path:
    """Path of the record: in the artifact, or one for each partition of a shared folder."""
    return folder / SHARED_RECORDS / f"{partition}.json" if shared else folder / RECORD


def holds_record(folder: Path) -> bool:
    """Whether `folder` is an artifact, or several partitions share it.

    A commit may replace the folder meanwhile.
    """
    if (folder / RECORD).exists():
        return True
    shared = listing(folder / SHARED_RECORDS)
    return any(name.endswith(".json") for name in (*shared.folders, *shared.names))


def inputs_path(record: Path) -> Path:
    """Path of the list of inputs, for a record that has too many to hold them."""
    return record.with_name(INPUTS if record.name == RECORD else f"{record.stem}.{INPUTS}")


def split_inputs(inputs: Sequence[Input]) -> bytes | None:
    """The bytes of `inputs.jsonl`, or None where the inputs fit in the record."""
    lines = [item.model_dump_json(exclude_none=True).encode() + b"\n" for item in inputs]
    if len(lines) <= INPUTS_LIMIT and sum(map(len, lines)) <= INPUTS_LIMIT_BYTES:
        return None
    return b"".join(lines)


MALFORMED: Final = (GristmillError, OSError, ValueError, OverflowError, RecursionError)
"""What reading a record raises, whatever is in its place."""


def is_untouched(path: Path, size: int | None, mtime_ns: int | None) -> bool:
    """Whether a file has the recorded size and time; None for one that was not recorded."""
    try:
        found = path.stat()
    except OSError:
        return False
    return size in (None, found.st_size) and mtime_ns in (None, found.st_mtime_ns)


def read_record(path: Path) -> Record:
    """Read a record.

    Raises GristmillError with the path where the file is not a record or has a
    schema version that this code does not know.
    """
    try:
        raw = json.loads(read_bytes(path))
        version = raw.get("schema_version") if isinstance(raw, Mapping) else None
        if version not in READABLE_VERSIONS:
            raise GristmillError(
                f"{path}: schema version {version!r} of a provenance record, expected "
                f"{SCHEMA_VERSION}: another version of Gristmill wrote it: "
                "move the folder away and build again"
            )
        canonical(raw)  # NaN and 1e999 are no JSON and have no digest
        return Record.model_validate(raw)
    except OSError as error:
        raise GristmillError(f"{path}: no provenance record can be read: {error}") from error
    except (ValueError, ValidationError, RecursionError) as error:
        raise GristmillError(
            f"{path}: not a provenance record: move the folder away and build again: {error}"
        ) from error


def published_record_path(folder: Path, partition: str | None) -> Path | None:
    """Path of the record of the artifact partition in `folder`, None without one."""
    paths = (record_path(folder, partition, shared) for shared in (False, True))
    return next((path for path in paths if path.exists()), None)


def published_version(folder: Path, partition: str | None) -> str | None:
    """Data version of the artifact partition that is published in `folder`, None without one."""
    path = published_record_path(folder, partition)
    return None if path is None else read_record(path).data_version


def read_inputs(record: Record, path: Path) -> list[Input]:
    """All inputs of `record`, which was read from `path`.

    Raises GristmillError with file and line where the list of inputs cannot be read.
    """
    if record.inputs_file is None:
        return list(record.inputs)
    listed = inputs_path(path)
    try:
        lines = read_bytes(listed).splitlines()
    except OSError as error:
        raise GristmillError(f"{listed}: no list of inputs can be read: {error}") from error
    return [_listed_input(listed, number, line) for number, line in enumerate(lines, start=1)]


def _listed_input(path: Path, number: int, line: bytes) -> Input:
    try:
        return Input.model_validate_json(line)
    except ValidationError as error:
        raise GristmillError(
            f"{path}: line {number} describes no input: move the folder of the artifact away "
            f"and build again: {error}"
        ) from error


def outputs_of(
    folder: Path, hashes: Mapping[str, str], notes: Mapping[str, FileNote]
) -> list[Output]:
    """Outputs of a staged artifact: every hashed file with its size, time and note.

    Raises GristmillError for a note on a file that does not exist: the note
    was meant for another file, which would have none.
    """
    if strangers := sorted(notes.keys() - hashes.keys()):
        raise GristmillError(
            f"{folder}: the summary names files that were not written: {strangers}"
        )
    outputs = []
    for path, sha256 in sorted(hashes.items()):
        stat = (folder / path).stat()
        note = notes.get(path, FileNote())
        outputs.append(
            Output(
                path=path,
                bytes=stat.st_size,
                sha256=sha256,
                mtime_ns=stat.st_mtime_ns,
                rows=note.rows,
                payload=note.payload,
                content_sha256=note.content_sha256,
            )
        )
    return outputs
