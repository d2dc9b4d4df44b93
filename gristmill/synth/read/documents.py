"""Shards of SYNTH without Megatron: the files of one generation, and documents by number.

The documents and rows are sources of the loader. The cache of a shard's indices is here, too.
"""

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
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill import provenance
from gristmill.contract import BadInput, Trace
from gristmill.families import Request
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Columns, Packed, Source, identity_of, only
from gristmill.provenance import RECORD, SHARED_RECORDS
from gristmill.publish.atomic_fs import flush_all
from gristmill.reading.folder import HeldFile, Opening, Verify
from gristmill.reading.reader import Reader, located
from gristmill.synth.format import harmony_tokens as ids
from gristmill.synth.format import megatron
from gristmill.synth.format.megatron import Index, MappedValues
from gristmill.synth.read.origins import document_origins
from gristmill.vocabularies.pinned import O200K

if TYPE_CHECKING:
    import pyarrow as pa

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


_ASSET: Final = "synth/kd_shards"
_NAMES: Final = {"tokens": "tokens", "lossmask": "loss_mask", "span": "span_id"}
"""The column of each dataset."""


def opened(
    folders: Sequence[Path],
    *,
    split: Literal["train", "valid"] = "train",
    seq_len: int | None = None,
) -> Source:
    """All documents of a split of a folder of datasets; with `seq_len` packed into rows."""
    documents = SynthKDDocuments(
        [path.with_suffix("") for path in sorted((only(folders) / split).glob("*_tokens.idx"))]
    )
    return documents if seq_len is None else Packed(documents, seq_len)


class _Shard(NamedTuple):
    places: Index
    values: dict[str, MappedValues]


class SynthKDDocuments:
    """Documents of some shards of one split, by number from 0, one shard after the other.

    prefixes: of the tokens datasets, which end in `_tokens`, of one split.
    verify: how much is compared with the records: "none", "sizes" (the default) or "hash".

    It is a source of `gristmill.loading`, and can be pickled: a worker maps the files again, and
    raises StaleDataset at its first read where a shard was rebuilt.

    Raises Misaligned where a file is missing or damaged, BadInput for no prefix, two splits or two
    tokenizers, GristmillError for shards without a record.
    """

    def __init__(self, prefixes: Sequence[Path | str], *, verify: Verify = "sizes") -> None:
        paths = [located(prefix) for prefix in prefixes]
        splits = sorted({path.parent.name for path in paths})
        if len(splits) != 1:
            rule = f"the documents of one split are read together, not of {splits}"
            raise BadInput(paths[0] if paths else "prefixes", rule)
        self.split = splits[0]
        self._files = [ShardFiles(path, verify) for path in paths]
        self.words = self._files[0].words
        for each in self._files:
            if each.words != self.words:
                rule = f"{each.words}; {paths[0]}: {self.words}: read each by a source of its own"
                raise BadInput(each.prefix, f"has ids of another tokenizer: {rule}")
        self._opened: list[_Shard] | None = None
        generations = [each.generations[0] for each in self._files]
        shards = {"shards": [path.name for path in paths]}
        self.identity = identity_of(_ASSET, generations, self.split, shards)
        ends = np.cumsum([len(shard.places) for shard in self._shards])
        self.cuts: Numbers = np.append(0, ends).astype(np.int64)

    def __len__(self) -> int:
        """Number of documents."""
        return int(self.cuts[-1])

    def lengths(self) -> Numbers:
        """Tokens of each document, int64 [N]."""
        sizes = [shard.places.sequence_lengths for shard in self._shards]
        return np.concatenate(sizes).astype(np.int64)

    def read(self, numbers: Numbers) -> Columns:
        """Tokens int32, loss_mask and span_id uint8 [N, longest], 0 behind the end; length int64.

        Mask and span are those of labels, as the datasets store them.
        """
        found = [self._document(number) for number in numbers.tolist()]
        lengths = np.array([len(each["tokens"]) for each in found], np.int64)
        shape = len(found), int(lengths.max(initial=0))
        columns: Columns = {
            column: np.zeros(shape, megatron.DTYPES[name]) for name, column in _NAMES.items()
        }
        for row, each in enumerate(found):
            for name, column in _NAMES.items():
                columns[column][row, : lengths[row]] = each[name]
        return {**columns, "length": lengths}

    def shown(self, number: int) -> Iterator[Request]:
        """The document."""
        folder, shard, document = self._named(number)
        yield Request(folder, str(document), {"split": self.split, "shard": shard})

    def origin(self, number: int) -> Iterator[Trace]:
        """The row of Harmony, or of the conversations, and the raw row of a document."""
        folder, shard, document = self._named(number)
        own = (folder / RECORD).is_file()
        return document_origins(folder, None if own else shard, self.split, document)

    def _named(self, number: int) -> tuple[Path, str, int]:
        """The folder of a document, the name of its shard, and its number there."""
        shard, document = self._place(number)
        prefix = self._files[shard].prefix
        found = re.fullmatch(r"shard_(\d+)_tokens", prefix.name)
        assert found, prefix
        return prefix.parent.parent, found[1], document

    @property
    def _shards(self) -> list[_Shard]:
        if self._opened is None:
            self._opened = [_opened(files) for files in self._files]
        return self._opened

    def _place(self, number: int) -> tuple[int, int]:
        """The shard of a document, and its number there."""
        shard = int(np.searchsorted(self.cuts, number, "right")) - 1
        return shard, number - int(self.cuts[shard])

    def _document(self, number: int) -> dict[str, npt.NDArray[Any]]:
        shard, document = self._place(number)
        places, values = self._shards[shard]
        offset, length, _ = places[document]
        first = int(offset) // megatron.DTYPES["tokens"].itemsize
        return {
            name: values[name].read(
                megatron.DTYPES[name].type, int(length), first * megatron.DTYPES[name].itemsize
            )
            for name in _NAMES
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}


