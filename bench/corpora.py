"""Corpora: a row read by a compiled recipe, and a look at a folder of 10 GB.

Run from the checkout: python -m bench.corpora [--gigabytes N] [--cold] [--only PART]. Needs the
real drops (GRISTMILL_REAL_DATA, default ../shared/data).

Rows: GSM8K and GSM8K_Backward by their corpus files, against functions in plain Python that give
the same records, which is checked; us a row, medians of rounds by turns. A look: hard links to one
file of JSON lines and one of Parquet, against reading all bytes of the folder once; --cold drops
the page cache before each, where root may. Two workers: an own corpus of text in parts, normalised,
tokenised and checked, against one worker; the speed needs an idle machine of two cores, the share
of what is not done by workers does not. Exit status 1 where a bound is missed.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from typing import Any, Final

from bench import kit
from bench.distinct_text import Text
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.corpus_file import read_corpus_file
from gristmill.corpora.raw.reader import Reader
from gristmill.corpora.raw.rows import rows
from gristmill.corpora.raw.texts import text
from gristmill.corpora.records import Record
from gristmill.look.finding import look
from gristmill.look.report import lines
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import CorpusConfig, TokenizeConfig
from gristmill.reasoning.laws.shards import shard_laws
from gristmill.reasoning.laws.texts import normalized_laws
from gristmill.run.workers import kept_workers
from gristmill.vocabularies.pinned import GPT2, find

MOST_RATIO: Final = 2.5
MOST_SECONDS: Final = 5.0
LEAST_OF_TWO: Final = 1.7
MOST_SERIAL: Final = 0.2
MOST_LOAD: Final = 0.7
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


def a_row(_: kit.Given) -> None:
    """What a row costs either way."""
    real = kit.real("reasoning")
    files = (
        ("gsm8k", sorted((real / "gsm8k").glob("*.jsonl")), gsm8k),
        ("reasoning_traces", sorted((real / "metamath").glob("*.jsonl")), backward),
    )
    for corpus, paths, by_hand in files:
        found = _found(corpus, paths)
        reader = Reader(CORPORA[corpus])
        found = [row for row in found if _is_read(by_hand, row)]
        repeated = found * (1 + 20_000 // len(found))
        wrong = [row for row in found if reader.read(row, (0, 1)) != by_hand(row)]
        if wrong:
            raise SystemExit(f"{corpus}: not the same record: {json.dumps(wrong[0])[:300]}")
        ours, theirs = kit.in_turns(
            _each(partial(_by_file, reader), repeated),
            _each(by_hand, repeated),
            rounds=ROUNDS,
            clock=kit.cpu_seconds,
        )
        own, other = (median(each) / len(repeated) * 1e6 for each in (ours, theirs))
        what = f"{own:.2f} us a row by the corpus file, {other:.2f} by hand"
        kit.bounded(f"{corpus}, {len(found):,} rows: {what}, times", own / other, most=MOST_RATIO)


def _is_read(by_hand: Callable[[_Row], Record], row: _Row) -> bool:
    try:
        by_hand(row)
    except ValueError:
        return False
    return True


def _by_file(reader: Reader, row: _Row) -> object:
    return reader.read(row, (0, 1))


def _each(read: Callable[[_Row], object], found: Sequence[_Row]) -> Callable[[], None]:
    def work() -> None:
        for row in found:
            read(row)

    return work


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


def a_look(given: kit.Given) -> None:
    """What a look costs beside reading the bytes once."""
    folder = given.scratch / "folder"
    folder.mkdir()
    _write_folder(folder, int(given.gigabytes * 1e9))
    files = [*folder.iterdir()]
    size = sum(path.stat().st_size for path in files) / 1e9
    for cold in (False, True)[: 1 + given.cold]:
        _drop_caches(cold)
        taken = kit.spent(lambda: deque(lines(look(folder)), 0), time.perf_counter)
        _drop_caches(cold)
        read = kit.spent(lambda: _read_all(folder), time.perf_counter)
        cache = "dropped" if cold else "as it is"
        kit.bounded(
            f"a look at {size:.1f} GB in {len(files)} files, page cache {cache}: "
            f"{taken / read:.2f} of the {read:.2f} s to read the bytes once, s",
            taken,
            most=MOST_SECONDS,
        )


def two_workers(given: kit.Given) -> None:
    """How much sooner two workers normalise, tokenise and check an own corpus of text.

    Always printed: the CPU time of all processes, and that of the one that gives out the tasks,
    both beside one worker's. The speed needs an idle machine of two cores.
    """
    drop = given.scratch / "own"
    drop.mkdir()
    (drop / "corpus.toml").write_text('schema = 1\ntexts = "{text}"\npart_bytes = 100000000\n')
    text, size = Text(1), 0
    with (drop / "train.jsonl").open("w") as file:
        while size < given.megabytes << 20:
            size += file.write(json.dumps({"text": text.body(1500)}) + "\n")
    table, vocabulary = read_corpus_file(drop / "corpus.toml", "own").table, find(GPT2, kit.DATA)

    def built(workers: int) -> None:
        out = Path(tempfile.mkdtemp(dir=given.scratch))
        config = CorpusConfig(workers=workers, corpus=table)
        with kept_workers():  # as `gristmill build` and `materialize` do
            normalize(drop, out / "raw", config, corpus="own", split="train")
            broken = [*normalized_laws(out / "raw", "own__train", table=table, workers=workers)]
            jsonl = out / "raw/own/train.jsonl"
            tokenize(jsonl, out / "gpt2", TokenizeConfig(vocabulary, workers=workers))
            broken += shard_laws(out / "gpt2", "own__train", sampled=True, workers=workers)
        if broken:
            raise SystemExit(f"laws are broken: {broken[:3]}")
        shutil.rmtree(out)

    text_of = f"{given.megabytes:,} MiB of text"
    own, children = [], []
    for workers in (1, 2):
        before = [_cpu(each) for each in (RUSAGE_SELF, RUSAGE_CHILDREN)]
        built(workers)
        own.append(_cpu(RUSAGE_SELF) - before[0])
        children.append(_cpu(RUSAGE_CHILDREN) - before[1])
    total = own[1] + children[1]
    kit.bounded(
        f"two workers on {text_of}: CPU seconds {total:.1f}, by one {own[0]:.1f}, times",
        total / own[0],
    )
    what = f"two workers on {text_of}: {own[1]:.1f} give out tasks and join results, of one's"
    kit.bounded(what, own[1] / own[0], most=MOST_SERIAL)
    if (load := os.getloadavg()[0]) > MOST_LOAD:
        print(f"two workers: not timed, since the machine is busy (load {load:.1f})")
        return
    works = [partial(built, workers) for workers in (1, 2)]
    one, two = kit.in_turns(*works, rounds=given.rounds, clock=time.perf_counter)
    what = f"two workers on {text_of}: speed of one ({median(one):.1f} s), times"
    kit.bounded(what, median(one) / median(two), least=LEAST_OF_TWO)


def _cpu(who: int) -> float:
    used = getrusage(who)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    options = {"gigabytes": 10.0, "megabytes": 512, "rounds": 3, "cold": False}
    kit.main(__doc__, a_row, a_look, two_workers, **options)
