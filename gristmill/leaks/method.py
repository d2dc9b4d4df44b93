"""Evaluation questions in one table, and what finds them in texts.

Of a set only those runs of words are evidence that stand in one of its questions alone. A question
is found where enough of its runs stand in one text, or where a whole text is equal to it.
Source: `docs/leaks.md#how-it-works`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.leaks.words import Seeds, Word, run_hash, table, words

LEAST: Final = 0.3
"""The share of a question's own runs that must stand in a text."""
_LONGEST, _SHORTEST, _RUNS = 8, 4, 4
"""Words of a run: of a long question, of a short one; between them, this part of its words."""
_LONGEST_ALONE, _SHORTEST_ALONE = 13, 6
"""The same of scripts without spaces, in characters."""
FEWEST: Final = 3
"""Words of a question that is looked for at all, by equality."""
_BLOCK: Final = 10_000
"""Characters; three of them are looked at word by word."""
_PER_RUN: Final = 16
_MOST_BITS: Final = 1 << 23


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

    hashes: uint64 [Q]. sizes: int64 [Q], words of a run, 0 for a
        question that is found by equality alone. own: int64 [Q], its runs that no other has.
    needed: int64 [Q], how many of these must stand in a text. runs, of: uint64 and int64 [G],
        these runs, and whose each is. equal: the first question with the same words, else itself.
    short: questions of so few words that they are not looked for.
    """

    hashes: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.int64]
    own: npt.NDArray[np.int64]
    needed: npt.NDArray[np.int64]
    runs: npt.NDArray[np.uint64]
    of: npt.NDArray[np.int64]
    equal: npt.NDArray[np.int64]
    short: int


def compiled(texts: Sequence[str], seeds: Seeds, *, is_rare: bool = True) -> Questions:
    """The questions of a set. Memory: 16 bytes a word.

    is_rare: whether a run that several questions have is no evidence of any; default True.
    """
    from gristmill.leaks.kernels import hashed_runs

    given, of_root = Texts.of(texts), np.array(seeds, np.uint64)
    hashes, (counts, alone), _ = Index((), seeds).matched(given)
    _, equal, which = np.unique(hashes, return_index=True, return_inverse=True)
    sizes, need = _sizes(counts, alone)
    # Questions with the same words count once, else none of their runs were their own.
    is_first = equal[which] == np.arange(len(hashes))
    looked = np.where(is_first, sizes, 0)
    found = [np.zeros((2, 0), np.uint64)]
    for size in np.unique(looked[looked > 0]).tolist():
        # A run is one's own where no question has it, whatever the sizes of their runs are.
        runs, of = hashed_runs(*given, table(), of_root, np.where(is_first, size, 0))
        order = np.lexsort((of, runs))
        pairs = np.stack([runs, of.astype(np.uint64)])[:, order]
        pairs = pairs[:, np.r_[True, (pairs[:, 1:] != pairs[:, :-1]).any(0)]]
        _, times = np.unique(pairs[0], return_counts=True)
        is_own = np.repeat((times == 1) | (not is_rare), times)
        found.append(pairs[:, is_own & (looked[pairs[1].astype(np.int64)] == size)])
    runs, of = np.concatenate(found, axis=1)
    of = of.astype(np.int64)
    own = np.bincount(of, minlength=len(hashes)).astype(np.int64)
    needed = np.maximum(np.ceil(LEAST * own).astype(np.int64), need)
    is_found = (looked > 0) & (own >= needed)
    kept = is_found[of]
    return Questions(
        *(hashes, np.where(is_found, looked, 0), own, needed),
        *(runs[kept], of[kept], equal[which].astype(np.int64), int((counts < FEWEST).sum())),
    )


def _sizes(
    counts: npt.NDArray[np.int64], alone: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Words of a run by question, 0 for none, and the hits that no question is found without.

    These are as many as one run of the longest size gives; of a shorter question all.
    """
    is_alone = 2 * alone > counts
    longest = np.where(is_alone, _LONGEST_ALONE, _LONGEST)
    shortest = np.where(is_alone, _SHORTEST_ALONE, _SHORTEST)
    sizes = np.clip(counts // _RUNS, shortest, longest)
    needed = np.where(counts < longest, counts, longest) - sizes + 1
    return np.where(counts > shortest, sizes, 0), needed


class Hit(NamedTuple):
    """Texts in which questions of one set stand; arrays int64 [H], and float64 [H] of shares."""

    text: npt.NDArray[np.int64]
    question: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]


