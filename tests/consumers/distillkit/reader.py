"""A folder as DistillKit opens it: a saved dictionary of datasets, with rows that have ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

COLUMNS = {
    "id": pa.string(),
    "source": pa.struct(
        [(name, pa.string()) for name in ("dataset", "language", "exercise", "meta_json")]
    ),
    "input_ids": pa.list_(pa.int32()),
    "labels": pa.list_(pa.int32()),
    "attention_mask": pa.list_(pa.int8()),
    "spans": pa.struct(
        [
            ("assistant_token_start", pa.int32()),
            ("analysis_token_count", pa.int32()),
            ("final_token_count", pa.int32()),
        ]
    ),
}
STATE = {
    "_data_files",
    "_fingerprint",
    "_format_columns",
    "_format_kwargs",
    "_format_type",
    "_output_all_columns",
    "_split",
}


class Refused(Exception):
    """What DistillKit says of a folder or a row that it does not take."""


def load(disk_path: Path, split: str | None) -> pa.Table:
    """The rows of a split, as `load_from_disk` finds them."""
    if not (disk_path / "dataset_dict.json").is_file():
        raise Refused(f"Directory {disk_path} is neither a Dataset directory nor a DatasetDict")
    splits = json.loads((disk_path / "dataset_dict.json").read_text())["splits"]
    if split is None:
        raise Refused("Dataset dict found but no split specified. Please specify a split.")
    if splits != ["train", "validation"]:
        raise Refused(f"splits {splits}")
    folder = disk_path / split
    state = json.loads((folder / "state.json").read_text())
    if set(state) != STATE or state["_split"] != split or not state["_fingerprint"]:
        raise Refused(f"state {state}")
    json.loads((folder / "dataset_info.json").read_text())
    tables = []
    for number, item in enumerate(state["_data_files"]):
        assert item["filename"] == f"data-{number:05d}-of-{len(state['_data_files']):05d}.arrow"
        with pa.memory_map(str(folder / item["filename"])) as file:
            tables.append(pa.ipc.open_stream(file).read_all())
    table = pa.concat_tables(tables)
    if table.schema != pa.schema(COLUMNS):
        raise Refused(f"Expected text, messages, or conversations column: {table.schema}")
    return table


def sampled(table: pa.Table, num_samples: int) -> list[dict[str, Any]]:
    """The first rows, each checked; all of them must be there."""
    if num_samples > len(table):
        raise IndexError(f"Index {len(table)} out of range for dataset of size {len(table)}.")
    rows: list[dict[str, Any]] = table.slice(0, num_samples).to_pylist()
    for row in rows:
        check(row)
    return rows


def check(row: dict[str, Any]) -> None:
    """Refuse a row that does not keep the rules."""
    ids, labels = row["input_ids"], row["labels"]
    start, analysis, final = row["spans"].values()
    if start + analysis + final != len(ids) or min(start, final) < 1 or analysis < 0:
        raise Refused(f"spans of {row['id']}")
    if labels != [-100] * start + ids[start:]:
        raise Refused(f"labels of {row['id']}")
    if row["attention_mask"] != [1] * len(ids) or 199999 in ids or ids[-1] != 200002:
        raise Refused(f"tokens of {row['id']}")
    meta = json.loads(row["source"]["meta_json"])
    text = json.dumps(meta, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if "dataset" not in meta or text != row["source"]["meta_json"]:
        raise Refused(f"source of {row['id']}")
