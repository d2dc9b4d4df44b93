"""A corpus of text through everything, in one table: drop, rows, tokens, index, leaks, loader.

Run from the checkout, with a folder of 12 bytes a token free:

    python -m bench.billion --tokens 1e9 DIR
    python -m bench.billion --tokens 1e7 --kill 300 DIR

Text is that of the installed packages, of which each pass has other cuts; in `mutated` text one
letter of 25 is another one, so that a cache of words has less to give. `gristmill build` makes the
artifacts in processes of its own with two workers, `gristmill leaks` asks for 200 questions, and a
loader reads the rows. datatrove's reader and tokenizer, from PyPI in an environment of their
own, read the same files. CPU seconds are those of whole processes and of all that they waited for;
memory is that of no file, summed over the processes of a call. --kill ends the whole build with
SIGKILL after so many seconds, again and again, until it is through: its CPU seconds are then those
of the last call, and datatrove is not asked. Ten times a row is added to a drop of a five hundredth
of the text, which is built again: more than a hundredth of the whole cost beside a call with
nothing to do is too much, at a billion tokens. Exit status 1 where a bound is missed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from bench import kit
from bench.distinct_text import Text
from gristmill.vocabularies.engine import ranks_of
from gristmill.vocabularies.pinned import GPT2, VOCABULARIES, MissingVocabulary, find

TROVE: Final = "0.10.1"
LEAST_RATIO: Final = 1.5
MOST_ORIGIN: Final = 0.05
MOST_FIRST: Final = 1.0
MOST_REBUILT: Final = 0.01
_REBUILDS: Final = 10
_PARTS: Final = 500
_LONG: Final = 100.0
"""CPU seconds of a build of which a process and a publication of their own are no large part."""
_BYTES: Final = 2.3
"""Of a token of this text, about."""
_BODY: Final = 1500
_FILE: Final = 1 << 28
_QUESTIONS: Final = 200
_LETTERS: Final = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_SETTINGS: Final = "[reasoning.normalized]\nworkers = 2\n[reasoning.gpt2_shards]\nworkers = 2\n"
_PIPELINE: Final = """
import sys
import tempfile
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
files, out, tokenizer = sys.argv[1:]
tokens = DocumentTokenizer(out, tokenizer, eos_token="<|endoftext|>", shuffle_documents=False)
steps = [JsonlReader(files, glob_pattern="*.jsonl"), tokens]
LocalPipelineExecutor(steps, tasks=1, logging_dir=out + "/logs").run()
"""


@dataclass
class Called:
    """What a process took. seconds: of the CPU. peak: bytes of no file, of all its processes."""

    seconds: float
    clock: float
    peak: int
    printed: str


def _write(folder: Path, tokens: int, *, is_mutated: bool) -> int:
    """Write files of JSON lines with about so many tokens; returns their bytes."""
    folder.mkdir(parents=True)
    text, dice, size, number = Text(1), np.random.default_rng(1), 0, 0
    while size < tokens * _BYTES:
        with (folder / f"train-{number:05d}.jsonl").open("w") as file:
            while file.tell() < _FILE and size + file.tell() < tokens * _BYTES:
                body = text.body(_BODY)
                if is_mutated:
                    octets = np.frombuffer(body.encode("ascii", "replace"), np.uint8).copy()
                    at = dice.integers(len(octets), size=len(octets) // 25)
                    at = at[(octets[at] | 32) - 97 < 26]
                    octets[at] = _LETTERS[dice.integers(26, size=len(at))]
                    body = octets.tobytes().decode()
                file.write(json.dumps({"text": body}) + "\n")
            size += file.tell()
        number += 1
    (folder / "corpus.toml").write_text(
        'schema = 1\nname = "own"\ntexts = "{text}"\npart_bytes = 100000000\n'
    )
    return size


def _root(root: Path) -> Path:
    """An empty data root with the vocabularies that the data root of the checkout has."""
    (root / "drops/tokenizers").mkdir(parents=True)
    for each in VOCABULARIES:
        with suppress(MissingVocabulary):
            shutil.copy(find(each, kit.DATA), root / "drops/tokenizers")
    return root


def _tokenizer(scratch: Path) -> Path:
    """GPT-2 as a `tokenizer.json`: two tokens are merged to the one that their bytes are."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    place = scratch / "tokenizer.json"
    ranks = ranks_of(find(GPT2, scratch / "root").read_bytes(), place)
    printed = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [octet for octet in range(256) if octet not in printed]
    letters = {octet: chr(octet) for octet in printed}
    letters |= {octet: chr(256 + number) for number, octet in enumerate(others)}
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda each: each[1]):
        parts = [bytes([octet]) for octet in token]
        while len(parts) > 2:
            pairs = [ranks.get(a + b, rank) for a, b in pairwise(parts)]
            first = min(range(len(pairs)), key=pairs.__getitem__)
            parts[first : first + 2] = [parts[first] + parts[first + 1]]
        if len(parts) == 2:
            left, right = ("".join(letters[octet] for octet in part) for part in parts)
            merges.append((left, right))
    vocabulary = {"".join(letters[octet] for octet in token): each for token, each in ranks.items()}
    made = Tokenizer(BPE(vocabulary, merges))
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.add_special_tokens(["<|endoftext|>"])
    made.save(str(place))
    return place


