"""The whole run as a pure function: position to source and sample number, and back.

Source: docs/formats/loading.md.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from gristmill.contract import GristmillError
from gristmill.loading.bijection import Numbers, Order, Words, distinct, drawn_bits, key
from gristmill.loading.source import Source, View, names_of, whole

MOST_EPOCHS: Final = 4.0
_STRETCH: Final = 1 << 20
Ordered = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class Mixture:
    """Sources, and how many samples each gives until the mixture ends.

    sources: at least one. quotas: samples of each, at least 0, and not 0 of all.
    tokens: what each was asked to give; the quotas are then those of samples by number, and a plan
        counts its own over the order that it draws. Default: the quotas are what was asked.

    Raises GristmillError where one is named twice, is empty, or has a quota below 0, and where ids
    are of different vocabularies or rows of different lengths, as `words` of the sources say.
    """

    sources: tuple[Source, ...]
    quotas: tuple[int, ...]
    tokens: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        refuse_twice(self.sources)
        for source, quota in zip(self.sources, self.quotas, strict=True):
            if quota < 0 or int(source.cuts[-1]) < 1:
                raise GristmillError(
                    f"{source.identity.artifact}: a quota of {quota:,} of {int(source.cuts[-1]):,}"
                    " samples: a source has at least one sample, and gives 0 or more"
                )
        if not sum(self.quotas):
            raise GristmillError("a mixture without samples: give one source a quota above 0")
        given = zip(self.sources, self.quotas, strict=True)
        _refuse_other_words([source for source, quota in given if quota])


def refuse_twice(sources: Sequence[Source]) -> None:
    """Raise GristmillError where two sources are the same data: its samples would come twice."""
    seen: dict[str, Source] = {}
    for source in sources:
        other = seen.setdefault(source.identity.text, source)
        if other is not source:
            raise GristmillError(
                f"{source.identity.artifact}: is the same data as {other.identity.artifact}:"
                " name it once, with the sum of both quotas"
            )


def _refuse_other_words(sources: Sequence[Source]) -> None:
    """Raise GristmillError where the ids of two sources mean different things."""
    named = [(each, getattr(whole(each), "words", None)) for each in sources]
    known = [(source.identity.artifact, words) for source, words in named if words is not None]
    for name, words in known[1:]:
        if words != known[0][1]:
            raise GristmillError(
                f"{known[0][0]} and {name} are of different vocabularies or lengths:"
                f" {known[0][1]}; {words}: mix sources that were built alike, or give each a"
                " loader of its own"
            )


def mixture(
    sources: Mapping[str, Source],
    *,
    epochs: Mapping[str, float] | None = None,
    tokens: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    samples: int | None = None,
    max_epochs: float = MOST_EPOCHS,
) -> Mixture:
    """The quotas of some sources, by one of three measures.

    sources: by a name of one's own.
    epochs: how often each is read, as {"games": 1.5}.
    tokens: how many tokens each gives; the fewest samples that have as many, in the order that is
        drawn. Only for sources with lengths.
    weights: shares of `samples`, which is then needed; the largest remainders are rounded up.
    max_epochs: more epochs of a source are refused, default 4.

    Raises GristmillError for another choice of measures or names, a number below 0, a source
    without lengths, and more epochs.
    """
    given = {"epochs": epochs, "tokens": tokens, "weights": weights}
    chosen = [(name, values) for name, values in given.items() if values is not None]
    if len(chosen) != 1 or (samples is not None) != (chosen[0][0] == "weights"):
        raise GristmillError(
            "a mixture is given by one of epochs=, tokens=, or weights= with samples="
        )
    ((measure, values),) = chosen
    if unlike := sorted(set(values) ^ set(sources)):
        raise GristmillError(f"{measure}: {unlike[0]!r} is not in both: name each source once")
    for name, value in values.items():
        if not 0 <= value < float("inf"):
            raise GristmillError(f"{measure}: {name} has {value}: a number of at least 0 is needed")
    budgets: tuple[int, ...] | None = None
    lengths = {name: int(source.cuts[-1]) for name, source in sources.items()}
    if measure == "epochs":
        quotas = [round(Fraction(values[name]) * lengths[name]) for name in sources]
    elif measure == "tokens":
        budgets = tuple(int(values[name]) for name in sources)
        pairs = zip(sources.values(), budgets, strict=True)
        quotas = [_by_number(lengths_of(source), most) for source, most in pairs]
    else:
        quotas = _by_weights([values[name] for name in sources], int(samples or 0))
    for (name, length), quota in zip(lengths.items(), quotas, strict=True):
        if quota > max_epochs * length:
            raise GristmillError(
                f"{name}: {quota:,} of {length:,} samples are {quota / max(length, 1):.2f} epochs,"
                f" more than {max_epochs:g}: ask for fewer, or give max_epochs="
            )
    return Mixture(tuple(sources.values()), tuple(quotas), budgets)


def _by_weights(weights: Sequence[float], samples: int) -> list[int]:
    total = sum(map(Fraction, weights))
    if not total:
        raise GristmillError("weights: all are 0: give one source a weight above 0")
    exact = [Fraction(weight) * samples / total for weight in weights]
    quotas = [int(each) for each in exact]
    by_rest = sorted(range(len(exact)), key=lambda at: (quotas[at] - exact[at], at))
    for at in by_rest[: samples - sum(quotas)]:
        quotas[at] += 1
    return quotas


def _by_number(lengths: Numbers, tokens: int) -> int:
    return draws_of(lengths, lambda draws: draws % len(lengths), 0, tokens)


def lengths_of(source: Source) -> Numbers:
    """Tokens of each sample int [N]. Raises GristmillError where samples have no length."""
    lengths = getattr(source, "lengths", None)
    found: Numbers | None = None if lengths is None else lengths()
    if found is None or not found.any():
        raise GristmillError(
            f"{source.identity.artifact}: its samples have no tokens: mix it by epochs or weights"
        )
    return found


def draws_of(lengths: Numbers, order: Ordered, begin: int, tokens: int) -> int:
    """The fewest draws from `begin` on whose samples have as many tokens.

    lengths: of each sample, not all 0. order: takes draws int64 [N], returns their samples.
    """
    count, whole, draw = len(lengths), int(lengths.sum(dtype=np.int64)), begin
    while tokens > 0:
        if draw % count == 0 and tokens >= whole:
            draw, tokens = draw + tokens // whole * count, tokens % whole
            continue
        ends = np.cumsum(lengths[order(_stretch(draw, count))], dtype=np.int64)
        draw += min(int(np.searchsorted(ends, tokens)) + 1, len(ends))
        tokens -= int(ends[-1])
    return draw - begin


def tokens_of(lengths: Numbers, order: Ordered, begin: int, draws: int) -> int:
    """The tokens of some draws from `begin` on; the other arguments are those of `draws_of`."""
    count, draw, end, total = len(lengths), begin, begin + draws, 0
    while draw < end:
        epochs = (end - draw) // count if draw % count == 0 else 0
        stretch = _stretch(draw, count)[: end - draw]
        taken = lengths if epochs else lengths[order(stretch)]
        total += int(taken.sum(dtype=np.int64)) * max(epochs, 1)
        draw += epochs * count or len(stretch)
    return total


def _stretch(draw: int, count: int) -> Numbers:
    """Draws from one on, at most to the end of its epoch, and as many as fit into memory."""
    return np.arange(draw, min(draw + _STRETCH, (draw // count + 1) * count))


BLOCK: Final = 4096
"""Positions between two counts of `shares`."""
_KEPT: Final = 4
_UNIT: Final = np.uint64(1 << 40)
_FINER: Final = np.uint64(1 << 11)


def shares(quotas: Sequence[int], positions: int) -> list[int]:
    """How many of the first positions each source has: exact at the sum, and never falling.

    quotas: samples of each source; positions: at most their sum.

    The floors are nested as a tree, so that each is off by the logarithm of the sources at most.
    They are Python's integers, because products of quotas need more than 64 bits.
    """
    if len(quotas) == 1:
        return [positions]
    left, right = quotas[: len(quotas) // 2], quotas[len(quotas) // 2 :]
    total = sum(left) + sum(right)
    of_right = positions * sum(right) // total if total else 0
    return shares(left, positions - of_right) + shares(right, of_right)


class Schedule:
    """Positions of one mixture as sources and draws.

    quotas: samples of each source in one pass; another pass follows. At least one is not 0.
    seed: uint64, of `key`.

    In a block the draws of a source are put at even distances, each moved at random by up to two
    of them: every stretch has the shares to some samples, and the slice of a rank meets no period.
    """

    def __init__(self, quotas: Sequence[int], seed: int) -> None:
        self.quotas, self.seed, self.total = list(quotas), seed, sum(quotas)
        self._blocks: OrderedDict[int, tuple[Numbers, Numbers]] = OrderedDict()

    def at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """Sources and draws, both int64 [N], of positions int64 [N] from the mixture's first."""
        if len(self.quotas) == 1:
            return np.zeros(len(positions), np.int64), positions
        turns, places = np.divmod(positions, self.total)
        blocks, inside = np.divmod(places, BLOCK)
        sources, draws = np.empty(len(blocks), np.int64), np.empty(len(blocks), np.int64)
        for number in distinct(blocks):
            at, (source_at, draw_at) = np.flatnonzero(blocks == number), self._block(number)
            sources[at], draws[at] = source_at[inside[at]], draw_at[inside[at]]
        draws += turns * np.array(self.quotas, np.int64)[sources]
        return sources, draws

    def drawn(self, positions: int) -> list[int]:
        """Samples of each source among the first positions."""
        turns, rest = divmod(positions, self.total)
        number, inside = divmod(rest, BLOCK)
        counts = shares(self.quotas, number * BLOCK)
        if inside:
            here = np.bincount(self._block(number)[0][:inside], minlength=len(counts)).tolist()
            counts = [count + more for count, more in zip(counts, here, strict=True)]
        return [turns * quota + count for quota, count in zip(self.quotas, counts, strict=True)]

    def position(self, source: int, draw: int) -> int:
        """The position of a draw of a source; the source has a quota."""
        turn, wanted = divmod(draw, self.quotas[source])
        low, high = 0, -(-self.total // BLOCK)
        while high - low > 1:  # counts of a source never fall from block to block
            middle = (low + high) // 2
            if shares(self.quotas, middle * BLOCK)[source] <= wanted:
                low = middle
            else:
                high = middle
        sources, draws = self._block(low)
        (inside,) = np.flatnonzero((sources == source) & (draws == wanted)).tolist()
        return turn * self.total + low * BLOCK + int(inside)

    def _block(self, number: int) -> tuple[Numbers, Numbers]:
        """Sources and draws of the positions of a block; the last one ends at the total."""
        if number not in self._blocks:
            end = min((number + 1) * BLOCK, self.total)
            before = np.array(shares(self.quotas, number * BLOCK), np.int64)
            counts = np.array(shares(self.quotas, end), np.int64) - before
            source = np.repeat(np.arange(len(counts)), counts)
            inside = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
            bits = drawn_bits(np.arange(len(source)), key("mix", self.seed, number))
            # In units of 2^-40 of a distance: below 2^53, and 2^51 units are the whole block. Two
            # distances wide: with one, 2:1:1 over four ranks still has a period.
            moved = inside.astype(np.uint64) * _UNIT + (bits >> np.uint64(23))
            size = counts[source].astype(np.uint64)
            order = np.argsort(moved % (size * _UNIT) * _FINER // size, kind="stable")
            source_at = source[order]
            # Draws of a source ascend, so that a mixture may end anywhere.
            draw_at = np.empty_like(inside)
            short = source_at.astype(np.min_scalar_type(len(counts)))  # sorted in linear time
            draw_at[np.argsort(short, kind="stable")] = before[source] + inside
            self._blocks[number] = source_at, draw_at
            while len(self._blocks) > _KEPT:
                self._blocks.popitem(last=False)
        return self._blocks[number]


Segment = tuple[int, tuple[int, ...]]
"""First position of a mixture, and the quota of each source from the first on."""


class Plan:
    """Which sample is at which position of a run, for any number of ranks.

    mixture: a Mixture; or a source, which gives one epoch, and the next after it.
    seed: of all orders, default 0; None: samples by number.
    window: 0 (default) permutes all samples of a source; w permutes its shards, then the samples
        of each run of w shards, so that few files are read at a time.

    length: positions until the last mixture ends. sources: all of them, by number.
    segments: first position and quotas of each mixture.
    tokens: what the last mixture was to give of each source, where it was asked for by tokens.

    It keeps nothing but these, can be pickled, and gives the same on every machine.

    Raises GristmillError where a source is named twice, TypeError for what is no source.
    """

    def __init__(self, mixture: Mixture | Source, *, seed: int | None = 0, window: int = 0) -> None:
        if not isinstance(mixture, Mixture):
            if not hasattr(mixture, "cuts"):
                raise TypeError(f"{type(mixture).__name__} is no source: give its `source()`")
            mixture = Mixture((mixture,), (int(mixture.cuts[-1]),))
        if window < 0:
            raise ValueError(f"window {window}: 0 for all samples, or a number of shards")
        self.seed, self.window, self.tokens = seed, window, mixture.tokens
        self._set(mixture.sources, [(0, self._quotas(mixture, [0] * len(mixture.sources)))])

    def _set(self, sources: Sequence[Source], segments: Sequence[Segment]) -> None:
        refuse_twice(sources)
        self.sources, self.segments = tuple(sources), tuple(segments)
        self._orders = [self._order(source) for source in self.sources]
        self._keys = [key("draw", self.seed, s.identity.text) for s in self.sources]
        self._schedules = [
            Schedule(quotas, key("segment", self.seed, first)) for first, quotas in segments
        ]
        self._before = [[0] * len(sources)]
        for number, (end, _) in enumerate(segments[1:]):
            drawn = self._schedules[number].drawn(end - segments[number][0])
            drawn += [0] * (len(sources) - len(drawn))
            self._before.append(
                [before + more for before, more in zip(self._before[-1], drawn, strict=True)]
            )
        self._firsts = np.array([first for first, _ in segments], np.int64)

    def _order(self, source: Source) -> Order:
        cuts = np.asarray(source.cuts, np.int64)
        return Order(cuts, self.seed, source.identity.text, self.window)

    def _quotas(self, mixture: Mixture, begins: Sequence[int]) -> tuple[int, ...]:
        """The quotas of a mixture whose sources continue at these draws."""
        if mixture.tokens is None:
            return mixture.quotas
        return tuple(
            draws_of(lengths_of(source), self._order(source).numbers, begin, tokens)
            if tokens
            else 0  # of a source that is gone nobody knows the lengths
            for source, begin, tokens in zip(mixture.sources, begins, mixture.tokens, strict=True)
        )

    def facts(self) -> list[dict[str, Any]]:
        """What each source gives in the last mixture: samples, tokens, epochs, and its share.

        `tokens` is None for a source without lengths. `share` is of the tokens where the mixture
        was asked for by tokens, else of the samples.
        """
        quotas, begins = self.segments[-1][1], self._before[-1]
        tokens = [
            tokens_of(source.lengths(), order.numbers, begin, quota)
            if hasattr(source, "lengths") and source.lengths is not None
            else None
            for source, order, begin, quota in zip(
                self.sources, self._orders, begins, quotas, strict=True
            )
        ]
        given = [each or 0 for each in tokens] if self.tokens is not None else quotas
        names = names_of([source.identity for source in self.sources])
        return [
            {
                "source": name,
                "samples": quota,
                "tokens": found,
                "epochs": quota / int(source.cuts[-1]),
                "share": share / sum(given),
            }
            for name, source, quota, found, share in zip(
                names, self.sources, quotas, tokens, given, strict=True
            )
        ]

    @property
    def length(self) -> int:
        """Positions until the last mixture ends."""
        first, quotas = self.segments[-1]
        return first + sum(quotas)

    def at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """Numbers of the sources and of their samples, both int64 [N], at positions int64 [N]."""
        sources, numbers, _ = self.drawn_at(positions)
        return sources, numbers

    def drawn_at(self, positions: Numbers) -> tuple[Numbers, Numbers, Words]:
        """As `at`, and a uint64 [N] for each: random bits of the draw, for augmentations."""
        positions = np.asarray(positions, np.int64)
        sources = np.zeros(len(positions), np.int64)
        numbers, bits = np.empty_like(sources), np.empty(len(positions), np.uint64)
        segment_of = np.searchsorted(self._firsts, positions, "right") - 1
        for segment in distinct(segment_of):
            at = np.flatnonzero(segment_of == segment)
            found, draws = self._schedules[segment].at(positions[at] - self._firsts[segment])
            sources[at] = found
            draws = draws + np.array(self._before[segment], np.int64)[found]
            for source in distinct(found):
                here = np.flatnonzero(found == source)
                own = drawn_bits(draws[here], self._keys[source])
                given = self._orders[source].numbers(draws[here])
                if isinstance(view := self.sources[source], View):
                    given = view.chosen(given, own)
                numbers[at[here]], bits[at[here]] = given, own
        return sources, numbers, bits

    def changed(self, position: int, mixture: Mixture) -> Plan:
        """The same run with another mixture from a position on.

        A source continues at its next draw; one that is left out keeps its draws. Sources may be
        added. Raises GristmillError for a position before the last change.
        """
        last = self.segments[-1][0]
        if position < last:
            raise GristmillError(
                f"position {position:,}: the mixture was changed at {last:,} already: change it"
                " from there on"
            )
        known = {source.identity.text: at for at, source in enumerate(self.sources)}
        added = [s for s in mixture.sources if s.identity.text not in known]
        sources = [*self.sources, *added]
        texts = [source.identity.text for source in mixture.sources]
        drawn = self.drawn(position)
        begins = [drawn[known[text]] if text in known else 0 for text in texts]

        def placed(values: Sequence[int]) -> tuple[int, ...]:
            wanted = dict(zip(texts, values, strict=True))
            return tuple(wanted.get(source.identity.text, 0) for source in sources)

        begun = (position, placed(self._quotas(mixture, begins)))
        kept = [segment for segment in self.segments if segment[0] < position]
        tokens = None if mixture.tokens is None else placed(mixture.tokens)
        return self.of(sources, [*kept, begun], self.seed, self.window, tokens)

    @classmethod
    def of(
        cls,
        sources: Sequence[Source],
        segments: Sequence[Segment],
        seed: int | None,
        window: int,
        tokens: tuple[int, ...] | None = None,
    ) -> Plan:
        """A plan of several mixtures, as a state has them."""
        made = cls.__new__(cls)
        made.seed, made.window, made.tokens = seed, window, tokens
        made._set(sources, segments)
        return made

    def drawn(self, position: int) -> list[int]:
        """Samples of each source among the positions before this one."""
        segment = bisect.bisect_right(self._firsts.tolist(), position) - 1
        here = self._schedules[segment].drawn(position - self.segments[segment][0])
        here += [0] * (len(self.sources) - len(here))
        return [before + more for before, more in zip(self._before[segment], here, strict=True)]

    def seen(self, source: int, number: int, until: int) -> list[int]:
        """The positions before `until` that give a sample of a source, ascending.

        Raises IndexError where there is no such source or sample.
        """
        order, view = self._orders[source], self.sources[source]
        if isinstance(view, View):
            positions = self._given(source, view.place(number), until)
            return [at for at in positions if int(self.at(np.array([at]))[1][0]) == number]
        if not 0 <= number < order.length:
            raise IndexError(f"no sample {number}: there are {order.length:,}")
        return self._given(source, number, until)

    def _given(self, source: int, place: int, until: int) -> list[int]:
        """The positions that give a number of the order of a source."""
        order, found = self._orders[source], []
        for segment, (first, quotas) in enumerate(self.segments):
            following = self.segments[segment + 1 :]
            end = min(until, following[0][0]) if following else until
            if end <= first or source >= len(quotas) or not quotas[source]:
                continue
            begin = self._before[segment][source]
            stop = begin + self._schedules[segment].drawn(end - first)[source]
            for epoch in range(begin // order.length, -(-stop // order.length)):
                draw = epoch * order.length + order.place(epoch, place)
                if begin <= draw < stop:
                    found.append(first + self._schedules[segment].position(source, draw - begin))
        return sorted(found)

    def __getstate__(self) -> dict[str, Any]:
        names = ("sources", "segments", "seed", "window", "tokens")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.seed, self.window, self.tokens = state["seed"], state["window"], state["tokens"]
        self._set(state["sources"], state["segments"])


Ends = Literal["short", "drop", "pad"]
ENDS: Final = ("short", "drop", "pad")


class Step(NamedTuple):
    """A step: its number, its first position, and its samples over all ranks."""

    number: int
    position: int
    size: int


class Change(NamedTuple):
    """From a step on, which begins at a position, steps have this size."""

    step: int
    position: int
    size: int


def share(step: Step, rank: int, world: int) -> Numbers:
    """The positions int64 of a rank in a step."""
    first = step.position + rank * step.size // world
    return np.arange(first, step.position + (rank + 1) * step.size // world)


def step_at(changes: list[Change], number: int, length: int, ends: Ends) -> Step:
    """A step by number.

    changes: of the sizes, the first from step 0 on. length: positions of the run.
    """
    change = next((each for each in reversed(changes) if each.step <= number), None)
    if change is None or number < 0:
        raise IndexError(f"no step {number}: steps count from 0")
    position = change.position + (number - change.step) * change.size
    following = next((each for each in changes if each.step > change.step), None)
    # A change may follow on a short step: where the run was at its end, and continues.
    end = following.position if following else length
    rest = end - position
    size = change.size if ends == "pad" and not following else min(change.size, rest)
    if rest <= 0 or (ends == "drop" and not following and rest < change.size):
        raise IndexError(f"no step {number}: the run has {length:,} positions")
    return Step(number, position, size)


def steps_from(changes: list[Change], position: int, length: int, ends: Ends) -> Iterator[Step]:
    """Yield the steps from a position on, which is the first one of a step."""
    number = step_after(changes, position)
    while True:
        try:
            step = step_at(changes, number, length, ends)
        except IndexError:
            return
        yield step
        number += 1


def step_after(changes: Sequence[Change], position: int) -> int:
    """The number of the step that begins at a position; after the last one their number."""
    last = changes[-1]
    return last.step + -(-(position - last.position) // last.size)


def step_of(changes: Sequence[Change], position: int) -> int:
    """The number of the step that gave a position."""
    change = next(each for each in reversed(changes) if each.position <= position)
    return change.step + (position - change.position) // change.size


def count_of(changes: list[Change], position: int, length: int, ends: Ends) -> int:
    """How many steps there are from a position on."""
    size = changes[-1].size
    rest = max(length - position, 0)
    return rest // size if ends == "drop" else -(-rest // size)


def refuse_uneven(size: int, world: int) -> None:
    """Raise GristmillError where the ranks of a step would have different numbers of samples."""
    if size % world:
        fitting = [n for n in range(1, min(size, 4 * world) + 1) if size % n == 0]
        raise GristmillError(
            f"{world} ranks do not divide a batch of {size} samples: use {_listed(fitting)} ranks,"
            f" a batch that is a multiple of {world}, or uneven=True, by which shares differ by one"
        )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" or {numbers[-1]}" if numbers[1:] else "1"
