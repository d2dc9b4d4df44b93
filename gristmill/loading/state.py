"""The state of a loader: an object of JSON, the same on every rank, and what a resume refuses.

Source: docs/formats/loading.md#state.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill.contract import GristmillError
from gristmill.loading.bijection import VERSION as ORDER
from gristmill.loading.plan import Change, Mixture, Plan, Segment, step_after
from gristmill.loading.source import Identity, Source, View, names_of

FORMAT: Final = "gristmill.loader"
VERSION: Final = 1
DIGEST: Final = "sha256"
"""The key of a state's digest. States of 0.9.0 and before have none."""
_NAMES: Final = (
    *("format", "version", "order", "position", "step", "seed", "window"),
    *("batches", "segments", "sources", "gristmill"),
)


class OtherData(GristmillError):
    """A state was written for other data, or for another order, than the loader has."""


def state_of(plan: Plan, changes: Sequence[Change], position: int) -> dict[str, Any]:
    """The state after the step that ends at a position."""
    state = {
        "format": FORMAT,
        "version": VERSION,
        "order": ORDER,
        "position": position,
        "step": step_after(changes, position),
        "seed": plan.seed,
        "window": plan.window,
        "batches": [list(change) for change in changes],
        "segments": [[first, list(quotas)] for first, quotas in plan.segments],
        "sources": [
            {**s.identity.facts(), "samples": _length(s), "artifact": s.identity.artifact}
            for s in plan.sources
        ],
        "gristmill": _version(),
    }
    return {**state, DIGEST: _digest(state)}


