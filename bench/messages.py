"""Records to messages against `datasets.map` that makes the same rows, in turns in one run.

Run from the checkout: python -m bench.messages. Both write
Parquet and JSON Lines of 20,000 records, and the rows are compared. Exit status 1 where the
projection has fewer records per CPU second.
"""

from __future__ import annotations

import shutil
from importlib import import_module
from typing import Any

import orjson
import pyarrow.parquet as pq

from bench import kit
from bench.projection import write_records
from gristmill.exports.messages import Talks, write_messages
from gristmill.exports.project import written
from gristmill.reasoning.format.names import normalized
from gristmill.reasoning.read.exported import asked

RECORDS = 20_000


def as_messages(row: dict[str, Any], number: int) -> dict[str, Any]:
    """What `map` makes of a record."""
    question, answer = row["question"].strip(), row["answer"].strip()
    messages = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer},
    ]
    said = {"id": f"gsm8k_train_{number:06d}", "source": "gsm8k", "licence": "MIT"}
    return {"messages": messages, **said}


def forms(given: kit.Given) -> None:
    """Compare both."""
    datasets: Any = import_module("datasets")  # it has no types
    datasets.disable_caching()
    datasets.disable_progress_bars()
    root = given.scratch
    write_records(root / "raw", RECORDS)
    path, out = root / "raw" / normalized("gsm8k", "train"), root / "out"

    def new_folder() -> None:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()

    def project() -> float:
        talks = [Talks("train", lambda: asked(path, "gsm8k", "train", "MIT"), "MIT")]
        _, splits, _ = write_messages(talks, out, False)
        written(splits, out)
        return RECORDS

    def by_map() -> float:
        rows = datasets.load_dataset(
            "json", data_files=str(path), split="train", cache_dir=str(out / "cache")
        )
        found = rows.map(as_messages, with_indices=True, remove_columns=rows.column_names)
        found.to_parquet(str(out / "train.parquet"))
        found.to_json(str(out / "train.jsonl"))
        return RECORDS

    new_folder()
    project()
    (parquet,) = out.glob("data/*.parquet")
    own = pq.read_table(parquet).to_pylist()
    new_folder()
    by_map()
    assert own == pq.read_table(out / "train.parquet").to_pylist()
    lines = (out / "train.jsonl").read_bytes().splitlines()
    assert own == [*map(orjson.loads, lines)]
    kit.compare(
        f"{RECORDS:,} records to messages",
        project,
        by_map,
        "records per CPU second",
        least=1.0,
        before=new_folder,
    )


if __name__ == "__main__":
    kit.main(__doc__, forms)
