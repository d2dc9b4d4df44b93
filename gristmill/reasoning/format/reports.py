"""A day's report on what is published, and shards of normalised conversations.

SYNTH reads the first two columns of a shard of conversations as those of a Harmony shard.
Source: `docs/formats/reasoning.md#reports`, `docs/formats/chat.md#conversations`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.contract import BadInput
from gristmill.corpora.corpus import PARTITIONS
from gristmill.corpora.split_file import SplitWriter, files, is_there
from gristmill.reasoning.format.leaks import ROWS

if TYPE_CHECKING:
    import pyarrow as pa

REJECTED: Final = "rejected.jsonl"
"""Rows that were set aside."""
GROUP_ROWS: Final = 1000
TEXTS: Final = ("messages_json", "synth_id", "spans", "split", "file")
ROW: Final = "row"


def shard_name(number: str) -> str:
    """The file of a shard. number: in two digits."""
    return f"shard_{number}.parquet"


def shards(folder: Path) -> list[Path]:
    """The shards in a folder, sorted; of one in parts, these. Raises BadInput as `files`."""
    stems = sorted({path.name[:8] for path in folder.glob("shard_[0-9][0-9]*")})
    return [each for stem in stems for each in files(folder / f"{stem}.parquet")]


class ShardWriter(SplitWriter):
    """Writes the row groups of a shard. A part ends with the group that makes it `part_bytes` long.

    kept: columns beside the others. Others as of `SplitWriter`.
    """

    def __init__(self, path: Path, kept: Sequence[str], part_bytes: int | None) -> None:
        super().__init__(path, part_bytes)
        self._kept = kept
        self._open()

    def add(self, values: Sequence[Sequence[str | None]], rows: Sequence[int]) -> None:
        """Write a row group. values: of `TEXTS`, then of `kept`. rows: their numbers."""
        if self._is_full:
            self._begin_part()
        self._sink.write_batch(batch(values, rows, self._kept), row_group_size=len(rows))
        self._rows += len(rows)
        self._is_full = self._part_bytes is not None and self._file.bytes >= self._part_bytes

    def _open(self) -> None:
        import pyarrow.parquet as pq

        self._sink = pq.ParquetWriter(self._file, schema(self._kept), compression="zstd")

    def _begin_part(self) -> None:
        self._sink.close()
        super()._begin_part()
        self._open()

    def __exit__(self, *error: object) -> None:
        self._sink.close()
        super().__exit__(*error)


def schema(kept: Sequence[str] = ()) -> pa.Schema:
    """The columns: texts, the number of the row in its file, from 1, and those that are kept."""
    import pyarrow as pa

    texts = [*((name, pa.string()) for name in TEXTS), (ROW, pa.int64())]
    return pa.schema([*texts, *((name, pa.string()) for name in kept)])


def batch(
    values: Sequence[Sequence[str | None]], rows: Sequence[int], kept: Sequence[str] = ()
) -> pa.RecordBatch:
    """Rows as a batch. values: of `TEXTS`, then of `kept`. rows: their numbers."""
    import pyarrow as pa

    columns = [pa.array(each, pa.string()) for each in zip(*values, strict=True)]
    columns.insert(len(TEXTS), pa.array(rows, pa.int64()))
    return pa.RecordBatch.from_arrays(columns, schema=schema(kept))


SCHEMA_VERSION: Final = 1
KEYS: Final = (
    *("schema_version", "date", "run_id", "splits", "totals", "invariance", "warnings"),
    *("drift", "gate"),
)
"""Keys of a report, in its order."""
COUNTS: Final = (
    *("records", "rejected", "examples", "skipped_empty", "shards", "sequences"),
    *("total_tokens", "eos_tokens", "pad_tokens", "with_cot", "control_texts"),
    *("aligned", "spans", "verified"),
)
"""Whole numbers of a split, which the totals sum up."""
SHARES: Final = (
    *("pct_with_cot", "avg_seq_len", "alignment_coverage", "mean_confidence"),
    "low_confidence_share",
)
"""Numbers with a fraction of a split; null where they would divide by zero."""
HASHES: Final = ("raw_sha256", "tokenizer_sha256")
"""Hashes of a split; null where it has no shards."""
DATASETS: Final = "datasets"
"""Key of the token datasets, behind `totals`; a report without token datasets lacks it."""
DATASET_KEYS: Final = ("tokenizer", "tokenizer_sha256", "splits", "totals")
"""Keys of a token dataset in a report, in its order."""
DATASET_COUNTS: Final = (
    *("examples", "skipped_empty", "shards", "sequences"),
    *("total_tokens", "eos_tokens", "pad_tokens", "with_cot", "control_texts"),
)
"""Whole numbers of a dataset and of its splits; of a split those of `UNSPLIT` may be null."""
UNSPLIT: Final = ("skipped_empty", "with_cot", "control_texts")
"""What the record of a dataset counts over all splits alone."""
ALIGNED_COUNTS: Final = ("aligned", "spans")
"""Further whole numbers of a dataset with alignments, and of its splits."""
MEASURED: Final = (
    *("raw_sha256", "examples", "total_tokens", "avg_seq_len", "pct_with_cot"),
    "alignment_coverage",
)
"""What drift compares, and a report repeats of its baseline."""
_MOST: Final = 1 << 63
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def path(folder: Path, date: str) -> Path:
    """Path of a report. date: the day in UTC, as `2026-11-22`."""
    return folder / f"{date}.json"


def dates(folder: Path) -> list[str]:
    """The days that have a report, in order; none where there is no folder."""
    return sorted(each.stem for each in folder.glob("*.json") if _DATE.fullmatch(each.stem))


def ratio(part: float | None, whole: float, by: int = 1) -> float | None:
    """A share as a report has it, times `by`; None without a part or a divisor."""
    return round(by * part / whole, 9) if whole and part is not None else None


def all_splits(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The splits of a report, and behind them those of its datasets as `<dataset>/<split>`."""
    found = dict(report["splits"])
    for name, dataset in report.get(DATASETS, {}).items():
        found |= {f"{name}/{key}": split for key, split in dataset["splits"].items()}
    return found