@dataclass
class Index:
    """The questions of several sets in one open-addressing table; each keeps its own rarity.

    sets: their questions. Memory: 40 bytes for each run that a question has alone.
    """

    sets: Sequence[Questions]
    seeds: Seeds
    _first: list[int] = field(init=False)
    _table: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._first = np.cumsum([0, *(len(each.hashes) for each in self.sets)]).tolist()
        runs = np.concatenate([np.zeros(0, np.uint64), *(each.runs for each in self.sets)])
        of = [each.of + begin for each, begin in zip(self.sets, self._first, strict=False)]
        order = np.argsort(runs, kind="stable")
        keys, starts = np.unique(runs[order], return_index=True)
        size = 1 << max(4, int(2 * len(keys)).bit_length())
        slots, first = np.zeros(size, np.uint64), np.zeros(size + 1, np.int64)
        counts = np.diff(np.r_[starts, len(runs)])
        placed = _placed(keys, slots)
        first[placed + 1] = counts
        first = np.cumsum(first)
        questions = np.empty(len(runs), np.int64)
        given = np.concatenate([np.zeros(0, np.int64), *of])[order]
        targets = np.repeat(first[placed] - starts, counts) + np.arange(len(runs))
        questions[targets] = given
        bits = np.zeros(min(max(64, size * _PER_RUN // 2), _MOST_BITS) // 64, np.uint64)
        place = (keys >> np.uint64(32)) & np.uint64(len(bits) * 64 - 1)
        np.bitwise_or.at(bits, place >> np.uint64(6), np.uint64(1) << (place & np.uint64(63)))
        self._table = bits, slots, first, questions

    def find(
        self, texts: Sequence[str]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], list[Hit]]:
        """The hash of each text, the number of its words, and what was found of each set."""
        hashes, (counts, _), found = self.matched(Texts.of(texts))
        return hashes, counts, [*self._of_sets(hashes, counts, found)]

    def matched(self, texts: Texts) -> Any:
        """What `kernels.matched` says of texts."""
        from gristmill.leaks.kernels import matched

        of_root, none = np.array(self.seeds, np.uint64), [np.zeros(0, np.int64)]
        sizes = np.unique(np.concatenate([*none, *(each.sizes for each in self.sets)]))
        needed = np.concatenate([*none, *(each.needed for each in self.sets)])
        return matched(*texts, table(), of_root, sizes[sizes > 0], self._table, needed)

    def _of_sets(
        self,
        hashes: npt.NDArray[np.uint64],
        counts: npt.NDArray[np.int64],
        found: npt.NDArray[np.int64],
    ) -> Iterator[Hit]:
        for number, each in enumerate(self.sets):
            first, end = self._first[number : number + 2]
            own = found[(found[:, 1] >= first) & (found[:, 1] < end)]
            which = own[:, 1] - first
            text, share = own[:, 0], own[:, 2] / each.own[which]
            order = np.argsort(each.hashes, kind="stable")
            at = np.searchsorted(each.hashes, hashes, sorter=order)
            at = order[np.minimum(at, len(order) - 1)] if len(order) else at
            is_equal = (
                (counts >= FEWEST) & (each.hashes[at] == hashes) if len(order) else counts < 0
            )
            equal = np.flatnonzero(is_equal)
            texts = np.r_[equal, text]
            questions = np.r_[each.equal[at[equal]], which]
            pairs = np.stack([texts, questions], 1)
            _, kept = np.unique(pairs, axis=0, return_index=True)
            yield Hit(texts[kept], questions[kept], np.r_[np.ones(len(equal)), share][kept])


def _placed(keys: npt.NDArray[np.uint64], slots: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Put each key into its slot, or a free one behind it; returns which."""
    end, left = np.uint64(len(slots) - 1), np.arange(len(keys))
    places = (keys & end).astype(np.int64)
    while len(left):
        is_free = slots[places[left]] == 0
        _, first = np.unique(places[left], return_index=True)
        taken = first[is_free[first]]
        slots[places[left[taken]]] = keys[left[taken]]
        left = np.delete(left, taken)
        places[left] = (places[left] + 1) & int(end)
    return places


Span = tuple[int, int]


def shared(question: str, text: str, seeds: Seeds) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Begin and end, in the question and in the text, of the runs of words that stand in both.

    Of a long text those in its part with most of them, and of a long question in its beginning.
    """
    asked = list(words(question[: 3 * _BLOCK]))
    is_alone = 2 * sum(each.alone for each in asked) > len(asked)
    least, most = (_SHORTEST_ALONE, _LONGEST_ALONE) if is_alone else (_SHORTEST, _LONGEST)
    size = min(max(len(asked) // _RUNS, least), most, max(1, len(asked)))
    runs = dict[int, list[int]]()
    for at in range(len(asked) - size + 1):
        runs.setdefault(run_hash(asked[at : at + size], seeds), []).append(at)
    start = _around([*runs], text, size, seeds) if len(text) > 3 * _BLOCK else 0
    window = text[start : start + 3 * _BLOCK]
    found = [
        each._replace(begin=start + each.begin, end=start + each.end) for each in words(window)
    ]
    ours, theirs = set[int](), set[int]()
    for at in range(len(found) - size + 1):
        for begin in runs.get(run_hash(found[at : at + size], seeds), ()):
            ours.update(range(begin, begin + size))
            theirs.update(range(at, at + size))
    return _spans(ours, asked), _spans(theirs, found)


def _around(wanted: Sequence[int], text: str, size: int, seeds: Seeds) -> int:
    """Where a window of a long text begins, around the block with most of some runs."""
    from gristmill.leaks.kernels import hashed_runs

    given = Texts.of([text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK)])
    sizes = np.full(len(given.ends), size)
    runs, of = hashed_runs(*given, table(), np.array(seeds, np.uint64), sizes)
    is_wanted = np.isin(runs, np.array(wanted, np.uint64))
    most = int(np.bincount(of[is_wanted], minlength=len(sizes)).argmax())
    return max(0, most - 1) * _BLOCK


def _spans(chosen: set[int], found: Sequence[Word]) -> tuple[Span, ...]:
    made = list[Span]()
    for at in sorted(chosen):
        begin = made.pop()[0] if at - 1 in chosen else found[at].begin
        made.append((begin, found[at].end))
    return tuple(made)
