"""Fuzzes every parser, or those that are named, two at a time: `python -m tests.fuzz [NAME...]`.

With `--some N` it takes N parsers. Each gets its full count of inputs, or GRISTMILL_FUZZ_SECONDS.
GRISTMILL_SEED chooses the parsers and the inputs; without it, the commit does. An input that is a
finding is written to the parser's corpus as
`found-<digest>`, where `make test` reads it until it is mended. New inputs that reach further are
kept in `.fuzz/<name>/`, which git ignores; `--merge` adds the smallest set of them to the corpus.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz.parser import SCRATCH, Parser
from tests.fuzz.parsers import PARSERS
from tests.paths import CHECKOUT, memory, ran

_AT_ONCE = 2
_KEPT = CHECKOUT / ".fuzz"
_SECONDS = "GRISTMILL_FUZZ_SECONDS"
_SEED = "GRISTMILL_SEED"


@dataclass(frozen=True)
class Result:
    """What one run of a fuzzer gave."""

    name: str
    inputs: int
    seconds: float
    finding: str

    def line(self) -> str:
        rate = self.inputs / max(self.seconds, 0.001)
        return f"{self.name:26} {self.inputs:>9,} inputs {self.seconds:6.0f} s {rate:8,.0f}/s"


@cache
def _seed() -> str:
    """What chooses parsers and inputs."""
    if seed := os.environ.get(_SEED):
        return seed
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.check_output(command, cwd=CHECKOUT, text=True).strip()


def _dice(name: str) -> random.Random:
    return random.Random(f"{_seed()} {name}")


def fuzz(parser: Parser) -> Result:
    """Fuzz a parser; a finding goes to its corpus."""
    reached = _KEPT / parser.name
    reached.mkdir(parents=True, exist_ok=True)
    parser.corpus.mkdir(parents=True, exist_ok=True)
    limit = os.environ.get(_SECONDS)
    with (
        tempfile.NamedTemporaryFile("w", suffix=".dict") as words,
        tempfile.TemporaryDirectory(prefix="gristmill-fuzz-", dir=memory()) as scratch,
    ):
        words.writelines(f'"{_quoted(word)}"\n' for word in parser.words)
        words.flush()
        options = [
            f"-dict={words.name}",
            f"-seed={_dice(parser.name).randrange(1, 2**31)}",
            f"-max_len={parser.most_bytes}",
            f"-artifact_prefix={parser.corpus}/found-",
            "-timeout=20",
            "-rss_limit_mb=3000",
            f"-runs={parser.inputs}",
            "-print_final_stats=1",
        ]
        if limit:
            options.append(f"-max_total_time={int(limit)}")
        if not parser.words:
            options = options[1:]
        begin = time.monotonic()
        done = ran(
            [sys.executable, "-m", "tests.fuzz.one", parser.name, *options, reached, parser.corpus],
            env={**os.environ, SCRATCH: scratch},
            errors="replace",
        )
    said = done.stdout + done.stderr
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", said)
    inputs = int(counts[-1]) if counts else 0
    # Without the start of Python and the compiling of kernels.
    lasted = re.findall(r"Done \d+ runs in (\d+) second", said)
    finding = "" if done.returncode == 0 and inputs else _what_happened(said)
    seconds = float(lasted[-1]) if lasted else time.monotonic() - begin
    return Result(parser.name, inputs, seconds, finding)


def _what_happened(said: str) -> str:
    """The exception and the end of the output, without libFuzzer's lines of progress."""
    lines = [line for line in said.splitlines() if not re.match(r"#\d+\s", line)]
    return "\n".join(lines)[-6000:]


def _quoted(word: bytes) -> str:
    return "".join(
        chr(octet) if 32 <= octet < 127 and octet not in b'"\\' else f"\\x{octet:02x}"
        for octet in word
    )


def merge(parser: Parser) -> None:
    """Add to the corpus what reaches further; the smallest inputs that do."""
    script = _KEPT / "one.py"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from tests.fuzz.one import main\nmain(sys.argv)\n"
    )
    script.chmod(0o755)
    folders: list[str | Path] = [parser.corpus, _KEPT / parser.name]
    options = ["-merge=1", f"-max_len={parser.most_bytes}", "-timeout=20"]
    subprocess.run([script, parser.name, *options, *folders], cwd=CHECKOUT, check=True)
    for path in parser.corpus.iterdir():
        if not path.name.startswith(("seed-", "found-", "reach-")):
            path.rename(path.with_name(f"reach-{path.name[:12]}"))


def main(arguments: list[str]) -> int:
    if "--help" in arguments:
        print(__doc__)  # noqa: T201
        return 0
    if arguments[:1] == ["--some"]:
        chosen = _dice("fuzz").sample(list(PARSERS), int(arguments[1]))
        arguments = [name for name in PARSERS if name in chosen]
    names = [name for name in arguments if not name.startswith("--")] or list(PARSERS)
    if unknown := [name for name in names if name not in PARSERS]:
        print(f"no parser {unknown[0]}; the parsers: {', '.join(PARSERS)}")  # noqa: T201
        return 2
    if "--merge" in arguments:
        for name in names:
            merge(PARSERS[name])
        return 0
    print(f"{_SEED}={_seed()}", flush=True)  # noqa: T201
    found = []
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for result in threads.map(fuzz, [PARSERS[name] for name in names]):
            print(result.line(), flush=True)  # noqa: T201
            if result.finding:
                found.append(result.name)
                print(f"== finding in {result.name}\n{result.finding}", flush=True)  # noqa: T201
    if found:
        print(f"findings: {', '.join(found)}; the inputs are in tests/fuzz/corpus/")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
