"""Reads small files that hold too many values, in a process with 1 GB of address space."""

import base64
import gzip
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

_GOOD = b'{"question":"a","answer":"b"}\n'


def _row(item: bytes, last: bytes = b"]}") -> bytes:
    """A row with 20 million times the same item; nothing is made before a file needs it."""
    return b'{"question":[' + item * 20_000_000 + item[:2] + last


def _packed(text: bytes) -> bytes:
    # What does not pack keeps the ratio of text to file legal.
    noise = base64.b64encode(random.Random(1).randbytes(260_000)).decode()
    return gzip.compress(f'{{"question":"{noise}","answer":""}}\n'.encode() + text, 6)


TEXTS: dict[str, Callable[[], bytes]] = {
    "objects_train.jsonl": lambda: _GOOD + _row(b"{},") + b"\n" + _GOOD,
    "lists_train.jsonl": lambda: _GOOD + _row(b"[],") + b"\n",
    "numbers_train.jsonl": lambda: _GOOD + _row(b"17,") + b"\n",
    "no_json_train.jsonl": lambda: _GOOD + _row(b"[],", b"]") + b"\n",
    "objects_train.jsonl.gz": lambda: _packed(_row(b"{},")),
    "objects_train.json": lambda: b"[" + _GOOD + b"," + _row(b"{},") + b"]",
    "numbers_train.json": lambda: b"[" + _GOOD + b"," + _row(b"17,") + b"]",
    "keys_train.json": lambda: b'{"1":' + _GOOD + b',"2":' + _row(b"{},") + b"}",
    "cells_train.csv": lambda: b"question,answer\n" + b"ab," * 20_000_000 + b"\n",
    "header_train.csv": lambda: b"ab," * 20_000_000 + b"\n",
    "cells_train.tsv": lambda: b"question\tanswer\n" + b"ab\t" * 20_000_000 + b"\n",
    "flan_train.tsv": lambda: b"a\tb\tc\n" + b"\t" * 60_000_000 + b"x" + b"\n",
}


def _parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    empty = pa.array([[[]] * 4_000_000], pa.list_(pa.list_(pa.int8())))
    pq.write_table(pa.table({"question": empty}), path)


def write(folder: Path) -> None:
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text())
    _parquet(folder / "lists_train.parquet")


def main(folder: Path) -> None:
    """Print for each file what reading it says, its CPU seconds, and the peak of the process."""
    from gristmill.contract import BadInput
    from gristmill.corpora.corpus import CORPORA
    from gristmill.corpora.raw.rows import rows
    from gristmill.corpora.raw.texts import Unfit

    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    for path in sorted(folder.iterdir()):
        corpus = CORPORA["cot_collection" if "flan" in path.name else "gsm8k"]
        begin = time.process_time()
        said = []
        try:
            for _, row in rows(path, corpus):
                said.append(row.rule if isinstance(row, Unfit) else "row")
        except BadInput as error:
            said.append(f"refused: {error.rule}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        seconds = f"{time.process_time() - begin:.1f}"
        print(path.name, seconds, peak, "; ".join(said), sep="\t")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