def reference(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The numbers of each split that a report stands for as a baseline, as of `all_splits`.

    They are its own; but where it was measured against an earlier report of the same day, which
    it has replaced, they are still those of that one. Otherwise the next build would accept what
    drifted, though nobody has said so.
    """
    if report["drift"]["baseline"] == report["date"]:
        kept: dict[str, dict[str, Any]] = report["drift"]["reference"]
        return kept
    splits = all_splits(report).items()
    return {name: {key: split[key] for key in MEASURED} for name, split in splits}


def to_bytes(report: Mapping[str, Any]) -> bytes:
    """A report as it is on disk: indent 2, final newline."""
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def read(file: Path) -> dict[str, Any]:
    """Read a report.

    Raises BadInput where it is not there, is no JSON or lacks what every report has.
    """
    try:
        report = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise BadInput(file, "there is no such report: build reasoning/qc_report") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(file, f"cannot be read: {error}") from error
    if (wrong := problem(report)) is not None:
        raise BadInput(file, f"{wrong}: build reasoning/qc_report again")
    found: dict[str, Any] = report
    return found


def problem(report: Any) -> str | None:
    """Why a value is no report, None if it is one."""
    at = KEYS.index("totals") + 1
    forms = (KEYS, (*KEYS[:at], DATASETS, *KEYS[at:]))
    if not isinstance(report, dict) or tuple(report) not in forms:
        return f"is not an object with the keys {', '.join(KEYS)}"
    form = _REPORT | ({DATASETS: _DATASETS} if DATASETS in report else {})
    if found := next(_misfits(report, form), ""):
        return found
    for name, dataset in report.get(DATASETS, {}).items():
        if tuple(dataset) != DATASET_KEYS:
            return f"{name}: is not an object with the keys {', '.join(DATASET_KEYS)}"
        for key, split in dataset["splits"].items():
            aligned = dict.fromkeys(split.keys() & {*ALIGNED_COUNTS}, _is_count)
            if found := next(_misfits(split, aligned, f"{name}/{key}"), ""):
                return found
    if any(tuple(split) != MEASURED for split in report["drift"]["reference"].values()):
        return "drift: reference has other keys than what is measured"
    if report["gate"]["passed"] != (not report["gate"]["breaches"]):
        return "gate and breaches do not agree"
    return None


def _misfits(value: Any, form: Any, where: str = "") -> Iterator[str]:
    """Yield what of a value has another form.

    form: a test; an object with some keys, each of a form; or a list of the one form that each
    value of an object has.
    """
    if callable(form):
        if not form(value):
            yield f"{where} is of another kind"
    elif not isinstance(value, dict):
        yield f"{where} is no object"
    else:
        every = dict.fromkeys(value, form[0]) if isinstance(form, list) else form
        for key, each in every.items():
            inside = f"{where}: {key}".removeprefix(": ")
            yield from (
                _misfits(value[key], each, inside) if key in value else [f"{inside} is missing"]
            )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _is_number(value: Any) -> bool:
    """Whether a value is null or a number that a report can hold: finite, and not huge."""
    return value is None or (type(value) in (int, float) and -_MOST < value < _MOST)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str | None)


_KINDS: Final = {
    **dict.fromkeys((*COUNTS, *DATASET_COUNTS), _is_count),
    **dict.fromkeys(SHARES, _is_number),
    **dict.fromkeys(HASHES, _is_hash),
}
_MEASURES: Final = {key: _KINDS[key] for key in MEASURED}
_DATASETS: Final = [
    {
        "tokenizer": _is_text,
        "tokenizer_sha256": _is_text,
        "splits": [
            _MEASURES
            | dict.fromkeys(DATASET_COUNTS, _is_count)
            | dict.fromkeys(UNSPLIT, lambda value: value is None or _is_count(value))
        ],
        "totals": {},
    }
]
_REPORT: Final = {
    "schema_version": lambda value: value == SCHEMA_VERSION,
    "date": lambda value: _is_text(value) and bool(_DATE.fullmatch(value)),
    "splits": [{key: _KINDS[key] for key in (*COUNTS, *SHARES, *HASHES)}],
    "totals": {},
    "drift": {"baseline": _is_hash, "reference": [_MEASURES]},
    "gate": {
        "passed": lambda value: isinstance(value, bool),
        "breaches": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    },
}


def asset_of(folder: Path) -> str | None:
    """The asset whose laws and views a folder without a record takes, None where it has none."""
    first = next(folder.glob("*/*/shard_*.meta.json"), None)
    if first is not None and b'"tokenizer":' in first.read_bytes():
        return "reasoning/tokens"
    for key in PARTITIONS:
        corpus, split = key.rsplit("__", 1)
        for name, asset in (
            (f"{split}.jsonl", "normalized"),
            (f"{split}/index.jsonl", "gpt2_shards"),
            (f"{split}.align.jsonl", "alignment"),
            (f"{split}.spans.jsonl", "spans"),
        ):
            if is_there(folder / corpus / name):
                return f"reasoning/{asset}"
    if first is not None:
        return "reasoning/gpt2_shards"  # the original's scripts write no index
    if shards(folder):
        return "chat/conversations"
    if (folder / ROWS).is_file():
        return "audits/leaks"
    if any((folder / each).is_dir() for each in ("llm.c", "litdata", "nanochat")):
        return "reasoning/exports"
    return "reasoning/qc_report" if folder.is_dir() and dates(folder) else None
