"""The builder of the daily report: counts of every split, invariance, drift and the gate.

Counts are those of the records of the published splits and token datasets; only the sample that is
perturbed is read. Splits of a dataset have the counts of its manifest, of the alignments in it, and
of the records of the normalised splits that it was built from.
Source: `docs/formats/reasoning.md#reports`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np

from gristmill import provenance
from gristmill.contract import BadInput, FileNote, NothingToBuild, Summary
from gristmill.corpora.corpus import Corpus, corpus_and_split, ordered
from gristmill.corpora.raw.texts import chain, text
from gristmill.corpora.records import STEPS, parse
from gristmill.corpora.split_file import lines
from gristmill.provenance import Record
from gristmill.provenance.find_artifacts import artifacts_in
from gristmill.reasoning.builders.manifest import file_entry
from gristmill.reasoning.config import ALIGNED, ReportConfig
from gristmill.reasoning.format import align, names, reports
from gristmill.reasoning.format.published import (
    NORMALIZED,
    corpus_of_record,
    published_datasets,
    recorded,
)
from gristmill.reasoning.format.shards import Meta, read_manifest
from gristmill.reasoning.render.text import text_of
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.encode import Encoder, encoder
from gristmill.vocabularies.pinned import GPT2

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
    drawn = [record for record in _drawn(jsonl, wanted) if text_of(record)]
    kept = [record for record in drawn if len(text_of(record)) <= LONGEST]
    before = _ids([text_of(record) for record in kept], encoder)
    changed = {
        name: _share(before, _ids(_texts(kept, perturb, random), encoder))
        for name, perturb in {**GATED, **REPORTED}.items()
    }
    return Invariance(len(kept), len(drawn) - len(kept), changed)


def _drawn(jsonl: Path, wanted: set[int]) -> Iterator[dict[str, Any]]:
    """Yield the records with some numbers, from 0."""
    number = -1
    last = max(wanted, default=-1)
    for file, row, line in lines(jsonl):
        number += not line.isspace()
        if number in wanted and not line.isspace():
            yield parse(line, file, row)
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


_RELATIVE: Final = ("total_tokens", "avg_seq_len")
_COT: Final = "pct_with_cot"
_POINTS: Final = {_COT: 1.0, "alignment_coverage": 100.0}
"""Measured in percentage points: what a value is multiplied by."""

Splits = Mapping[str, Mapping[str, Any]]


def breaches(now: Splits, before: Splits, config: ReportConfig) -> list[str]:
    """What changed too much, a sentence each.

    now, before: splits of the report and of its baseline, by partition; those of a token dataset
        as `<dataset>/<partition>`.
    config: the tolerances.

    A split of the baseline that is gone is a breach; one that is new is not.
    """
    found = []
    for name, old in before.items():
        new = now.get(name)
        if new is None:
            found.append(f"{name}: is in the baseline, and no longer published")
            continue
        points = {**_POINTS}
        if "/" in name and None in (new[_COT], old[_COT]):
            del points[_COT]  # the record of a dataset counts it over all splits
        found += [f"{name}: {breach}" for breach in _of_split(new, old, config, points)]
    return found


def changes(now: Splits, before: Splits) -> dict[str, dict[str, float | None]]:
    """Of each split of both the changes that drift is measured by: relative, or in points."""
    return {
        name: {
            **{key: _relative(now[name][key], old[key]) for key in _RELATIVE},
            **{key: _points(now[name][key], old[key], by) for key, by in _POINTS.items()},
        }
        for name, old in before.items()
        if name in now
    }


def _of_split(
    new: Mapping[str, Any],
    old: Mapping[str, Any],
    config: ReportConfig,
    in_points: Mapping[str, float],
) -> Iterator[str]:
    same_raw = new["raw_sha256"] == old["raw_sha256"] is not None
    if same_raw and new["examples"] != old["examples"]:
        yield (
            f"examples {old['examples']:,} became {new['examples']:,}, though the normalised "
            "file is the same"
        )
    for key in _RELATIVE:
        change, most = _relative(new[key], old[key]), getattr(config, key)
        if _differs(new[key], old[key]) or (change is not None and abs(change) > most):
            yield f"{key} {_said(old[key])} became {_said(new[key])}: more than {most:.2%}"
    for key, by in in_points.items():
        points, most = _points(new[key], old[key], by), getattr(config, key)
        if _differs(new[key], old[key]) or (points is not None and abs(points) > most):
            yield f"{key} {_said(old[key])} became {_said(new[key])}: more than {most:g} points"


def _differs(new: float | None, old: float | None) -> bool:
    """Whether one of two numbers is missing, or the baseline is zero and the other is not."""
    return (new is None) != (old is None) or (old == 0 and new != 0)


def _relative(new: float | None, old: float | None) -> float | None:
    return None if new is None or not old else round(new / old - 1, 9)


def _points(new: float | None, old: float | None, by: float) -> float | None:
    return None if new is None or old is None else round((new - old) * by, 9)


def _said(value: float | None) -> str:
    return (
        "none" if value is None else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
    )


_FOLDERS: Final = (names.NORMALIZED, names.TOKENIZED, names.ALIGNMENT)
# Numbers of a split by the artifact whose record has them, and their names in the report.
_COUNTS: Final[Mapping[str, Mapping[str, str]]] = {
    names.NORMALIZED: {"records": "records", "rejected": "rejected"},
    names.TOKENIZED: {
        **{name: name for name in ("examples", "skipped_empty", "shards", "sequences")},
        "text_tokens": "total_tokens",
        **{name: name for name in ("eos_tokens", "pad_tokens", "with_cot", "control_texts")},
    },
    names.ALIGNMENT: {name: name for name in ("aligned", "spans", "verified")},
}


@dataclass(frozen=True)
class ReportSummary(Summary):
    """What was reported."""

    splits: int
    examples: int
    total_tokens: int
    breaches: int
    invariance_breaches: int
    warnings: int
    alignment_coverage: Mapping[str, float]
    mean_confidence: Mapping[str, float]
    dataset_tokens: Mapping[str, int]


def coverage_report(
    data_root: Path,
    out: Path,
    config: ReportConfig,
    *,
    date: str,
    baseline: Mapping[str, Any] | None = None,
    run_id: str | None = None,
    progress: Progress = SILENT,
) -> ReportSummary:
    """Write `<date>.json`.

    data_root: where the splits and token datasets are published.
    out: folder to write, which must not exist.
    config: tolerances, sample and vocabulary.
    date: the day in UTC, as `2026-11-22`.
    baseline: the report that drift is measured against; default None: drift is not measured, and
        the gate passes.
    run_id: of the run, for the report; default None.
    progress: gets the stage "perturb", in files.

    Raises NothingToBuild where nothing of both is published, BadInput for a baseline that is no
    report, GristmillError where a file of a token dataset cannot be read.
    """
    if baseline is not None and (wrong := reports.problem(baseline)) is not None:
        raise BadInput(f"baseline of {date}", f"{wrong}: name the day of another report")
    keys = {key for folder in _FOLDERS for key in recorded(artifacts_in(data_root / folder))}
    records = {key: _records(data_root, key) for key in ordered(keys)}
    splits = {key: _split(key, found) for key, found in records.items() if found}
    of_rows = names.NORMALIZED
    normalized = {key: found[of_rows] for key, found in records.items() if of_rows in found}
    folders = {name: data_root / names.TOKENS / name for name in published_datasets(data_root)}
    datasets = {name: dataset(folder, normalized) for name, folder in folders.items()}
    if not splits and not datasets:
        raise NothingToBuild("no split is published")
    measured = _invariance(data_root, splits, config, progress)
    head = {"date": date, "run_id": run_id}
    described = {"splits": splits} | ({reports.DATASETS: datasets} if datasets else {})
    report = _report(described, measured, config, baseline, head, _warned(described, records))
    out.mkdir(parents=True)
    data = reports.to_bytes(report)
    path = reports.path(out, date)
    path.write_bytes(data)
    # The id of a run is not content: another run of the same day reports the same.
    content = reports.to_bytes(report | {"run_id": None})
    note = FileNote(content_sha256=hashlib.sha256(content).hexdigest())
    return ReportSummary(
        files={path.name: note},
        splits=len(splits),
        examples=report["totals"]["examples"],
        total_tokens=report["totals"]["total_tokens"],
        breaches=len(report["gate"]["breaches"]),
        invariance_breaches=len(report["invariance"]["breaches"]),
        warnings=len(report["warnings"]),
        alignment_coverage=_known(splits, "alignment_coverage"),
        mean_confidence=_known(splits, "mean_confidence"),
        dataset_tokens={name: each["totals"]["total_tokens"] for name, each in datasets.items()},
    )


def _known(splits: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, float]:
    return {name: split[key] for name, split in splits.items() if split[key] is not None}


def _records(data_root: Path, partition: str) -> dict[str, Record]:
    """The records of a split by folder; those that are not published are left out."""
    paths = {
        folder: provenance.record_path(data_root / folder, partition, shared=True)
        for folder in _FOLDERS
    }
    return {folder: provenance.read_record(path) for folder, path in paths.items() if path.exists()}


def _split(partition: str, records: Mapping[str, Record]) -> dict[str, Any]:
    """The numbers of one split, from the records of its artifacts by folder."""
    corpus, split = _corpus(partition, records), partition.rpartition("__")[2]
    found: dict[str, Any] = {"dataset": corpus.name, "split": split}
    for folder, counts in _COUNTS.items():
        record = records.get(folder)
        for source, name in counts.items():
            found[name] = int(record.counts[source]) if record is not None else 0
    aligned = records.get(names.ALIGNMENT)
    examples = found["examples"]
    rows = int(aligned.counts["examples"]) if aligned is not None else 0
    found |= {
        "pct_with_cot": reports.ratio(found["with_cot"], examples, 100),
        "avg_seq_len": reports.ratio(found["total_tokens"], examples),
        "alignment_coverage": reports.ratio(found["aligned"], examples),
        "mean_confidence": None,
        "low_confidence_share": None,
        "confidence": {},
    }
    if aligned is not None and rows:
        found["mean_confidence"] = round(aligned.counts["mean_confidence"], 9)
        found["low_confidence_share"] = reports.ratio(aligned.counts["low_confidence"], rows)
        found["confidence"] = {
            name.partition("/")[2]: int(number)
            for name, number in aligned.counts.items()
            if name.startswith("confidence/")
        }
    tokens = records.get(names.TOKENIZED)
    normalized = records.get(names.NORMALIZED)
    file = normalized and file_entry(normalized.model_dump(mode="json"), corpus.name, split)
    found["raw_sha256"] = file["sha256"] if file else None
    found["tokenizer_sha256"] = tokens.tokenizer.sha256 if tokens and tokens.tokenizer else None
    found["licence"] = corpus.licence.id
    return found


def _invariance(
    data_root: Path,
    splits: Mapping[str, Mapping[str, Any]],
    config: ReportConfig,
    progress: Progress,
) -> dict[str, Invariance]:
    """What perturbations change in each split that has examples."""
    if not config.invariance_sample or not any(split["examples"] for split in splits.values()):
        return {}
    encode = encoder(GPT2, config.vocabulary)
    measured = {}
    with progress.stage("perturb", "files", len(splits)) as stage:
        for name, split in splits.items():
            corpus, part = split["dataset"], split["split"]
            jsonl = data_root / names.NORMALIZED / names.normalized(corpus, part)
            if split["records"] and split["examples"]:
                measured[name] = measure(
                    *(jsonl, corpus, part, split["records"]),
                    *(config.invariance_sample, config.seed, encode),
                )
            stage.advance(1)
    return measured


def _report(
    described: Mapping[str, Any],
    measured: Mapping[str, Invariance],
    config: ReportConfig,
    baseline: Mapping[str, Any] | None,
    head: Mapping[str, str | None],
    warnings: Sequence[str],
) -> dict[str, Any]:
    splits, every = described["splits"], reports.all_splits(described)
    before = reports.reference(baseline) if baseline is not None else {}
    unstable = [
        f"{name}: {kind} changes {share:.2%} of the token ids, which normalising absorbs"
        for name, each in measured.items()
        for kind, share in each.breaches().items()
    ]
    outside = [*breaches(every, before, config), *unstable]
    dated = baseline["date"] if baseline is not None else None
    return {
        "schema_version": reports.SCHEMA_VERSION,
        **head,
        "splits": splits,
        "totals": {key: sum(split[key] for split in splits.values()) for key in reports.COUNTS},
        **{key: each for key, each in described.items() if key == reports.DATASETS},
        "invariance": {
            "sample": config.invariance_sample,
            "seed": config.seed,
            "tolerance": TOLERANCE,
            "splits": {name: each._asdict() for name, each in measured.items()},
            "breaches": unstable,
            "flagged": {name: each.flagged() for name, each in measured.items() if each.flagged()},
        },
        "warnings": warnings,
        "drift": {
            "baseline": dated,
            "changes": changes(every, before),
            "reference": before,
        },
        "gate": {"passed": not outside, "baseline": dated, "breaches": outside},
    }


def _corpus(partition: str, records: Mapping[str, Record]) -> Corpus:
    """The corpus of a split, by the record of its normalised file if there is one."""
    normalized = records.get(names.NORMALIZED)
    return corpus_and_split(partition)[0] if normalized is None else corpus_of_record(normalized)


def _warned(described: Mapping[str, Any], records: Mapping[str, Mapping[str, Record]]) -> list[str]:
    """What a person should know of all splits and datasets."""
    of_splits = [
        warning
        for name, split in reports.all_splits(described).items()
        for warning in _warnings(name, split, records.get(name.rpartition("/")[2], {}))
    ]
    of_datasets = [
        f"{name}: {count:,} literal end tokens of {each['tokenizer']} in texts stay text"
        for name, each in described.get(reports.DATASETS, {}).items()
        if (count := each["totals"]["control_texts"])
    ]
    return of_splits + of_datasets


def _warnings(name: str, split: Mapping[str, Any], records: Mapping[str, Record]) -> Iterator[str]:
    """What a person should know of a split, though nothing is wrong with its bytes."""
    is_of_dataset, partition = "/" in name, name.rpartition("/")[2]
    corpus = _corpus(partition, records)
    allowed, licence = corpus.licence.training_allowed, corpus.licence.id
    if split["shards"] and allowed is None:
        yield f"{name}: the terms are unknown: nobody has said that training is allowed"
    if split["shards"] and allowed is False:
        yield f"{name}: the terms ({licence}) forbid training; a setting allows the shards"
    if split["control_texts"] and not is_of_dataset:
        yield f"{name}: {split['control_texts']:,} literal <|endoftext|> in texts stay text"
    if split.get("rejected"):
        yield f"{name}: {split['rejected']:,} raw records were rejected"
    if split["examples"] and split.get("aligned") == 0:
        yield f"{name}: no example has steps"
