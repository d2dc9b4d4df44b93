"""The whole run as a pure function: position to source and sample number, and back.

Source: `docs/formats/loading.md`.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np

from gristmill.contract import GristmillError
from gristmill.loading.bijection import Numbers, Words, key, mixed
from gristmill.loading.mixtures import Mixture, refuse_twice
from gristmill.loading.order import Order
from gristmill.loading.schedule import Schedule
from gristmill.loading.source import Source
from gristmill.loading.views import View

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

    It keeps nothing but these, can be pickled, and gives the same on every machine.

    Raises GristmillError where a source is named twice.
    """

    def __init__(self, mixture: Mixture | Source, *, seed: int | None = 0, window: int = 0) -> None:
        if not isinstance(mixture, Mixture):
            mixture = Mixture((mixture,), (int(mixture.cuts[-1]),))
        if window < 0:
            raise ValueError(f"window {window}: 0 for all samples, or a number of shards")
        self.seed, self.window = seed, window
        self._set(mixture.sources, [(0, mixture.quotas)])

    def _set(self, sources: Sequence[Source], segments: Sequence[Segment]) -> None:
        refuse_twice(sources)
        self.sources, self.segments = tuple(sources), tuple(segments)
        self._orders = [
            Order(np.asarray(s.cuts, np.int64), self.seed, s.identity.text, self.window)
            for s in self.sources
        ]
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
        for segment in np.unique(segment_of).tolist():
            at = np.flatnonzero(segment_of == segment)
            found, draws = self._schedules[segment].at(positions[at] - self._firsts[segment])
            sources[at] = found
            draws = draws + np.array(self._before[segment], np.int64)[found]
            for source in np.unique(found).tolist():
                here = np.flatnonzero(found == source)
                with np.errstate(over="ignore"):
                    word = np.uint64(self._keys[source]) + mixed(draws[here].astype(np.uint64))
                own = mixed(word)
                given = self._orders[source].numbers(draws[here])
                if isinstance(view := self.sources[source], View):
                    given = view.chosen(given, own)
                numbers[at[here]], bits[at[here]] = given, own
        return sources, numbers, bits

    def changed(self, position: int, mixture: Mixture) -> Plan:
        """The same run with another mixture from a position on.

        A source goes on at its next draw; one that is left out keeps its draws. Sources may be
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
        wanted = dict(zip((s.identity.text for s in mixture.sources), mixture.quotas, strict=True))
        quotas = tuple(wanted.get(s.identity.text, 0) for s in sources)
        kept = [segment for segment in self.segments if segment[0] < position]
        return self.of(sources, [*kept, (position, quotas)], self.seed, self.window)

    @classmethod
    def of(
        cls, sources: Sequence[Source], segments: Sequence[Segment], seed: int | None, window: int
    ) -> Plan:
        """A plan of several mixtures, as a state has them."""
        made = cls.__new__(cls)
        made.seed, made.window = seed, window
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
        names = ("sources", "segments", "seed", "window")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.seed, self.window = state["seed"], state["window"]
        self._set(state["sources"], state["segments"])
