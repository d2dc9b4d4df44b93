"""From what a person says of a mixture to whole numbers of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from gristmill.contract import GristmillError
from gristmill.loading.source import Source, names_of
from gristmill.loading.views import whole

MOST_EPOCHS: Final = 4.0


@dataclass(frozen=True)
class Mixture:
    """Sources, and how many samples each gives until the mixture ends.

    sources: at least one. quotas: samples of each, at least 0, and not 0 of all.

    Raises GristmillError where one is named twice, is empty, or has a quota below 0, and where ids
    are of different vocabularies or rows of different lengths, as `words` of the sources say.
    """

    sources: tuple[Source, ...]
    quotas: tuple[int, ...]

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

    def facts(self) -> list[dict[str, Any]]:
        """For each source its samples, epochs, share, and tokens: None where it has no lengths."""
        total = sum(self.quotas)
        names = names_of([source.identity for source in self.sources])
        return [
            {
                "source": name,
                "samples": quota,
                "tokens": _tokens(source, quota),
                "epochs": quota / int(source.cuts[-1]),
                "share": quota / total,
            }
            for name, source, quota in zip(names, self.sources, self.quotas, strict=True)
        ]


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
    tokens: how many tokens each gives; the fewest first samples that have as many. Only for
        sources with lengths.
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
    lengths = {name: int(source.cuts[-1]) for name, source in sources.items()}
    if measure == "epochs":
        quotas = [round(Fraction(values[name]) * lengths[name]) for name in sources]
    elif measure == "tokens":
        quotas = [_fewest(source, values[name]) for name, source in sources.items()]
    else:
        quotas = _by_weights([values[name] for name in sources], int(samples or 0))
    for (name, length), quota in zip(lengths.items(), quotas, strict=True):
        if quota > max_epochs * length:
            raise GristmillError(
                f"{name}: {quota:,} of {length:,} samples are {quota / max(length, 1):.2f} epochs,"
                f" more than {max_epochs:g}: ask for fewer, or give max_epochs="
            )
    return Mixture(tuple(sources.values()), tuple(quotas))


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


def _lengths(source: Source) -> Any:
    """Tokens of each sample int [N], None where samples have no length."""
    lengths = getattr(source, "lengths", None)
    return None if lengths is None else lengths()


def _fewest(source: Source, tokens: float) -> int:
    """The fewest samples that have as many tokens, whole epochs and then the first ones."""
    lengths = _lengths(source)
    if lengths is None:
        raise GristmillError(
            f"{source.identity.artifact}: its samples have no tokens: mix it by epochs or weights"
        )
    ends = np.cumsum(lengths, dtype=np.int64)
    epochs, rest = divmod(int(tokens), int(ends[-1]))
    return epochs * len(ends) + (int(np.searchsorted(ends, rest)) + 1 if rest else 0)


def _tokens(source: Source, quota: int) -> int | None:
    """Tokens of the first samples, None where these have no length."""
    lengths = _lengths(source)
    if lengths is None:
        return None
    epochs, rest = divmod(quota, len(lengths))
    return epochs * int(lengths.sum(dtype=np.int64)) + int(lengths[:rest].sum(dtype=np.int64))
