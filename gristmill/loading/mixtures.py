"""From what a person says of a mixture to whole numbers of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from gristmill.contract import GristmillError
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Source, whole

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
