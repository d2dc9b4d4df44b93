"""What a worker does: the records of one rank in a group become tokens.

A group is a byte range of the normalised file. Source: `docs/formats/reasoning.md#shards`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, islice, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.split_file import files, located, opened
from gristmill.hashing import HashedFile
from gristmill.reasoning.format.index import SELECTORS, Ints, Numbers, extras_of, extras_text
from gristmill.reasoning.render.text import text_of
from gristmill.run.parts import SHA256
from gristmill.vocabularies.encode import Encoded, Encoder, check_equal, encoder_of, sampled
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.pinned import TokenizerFile

_GROUP_BYTES: Final = 1 << 21
_MOST_RANKS: Final = 16
"""A group grows with the world size, so that parts stay large, up to so many ranks."""


@dataclass(frozen=True)
class Group:
    """Consecutive lines of a normalised file.

    first_record: number of records before. records: their number; blank lines are none.
    part: of the split, which has them, from 0.
    """

    begin: int
    first_line: int
    lines: int
    first_record: int
    records: int
    part: int = 0

    def numbers(self, path: Path) -> Ints:
        """The numbers of its records, int64 [records]. path: of the file."""
        return Numbers(path).between(self.first_record, self.first_record + self.records)

    def chosen(self, path: Path, is_chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[int, bytes]]:
        """Yield some of its records: the number of each line, from 1, and the line.

        is_chosen: bool [records].
        """
        with opened(path) as file:
            file.seek(self.begin)
            lines: Iterable[tuple[int, bytes]] = enumerate(
                islice(file, self.lines), self.first_line + 1
            )
            if self.lines != self.records:
                lines = (each for each in lines if not is_blank(each[1]))
            yield from compress(lines, is_chosen.tolist())


class Groups(NamedTuple):
    """A file as groups. sha256: hex, of the file. records: of all groups."""

    groups: list[Group]
    sha256: str
    records: int


def scan(path: Path, world_size: int) -> Groups:
    """Return the groups of a normalised file; one group is in memory at a time."""
    size = _GROUP_BYTES * min(world_size, _MOST_RANKS)
    digest, groups = hashlib.sha256(), []
    begin = lines = records = 0
    for part, each in enumerate(files(path)):
        with each.open("rb") as file:
            while data := file.read(size):
                data += file.readline()
                digest.update(data)
                group = Group(begin, lines, *_counted(data, records), part)
                groups.append(group)
                begin, lines = begin + len(data), lines + group.lines
                records += group.records
    Numbers(path).check(records)
    return Groups(groups, digest.hexdigest(), records)


def is_blank(line: bytes) -> bool:
    """Whether a line is no record: it holds nothing but white space."""
    return not line or line.isspace()


def _counted(data: bytes, before: int) -> tuple[int, int, int]:
    """Lines, records before, records."""
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    # A record of ours begins with a brace.
    if data.count(b"\n{") + data.startswith(b"{") == lines:
        return lines, before, lines
    return lines, before, sum(not is_blank(line) for line in data.split(b"\n"))


_BATCH: Final = 2048
COUNTS: Final = (
    *("examples", "skipped_empty", "with_cot", "text_tokens"),
    *("control_texts", "fast_texts", "tiktoken_texts", "compared_texts"),
)


@dataclass(frozen=True)
class Task:
    """One part to make."""

    jsonl: Path
    corpus: str
    split: str
    group: Group
    rank: int
    world_size: int
    tokenizer: TokenizerFile
    engine: str


class Part(NamedTuple):
    """A part as it is read back.

    tokens: bytes of int32, the texts of all examples, each with its EOS.
    records: int64 [examples], number of each record in the file.
    lengths: int64 [examples], tokens of each text, without EOS.
    extras: of each example the end of its line in the index; None where the corpus has none.
    """

    tokens: memoryview
    records: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    digests: str
    extras: list[str] | None


def make_part(task: Task, path: Path) -> dict[str, Any]:
    """Write the part of a task; return its counts, its sizes and its hash.

    Raises BadInput with the line for one that is no record, or that cannot be encoded, and
    EnginesDiffer where the engines differ on a text of the sample.
    """
    made = _Made(task)
    with HashedFile(path) as file:
        tokens = sum(file.write(batch) for batch in made.batches())
        sizes = [tokens, *(file.write(stream) for stream in made.streams())]
    return made.counts | {
        "sizes": sizes,
        "extras": bool(selectors(task.corpus, task.jsonl)),
        SHA256: file.sha256,
    }


def read_part(path: Path, summary: Mapping[str, Any]) -> Part:
    """Return a part from its file and its summary."""
    data = memoryview(path.read_bytes())
    streams, at = [], 0
    for size in summary["sizes"]:
        streams.append(data[at : at + size])
        at += size
    tokens, records, lengths, digests, extras = streams
    return Part(
        tokens,
        np.frombuffer(records, dtype="<i8"),
        np.frombuffer(lengths, dtype="<i8"),
        digests.hex(),
        bytes(extras).decode().split("\n") if summary["extras"] else None,
    )


class _Made:
    """Encodes the records of a task batch by batch, and keeps what follows the tokens."""

    def __init__(self, task: Task) -> None:
        self.counts = dict.fromkeys(COUNTS, 0)
        self._task = task
        self._encoder = encoder_of(task.tokenizer, task.engine)
        self._eod = struct.pack("<i", task.tokenizer.eod)
        self._control = task.tokenizer.eod_text
        self._sample = _Sample(task) if self._encoder.why_reference_alone is None else None
        self._selectors = selectors(task.corpus, task.jsonl)
        self._records: list[bytes] = []
        self._lengths: list[bytes] = []
        self._digests: list[bytes] = []
        self._extras: list[str] = []

    def batches(self) -> Iterator[bytes]:
        """Yield the tokens of all texts, each with its EOS."""
        task = self._task
        numbers = task.group.numbers(task.jsonl)
        # The record with number k belongs to rank k modulo the world size.
        is_own = numbers % task.world_size == task.rank
        lines, numbers, at = task.group.chosen(task.jsonl, is_own), numbers[is_own], 0
        while batch := list(islice(lines, _BATCH)):
            yield self._batch(batch, numbers[at : at + len(batch)])
            at += len(batch)

    def streams(self) -> list[bytes]:
        """Return what follows the tokens."""
        streams = [b"".join(each) for each in (self._records, self._lengths, self._digests)]
        return [*streams, "\n".join(self._extras).encode()]

    def _batch(self, batch: Sequence[tuple[int, bytes]], numbers: Ints) -> bytes:
        task = self._task
        try:
            parsed = [orjson.loads(line) for _, line in batch]
            texts = [text_of(each) for each in parsed]
            encoded = self._encoder.encode(list(filter(None, texts)))
        except (ValueError, AttributeError, TypeError) as error:
            _refuse(task, batch, self._encoder)
            raise GristmillError(f"{task.jsonl}: {error}") from error  # pragma: no cover
        if len(encoded.ids) < len(texts):
            kept = [place for place, text in enumerate(texts) if text]
            numbers = numbers[kept]
            texts = [texts[place] for place in kept]
            parsed = [parsed[place] for place in kept]
        lengths = np.array([view.nbytes >> 2 for view in encoded.ids], dtype="<i8")
        self._records.append(numbers.astype("<i8").tobytes())
        self._lengths.append(lengths.tobytes())
        self._digests += [hashlib.sha256(text.encode()).digest() for text in texts]
        if self._selectors:
            self._extras += [extras_text(extras_of(each, self._selectors)) for each in parsed]
        if self._sample is not None:
            self.counts["compared_texts"] += self._sample.check(numbers, texts, encoded.ids)
        self._count(batch, texts, parsed, encoded)
        self.counts["text_tokens"] += int(lengths.sum())
        return b"".join(chain.from_iterable(zip(encoded.ids, repeat(self._eod), strict=False)))

    def _count(
        self,
        batch: Sequence[object],
        texts: Sequence[str],
        parsed: Sequence[Mapping[str, Any]],
        encoded: Encoded,
    ) -> None:
        counts = self.counts
        counts["examples"] += len(texts)
        counts["skipped_empty"] += len(batch) - len(texts)
        counts["with_cot"] += sum([bool((each.get("cot") or "").strip()) for each in parsed])
        counts["control_texts"] += sum([text.count(self._control) for text in texts])
        counts["tiktoken_texts"] += len(encoded.by_reference)
        counts["fast_texts"] += len(texts) - len(encoded.by_reference)


class _Sample:
    """Texts of a part that tiktoken encodes, too, where gigatoken encodes most.

    The sample is the same for any number of workers. The first text of a part is compared for its
    place alone, and is not counted.
    """

    def __init__(self, task: Task) -> None:
        group = task.group
        source = f"{task.corpus}/{task.split}"
        chosen = sampled(source, group.first_record, group.records)
        self._chosen = group.numbers(task.jsonl)[chosen]
        self._first: int | None = None
        self._task = task

    def check(
        self,
        records: npt.NDArray[np.int64],
        texts: Sequence[str],
        ids: Sequence[memoryview],
    ) -> int:
        """Compare the sampled texts of a batch; return how many the seed chose.

        Raises EnginesDiffer with the record where tiktoken's tokens are others.
        """
        task = self._task
        places = np.flatnonzero(np.isin(records, self._chosen)).tolist()
        count = len(places)
        if self._first is None and len(records):
            self._first = int(records[0])
            places = sorted({0, *places})
        reference = encoder_of(task.tokenizer, TIKTOKEN)
        for place in places:
            expected = reference.encode([texts[place]]).ids[0]
            where = f"{task.jsonl}: record {records[place]}"
            fast, slow = (np.frombuffer(each, dtype="<i4") for each in (ids[place], expected))
            check_equal(where, fast, slow)
        return count


def selectors(corpus: str, jsonl: Path) -> tuple[str, ...]:
    """The columns of a corpus that the index repeats: those of its name, and of its first record.

    Of a name that is not built in, all that a record may have.
    """
    if (known := CORPORA.get(corpus)) is None:
        return SELECTORS
    with opened(jsonl) as file:
        first = next((line for line in file if not line.isspace()), b"")
    # A drop may have a file of its own for the name.
    return tuple(
        name
        for name in SELECTORS
        if name in known.extra_columns or b'"%s": ' % name.encode() in first
    )


def _refuse(task: Task, batch: Sequence[tuple[int, bytes]], encode: Encoder) -> None:
    """Raise BadInput with the first line of a batch that cannot become tokens."""
    for number, line in batch:
        if rule := _problem(line, encode):
            file, row = located(task.jsonl, number)
            raise BadInput(file, rule, row)


def _problem(line: bytes, encode: Encoder) -> str:
    """Why a line cannot become tokens; empty where it can."""
    try:
        record = orjson.loads(line)
    except ValueError as error:
        return f"is no JSON: {error}"
    if not isinstance(record, dict):
        return "is no JSON object"
    for name in ("question", "answer", "cot"):
        if not isinstance(record.get(name) or "", str):
            return f"{name}: must be text or null"
    try:
        encode.encode([text_of(record)])
    except ValueError as error:
        return f"cannot be encoded: {error}"
    return ""
