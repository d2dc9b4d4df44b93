"""Raw text that means nothing against honest text: what a MB of each costs its reader.

Run from the checkout: python -m bench.hostile_text [--megabytes N] [READER]... Needs the real drops
(GRISTMILL_REAL_DATA, default ../shared/data). Each reader of raw text reads an honest file, and
files of the same size that hold little else than blank lines, an open quote or comment, a hole (a
sparse file), or one row or game again and again. Prints CPU seconds a MB, and the ratio to the
honest file measured in the same run; "refused" where the reader ends with an error. Then corpus
files (bench/hostile_corpora.py), and folders to look at, which must end in a second, whatever they
hold. Exit status 1 where a ratio is above 3, or a second is over.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from bench import kit
from bench.hostile_corpora import corpora
from gristmill.chess.raw import pgn
from gristmill.chess.raw.drops import unpack_pgn
from gristmill.contract import BadInput
from gristmill.corpora.corpus import CORPORA
from gristmill.corpora.raw.rows import rows
from gristmill.macroxue.raw.drops import RunFiles
from gristmill.macroxue.raw.fast_scanner import scan
from gristmill.macroxue.raw.read_run import read_run
from gristmill.macroxue.raw.strict_parser import Names
from gristmill.puzzles.raw.tables import read_bank, read_rows

MOST_RATIO: Final = 3.0
ROUNDS: Final = 3


@dataclass(frozen=True)
class Reader:
    """One reader of raw text.

    name: of the file that it reads.
    read: reads the file to its end.
    honest: an honest text; its first 4 kB are in front of what is hostile.
    twin: one row or game.
    opened: begins a quote or a comment that nothing ends; empty: the format has none.
    pack: packs a text as the file has it; default: it is not packed.
    skip: bytes at the beginning of `honest` that are not repeated.
    end: ends the honest text.
    """

    name: str
    read: Callable[[Path], object]
    honest: bytes
    twin: bytes
    opened: bytes = b""
    pack: Callable[[bytes], bytes] = field(default=bytes)
    skip: int = 0
    end: bytes = b""

    def files(self, size: int) -> Iterator[tuple[str, bytes]]:
        """Yields the name and the text of each file, the honest one first."""
        head = self.honest[: self.honest.rfind(b"\n", 0, 4000) + 1] or self.honest
        yield "honest", _filled(self.honest, self.honest[self.skip :], size) + self.end
        yield "twins", _filled(head, self.twin, size) + self.end
        for blank in (b"\n", b"\r\n", b" \n"):
            yield f"blank {blank!r}", _filled(head, blank, size)
        yield "hole", head + bytes(size)
        if self.opened:
            for rest in (b"x" * 60 + b"\n", b"\n"):
                yield f"open {rest[-3:]!r}", _filled(head + self.opened, rest, size)


def _filled(head: bytes, rest: bytes, size: int) -> bytes:
    return head + rest * max(0, (size - len(head)) // len(rest))


def _all(found: Iterator[object]) -> None:
    for _ in found:
        pass


def _pgn(path: Path) -> None:
    unpacked = path.with_suffix(".unpacked")
    unpacked.unlink(missing_ok=True)
    unpack_pgn(path, unpacked)
    expected = 0
    for planned in pgn.plan(unpacked, 1 << 30):
        for item in pgn.read_range(pgn.follow(expected, planned) or planned):
            if isinstance(item, int):
                expected = item


def _run(meta: Path, path: Path) -> None:
    files = RunFiles("d", meta, path, "m", "s", path.stat().st_size)
    read_run(files, 1, Names(), lambda _: None, scan)


def _of_reasoning() -> Iterator[Reader]:
    real = kit.real("reasoning")
    gsm8k = (real / "gsm8k/train.jsonl").read_bytes()
    lines = gsm8k.splitlines()
    as_rows = partial(_of_corpus, "gsm8k")
    yield Reader("train.jsonl", as_rows, gsm8k, lines[0] + b"\n")
    tables = []
    for some in (lines, lines[:1]):
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerows([row["question"], row["answer"]] for row in map(json.loads, some))
        tables.append(table.getvalue().encode())
    header = b"question,answer\n"
    whole, row = tables
    yield Reader("train.csv", as_rows, header + whole, row, b'"a","', skip=len(header))
    members = b"[" + b"".join(line + b",\n" for line in lines)
    ends = lines[0] + b"]"
    opened = b'{"question": "'
    yield Reader("train.json", as_rows, members, lines[0] + b",\n", opened, skip=1, end=ends)
    cot = (real / "flan_cot/aqua_train.tsv").read_bytes()
    line = cot[: cot.index(b"\n") + 1]
    yield Reader("aqua_train.tsv", partial(_of_corpus, "cot_collection"), cot, line)


def _of_games() -> Iterator[Reader]:
    games = b"".join(path.read_bytes() for path in sorted(kit.real("chess/pgn").glob("*.pgn")))
    yield Reader("games.pgn", _pgn, games, games[: games.index(b"\n[Event ", 10) + 1], b"{")
    drop = kit.real("macroxue/d6_v1")
    steps, meta = sorted(drop.glob("*.gz"))[0], sorted(drop.glob("*meta*"))[0]
    played = gzip.decompress(steps.read_bytes())
    pack = partial(gzip.compress, compresslevel=1)
    step = played[: played.index(b"\n") + 1]
    yield Reader("a.jsonl.gz", partial(_run, meta), played, step, pack=pack)


def _of_puzzles() -> Iterator[Reader]:
    header, board = b"source,question,answer,rating\n", b"0123456789" * 8 + b"0"
    row = b"s,%s,%s,1\n" % (board, board.replace(b"0", b"1"))
    rated = header + b"".join(row.replace(b",1\n", b",%d\n" % n) for n in range(20_000))
    yield Reader("sudoku.csv", partial(_each, read_rows), rated, row, b'"s', skip=len(header))
    bank = b"".join(b"%012x %s  1.2\n" % (n, board) for n in range(20_000))
    yield Reader("bank.txt", partial(_each, read_bank), bank, b"1 %s 1.2\n" % board)


def _each(read: Callable[[Path], Iterator[object]], path: Path) -> None:
    _all(read(path))


def _of_corpus(name: str, path: Path) -> None:
    _all(rows(path, CORPORA[name]))


def texts(given: kit.Given) -> None:
    for reader in (*_of_reasoning(), *_of_games(), *_of_puzzles()):
        if given.readers and reader.name not in given.readers:
            continue
        path, base = given.scratch / reader.name, 0.0
        for name, text in reader.files(int(given.megabytes * 1e6)):
            path.write_bytes(reader.pack(text))
            costs, said = [], ""
            for _ in range(ROUNDS):
                begun = kit.cpu_seconds()
                try:
                    reader.read(path)
                except BadInput as error:
                    said = f" refused: {error.rule[:50]}"
                costs.append((kit.cpu_seconds() - begun) / len(text) * 1e6)
            base = base or min(costs)
            what = (
                f"{reader.name:>15} {name:>14}{said}: {min(costs):.5f} CPU seconds a MB, of honest"
            )
            kit.bounded(what, min(costs) / base, most=MOST_RATIO)
    if not given.readers:
        corpora(given)


if __name__ == "__main__":
    kit.main(__doc__, texts, megabytes=4.0, readers={"nargs": "*", "metavar": "READER"})
