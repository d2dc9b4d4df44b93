"""What is registered for a parser, and what a fuzzer may not see."""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gristmill.contract import GristmillError
from tests.paths import memory

SCRATCH = "GRISTMILL_FUZZ_SCRATCH"
CORPUS = Path(__file__).parent / "corpus"
MILLION = 1_000_000
HUNDRED_THOUSAND = 100_000
TEN_THOUSAND = 10_000
Read = Callable[[bytes], Any]
JSON = (b'{"', b'":', b"null", b"true", b"1e999", b"-0", b"[[", b"\\u0000", b"\\ud800", b"NaN")


@dataclass(frozen=True)
class Parser:
    """One parser.

    name: of its corpus.
    read: takes any bytes. It may raise the errors `allowed`; AssertionError where two parsers
        that must agree do not; every other exception is a finding.
    modules: the modules whose branches guide the fuzzer; compiled kernels cannot.
    covers: further modules that it exercises without guidance.
    allowed: errors with a text for the user.
    inputs: how many inputs `make fuzz` tries.
    most_bytes: length of an input.
    words: what the fuzzer may put into an input.
    interpreted: numba compiles nothing, so that kernels guide the fuzzer; they are slow then.
    """

    name: str
    read: Read
    modules: tuple[str, ...]
    covers: tuple[str, ...] = ()
    allowed: tuple[type[Exception], ...] = (GristmillError,)
    inputs: int = MILLION
    most_bytes: int = 4096
    words: tuple[bytes, ...] = ()
    interpreted: bool = False

    @property
    def is_json(self) -> bool:
        """Whether its inputs hold JSON, so that a value of it can be changed."""
        return b"null" in self.words

    @property
    def corpus(self) -> Path:
        """The folder of its inputs."""
        return CORPUS / self.name

    def check(self, data: bytes) -> bool:
        """Read an input; whether it was accepted. Raises what the parser must not raise."""
        try:
            self.read(data)
        except self.allowed:
            return False
        return True


class Parsers(list[Parser]):
    """The parsers of a module, each registered where it is written."""

    def add(self, name: str, *modules: str, **more: Any) -> Callable[[Read], Read]:
        """Register a function as the parser `name`; the rest as of `Parser`."""

        def register(read: Read) -> Read:
            self.append(Parser(name, read, modules, **more))
            return read

        return register


@cache
def scratch() -> Path:
    """A folder of this process, in memory if there is one; removed when the process ends.

    libFuzzer ends a process at once, so `__main__` gives it a folder and removes it.
    """
    if given := os.environ.get(SCRATCH):
        return Path(given)
    made = Path(tempfile.mkdtemp(prefix="gristmill-fuzz-", dir=memory()))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def file(name: str, data: bytes) -> Path:
    """A file of this name that holds `data`; the one before it is replaced."""
    path = scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@contextlib.contextmanager
def folder(name: str) -> Iterator[Path]:
    """An empty folder, which is removed afterwards."""
    path = scratch() / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


def put_names(place: Path, names: Iterable[bytes], folders: bool = False) -> None:
    """Make a file of each name in a folder, where it can be one; or of each second one a folder."""
    for line in names:
        name = line.replace(b"\0", b"").replace(b"/", b"")[:200]
        path = bytes(place) + b"/" + name
        if name in (b"", b".", b"..") or os.path.exists(path):  # noqa: PTH110
            continue
        if folders and len(name) % 2:
            os.mkdir(path)  # noqa: PTH102
        else:
            open(path, "xb").close()  # noqa: PTH123 - a name need not be UTF-8


def split(data: bytes, parts: int) -> list[bytes]:
    """`data` in so many parts, at the separator 0xff 0xfe; parts that are not there are empty."""
    found = data.split(b"\xff\xfe", parts - 1)
    return [*found, *[b""] * (parts - len(found))]