def _digest(state: Mapping[str, Any]) -> str:
    """The hex sha256 of a state's JSON without its digest."""
    rest = {name: value for name, value in state.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


@cache
def _version() -> str:
    """Of Gristmill, read once: it takes a millisecond."""
    return metadata.version("gristmill")


def resumed(plan: Plan, state: Mapping[str, Any], changed: str) -> tuple[Plan, list[Change], int]:
    """The plan, the changes of the batch size, and the position of a state.

    plan: of the loader that resumes; changed: "refuse", or "continue" with other data: the mixture
    of `plan` begins at the position, unless it is the state's last one.

    Raises OtherData, and GristmillError for what is no state.
    """
    changes, segments, position = _parsed(state)
    for name in ("seed", "window"):
        if (its := state[name]) != (mine := getattr(plan, name)):
            raise OtherData(
                f"the state's {name} is {its!r}, here it is {mine!r}: give the loader the state's"
            )
    written: list[Mapping[str, Any]] = state["sources"]
    if changed == "continue":
        known = {source.identity.text: source for source in plan.sources}
        sources = [_Gone.found(known, each) for each in written]
    else:
        sources = [_same(plan.sources, each, number) for number, each in enumerate(written)]
        texts = [source.identity.text for source in sources]
        for added in (each for each in plan.sources if each.identity.text not in texts):
            raise OtherData(
                f"{added.identity.artifact}: the state has no such source: leave it out, and add"
                " it when the state is loaded: loader.mix(mixture)"
            )
    if (tuple(sources), tuple(segments)) == (plan.sources, plan.segments):
        return plan, changes, position
    asked = Mixture(plan.sources, plan.segments[-1][1], plan.tokens)
    whole = Plan.of(sources, segments, plan.seed, plan.window)
    for number, (first, quotas) in reversed(list(enumerate(segments, 1))):
        # The loader's mixture as it would have begun there: one by tokens counts on from the draws.
        before = Plan.of(sources, segments[:number], plan.seed, plan.window)
        begun = before.changed(first, asked)
        if begun.segments[-1][1] == (*quotas, *[0] * (len(sources) - len(quotas))):
            if number == len(segments):
                return begun, changes, position
            if changed != "continue":
                return whole, changes, position
    if changed == "continue":
        return whole.changed(position, asked), changes, position
    raise OtherData(
        f"the state's quotas are {list(segments[-1][1])}, here they are"
        f" {list(plan.segments[-1][1])}: give the state's mixture; another one begins when the"
        " state is loaded: loader.mix(mixture)"
    )


class Consumed(NamedTuple):
    """What a run has taken of a source: its samples, and how many it gave, again ones included."""

    artifact: str
    samples: int
    drawn: int


def consumed(state: Mapping[str, Any]) -> list[Consumed]:
    """What a run had taken of each source at a state; no file of a source is needed.

    Raises OtherData and GristmillError as `resumed`.
    """
    _, segments, position = _parsed(state)
    with _damage():
        gone = [_Gone(each) for each in state["sources"]]
        drawn = Plan.of(gone, segments, state["seed"], state["window"]).drawn(position)
    return [
        Consumed(name, _length(each), count)
        for name, each, count in zip(
            names_of([each.identity for each in gone]), gone, drawn, strict=True
        )
    ]


def sources_of(state: Mapping[str, Any]) -> list[tuple[Identity, int]]:
    """What a state says of its sources: which they were, and how many samples each had.

    Raises OtherData and GristmillError as `resumed`.
    """
    _parsed(state)
    return [(each.identity, _length(each)) for each in map(_Gone, state["sources"])]


def batch_of(state: Mapping[str, Any]) -> int:
    """The batch size of a state's next step. Raises OtherData and GristmillError as `resumed`."""
    changes, _, _ = _parsed(state)
    return changes[-1].size


@contextmanager
def _damage() -> Iterator[None]:
    """Raises GristmillError for what reading a state raises where a value of it is none."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise GristmillError(f"the state is damaged ({error!r}): take one of before") from error


def _parsed(state: Mapping[str, Any]) -> tuple[list[Change], list[Segment], int]:
    """The changes of the batch size, the segments and the position of a state."""
    with _damage():
        if unknown := sorted(set(state) - {*_NAMES, DIGEST}):
            raise ValueError(f"{unknown[0]!r} is no name of a state")
        if DIGEST not in state:
            warnings.warn("the state has no digest: damage may go unseen", stacklevel=2)
        elif state[DIGEST] != _digest(state):
            raise ValueError("its digest is not that of its contents")
        kind = (state.get("format"), state.get("version"), state.get("order"))
    if kind != (FORMAT, VERSION, ORDER):
        raise OtherData(
            f"the state is {kind[0]!r} of version {kind[1]!r} and order {kind[2]!r}; this is"
            f" {FORMAT!r} of version {VERSION} and order {ORDER}: read it with the Gristmill"
            f" {state.get('gristmill', 'version')} that wrote it"
        )
    with _damage():
        position = int(state["position"])
        changes = [Change(*map(int, each)) for each in state["batches"]]
        segments: list[Segment] = [
            (int(first), tuple(map(int, quotas))) for first, quotas in state["segments"]
        ]
        gone = [_Gone(each) for each in state["sources"]]
        _refuse_contradiction(changes, segments, position, state["step"], len(gone))
        Plan.of(gone, segments, state["seed"], state["window"])
    return changes, segments, position


def _refuse_contradiction(
    changes: Sequence[Change], segments: Sequence[Segment], position: int, step: int, sources: int
) -> None:
    """Raise ValueError where the numbers of a state are not those of one run."""
    end = segments[-1][0] + sum(segments[-1][1]) if segments else 0
    if not changes or not segments or not 0 <= position <= end:
        raise ValueError(f"position {position:,} is outside of its run")
    if changes[0][:2] != (0, 0) or any(change.size < 1 for change in changes):
        raise ValueError("its batches do not begin at step 0 with a sample or more")
    for number, change in enumerate(changes[1:], 1):
        before = changes[number - 1]
        if (
            change.step <= before.step
            or step_after(changes[:number], change.position) != change.step
        ):
            raise ValueError(f"its batches do not lead to step {change.step:,}")
    rest = (position - changes[-1].position) % changes[-1].size
    if position < changes[-1].position or (rest and position != end):
        raise ValueError(f"no step ends at position {position:,}")
    if step_after(changes, position) != step:
        raise ValueError(f"step {step:,} does not begin at position {position:,}")
    firsts = [first for first, _ in segments]
    if firsts[0] != 0 or sorted(set(firsts)) != firsts or position < firsts[-1]:
        raise ValueError("its segments do not ascend from 0 to its position")
    counts = [len(quotas) for _, quotas in segments]
    if sorted(counts) != counts or counts[-1] != sources:
        raise ValueError("its segments have not a quota for each source")


def _same(sources: Sequence[Source], written: Mapping[str, Any], number: int) -> Source:
    """The source that a state has at this place."""
    name = written.get("artifact", f"source {number}")
    gone = _Gone(written)
    for source in sources:
        if source.identity.text == gone.identity.text and _length(source) == _length(gone):
            return source
    if number >= len(sources):
        raise OtherData(f"{name}: the state has this source, and the loader has not: add it")
    source = sources[number]
    here = {**source.identity.facts(), "samples": _length(source)}
    part = next(part for part in here if written.get(part) != here[part])
    raise OtherData(
        f"{name}: the state was written for {part} {_short(written.get(part))}, here it is"
        f" {_short(here[part])}: copy that version (gristmill pull), or begin a new segment:"
        ' loader.load_state_dict(state, changed="continue")'
    )


def _length(source: Source) -> int:
    """How many samples a source has."""
    return int(source.cuts[-1])


class _Gone(View):
    """A source that a state names and nobody has any more; it only keeps its place."""

    def __init__(self, written: Mapping[str, Any]) -> None:
        self.identity = Identity(
            str(written.get("asset")),
            tuple(map(str, written.get("versions", ()))),
            written.get("split"),
            written.get("numbering") or {},
            str(written.get("artifact", "")),
        )
        self.cuts = np.array([0, int(written.get("samples", 0))], np.int64)

    @staticmethod
    def found(known: Mapping[str, Source], written: Mapping[str, Any]) -> Source:
        """The known source of this identity, else one that is gone."""
        gone = _Gone(written)
        return known.get(gone.identity.text, gone)

    @property
    def whole(self) -> Source:
        """Itself."""
        return self

    def read(self, *_: Any, **__: Any) -> Any:
        """Refuse: neither its files are here nor its shards, by which a place is a sample."""
        raise OtherData(f"{self.identity.artifact}: is not here: give the loader that version")

    origin = chosen = place = read


def _short(found: Any) -> str:
    text = ", ".join(map(str, found)) if isinstance(found, list) else repr(found)
    return text if len(text) < 80 else f"{text[:77]}..."
