"""The token datasets in the daily report: counts of each, and of its splits.

Totals are those of the dataset's record. Splits have the counts of its manifest, of the alignments
in it, and of the records of the normalised splits that it was built from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gristmill import provenance
from gristmill.provenance import Record
from gristmill.reasoning.config import ALIGNED
from gristmill.reasoning.format import align, names, reports
from gristmill.reasoning.format.published import NORMALIZED
from gristmill.reasoning.format.shards import Meta, read_manifest

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