def _private(process: int) -> int:
    """Bytes of no file that a process and all below it hold."""
    total, waiting = 0, [process]
    for each in waiting:
        with suppress(OSError):
            lines = Path(f"/proc/{each}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if "RssAnon" in line)
            for task in Path(f"/proc/{each}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total


def _called(words: Sequence[str | Path], *, kill: float = 0, good: Sequence[int] = (0,)) -> Called:
    """Run a program; with `kill` it is ended after so many seconds, and run again."""
    variables = {**os.environ, "PYTHONPATH": str(kit.CHECKOUT)}
    begun, peak, kills, status = time.perf_counter(), 0, -1, -signal.SIGKILL
    with tempfile.TemporaryFile("w+") as out:
        while status == -signal.SIGKILL:
            kills, started = kills + 1, time.perf_counter()
            process = subprocess.Popen(
                words, env=variables, stdout=out, stderr=out, start_new_session=True
            )
            number, code, used = 0, 0, None
            while not number:
                number, code, used = os.wait4(process.pid, os.WNOHANG)
                peak = max(peak, _private(process.pid))
                if kill and time.perf_counter() - started > kill:
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.2)
            process.returncode = status = os.waitstatus_to_exitcode(code)
        out.seek(0)
        printed = out.read()
    if status not in good:
        sys.exit(f"{words!r} failed with status {status}: {printed[-2000:]}")
    if kills:
        print(f"killed {kills} times")
    assert used is not None
    seconds = used.ru_utime + used.ru_stime
    return Called(seconds, time.perf_counter() - begun, peak, printed)


def _command(*words: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "gristmill.cli", *words]


def _datatrove(files: Path, scratch: Path) -> Called:
    """What datatrove's reader and tokenizer take for the same files."""
    place = scratch.parent / "venv"
    if not place.exists():
        venv.create(place, with_pip=True)
        pip = [str(place / "bin/python"), "-m", "pip", "install", "-q"]
        named = (f"datatrove[io,processing]=={TROVE}", "orjson", "tokenizers")
        subprocess.run([*pip, *named], check=True, stderr=subprocess.DEVNULL)
    tokenizer = _tokenizer(scratch)
    words = (_PIPELINE, files, scratch / "trove", tokenizer)
    return _called([place / "bin/python", "-c", *words])


def _questions(files: Path, folder: Path) -> None:
    """Write an evaluation set of sentences, half of which stand in the files."""
    folder.mkdir(parents=True)
    dice = random.Random(1)
    with next(iter(sorted(files.glob("*.jsonl")))).open() as file:
        bodies = [json.loads(line)["text"].split() for line in islice(file, _QUESTIONS // 2)]
    asked = [" ".join(words[20:60]) for words in bodies]
    asked += [" ".join(dice.sample([*chain(*bodies)], 40)) for _ in bodies]
    lines = (json.dumps({"question": each}) + "\n" for each in asked)
    (folder / "test.jsonl").write_text("".join(lines))


def _rebuilt(part: Path, root: Path) -> float:
    """Median CPU seconds of building a drop with one more row again, beside an idle call."""
    whole = part.parent / "own"
    part.mkdir()
    recipe = (whole / "corpus.toml").read_text()
    (part / "corpus.toml").write_text(recipe.replace('"own"', '"part"'))
    first = sorted(whole.glob("*.jsonl"))[0]
    size = sum(each.stat().st_size for each in whole.glob("*.jsonl")) // _PARTS
    with first.open() as source, (part / first.name).open("w") as file:
        while file.tell() < size:
            file.write(next(source))
    words = _command("build", part, "--data-root", root, "--replace")
    _called(words)
    idle, found = _called(words).seconds, []
    for number in range(_REBUILDS):
        with (part / first.name).open("a") as file:
            file.write(json.dumps({"text": f"one more row, number {number}"}) + "\n")
        found.append(_called(words).seconds - idle)
    return median(found)


def _used(root: Path) -> dict[str, float]:
    """Seconds to the first batch, and of the step from a sample to its raw bytes."""
    from gristmill.loading import Loader, Plan
    from gristmill.reasoning import ShardReader

    begun = time.perf_counter()
    data = ShardReader(root / "reasoning/tokenized/gpt2", corpora=["own"], splits=["train"])
    source = data.source()
    rows = int(source.cuts[-1])
    next(iter(Loader(Plan(source, seed=7), batch=16, form="numpy")))
    first = time.perf_counter() - begun
    found = []
    for number in random.Random(1).sample(range(rows), 21):
        begun = time.perf_counter()
        list(source.origin(number))
        found.append(time.perf_counter() - begun)
    return {"first": first, "origin": sorted(found)[10], "rows": rows}


def billion(given: kit.Given) -> None:
    """Print the table."""
    tokens = int(float(given.tokens))
    for is_mutated in (True, False) if given.both else (True,):
        scratch = Path(given.scratch) / ("mutated" if is_mutated else "words")
        files, root = scratch / "own", scratch / "root"
        size = _write(files, tokens, is_mutated=is_mutated)
        _root(root)
        (root / "gristmill.toml").write_text(_SETTINGS)
        built = _called(_command("build", files, "--data-root", root), kill=given.kill)
        counts = json.loads(
            next(root.glob("reasoning/tokenized/gpt2/provenance/*.json")).read_text()
        )
        made = counts["counts"]["text_tokens"]
        kind = "mutated words" if is_mutated else "words as they are"
        print(f"{kind}: {size / 1e6:,.0f} MB, {made:,} tokens")
        _row("build: drop, rows, tokens, index, laws", built, made)
        _questions(files, root / "drops/evals/asked")
        audit = _called(_command("leaks", root / "reasoning/raw", "--data-root", root), good=(1,))
        _row("leaks of 200 questions", audit, made)
        again = _called(_command("build", files, "--data-root", root))
        _row("build again, nothing to do", again, made)
        used = _used(root)
        kit.bounded("first batch, s", used["first"], most=MOST_FIRST)
        kit.bounded("from a sample back to raw bytes, s", used["origin"], most=MOST_ORIGIN)
        share = _rebuilt(scratch / "part", root) / built.seconds
        what = f"ten rebuilds of a part of one in {_PARTS}, share of the cost of each"
        kit.bounded(what, share, most=MOST_REBUILT if built.seconds > _LONG else None)
        if given.kill:
            shutil.rmtree(scratch)
            continue
        theirs = _datatrove(files, scratch)
        _row(f"datatrove {TROVE}, reader and tokenizer", theirs, made)
        ours = built.seconds + audit.seconds
        kit.bounded(
            "tokens per CPU second, ours with leaks to theirs",
            theirs.seconds / ours,
            least=LEAST_RATIO,
        )
        shutil.rmtree(scratch)


def _row(what: str, called: Called, tokens: int) -> None:
    rate = f"{tokens / called.seconds / 1e6:.2f} million tokens a CPU second"
    memory = f"{called.peak / 1e6:,.0f} MB"
    print(f"{what}: {called.seconds:,.1f} CPU s, {called.clock:,.0f} s, {rate}, {memory}")


if __name__ == "__main__":
    folder = {"nargs": "?", "default": None}
    kit.main(__doc__, billion, tokens="1e7", kill=0.0, both=False, folder=folder)
