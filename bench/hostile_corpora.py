"""Corpus files and folders to look at that mean harm: each must end within a second of CPU.

Run from the checkout: python -m bench.hostile_corpora, or with bench.hostile_text. A corpus file is
read and, where it is taken, reads 1,000 rows. Prints CPU seconds, and the error of what is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench import kit
from gristmill.contract import GristmillError
from gristmill.corpora.raw.corpus_file import read_corpus_file
from gristmill.corpora.raw.reader import Reader
from gristmill.corpora.raw.texts import Unfit
from gristmill.look.finding import look
from gristmill.look.report import lines

MOST_SECONDS: Final = 1.0
_MB: Final = 1_000_000
_HEAD: Final = 'schema = 1\nname = "mine"\n'
_ROW: Final = {"q": "Why? " * 20, "a": "so " * 20, "c": [f"{n}" for n in range(20)]}


def recipes() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each corpus file."""
    yield "honest", f'{_HEAD}question = "q"\nanswer = "a"\ncot = "c"\n'
    yield "a deep path", f'{_HEAD}question = "{"a." * 100_000}a"\n'
    yield "deep tables", f"{_HEAD}question = {'{a = ' * 50_000}1{'}' * 50_000}\n"
    yield "a million templates", f"{_HEAD}question = {{ template = '{'{q}' * _MB}' }}\n"
    yield "braces", f"{_HEAD}question = {{ template = '{'{{' * 60_000}{{q}}' }}\n"
    yield "open braces", f"{_HEAD}question = {{ template = '{'{' * 200_000}' }}\n"
    lines_of = "\\n".join(["{q}"] * 60)
    yield (
        "empty lines",
        f'{_HEAD}question = {{ template = "{lines_of}{chr(92)}n{"x" * 200_000}" }}\n',
    )
    parts = ", ".join(f'p{n} = {{ template = "{{p{n + 1}}}{{p{n + 1}}}" }}' for n in range(40))
    yield "parts of parts", f'{_HEAD}question = {{ template = "{{p0}}" }}\nparts = {{ {parts} }}\n'
    yield "a long key", f'{_HEAD}{"k" * 200_000} = "q"\n'
    yield "many keys", _HEAD + "".join(f'k{n} = "q"\n' for n in range(20_000))
    forms = '[[form]]\nquestion = "z"\nwhen = ["z"]\n'
    yield "many forms", _HEAD + forms * 5_000
    stars = "*a" * 50_000
    yield "stars", f'{_HEAD}question = "q"\nanswer = "a"\nfiles = {{ train = "{stars}b" }}\n'
    marks = ", ".join(f'"{n}:" = "Hypothesis"' for n in range(10_000))
    yield "many marks", f'{_HEAD}question = "q"\nanswer = "a"\nsteps = {{ {marks} }}\n'


def folders() -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yields the name of each folder to look at, and what writes its files."""
    row = json.dumps({"question": "Why is it so?", "answer": "so"}).encode() + b"\n"
    keys = json.dumps({f"key {n}": n for n in range(100_000)}).encode() + b"\n"
    deep = b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"\n"
    cells = b",".join(b"c%d" % n for n in range(100_000)) + b"\n"

    def one(name: str, data: bytes) -> Callable[[Path], object]:
        return lambda folder: (folder / name).write_bytes(data)

    def many(folder: Path) -> None:
        for number in range(2_000):
            (folder / f"{number:04d}{'x' * 100}.jsonl").write_bytes(row)

    yield "honest", one("train.jsonl", row * 20_000)
    yield "a deep row", one("train.jsonl", row + deep)
    yield "many keys in a row", one("train.jsonl", keys * 4)
    yield "other keys a row", one("a.jsonl", b"".join(b'{"k%d": "v"}\n' % n for n in range(50_000)))
    yield "a long key", one("train.jsonl", b'{"%s": 1}\n' % (b"k" * _MB))
    yield "a row without an end", one("train.jsonl", b'{"question": "' + b"x" * 8 * _MB)
    yield "nothing but braces", one("train.json", b"[" * 4 * _MB)
    yield "a wide table", one("train.csv", cells * 20)
    yield "an open quote", one("train.csv", b'question,answer\n"' + b"x,\n" * (_MB // 4))
    yield "many files", many


def corpora(given: kit.Given) -> None:
    """What each costs."""
    for kind, cases in (("recipe", recipes()), ("look", folders())):
        for name, made in cases:
            place = given.scratch / f"{kind} {name}"
            place.mkdir()
            made(place) if callable(made) else (place / "corpus.toml").write_text(made)
            begun, said = kit.cpu_seconds(), ""
            try:
                _looked(place) if callable(made) else _read(place / "corpus.toml")
            except GristmillError as error:
                said = f" refused: {str(error).partition(': ')[2][:60]}"
            what = f"{kind:>15} {name:>20}:{said} CPU seconds"
            kit.bounded(what, kit.cpu_seconds() - begun, most=MOST_SECONDS)


def _read(path: Path) -> None:
    reader = Reader(read_corpus_file(path, "mine"))
    for number in range(1_000):
        try:
            reader.read(_ROW, (0, number))
        except Unfit:
            continue


def _looked(folder: Path) -> None:
    for _ in lines(look(folder)):
        pass


if __name__ == "__main__":
    kit.main(__doc__, corpora)
