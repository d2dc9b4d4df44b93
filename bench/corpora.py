"""Corpora: a row read by a compiled recipe, and a look at a folder of 10 GB.

Run from the checkout: python -m bench.corpora [--gigabytes N] [--cold]. Needs the real drops
(GRISTMILL_REAL_DATA, default ../shared/data).

Rows: GSM8K and GSM8K_Backward by their corpus files, against functions in plain Python that give
the same records, which is checked; us a row, medians of rounds by turns. A look: hard links to one
file of JSON lines and one of Parquet, against reading all bytes of the folder once; --cold drops
the page cache before each, where root may. Exit status 1 where a ceiling is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.cpu_seconds import cpu_seconds
from gristmill.look.finding import look
from gristmill.look.report import lines
from gristmill.reasoning.format.corpora import CORPORA
from gristmill.reasoning.format.records import Record
from gristmill.reasoning.raw.flatten import text
from gristmill.reasoning.raw.forms.reader import Reader
from gristmill.reasoning.raw.rows import rows

HERE: Final = Path(__file__).resolve().parent.parent
REAL: Final = Path(os.environ.get("GRISTMILL_REAL_DATA", HERE.parent / "shared" / "data"))
MOST_RATIO: Final = 2.5
MOST_SECONDS: Final = 5.0
ROUNDS: Final = 7
_MARK: Final = "The answer is:"
_FILE: Final = 250 << 20
_CACHES: Final = Path("/proc/sys/vm/drop_caches")
_Row = Mapping[str, Any]


def gsm8k(row: _Row) -> Record:
    """The seed's form of GSM8K, by hand."""
    if "question" not in row:
        raise ValueError("no known form")
    return Record(text(row["question"]), text(row.get("answer")), None, (), None, "seed")


def backward(row: _Row) -> Record:
    """Both forms of GSM8K_Backward, by hand."""
    if "problem" in row or "question" not in row or "answer" not in row:
        raise ValueError("no known form")
    cot = row.get("inv_question_pred_answer")
    if "inv_question_pred_answer" not in row:
        output = text(row["output"])
        begin = output.rfind("\n" + _MARK) + 1
        cot = output[:begin].strip() if begin or output.startswith(_MARK) else output
    return Record(
        text(row["question"]), text(row["answer"]), cot or None, (None,), None, "backward"
    )


def _found(corpus: str, paths: Sequence[Path]) -> list[_Row]:
    return [
        row for path in paths for _, row in rows(path, CORPORA[corpus]) if isinstance(row, dict)
    ]


def read_rows() -> Iterator[str]:
    """Print what a row costs either way; yields what is missed."""
    files = (
        ("gsm8k", sorted((REAL / "reasoning/gsm8k").glob("*.jsonl")), gsm8k),
        ("reasoning_traces", sorted((REAL / "reasoning/metamath").glob("*.jsonl")), backward),
    )
    for corpus, paths, by_hand in files:
        found = _found(corpus, paths)
        if not found:
            print(f"{corpus}: no real rows at {REAL}")
            continue
        reader = Reader(CORPORA[corpus])
        found = [row for row in found if _is_read(by_hand, row)]
        repeated = found * (1 + 20_000 // len(found))
        wrong = [row for row in found if reader.read(row, (0, 1)) != by_hand(row)]
        if wrong:
            raise SystemExit(f"{corpus}: not the same record: {json.dumps(wrong[0])[:300]}")
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(_taken(lambda row, read=reader.read: read(row, (0, 1)), repeated))
            theirs.append(_taken(lambda row, read=by_hand: read(row), repeated))
        ratio = median(ours) / median(theirs)
        print(
            f"{corpus}: {median(ours):.2f} us a row by the corpus file, {median(theirs):.2f} by "
            f"hand, {ratio:.2f} times, over {len(found):,} rows"
        )
        if ratio > MOST_RATIO:
            yield f"{corpus}: {ratio:.2f} times a function by hand"


def _is_read(by_hand: Callable[[_Row], Record], row: _Row) -> bool:
    try:
        by_hand(row)
    except ValueError:
        return False
    return True


def _taken(read: Callable[[_Row], object], found: Sequence[_Row]) -> float:
    """CPU us a row."""
    begun = cpu_seconds()
    for row in found:
        read(row)
    return (cpu_seconds() - begun) / len(found) * 1e6


def _write_folder(folder: Path, size: int) -> None:
    """Write hard links to two files, so many that they have `size` bytes together."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = "a train runs so far in one hour, how far does it run in two, and why "
    some = [
        {"question": f"{number}: {words * 3}?", "solution": f"{number}. {words * 8}", "answer": "2"}
        for number in range(1000)
    ]
    block = "".join(json.dumps(row) + "\n" for row in some).encode()
    texts, table = folder / "train-00000.jsonl", folder / "train-00001.parquet"
    with texts.open("wb") as file:
        for _ in range(_FILE // len(block)):
            file.write(block)
    noise = [{**row, "solution": os.urandom(500).hex()} for row in some]
    made = pa.Table.from_pylist(noise)
    with pq.ParquetWriter(table, made.schema, compression="none") as writer:
        for _ in range(_FILE // made.nbytes):
            writer.write_table(made)
    for number in range(2, 2 * size // (2 * _FILE)):
        source = (texts, table)[number % 2]
        (folder / f"train-{number:05d}{source.suffix}").hardlink_to(source)


def _read_all(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        with path.open("rb", buffering=0) as file:
            while file.read(8 << 20):
                pass


def _drop_caches(is_cold: bool) -> None:
    if is_cold:
        os.sync()
        _CACHES.write_text("3")


def look_at_folder(gigabytes: float, is_cold: bool) -> Iterator[str]:
    """Print what a look costs beside reading the bytes once; yields what is missed."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("GRISTMILL_BENCH")) as scratch:
        folder = Path(scratch) / "folder"
        folder.mkdir()
        _write_folder(folder, int(gigabytes * 1e9))
        size = sum(path.stat().st_size for path in folder.iterdir())
        for cold in (False, True)[: 1 + is_cold]:
            _drop_caches(cold)
            begun = time.perf_counter()
            for _ in lines(look(folder)):
                pass
            taken = time.perf_counter() - begun
            _drop_caches(cold)
            begun = time.perf_counter()
            _read_all(folder)
            read = time.perf_counter() - begun
            print(
                f"a look at {size / 1e9:.1f} GB in {len(list(folder.iterdir()))} files, page cache "
                f"{'dropped' if cold else 'as it is'}: {taken:.2f} s, {taken / read:.2f} of the "
                f"{read:.2f} s to read the bytes once"
            )
            if taken > MOST_SECONDS:
                yield f"a look takes {taken:.1f} s, ceiling {MOST_SECONDS:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--cold", action="store_true")
    chosen = parser.parse_args()
    missed = [*read_rows(), *look_at_folder(chosen.gigabytes, chosen.cold)]
    if missed:
        sys.exit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
