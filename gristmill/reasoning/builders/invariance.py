"""How perturbing raw records changes tokens. Source: `docs/formats/reasoning.md#reports`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill.corpora.raw.texts import chain, text
from gristmill.corpora.records import STEPS, parse
from gristmill.reasoning.render.text import text_of
from gristmill.vocabularies.encode import Encoder

Perturb = Callable[[str, Random], str]
"""Takes a text and a source of chance; returns the text perturbed."""

_STOPS: Final = re.compile(r"([.!?]) (?! )")
_DOUBLE: Final = re.compile(r"  +")
_FINAL_STOP: Final = re.compile(r"\.(?=\s*\Z)")
_ANNOTATION: Final = re.compile(r"<<[^<>\n]*>>")
_SPACE: Final = re.compile(" ")


def _one_doubled_space(text: str, random: Random) -> str:
    places = [match.start() for match in _SPACE.finditer(text)]
    if not places:
        return text
    place = random.choice(places)
    return f"{text[:place]} {text[place:]}"


GATED: Final[Mapping[str, Perturb]] = {
    "edge_whitespace": lambda text, _: f" \n\t{text}\u00a0 \n" if text else text,
    "byte_order_mark": lambda text, _: f"\ufeff{text}" if text else text,
    "trailing_newline": lambda text, _: f"{text}\n" if text else text,
    "crlf": lambda text, _: text.replace("\n", "\r\n"),
}
"""Perturbations that normalising and rendering claim to absorb."""

REPORTED: Final[Mapping[str, Perturb]] = {
    "no_final_period": lambda text, _: _FINAL_STOP.sub("", text),
    "single_spaces": lambda text, _: _DOUBLE.sub(" ", text),
    "curly_quotes": lambda text, _: text.replace("'", "\u2019"),
    "double_space_after_stop": lambda text, _: _STOPS.sub(r"\1  ", text),
    "one_doubled_space": _one_doubled_space,
    "space_at_line_ends": lambda text, _: text.replace("\n", " \n"),
    "no_break_space": lambda text, _: text.replace(" ", "\u00a0", 1),
    "no_annotations": lambda text, _: _ANNOTATION.sub("", text),
}
"""Perturbations that change tokens; how many is reported."""


TOLERANCE: Final = 0.01
"""Largest share of token ids that a perturbation may change: more is a breach, or flagged."""
LONGEST: Final = 50_000
"""Characters of a record; a longer one is left out, as its comparison would take long."""


class Invariance(NamedTuple):
    """What perturbations change in a split.

    changed: by perturbation, the share of token ids that are not the same, from 0 to 1.
    """

    examples: int
    left_out: int
    changed: dict[str, float]

    def breaches(self) -> dict[str, float]:
        """The perturbations that should change nothing, and change too much."""
        return {name: self.changed[name] for name in GATED if self.changed[name] >= TOLERANCE}

    def flagged(self) -> dict[str, float]:
        """The other perturbations that change much."""
        return {name: self.changed[name] for name in REPORTED if self.changed[name] > TOLERANCE}


def measure(
    jsonl: Path, corpus: str, split: str, records: int, sample: int, seed: int, encoder: Encoder
) -> Invariance:
    """Perturb a sample of the records of a split, normalise and tokenise them again, compare.

    jsonl: the normalised file. Its records take the place of raw ones, in the seed's form.

    A share is 1 minus the ids that both have in the same order (a longest common subsequence),
    over the ids of the longer one, over all examples. Memory: the sample.
    Raises BadInput for a line that is no record.
    """
    random = Random(f"{seed}:{corpus}__{split}")
    wanted = set(random.sample(range(records), min(sample, records)))
    drawn = [record for record in _records(jsonl, wanted) if text_of(record)]
    kept = [record for record in drawn if len(text_of(record)) <= LONGEST]
    before = _ids([text_of(record) for record in kept], encoder)
    changed = {
        name: _share(before, _ids(_texts(kept, perturb, random), encoder))
        for name, perturb in {**GATED, **REPORTED}.items()
    }
    return Invariance(len(kept), len(drawn) - len(kept), changed)


def _records(jsonl: Path, wanted: set[int]) -> Iterator[dict[str, Any]]:
    """Yield the records with some numbers, from 0."""
    number = -1
    last = max(wanted, default=-1)
    with jsonl.open("rb") as file:
        for row, line in enumerate(file, 1):
            number += not line.isspace()
            if number in wanted and not line.isspace():
                yield parse(line, jsonl, row)
            if number >= last:
                return


def _texts(records: Sequence[Mapping[str, Any]], perturb: Perturb, random: Random) -> list[str]:
    """The rendered texts of records that were perturbed, and normalised again."""
    texts = []
    for record in records:
        changed = {key: text(perturb(record[key], random)) for key in ("question", "answer")}
        cot, _ = chain(_chain(record, perturb, random))
        texts.append(text_of({**changed, "cot": cot}))
    return texts


def _chain(record: Mapping[str, Any], perturb: Perturb, random: Random) -> Any:
    """The perturbed CoT: a list where it was one, null where there is none."""
    if (steps := record.get(STEPS)) is not None:
        return [perturb(step, random) for step in steps]
    cot = record["cot"]
    return None if cot is None else perturb(cot, random)


def _ids(texts: Sequence[str], encoder: Encoder) -> list[list[int]]:
    return [np.frombuffer(ids, np.int32).tolist() for ids in encoder.encode(texts).ids]


def _share(before: list[list[int]], after: list[list[int]]) -> float:
    """The share of ids that differ, over all texts."""
    most = same = 0
    for one, other in zip(before, after, strict=True):
        most += max(len(one), len(other))
        same += common(one, other)
    return round(1 - same / most, 6) if most else 0.0


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of a longest common subsequence.

    Hyyrö's algorithm: a row of the table of lengths is one whole number, a bit a column.
    """
    if one == other:
        return len(one)
    places: dict[int, int] = {}
    for place, value in enumerate(one):
        places[value] = places.get(value, 0) | 1 << place
    full = (1 << len(one)) - 1
    row = full
    for value in other:
        matches = row & places.get(value, 0)
        row = ((row + matches) | (row - matches)) & full
    return len(one) - row.bit_count()
