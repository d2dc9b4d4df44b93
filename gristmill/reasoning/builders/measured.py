"""What a report measures: how perturbing records changes tokens, and the counts of datasets.

Totals are those of the dataset's record. Splits have the counts of its manifest, of the alignments
in it, and of the records of the normalised splits that it was built from.
Source: `docs/formats/reasoning.md#reports`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill import provenance
from gristmill.corpora.raw.texts import chain, text
from gristmill.corpora.records import STEPS, parse
from gristmill.provenance import Record
from gristmill.reasoning.config import ALIGNED
from gristmill.reasoning.format import align, names, reports
from gristmill.reasoning.format.published import NORMALIZED
from gristmill.reasoning.format.shards import Meta, read_manifest
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


_RECORDED: Final = {"total_tokens": "text_tokens"}
"""Names of counts in the record where they are others than in the report."""


def dataset(folder: Path, normalized: Mapping[str, Record]) -> dict[str, Any]:
    """The numbers of a published token dataset: those of its record, and of each split.

    folder: of it. normalized: the records of the normalised splits, by partition.

    Raises GristmillError where record, manifest or an alignment cannot be read.
    """
    path = provenance.record_path(folder, None, shared=False)
    record = provenance.read_record(path)
    inputs = provenance.read_inputs(record, path)
    sources = {str(each.partition): each for each in inputs if each.asset == NORMALIZED}
    metas = read_manifest(folder)
    totals = {key: int(record.counts[_RECORDED.get(key, key)]) for key in reports.DATASET_COUNTS}
    is_aligned, splits = ALIGNED in record.config["outputs"], {}
    for key, source in sources.items():
        own = [meta for meta in metas if f"{meta.dataset}__{meta.split}" == key]
        found = normalized.get(key)
        current = found if found and found.data_version == source.data_version else None
        counts = _counts(own) | _unsplit(totals, len(sources), current, own)
        if is_aligned:
            counts |= _aligned(folder / names.alignment(*key.split("__")))
        splits[key] = _with_shares(counts, own)
    for key in reports.ALIGNED_COUNTS if is_aligned else ():
        totals[key] = sum(split[key] for split in splits.values())
    tokenizer = record.tokenizer
    assert tokenizer is not None
    values = (tokenizer.name, tokenizer.sha256, splits, totals)
    return dict(zip(reports.DATASET_KEYS, values, strict=True))


def measured_alike(
    now: Mapping[str, Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Both without the share with CoT of a dataset's split that one of them does not know.

    now, before: splits of a report and of its baseline, as of `reports.all_splits`.
    """
    unknown = {
        name
        for name in now.keys() & before.keys()
        if "/" in name and None in (now[name]["pct_with_cot"], before[name]["pct_with_cot"])
    }
    null = {"pct_with_cot": None}
    one, other = (
        {name: {**split} | (null if name in unknown else {}) for name, split in each.items()}
        for each in (now, before)
    )
    return one, other


def control_warnings(datasets: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each dataset with texts that have the text of its end token."""
    for name, each in datasets.items():
        if count := each["totals"]["control_texts"]:
            yield f"{name}: {count:,} literal end tokens of {each['tokenizer']} in texts stay text"


def _counts(metas: Sequence[Meta]) -> dict[str, int]:
    """What the metas of a split say; each example has one end."""
    ends = sum(meta.eos_tokens for meta in metas)
    return {
        "examples": ends,
        "shards": len(metas),
        "sequences": sum(meta.num_sequences for meta in metas),
        "total_tokens": sum(meta.text_tokens for meta in metas),
        "eos_tokens": ends,
        "pad_tokens": sum(meta.pad_tokens for meta in metas),
    }


def _unsplit(
    totals: Mapping[str, int], splits: int, normalized: Record | None, metas: Sequence[Meta]
) -> dict[str, int | None]:
    """What the record counts over all splits, of one of them; null where nothing says it."""
    counts: dict[str, int | None] = {
        key: totals[key] if splits == 1 or not totals[key] else None for key in reports.UNSPLIT
    }
    if normalized is not None:
        examples = sum(meta.eos_tokens for meta in metas)
        counts["skipped_empty"] = int(normalized.counts["records"]) - examples
        counts["with_cot"] = int(normalized.counts["with_cot"])
    return counts


def _aligned(path: Path) -> dict[str, int]:
    counts = dict.fromkeys(reports.ALIGNED_COUNTS, 0)
    for row in align.rows(path):
        counts["aligned"] += bool(row.step_labels)
        counts["spans"] += len(row.step_labels)
    return counts


def _with_shares(counts: Mapping[str, int | None], metas: Sequence[Meta]) -> dict[str, Any]:
    """The counts in the order of a report, the shares, and the hash of the normalised file."""
    order = (*reports.DATASET_COUNTS, *reports.ALIGNED_COUNTS)
    examples = counts["examples"] or 0
    return {key: counts[key] for key in order if key in counts} | {
        "pct_with_cot": reports.ratio(counts["with_cot"], examples, 100),
        "avg_seq_len": reports.ratio(counts["total_tokens"], examples),
        "alignment_coverage": reports.ratio(counts.get("aligned"), examples),
        "raw_sha256": metas[0].source_files[0]["sha256"] if metas else None,
    }
