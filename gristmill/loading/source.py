"""What the loader needs of a family: samples by number, their names, and where they came from."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError, Trace
from gristmill.loading.bijection import Numbers, Words

if TYPE_CHECKING:
    from gristmill.reading.folder import Generation

Columns = dict[str, npt.NDArray[Any]]

MOST_VERSIONS: Final = 16
"""A source of more artifacts names them by one digest."""


@dataclass(frozen=True)
class Identity:
    """What decides which sample a number is.

    asset: key of the asset, as `chess/game_dataset`.
    versions: data version of each artifact or partition, in the order of the numbers; of more than
        16 the sha256 of the list.
    split: as the reader names it; None without splits.
    numbering: further facts of JSON by which numbers were given, such as the digest of a selection.
    artifact: path for a person. It is no part of the key: a copy elsewhere has the same order.
    """

    asset: str
    versions: tuple[str, ...]
    split: str | None = None
    numbering: Mapping[str, Any] = field(default_factory=dict)
    artifact: str = ""

    @property
    def text(self) -> str:
        """The JSON text that keys the order."""
        return json.dumps(self.facts(), sort_keys=True)

    def facts(self) -> dict[str, Any]:
        """The parts of the key, as a state has them."""
        return {
            "asset": self.asset,
            "versions": list(self.versions),
            "split": self.split,
            "numbering": dict(self.numbering),
        }


@runtime_checkable
class Source(Protocol):
    """Samples by number, from 0. It can be pickled: a worker opens its files again.

    cuts: int64 [S + 1]: the first number of each shard, and the length.

    One whose samples a person can see has `shown(number)`: what `gristmill show` takes for each
    part of a sample. One whose samples have tokens also has `lengths()`, int [N]; one whose ids are
    of a vocabulary of its own has `words`, a text that names it, and the length of rows that have
    one length: a mixture has sources of the same words. One whose columns are filled with another
    number than 0 where other rows are longer has `behind`, that number by the column's name.
    """

    @property
    def identity(self) -> Identity:
        """What decides which sample a number is."""

    @property
    def cuts(self) -> Numbers:
        """The first number of each shard, and the length."""

    def read(self, numbers: Numbers) -> Columns:
        """Columns [N, ...] of samples [N] by name, in the order asked."""

    def origin(self, number: int) -> Iterator[Trace]:
        """Where a sample came from, down to the raw file."""


def identity_of(
    asset: str,
    generations: Sequence[Generation],
    split: str | None = None,
    numbering: Mapping[str, Any] | None = None,
) -> Identity:
    """The identity of what a reader has open.

    asset: key of the asset. generations: of the artifacts, in the order of the numbers.
    split, numbering: as `Identity`; default none.

    Raises GristmillError for files without a record: nothing would tell another version from them.
    """
    for each in generations:
        if each.data_version is None:
            raise GristmillError(
                f"{each.folder}: has no provenance record, so no state could name its version:"
                " build it with Gristmill, or read it by its reader without the loader"
            )
    versions = tuple(str(each.data_version) for each in generations)
    if len(versions) > MOST_VERSIONS:
        listed = json.dumps(versions).encode()
        versions = (f"sha256 of {len(versions)}: {hashlib.sha256(listed).hexdigest()}",)
    folders = ", ".join(dict.fromkeys(place_of(each) for each in generations))
    return Identity(asset, versions, split, numbering or {}, folders)


def names_of(identities: Sequence[Identity]) -> list[str]:
    """A name for each source, no two alike: its artifact, where several have it the split, too.

    Those that still have one name get their number among all sources, from 1.
    """
    artifacts = Counter(each.artifact for each in identities)
    names = [
        f"{each.artifact} {each.split}"
        if artifacts[each.artifact] > 1 and each.split
        else each.artifact
        for each in identities
    ]
    counts = Counter(names)
    return [
        f"{name} (source {number})" if counts[name] > 1 else name
        for number, name in enumerate(names, start=1)
    ]


def only(folders: Sequence[Path]) -> Path:
    """The one folder. Raises GristmillError for several."""
    if len(folders) != 1:
        raise GristmillError(
            f"{folders[1]}: a source of this asset has one folder: give each a source of its own"
        )
    return folders[0]


def digest_of(numbers: npt.NDArray[Any]) -> str:
    """The sha256 of chosen numbers as int64, which names a selection in `Identity.numbering`."""
    return hashlib.sha256(np.ascontiguousarray(numbers, "<i8").view(np.uint8).data).hexdigest()


def place_of(generation: Generation) -> str:
    """The place of an artifact in its data root, wherever that is; else the last three names."""
    return generation.artifact or "/".join(generation.folder.absolute().parts[-3:])


class View:
    """A source whose places are samples of another one.

    source: the whole, or a view of it. kind: the name in `numbering` of the digest of `facts`.
    """

    def __init__(self, source: Source, kind: str, facts: npt.NDArray[Any], length: int) -> None:
        self._source = source
        numbering = {**source.identity.numbering, kind: digest_of(facts)}
        self.identity: Identity = replace(source.identity, numbering=numbering)
        self.cuts: Numbers = np.array([0, length], np.int64)
        self.read, self.origin = source.read, source.origin
        self.shown = getattr(source, "shown", None)

    @property
    def whole(self) -> Source:
        """The source that has the samples."""
        return whole(self._source)

    def chosen(self, places: Numbers, bits: Words) -> Numbers:
        """The samples int64 [N] of places int64 [N], by the random bits uint64 [N] of the draws."""
        own = self._own(places, bits)
        return self._source.chosen(own, bits) if isinstance(self._source, View) else own

    def place(self, number: int) -> int:
        """The place that gives a sample, perhaps among others. Raises IndexError for none."""
        own = self._source.place(number) if isinstance(self._source, View) else number
        return self._place(own)

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        raise NotImplementedError

    def _place(self, number: int) -> int:
        raise NotImplementedError


def whole(source: Source) -> Source:
    """The source that has the samples of a view; else the source itself."""
    return source.whole if isinstance(source, View) else source


class Picked(View):
    """Chosen samples of a source.

    numbers: int64 [N], each of a sample, in any order; with `counts` the first of each range.
    counts: int64 [N], samples of each range; default one. Memory grows with ranges.

    Raises GristmillError for none, a number outside and a sample that is chosen twice.
    """

    def __init__(self, source: Source, numbers: Numbers, counts: Numbers | None = None) -> None:
        firsts = np.asarray(numbers, np.int64)
        sizes = np.ones_like(firsts) if counts is None else np.asarray(counts, np.int64)
        self._firsts, self._ends = firsts, np.cumsum(sizes, dtype=np.int64)
        self._shift = firsts - (self._ends - sizes)
        order = np.argsort(firsts, kind="stable")
        bounds = np.append(firsts[order], source.cuts[-1])
        if not len(firsts) or bounds[0] < 0 or (bounds[:-1] + sizes[order] > bounds[1:]).any():
            raise GristmillError(
                f"{source.identity.artifact}: the chosen samples are none, or one is outside of"
                f" 0 to {int(source.cuts[-1]) - 1:,} or named twice: choose each once"
            )
        super().__init__(source, "picked", np.stack([firsts, sizes]), int(self._ends[-1]))

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        found: Numbers = places + self._shift[np.searchsorted(self._ends, places, "right")]
        return found

    def _place(self, number: int) -> int:
        places = number - self._shift
        begins = np.append(0, self._ends[:-1])
        here = np.flatnonzero((begins <= places) & (places < self._ends))
        if not len(here):
            raise IndexError(f"no sample {number}: it is not among the {self.cuts[-1]:,} chosen")
        return int(places[here[0]])


class Grouped(View):
    """One sample of each group an epoch, another one each time: of a game, of a puzzle's variants.

    bounds: int64 [G + 1], the first sample of each group, and the number of all.

    Its length is the number of groups. Raises GristmillError for an empty group.
    """

    def __init__(self, source: Source, bounds: Numbers) -> None:
        self._bounds = np.asarray(bounds, np.int64)
        empty = np.flatnonzero(np.diff(self._bounds) < 1).tolist()
        if empty or not 0 <= self._bounds[0] < self._bounds[-1] <= source.cuts[-1]:
            raise GristmillError(
                f"{source.identity.artifact}: bounds of its groups: group {(empty or [0])[0]} is"
                f" empty or outside of {int(source.cuts[-1]):,} samples: leave it out"
            )
        super().__init__(source, "grouped", self._bounds, len(self._bounds) - 1)

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        begins = self._bounds[places]
        sizes = (self._bounds[places + 1] - begins).astype(np.uint64)
        return begins + (bits % sizes).astype(np.int64)

    def _place(self, number: int) -> int:
        if not int(self._bounds[0]) <= number < int(self._bounds[-1]):
            raise IndexError(f"no sample {number}: it is in no group")
        return int(np.searchsorted(self._bounds, number, "right")) - 1


RULE: Final = 1
"""Number of the rule that packs; another rule gets another number."""
_WINDOW: Final = 1 << 16
"""Documents that are packed together."""


def packed_rows(lengths: Numbers, seq_len: int) -> tuple[Numbers, Numbers]:
    """Which pieces of documents are in which row.

    lengths: tokens of each document, [D]. seq_len: tokens of a row.
    """
    rows: list[list[tuple[int, int, int]]] = []
    for start in range(0, len(lengths), _WINDOW):
        _pack(lengths[start : start + _WINDOW].tolist(), start, seq_len, rows)
    firsts = np.array([0, *accumulate(map(len, rows))], np.int64)
    return firsts, np.array([piece for row in rows for piece in row], np.int64).reshape(-1, 3)


def _pack(
    lengths: list[int], start: int, seq_len: int, rows: list[list[tuple[int, int, int]]]
) -> None:
    """Add the rows of one window of documents."""
    pieces = []
    for document, length in enumerate(lengths, start):
        whole = length - length % seq_len
        rows.extend([(document, begin, seq_len)] for begin in range(0, whole, seq_len))
        if length > whole:
            pieces.append((document, whole, length - whole))
    pieces.sort(key=lambda piece: -piece[2])
    # Places that are left, ascending, and the rows that have as many, the last one first.
    left: list[int] = []
    rows_with: dict[int, list[int]] = {}
    for piece in pieces:
        at = bisect_left(left, piece[2])
        if at == len(left):
            row, space = len(rows), seq_len
            rows.append([])
        else:
            space = left[at]
            row = rows_with[space].pop()
            if not rows_with[space]:
                del left[at]
        rows[row].append(piece)
        if space := space - piece[2]:
            if not rows_with.setdefault(space, []):
                insort(left, space)
            rows_with[space].append(row)


def segmented(tokens: npt.NDArray[Any], documents: Numbers) -> Columns:
    """The columns of `Packed.read` beside rows that hold documents already.

    tokens: [N, S]. documents: int64 [N, S], the document of each token, -1 for tokens of none.

    `labels`, of the type of tokens, and `loss_mask` uint8: 0 at the last token of a document in its
    row. `position_ids` int32, from 0 in each document of a row. `cu_seqlens` int32 [N, S + 1]:
    where each segment begins, then S; a segment is a document or tokens of none. `segments` int32.
    """
    count, seq_len = tokens.shape
    begins = np.ones(documents.shape, np.bool_)
    np.not_equal(documents[:, 1:], documents[:, :-1], out=begins[:, 1:])
    inside = documents >= 0
    columns = np.arange(seq_len, dtype=np.int32)
    first = np.maximum.accumulate(np.where(begins, columns, 0), axis=1)
    loss_mask = np.zeros(documents.shape, np.uint8)
    loss_mask[:, :-1] = inside[:, 1:] & ~begins[:, 1:]
    labels = np.zeros_like(tokens)
    labels[:, :-1] = tokens[:, 1:] * loss_mask[:, :-1]
    segments = begins.sum(axis=1, dtype=np.int32)
    bounds = np.full((count, seq_len + 1), seq_len, np.int32)
    row, column = np.nonzero(begins)
    bounds[row, np.arange(len(row)) - np.repeat(np.cumsum(segments) - segments, segments)] = column
    return {
        "labels": labels,
        "loss_mask": loss_mask,
        "position_ids": np.where(inside, columns - first, 0).astype(np.int32),
        "cu_seqlens": bounds,
        "segments": segments,
    }


class Packed:
    """Rows of `seq_len` tokens, packed from the documents of a source; itself a source.

    source: one whose samples are documents: with `lengths`, a column `tokens` [N, longest], and
        perhaps others for each token.
    seq_len: tokens of a row.

    A document is never cut, unless it is longer than a row. Nothing is written: the rows follow
    from the lengths, some microseconds a document. 24 bytes a document stay in memory.

    Raises GristmillError for a source without lengths, or another seq_len than one above 0.
    """

    def __init__(self, source: Source, seq_len: int) -> None:
        lengths = getattr(source, "lengths", None)
        if lengths is None or seq_len < 1:
            raise GristmillError(
                f"{source.identity.artifact}: cannot be packed into rows of {seq_len} tokens: give"
                " documents whose lengths are known, as SynthKDDocuments, and 1 token or more"
            )
        self._source, self.seq_len = source, seq_len
        self._firsts, self._pieces = packed_rows(lengths(), seq_len)
        self._segments = int(np.diff(self._firsts).max(initial=0)) + 1
        numbering = {**source.identity.numbering, "packed": {"rule": RULE, "seq_len": seq_len}}
        self.identity: Identity = replace(source.identity, numbering=numbering)
        self.cuts: Numbers = np.array([0, len(self._firsts) - 1], np.int64)
        self.behind = {"cu_seqlens": seq_len}
        self.words = f"{getattr(source, 'words', 'tokens')}, rows of {seq_len} tokens"

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.cuts[-1])

    def pieces(self, number: int) -> Numbers:
        """The pieces of a row, int64 [P, 3]: document, its first token, tokens."""
        return self._pieces[self._firsts[number] : self._firsts[number + 1]]

    def lengths(self) -> Numbers:
        """Tokens of documents in each row, int64 [rows]."""
        ends = np.append(0, np.cumsum(self._pieces[:, 2]))[self._firsts]
        return np.diff(ends)

    def read(self, numbers: Numbers) -> Columns:
        """Rows [N, seq_len]: the columns of the documents, labels, position ids, and segments.

        `tokens`; `labels`, the next token of the same document; `loss_mask` uint8, that of the
        documents, else 1 where there is a label; `position_ids` int32, from 0 in each piece. All
        are 0 where there is nothing. `cu_seqlens` int32 [N, most + 1]: where each segment begins,
        a piece or what is left of the row, then seq_len; `segments` int32 [N]: how many there are.
        """
        rows = [self.pieces(number) for number in numbers.tolist()]
        kinds = self._source.read(np.zeros(1, np.int64))
        columns: Columns = {
            name: np.zeros((len(rows), self.seq_len), column.dtype)
            for name, column in kinds.items()
            if column.ndim == 2
        }
        shape = columns["tokens"].shape
        columns["labels"] = np.zeros_like(columns["tokens"])
        columns.setdefault("loss_mask", np.zeros(shape, np.uint8))
        columns["position_ids"] = np.zeros(shape, np.int32)
        bounds = np.full((len(rows), self._segments + 1), self.seq_len, np.int32)
        bounds[:, 0] = 0
        for row, pieces in enumerate(rows):
            ends = np.cumsum(pieces[:, 2])
            bounds[row, 1 : len(ends) + 1] = ends
            for piece, end in zip(pieces, ends.tolist(), strict=True):
                self._fill({n: c[row, end - piece[2] : end] for n, c in columns.items()}, piece)
        segments = (bounds[:, :-1] < self.seq_len).sum(axis=1, dtype=np.int32)
        return {**columns, "cu_seqlens": bounds, "segments": segments}

    def _fill(self, into: Columns, piece: Numbers) -> None:
        """Write a piece into its places."""
        document, begin, length = piece.tolist()
        found = self._source.read(np.array([document]))
        labels = found["tokens"][0, begin + 1 : begin + length + 1]
        for name, column in found.items():
            if column.ndim == 2:
                into[name][:] = column[0, begin : begin + length]
        if "loss_mask" not in found:
            into["loss_mask"][: len(labels)] = 1
        into["labels"][: len(labels)] = labels
        into["position_ids"][:] = np.arange(length)

    def shown(self, number: int) -> Iterator[Any]:
        """Each document of a row, as its source shows it; none where it shows none."""
        shown = getattr(self._source, "shown", lambda _: ())
        for document in self.pieces(number)[:, 0].tolist():
            yield from shown(document)

    def origin(self, number: int) -> Iterator[Trace]:
        """What each document of a row came from, one document after the other."""
        for document in self.pieces(number)[:, 0].tolist():
            yield from self._source.origin(document)
