"""One trial of kill and resume: three runs at other ranks, workers and batches, then compared."""

import json
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np

from gristmill.loading import Loader, Mixture, Plan
from gristmill.loading.state import batch_of
from tests.loading.numbered import Numbered, sample_at, turns

Given = list[tuple[int, int]]


class Rank:
    """A loader of one rank whose workers have read some batches ahead."""

    def __init__(self, loader: Loader, ahead: int) -> None:
        self.loader, self._ahead = loader, ahead
        self._read: deque[tuple[dict[str, Any], dict[str, Any]]] = deque()
        self._batches = iter(loader)
        self._state = loader.state_dict()

    def next(self) -> Given:
        """The samples of the next step."""
        while len(self._read) <= self._ahead:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._read.append((batch, self.loader.state_dict()))
        batch, self._state = self._read.popleft()
        assert np.array_equal(batch["value"], batch["number"])
        return list(zip(batch["source"].tolist(), batch["number"].tolist(), strict=True))

    def state(self) -> str:
        """The state after what the trainer was given."""
        return json.dumps(self._state, sort_keys=True)


@dataclass
class Trial:
    """A run that is killed twice, drawn by a seed."""

    seed: int

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        draw = self.random.integers
        sources = int(self.random.choice([1, 1, 2, 3, 5]))
        self.sources = [
            Numbered(f"source {n}", [0, *np.cumsum(draw(1, 12, int(draw(1, 6)))).tolist()])
            for n in range(sources)
        ]
        self.order = None if self.random.random() < 0.1 else int(draw(1 << 32))
        self.window = int(draw(0, 4))
        self.quotas = tuple(
            int(s.cuts[-1]) * int(draw(1, 4)) if self.random.random() < 0.7 else int(draw(1, 80))
            for s in self.sources
        )
        self.ends: Any = str(self.random.choice(["short", "drop", "pad"]))
        self.mixed: list[tuple[int, Mixture]] = []

    def plan(self) -> Plan:
        """The plan that the training script makes, without what a state adds."""
        return Plan(self._mixtures()[-1][1], seed=self.order, window=self.window)

    def _mixtures(self) -> list[tuple[int, Mixture]]:
        return [(0, Mixture(tuple(self.sources), self.quotas)), *self.mixed]

    def whole(self) -> Plan:
        """The plan with all changes of the mixture."""
        plan = Plan(Mixture(tuple(self.sources), self.quotas), seed=self.order, window=self.window)
        for position, mixture in self.mixed:
            plan = plan.changed(position, mixture)
        return plan

    def run(self) -> None:
        """Run, and compare what was given with the plan, and each source with scalars."""
        given: Given = []
        state, batch = None, int(self.random.integers(1, 41))
        for phase in range(3):
            if self.random.random() < 0.3:
                batch = int(self.random.integers(1, 41))
            ranks = self._ranks(batch, state)
            steps = len(ranks[0].loader)
            run = steps if phase == 2 else int(self.random.integers(0, steps + 1))
            kept = run if phase == 2 else int(self.random.integers(0, run + 1))
            state, mine = self._phase(ranks, run, kept)
            given = (given + mine)[: json.loads(state)["position"]]
            if phase < 2:
                state = self._mixed(state)
        self._compare(given)

    def _ranks(self, batch: int, state: str | None) -> list[Rank]:
        world, ahead = int(self.random.integers(1, 9)), int(self.random.integers(0, 9))
        ranks, plan = [], self.plan()
        for rank in range(world):
            loader = Loader(
                plan, batch, rank=rank, world=world, ends=self.ends, uneven=True, form="numpy"
            )
            if state is not None:
                loader.load_state_dict(json.loads(state))
            ranks.append(Rank(loader, ahead))
        return ranks

    def _phase(self, ranks: list[Rank], run: int, kept: int) -> tuple[str, Given]:
        """Give some steps and lose the last of them."""
        given: Given = []
        states = {rank.state() for rank in ranks}
        for step in range(run):
            parts = [rank.next() for rank in ranks]
            if step < kept:
                given += [sample for part in parts for sample in part]
                states = {rank.state() for rank in ranks}
        assert len(states) == 1, "the ranks differ in their state"
        return states.pop(), given

    def _mixed(self, state: str) -> str:
        """Sometimes begin another mixture at the position of a state."""
        position = json.loads(state)["position"]
        if len(self.sources) < 2 or self.random.random() > 0.25:
            return state
        if not 0 < position <= self.whole().length:
            return state
        quotas = tuple(self.random.integers(1, 60, len(self.sources)).tolist())
        tokens = quotas[::-1] if self.random.random() < 0.5 else None
        batch = batch_of(json.loads(state))
        loader = Loader(self.plan(), batch, uneven=True, form="numpy", ends=self.ends)
        loader.load_state_dict(json.loads(state))
        self.mixed.append((position, Mixture(tuple(self.sources), quotas, tokens)))
        loader.mix(self.mixed[-1][1])
        return json.dumps(loader.state_dict())

    def _compare(self, given: Given) -> None:
        plan = self.whole()
        wanted = min(len(given), plan.length)
        if self.ends != "drop":
            assert wanted == plan.length
        assert plan.length - wanted < 41
        sources, numbers = plan.at(np.arange(wanted))
        assert given[:wanted] == list(zip(sources.tolist(), numbers.tolist(), strict=True))
        for at, source in enumerate(self.sources):
            mine, length = numbers[sources == at], int(source.cuts[-1])
            epochs, rest = divmod(len(mine), length)
            counts = Counter(mine.tolist())
            assert set(counts.values()) <= {epochs, epochs + 1}
            assert sum(count == epochs + 1 for count in counts.values()) == rest
        if self.seed % 5 == 0:
            assert list(self._scalars(wanted)) == given[:wanted]

    def _scalars(self, count: int) -> Iterator[tuple[int, int]]:
        """Sources and samples of the first positions, as the page on the format has them."""
        drawn = [0] * len(self.sources)

        def next_of(at: int) -> int:
            drawn[at] += 1
            return sample_at(self.sources[at], self.order, self.window, drawn[at] - 1)

        mixtures = self._mixtures()
        for (first, mixed), (end, _) in pairwise([*mixtures, (count, mixtures[0][1])]):
            quotas, before = list(mixed.quotas), drawn.copy()
            for at, budget in enumerate(mixed.tokens or ()):
                tokens = 0
                while tokens < budget:
                    tokens += next_of(at) + 1
                quotas[at], drawn[at] = drawn[at] - before[at], before[at]
            for at in islice(turns(quotas, self.order, first), end - first):
                yield at, next_of(at)