def _opened(files: ShardFiles) -> _Shard:
    held, values = files.held, {}
    for name in _NAMES:
        with held[f"{name}.bin"].reading() as path:
            values[name] = MappedValues(path)
    with held["tokens.idx"].reading() as path:
        return _Shard(Index(path, megatron.DTYPES["tokens"]), values)


_DISTILL: Final = "synth/distill"
_LISTS: Final = {"input_ids": 0, "labels": -100}
"""The columns of lists, and what is behind the end of a row."""


class _Held(NamedTuple):
    """Batches of rows of all folders, the number of the first row of each, and those of folders."""

    batches: list[pa.RecordBatch]
    firsts: Numbers
    cuts: Numbers


class DistilledRows(Reader[_Held]):
    """Rows of one split of distill datasets, by number from 0, one folder after the other.

    folders: of artifacts of `synth/distill` or `chat/distill`. split: "train" or "valid".
    verify: how much is compared with the records: "none", "sizes" (the default) or "hash".

    It is a source of `gristmill.loading`, and can be pickled: a worker maps the files again, and
    raises StaleDataset at its first read where a dataset was rebuilt.

    Raises BadInput where a file is missing or damaged, GristmillError for a folder without a
    record.
    """

    words = HARMONY_WORDS
    behind = _LISTS

    def __init__(
        self, folders: Sequence[Path | str], split: str = "train", *, verify: Verify = "sizes"
    ) -> None:
        self._folders, self.split = [located(each) for each in folders], split
        self.start(verify)
        self.identity = identity_of(_DISTILL, self.generations, split)
        self.cuts: Numbers = self.held.cuts

    def open_files(self, opening: Opening) -> _Held:
        """Map the batches of all folders."""
        from gristmill.synth.read import distill  # loads Arrow

        batches: list[pa.RecordBatch] = []
        cuts = [0]
        for folder in self._folders:
            root = opening.folder(folder)
            state = f"{distill.SPLITS[self.split]}/{distill.STATE}"
            root.check(state)
            for path in distill.files_of(root.inside, self.split):
                kept = root.keep(f"{distill.SPLITS[self.split]}/{path.name}")
                batches += distill.batches_of(kept.opened, kept.path)
            cuts.append(sum(map(len, batches)))
        firsts = np.cumsum([0, *map(len, batches)], dtype=np.int64)
        return _Held(batches, firsts, np.array(cuts, np.int64))

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.cuts[-1])

    def lengths(self) -> Numbers:
        """Tokens of each row, int64 [N]."""
        found = [batch["input_ids"].value_lengths().to_numpy() for batch in self.held.batches]
        return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)

    def read(self, numbers: Numbers) -> Columns:
        """input_ids int32, 0 behind the end, and labels int32, -100 there [N, longest]; length."""
        held = self.held
        places = np.searchsorted(held.firsts, numbers, "right") - 1
        rows = [
            {
                name: held.batches[place][name][number - int(held.firsts[place])].values.to_numpy()
                for name in _LISTS
            }
            for number, place in zip(numbers.tolist(), places.tolist(), strict=True)
        ]
        lengths = np.array([len(row["input_ids"]) for row in rows], np.int64)
        columns: Columns = {}
        for name, behind in _LISTS.items():
            filled = np.full((len(rows), int(lengths.max(initial=0))), behind, np.int32)
            for at, row in enumerate(rows):
                filled[at, : lengths[at]] = row[name]
            columns[name] = filled
        return {**columns, "length": lengths}

    def shown(self, number: int) -> Iterator[Request]:
        """The row."""
        folder, row = self._place(number)
        yield Request(folder, str(row), {"split": self.split})

    def origin(self, number: int) -> Iterator[Trace]:
        """The row of Harmony, or of the conversations, and the raw row of a row."""
        folder, row = self._place(number)
        return document_origins(folder, None, self.split, row)

    def _place(self, number: int) -> tuple[Path, int]:
        place = int(np.searchsorted(self.cuts, number, "right")) - 1
        return self.generations[place].folder, number - int(self.cuts[place])


def opened_rows(
    folders: Sequence[Path], *, split: Literal["train", "valid"] = "train"
) -> DistilledRows:
    """The rows of a split of one or more datasets."""
    return DistilledRows(folders, split)
