"""A copy of the checkout in which faults are planted, and the tests that look for them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.architecture.graph import modules
from tests.paths import CHECKOUT, REAL_DATA
from tests.planted.faults import Fault

_ALONE: Final = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""A fault may end any process that it sees: it sees its own."""

_NO_TESTS: Final = 5  # pytest found none, or all are slow


@dataclass(frozen=True)
class Verdict:
    """What the tests say of a fault.

    fault: that was planted.
    by: the first test that failed; `no end` where the tests do not end with it, `no begin` where
        pytest does not begin; empty if it survived.
    is_late: whether the time was over before all tests were asked.
    """

    fault: Fault
    by: str
    is_late: bool = False


@dataclass
class Copy:
    """A copy of the checkout."""

    folder: Path
    seconds: float
    _fine: dict[str, bool] = field(default_factory=dict)
    _seconds_of_files: int = 1_000_000_000

    @staticmethod
    def of_checkout(scratch: Path, seconds: float) -> Copy:
        """Copy the files that git knows, and the vocabularies of the tests, below `scratch`."""
        folder = scratch / "gristmill"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for name in filter(None, listed.split("\0")):
            if (CHECKOUT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, folder / name)
        for kept in CHECKOUT.glob("[!.]*/**/__pycache__"):  # of the same files, by their times
            shutil.copytree(kept, folder / kept.relative_to(CHECKOUT), dirs_exist_ok=True)
        if (CHECKOUT / ".test-data").exists():
            shutil.copytree(CHECKOUT / ".test-data", folder / ".test-data")
        return Copy(folder, seconds)

    def verdict(self, fault: Fault, first: str = "") -> Verdict:
        """Plant a fault, look for a test that fails with it and passes without it, and undo it."""
        end = time.monotonic() + self.seconds
        earlier = [[first]] if first.startswith("tests/") else []
        for tests in (*earlier, *stages(fault.module)):
            left = end - time.monotonic()
            if left > 0 and (test := self._failing(tests, fault, left)):
                return Verdict(fault, test)
        return Verdict(fault, "", time.monotonic() >= end)

    def _failing(self, tests: Sequence[str], fault: Fault, seconds: float) -> str:
        """The first test that fails with the fault alone; empty where there is none."""
        cache = self.folder.parent / "cache"
        file = self.folder / fault.module
        text = file.read_text()
        shutil.rmtree(cache, ignore_errors=True)
        try:
            self._write(file, fault.text)
            code = self._run(tests, cache, seconds)
        finally:
            self._write(file, text)
        if code in (0, _NO_TESTS):
            return ""
        failed = cache / "v/cache/lastfailed"
        (test,) = [*json.loads(failed.read_text()), ""][:1] if failed.exists() else [""]
        # Without a name they did not end, or pytest did not begin: so all of them are asked again.
        again = ["--lf", "--lfnf=none", *tests] if test else tests
        if (test or str(tests)) not in self._fine:
            # One test gets all the time, on a busy machine too: it says whose fault it is.
            limit = 10 * self.seconds if test else seconds / 2
            self._fine[test or str(tests)] = self._run(again, cache, limit) == 0
        is_fine = self._fine[test or str(tests)]
        return (test or ("no end" if code is None else "no begin")) if is_fine else ""

    def _write(self, file: Path, text: str) -> None:
        """Write a module with a time that it never had, since Python keeps bytecode by the time."""
        self._seconds_of_files += 1
        file.write_text(text)
        os.utime(file, (self._seconds_of_files, self._seconds_of_files))

    def _run(self, tests: Sequence[str], cache: Path, seconds: float) -> int | None:
        """The code with which pytest ends; None where it does not end in time."""
        options = ["-n", "0", "-x", "-q", "-m", "not slow", "-o", f"cache_dir={cache}"]
        options.append("--hypothesis-seed=1")  # the same examples each time
        scratch = f"--basetemp={self.folder.parent / 'tmp'}"
        server = self._server
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps([[*options, scratch, *tests], seconds]) + "\n")
        server.stdin.flush()
        code: int | None = json.loads(server.stdout.readline())
        return code

    @cached_property
    def _server(self) -> subprocess.Popen[str]:
        """A process of `warm.py` in the copy; it ends with this one."""
        settings = {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPATH": str(self.folder),
            "GRISTMILL_REAL_DATA": str(REAL_DATA),
        }
        return subprocess.Popen(
            [*_ALONE, sys.executable, "-m", "tests.planted.warm"],
            cwd=self.folder,
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def stages(module: str) -> Iterator[list[str]]:
    """The tests that look for a fault in a module: its own, its folder's, the parent folder's.

    Those of the folder that name it come first. The folder of all packages is too large: from it
    come those that name the module alone.
    """
    path = Path(module)
    below = Path(*path.parts[path.parts[0] == "gristmill" :])
    own = str(Path("tests", below.with_name(f"test_{below.name}")))
    folder = below.parent
    beside = _tests(folder, "test_*.py") if folder.parts else []
    if len(folder.parts) > 1:
        others = _tests(folder.parent, "**/test_*.py")
    else:
        others = [test for test in _tests(Path(), "**/test_*.py") if _names(test, path)]
    naming = [test for test in beside if _names(test, path)]
    done = set[str]()
    for tests in ([own] if (CHECKOUT / own).exists() else [], naming, beside, others):
        if left := [test for test in tests if test not in done]:
            done.update(left)
            yield left


def _tests(folder: Path, pattern: str) -> list[str]:
    """The tests below a folder of `tests`, but for those that look at the code's text."""
    found = sorted((CHECKOUT / "tests" / folder).glob(pattern))
    names = [file.relative_to(CHECKOUT).as_posix() for file in found]
    return [name for name in names if not name.startswith(("tests/architecture", "tests/planted"))]


def _names(test: str, module: Path) -> bool:
    """Whether a test imports a module by its name."""
    *folders, name = module.with_suffix("").parts
    package = re.escape(".".join(folders))
    form = rf"{package}\.{name}\b|from {package} import (\([^)]*|[^\n(]*)\b{name}\b"
    return re.search(form, (CHECKOUT / test).read_text()) is not None


def product() -> dict[str, str]:
    """The path of every module of the product, and its text."""
    return {
        file.relative_to(CHECKOUT).as_posix(): file.read_text()
        for file in modules(CHECKOUT).values()
    }
