"""Evaluation questions in one table, and what finds them in texts.

Of a set only those runs of words are evidence that stand in one of its questions alone. A question
is found where enough of its runs stand in one text, or where a whole text is equal to it; with
other names and numbers, where enough of its runs of bare words stand there.
Source: `docs/leaks.md#how-it-works`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.leaks.words import BEGIN, Seeds, seeds_of, table

LEAST, LEAST_CHANGED = 0.3, 0.6
"""The share of a question's own runs that must stand in a text, and of those of bare words."""
_LONGEST, _SHORTEST, _RUNS = 8, 4, 4
"""Words of a run: of a long question, of a short one; between them, this part of its words."""
_LONGEST_ALONE, _SHORTEST_ALONE = 13, 6
"""The same of scripts without spaces, in characters."""
FEWEST: Final = 3
"""Words of a question that is looked for at all, by equality."""
_PART: Final = 10_000
"""Bytes of a text; of three of these the marks are shown."""
_PER_RUN: Final = 8
_MOST_BITS: Final = 1 << 23
_48: Final = np.uint64(48)
_NO_RUNS, _NOWHERE = np.zeros(0, np.uint64), np.zeros(0, np.int64)


class Texts(NamedTuple):
    """Texts one after the other, as the kernels take them. data: uint8. ends: int64 [T]."""

    data: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]

    @staticmethod
    def of(texts: Sequence[str]) -> Texts:
        """Texts; a lone surrogate is no part of a word."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([0, *map(len, parts)])[1:].astype(np.int64)
        return Texts(np.frombuffer(b"".join(parts), np.uint8), ends)


@dataclass
class Questions:
    """The questions of one set, compiled.

    hashes: uint64 [Q]. Question q is in the arrays of 2 Q as q, and as Q + q with its names and
    numbers left out. sizes: int64 [2 Q], words of a run, 0 for one that is found by equality alone.
    own: int64 [2 Q], its runs that no other has. needed: int64 [2 Q], how many must stand there.
    runs, of: uint64 and int64 [G], these runs, and whose each is. begins: uint64 [B], the runs of
    BEGIN words. equal: the first question with the same words, else itself. short: questions of so
    few words that they are not looked for.
    """

    hashes: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.int64]
    own: npt.NDArray[np.int64]
    needed: npt.NDArray[np.int64]
    runs: npt.NDArray[np.uint64]
    of: npt.NDArray[np.int64]
    begins: npt.NDArray[np.uint64]
    equal: npt.NDArray[np.int64]
    short: int


def compiled(texts: Sequence[str], seeds: Seeds, *, is_rare: bool = True) -> Questions:
    """The questions of a set. Memory: 32 bytes a word.

    is_rare: whether a run that several questions have is no evidence of any; default True. Else
        none is looked for without its names and numbers.
    """
    from gristmill.leaks.kernels import hashed_runs

    given = Texts.of(texts)
    hashes, counts, _ = Index((), seeds).matched(given)
    _, equal, which = np.unique(hashes, return_index=True, return_inverse=True)
    # Questions with the same words count once, else none of their runs were their own.
    is_first = equal[which] == np.arange(len(hashes))
    sizes, need = (np.concatenate(each) for each in zip(*_sizes(counts), strict=True))
    looked = sizes * np.tile(is_first, 2)
    looked[len(hashes) :] *= is_rare
    runs_of, begins = partial(hashed_runs, *given, table(), seeds), [_NO_RUNS]
    found = [(_NO_RUNS, _NOWHERE)]
    for is_bare, its in enumerate(np.split(looked, 2)):
        begins.append(runs_of(np.where(its > 0, BEGIN, 0), bool(is_bare))[0])
        for size in np.unique(its[its > 0]).tolist():
            # A run is one's own where no question has it, whatever the sizes of their runs are.
            runs, of, _ = runs_of(np.where(is_first, size, 0), bool(is_bare))
            order = np.argsort(runs)
            runs, of = runs[order], of[order]
            if is_rare:
                first = np.flatnonzero(np.r_[True, runs[1:] != runs[:-1]])
                is_own = np.minimum.reduceat(of, first) == np.maximum.reduceat(of, first)
                runs, of = runs[first[is_own]], of[first[is_own]]
            found.append((runs[its[of] == size], of[its[of] == size] + is_bare * len(hashes)))
    runs, of = (np.concatenate(each) for each in zip(*found, strict=True))
    own = np.bincount(of, minlength=len(looked)).astype(np.int64)
    least = np.repeat([LEAST, LEAST_CHANGED], len(hashes))
    needed = np.maximum(np.ceil(least * own).astype(np.int64), need)
    is_found = (looked > 0) & (own >= needed)
    return Questions(
        *(hashes, np.where(is_found, looked, 0), own, needed, runs[is_found[of]], of[is_found[of]]),
        *(np.concatenate(begins), equal[which].astype(np.int64)),
        int((counts[:, 0] < FEWEST).sum()),
    )


def _sizes(counts: npt.NDArray[np.int64]) -> Iterator[tuple[Any, Any]]:
    """Yield words of a run by question, 0 for none, and the hits that it is not found without.

    counts: int64 [Q, 3], as of `matched`. First of all words: the hits are as many as one run of
    the longest size gives, of a shorter question all. Then of the bare words.
    """
    words, alone, bare = counts.T
    is_alone = 2 * alone > words
    longest = np.where(is_alone, _LONGEST_ALONE, _LONGEST)
    shortest = np.where(is_alone, _SHORTEST_ALONE, _SHORTEST)
    sizes = np.clip(words // _RUNS, shortest, longest)
    needed = np.where(words < longest, words, longest) - sizes + 1
    yield np.where(words > shortest, sizes, 0), needed
    yield np.where(bare >= longest + _RUNS, longest, 0), np.full(len(words), _RUNS + 1)


class Hit(NamedTuple):
    """Texts in which questions of one set stand; arrays int64 [H], and float64 [H] of shares.

    changed: 1 where names or numbers are others.
    """

    text: npt.NDArray[np.int64]
    question: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]
    changed: npt.NDArray[np.int64]


class Index:
    """The questions of several sets in one table; each keeps its own rarity.

    sets: their questions. Memory: 32 bytes for each run that a question has alone.
    """

    def __init__(self, sets: Sequence[Questions], seeds: Seeds) -> None:
        self._sets, self._seeds = sets, seeds
        self._first = np.cumsum([0, *(len(each.own) for each in sets)]).tolist()
        runs = np.concatenate([_NO_RUNS, *(each.runs for each in sets)])
        of = [each.of + begin for each, begin in zip(sets, self._first, strict=False)]
        order = np.argsort(runs)
        shift = np.uint64(64 - max(4, int(2 * len(runs)).bit_length()))
        firsts = np.bincount(runs >> shift, minlength=1 << (64 - int(shift)))
        begins = np.concatenate([_NO_RUNS, *(each.begins for each in sets)])
        wide = 1 << max(6, int(_PER_RUN * len(begins)).bit_length())
        bits = np.zeros(min(wide, _MOST_BITS) // 64, np.uint64)
        place = (begins >> np.uint64(32)) & np.uint64(len(bits) * 64 - 1)
        np.bitwise_or.at(bits, place >> np.uint64(6), np.uint64(1) << (place & np.uint64(63)))
        halves = [(_NOWHERE, _NOWHERE), *(np.split(each.sizes, 2) for each in sets)]
        sizes = (np.unique(np.concatenate(its)) for its in zip(*halves, strict=True))
        self._table = (
            tuple(its[its > 0] for its in sizes),
            (
                *(bits, runs[order], np.r_[0, np.cumsum(firsts)]),
                *(np.concatenate([_NOWHERE, *of])[order], shift),
            ),
            np.concatenate([_NOWHERE, *(each.needed for each in sets)]),
        )

    def matched(self, texts: Texts) -> Any:
        """What `kernels.matched` says of texts."""
        from gristmill.leaks.kernels import matched

        return matched(*texts, table(), self._seeds, *self._table)

    def find(self, texts: Texts | Sequence[str]) -> tuple[Any, Any, list[Hit]]:
        """The hash uint64 [T] and the words int64 [T] of texts, and what was found of each set."""
        hashes, counts, found = self.matched(texts if isinstance(texts, Texts) else Texts.of(texts))
        made = list[Hit]()
        for each, first, end in zip(self._sets, self._first, self._first[1:], strict=False):
            text, its, hits = found[(found[:, 1] >= first) & (found[:, 1] < end)].T
            changed, which = np.divmod(its - first, len(each.hashes))
            few = np.zeros(1 << 16, np.bool_)  # most texts are in no question's place
            few[each.hashes >> _48] = True
            near = np.flatnonzero((counts[:, 0] >= FEWEST) & few[hashes >> _48])
            order = np.argsort(each.hashes, kind="stable")
            at = np.searchsorted(each.hashes, hashes[near], sorter=order)
            at = order[np.minimum(at, len(order) - 1)]
            is_equal = each.hashes[at] == hashes[near]
            equal, at = near[is_equal], at[is_equal]
            texts_of, questions = np.r_[equal, text], np.r_[each.equal[at], which]
            kinds = np.r_[np.zeros(len(equal), np.int64), changed]
            shares = np.r_[np.ones(len(equal)), hits / each.own[its - first]]
            # Of the several ways in which a question is found in a text the first one counts.
            order = np.argsort(kinds, kind="stable")
            pairs = (texts_of * len(each.hashes) + questions)[order]
            kept = order[np.unique(pairs, return_index=True)[1]]
            made.append(Hit(texts_of[kept], questions[kept], shares[kept], kinds[kept]))
        return hashes, counts[:, 0], made


Spans = tuple[tuple[int, int], ...]


def shared(
    question: str, text: str, seeds: Seeds, *, is_changed: bool = False
) -> tuple[Spans, Spans]:
    """Begin and end, in the question and in the text, of the runs of words that stand in both.

    is_changed: whether names and numbers between these words may differ; default False.

    Of a long text those in its part with most of them.
    """
    from gristmill.leaks.kernels import hashed_runs

    given = Texts.of([question, text])
    words, alone, bare = Index((), seeds).matched(given)[1][0]
    count = bare if is_changed else words
    sizes = (_SHORTEST_ALONE, _LONGEST_ALONE) if 2 * alone > count else (_SHORTEST, _LONGEST)
    size = min(int(np.clip(count // _RUNS, *sizes)), max(1, count))
    runs, of, places = hashed_runs(*given, table(), seeds, np.full(2, size), is_changed)
    is_both = np.isin(runs, np.intersect1d(runs[of == 0], runs[of == 1]))
    ours, theirs = (places[is_both & (of == number)] for number in (0, 1))
    part = theirs[:, 0] // _PART
    most = np.bincount(part).argmax() if len(part) else 0
    theirs = theirs[abs(part - most) <= 1]
    return _spans(ours, given.data), _spans(theirs - given.ends[0], given.data[given.ends[0] :])


def words_of(texts: Sequence[str], *, is_bare: bool) -> set[int]:
    """Hashes of the words, or of the bare words, of texts."""
    from gristmill.leaks.kernels import hashed_runs

    one = np.ones(len(texts), np.int64)
    return {*hashed_runs(*Texts.of(texts), table(), seeds_of(b""), one, is_bare)[0].tolist()}


def _spans(places: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Spans:
    """Places of runs in bytes, rising, as those in characters; runs that meet are one."""
    begins = places[np.r_[True, places[1:, 0] > places[:-1, 1]][: len(places)], 0]
    ends = places[np.r_[places[1:, 0] > places[:-1, 1], True][: len(places)], 1]
    octets, at, made = data.tobytes(), 0, [0]
    for edge in np.stack([begins, ends], 1).ravel().tolist():
        made.append(made[-1] + len(octets[at:edge].decode("utf-8", "surrogatepass")))
        at = edge
    return tuple(zip(made[1::2], made[2::2], strict=True))
