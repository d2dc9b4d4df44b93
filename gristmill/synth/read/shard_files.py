"""The files of one shard in one generation, its tokenizer, and the cache of its indices."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill import provenance
from gristmill.contract import BadInput
from gristmill.provenance import RECORD, SHARED_RECORDS
from gristmill.publish.atomic_fs import flush_all
from gristmill.reading.folder import HeldFile, Opening, Verify
from gristmill.reading.reader import Reader
from gristmill.synth.format import harmony_tokens as ids
from gristmill.synth.format import megatron
from gristmill.vocabularies.pinned import O200K

_USED: Final = (
    ids.ENDOFTEXT,
    ids.RETURN,
    ids.CONSTRAIN,
    ids.CHANNEL,
    ids.START,
    ids.END,
    ids.MESSAGE,
    ids.CALL,
)
"""The control tokens of documents: `docs/formats/synth.md#value-laws`."""


class Own(NamedTuple):
    """The tokenizer of the tokens.

    name: of it. eod: id that ends a document. used: ids that may not be padding.
    below: a pad from 0 up to it is ordinary text. size: number of ids, padded.
    """

    name: str
    eod: int
    used: Collection[int]
    below: int
    size: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Own:
        """The tokenizer that a record's config names."""
        name = json.loads(config.get("render") or "{}").get("tokenizer", HARMONY.name)
        if name == HARMONY.name:
            return HARMONY
        size = int(config["ids"])
        return cls(name, int(config["eod"]), (int(config["eod"]), size - 1), size, size)


HARMONY: Final = Own("o200k_harmony", ids.ENDOFTEXT, _USED, ids.BODY_LIMIT, ids.PADDED_VOCABULARY)


def contradiction(tokenizer: Any, pad: Any, own: Own = HARMONY) -> str | None:
    """What a tokenizer says that the tokens of the documents contradict, with both numbers."""
    cure = f"give the config a tokenizer with eod = {own.eod} and pad = -1, as docs/synth.md shows"
    try:
        eod = tokenizer.eod
    except (AttributeError, NotImplementedError):
        eod = None
    if eod != own.eod:
        return (
            f"tokenizer.eod is {eod}, and the EOD of its documents ({own.name}) is"
            f" {own.eod}; tokenizer.pad is {pad}: {cure}"
        )
    if pad in own.used or (pad is not None and 0 <= pad < own.below):
        kind = ids.name(pad) if own.name == HARMONY.name and pad in _USED else "ordinary text"
        return (
            f"tokenizer.pad is {pad}, and in its documents ({own.name}) {pad} is {kind}, of"
            f" which Megatron would make 0; tokenizer.eod is {eod}: {cure}"
        )
    size = getattr(tokenizer, "vocab_size", None)
    if size is not None and size <= max(own.used):
        return (
            f"tokenizer.vocab_size is {size}, and its documents have ids up to {max(own.used)}: "
            f"give the config the vocabulary of {own.name}, padded to {own.size} ids"
        )
    return None


class Misaligned(BadInput, RuntimeError):
    """The files of a shard are damaged, do not belong together, or are not those of the record."""

    def __reduce__(self) -> tuple[type[Misaligned], tuple[str, str, int | None]]:
        return Misaligned, (self.file, self.rule, self.row)


class ShardFiles(Reader[Mapping[str, HeldFile]]):
    """The six files of a shard and split: `.bin` and `.idx` of tokens, loss mask and span.

    Raises Misaligned where a file is missing or damaged, or the datasets do not fit together.
    """

    def __init__(self, prefix: Path, verify: Verify) -> None:
        self.prefix = prefix
        self.data_digest = ""
        self.tokenizer = HARMONY
        self.words = HARMONY_WORDS
        try:
            self.start(verify)
        except BadInput as error:
            raise Misaligned(error.file, error.rule, error.row) from error

    def open_files(self, opening: Opening) -> Mapping[str, HeldFile]:
        """Hold the files; at the first opening also compare the three datasets."""
        number = re.fullmatch(r"shard_(\d+)_tokens", self.prefix.name)
        shared = f"{SHARED_RECORDS}/{number[1]}.json" if number else RECORD
        # Conversations of one's own have a folder for each shard.
        is_own = (self.prefix.parent.parent / RECORD).is_file()
        record = RECORD if is_own else shared
        if is_own and opening.first:
            made = provenance.read_record(self.prefix.parent.parent / RECORD)
            self.tokenizer = Own.of(made.config)
            if made.tokenizer is not None:
                self.words = _words(self.tokenizer.name, made.tokenizer.sha256)
        root = opening.folder(self.prefix.parent.parent, record)
        inside = Path(self.prefix.parent.name) / self.prefix.name
        if opening.first:
            self._compare(root.inside / inside)
        files = {}
        for name in megatron.DTYPES:
            place = megatron.sibling(inside, name)
            for kind in ("bin", "idx"):
                files[f"{name}.{kind}"] = root.keep(f"{place}.{kind}")
        return files

    def _compare(self, tokens: Path) -> None:
        if _is_empty(tokens):
            raise Misaligned(
                self.prefix,
                f"the shard has no documents in {tokens.parent.name}, and so no files there: leave "
                "this prefix out, or build with another valid_fraction",
            )
        try:
            self.data_digest = megatron.digest(tokens)
        except RuntimeError as error:
            raise Misaligned(self.prefix, str(error).removeprefix(f"{tokens}: ")) from error


def _words(name: str, sha256: str) -> str:
    return f"tokenizer {name} of sha256 {sha256}"


HARMONY_WORDS: Final = _words(HARMONY.name, O200K.sha256)


def _is_empty(tokens: Path) -> bool:
    """Whether the record of a shard says that it has no files in a split, and it has none."""
    number = re.fullmatch(r"shard_(\d+)_tokens", tokens.name)
    if number is None or tokens.with_name(f"{tokens.name}.idx").exists():
        return False
    path = provenance.record_path(tokens.parent.parent, number[1], shared=True)
    if not path.exists():
        path = provenance.record_path(tokens.parent.parent, None, shared=False)
    if not path.exists():
        return False
    files = provenance.read_record(path).outputs
    return not any(file.path.startswith(f"{tokens.parent.name}/") for file in files)


INDEX_FILES: Final = (
    "description.txt",
    "document_index.npy",
    "sample_index.npy",
    "shuffle_index.npy",
)


@contextmanager
def index_folder(cache: Path, key: str, files: Sequence[str] = INDEX_FILES) -> Iterator[Path]:
    """Yield the cache where the index of a key is there, else an empty folder to make it in.

    The second process waits for the first. Where the body ends without an error, the files that it
    made are flushed and renamed into the cache. On a file system without locks several processes
    make the same files, and rename them over each other.
    """
    names = [f"{key}-{name}" for name in files]

    def is_whole() -> bool:
        return all((cache / name).is_file() for name in names)

    if is_whole():
        yield cache
        return
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f".{key}.lock") as is_alone:
        if is_whole():
            yield cache
            return
        begins = f".{key}-{socket.gethostname()}-"
        for left in list(cache.iterdir()) if is_alone else ():
            if left.name.startswith(begins):
                shutil.rmtree(left, ignore_errors=True)  # of a process that was killed
        private = Path(tempfile.mkdtemp(prefix=begins, dir=cache))
        try:
            yield private
            flush_all([private / name for name in names])
            for name in names:
                (private / name).replace(cache / name)
        finally:
            shutil.rmtree(private, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Hold a lock file, which is removed at the end; False where there are no locks."""
    held = False
    with suppress(OSError), ExitStack() as stack:
        while not held:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            held = _leads_to(lock, descriptor)  # else its holder has removed it meanwhile
        closing = stack.pop_all()
    if not held:
        with suppress(OSError):
            lock.unlink()
        yield False
        return
    with closing:
        try:
            yield True
        finally:
            with suppress(OSError):
                lock.unlink()


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
