"""What benchmarks share: clocks, turns, medians of ratios, bounds, children, the command line.

A benchmark is its two works, its name and its bound:

    def rows(given: kit.Given) -> None:
        kit.compare("rows", ours, theirs, "rows per CPU second", least=1.5, rounds=given.rounds)

    if __name__ == "__main__":
        kit.main(__doc__, rows, rounds=3)

Works take nothing, and return how many items they handled. Builds that several benchmarks share are
in `*_build.py`, a served Dagster is in `servers.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import harmonic_mean, median
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRISTMILL_DATA", CHECKOUT / "data"))
REAL = Path(os.environ.get("GRISTMILL_REAL_DATA", CHECKOUT.parent / "shared" / "data"))
"""Real data, which no checkout holds."""
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, for what waits for the disk longer than it works."""
Work = Callable[[], float]
Clock = Callable[[], float]
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_missed: list[str] = []


class Given(argparse.Namespace):
    """The options of a run, by name; `scratch`: a folder that is removed at the end."""

    scratch: Path


def main(
    doc: str,
    *parts: Callable[[Given], object],
    child: Callable[..., object] | None = None,
    scratch_in: str | None = os.environ.get("GRISTMILL_BENCH"),
    **options: Any,
) -> None:
    """Run the parts in turn, or the one that `--only` names; status 1 where a bound is missed.

    doc: the docstring of the benchmark, for `--help`.
    child: what a process of `start` does; its words are those of `start`, its result is printed.
    scratch_in: where the scratch folder is made, where no option `folder` says so; default:
    GRISTMILL_BENCH, or that of `tempfile`.
    options: the default of each, or the arguments of `add_argument`; one with `nargs` takes words
    without a name.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [part.__name__.strip("_") for part in parts]
    if len(parts) > 1:
        parser.add_argument("--only", choices=names)
    for name, value in options.items():
        settings: dict[str, Any] = {"default": value, "type": type(value)}
        if isinstance(value, bool):
            settings = {"action": "store_true"}
        elif isinstance(value, dict):
            settings = value
        parser.add_argument(
            name if "nargs" in settings else f"--{name.replace('_', '-')}", **settings
        )
    if child is not None:
        parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args(namespace=Given(only=None, child=None))
    if child is not None and given.child:
        print(json.dumps(child(*given.child)))
        return
    place = getattr(given, "folder", None) or scratch_in
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=place) as scratch:
        given.scratch = Path(scratch)
        for name, part in zip(names, parts, strict=True):
            if given.only in (None, name):
                part(given)
    if _missed:
        sys.exit(f"MISSED: {'; '.join(_missed)}")


def real(folder: str) -> Path:
    """A folder of the real data; ends the benchmark where it is not there."""
    if not (REAL / folder).is_dir():
        sys.exit(f"no real data at {REAL / folder}: set GRISTMILL_REAL_DATA")
    return REAL / folder


def bounded(
    what: str, found: float, *, least: float | None = None, most: float | None = None
) -> bool:
    """Print a number with its bound, and note where it misses it; without bounds, print it."""
    good = (least is None or found >= least) and (most is None or found <= most)
    asked = [f"{sign} {each:g}" for sign, each in ((">=", least), ("<=", most)) if each is not None]
    verdict = f" (required {' and '.join(asked)}) {'ok' if good else 'MISSED'}" if asked else ""
    print(f"{what} {shown(found)}{verdict}", flush=True)
    if not good:
        _missed.append(f"{what} {found:.4g}")
    return good


def shown(number: float) -> str:
    """A number with three digits or more, as a person reads it."""
    size = abs(number)
    places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4
    return f"{number:,.{places}f}"


def spent(work: Callable[[], object], clock: Clock = time.process_time) -> float:
    """Seconds that a work takes: by default CPU seconds of this process."""
    begun = clock()
    work()
    return clock() - begun


def rate(work: Work, clock: Clock = time.process_time) -> float:
    """Items a second."""
    begun = clock()
    items = work()
    return items / (clock() - begun)


def in_turns(
    *works: Callable[[], object], rounds: int, clock: Clock = time.process_time
) -> list[list[float]]:
    """Seconds of each work in each round: what else the machine does weighs on all alike."""
    times = [[spent(work, clock) for work in works] for _ in range(rounds)]
    return [list(column) for column in zip(*times, strict=True)]


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the ratios of the rounds."""
    return median(a / b for a, b in zip(over, under, strict=True))


def compare(
    what: str,
    ours: Work,
    theirs: Work,
    unit: str,
    *,
    least: float | None,
    rounds: int = 5,
    clock: Clock = time.process_time,
    warm: bool = True,
    around: bool = False,
    before: Callable[[], object] = lambda: None,
) -> None:
    """Print the median rates of two works, and the median ratio of ours to theirs with its bound.

    unit: of the rates.
    warm: whether both work once before, for what is compiled, loaded and imported once.
    around: whether theirs works before and after ours, each half of its turn: a machine that slows
    down then favours nobody.
    before: what is done before each work, unmeasured; default: nothing.
    """
    if warm:
        for work in (ours, theirs):
            before(), work()
    own_rates, other_rates = [], []
    for _ in range(rounds):
        others = []
        for work in (theirs, ours, theirs)[not around :]:
            before()
            found = rate(work, clock)
            own_rates.append(found) if work is ours else others.append(found)
        other_rates.append(harmonic_mean(others))
    rates = f"ours {shown(median(own_rates))} {unit}, theirs {shown(median(other_rates))}"
    bounded(f"{what}: {rates}, ratio", ratio(own_rates, other_rates), least=least)


def start(*words: object) -> subprocess.Popen[str]:
    """Start the `child` of this benchmark in a process of its own."""
    module = sys.modules["__main__"].__spec__
    assert module is not None, "a benchmark runs by python -m"
    command = [sys.executable, "-m", module.name, "--child", *map(str, words)]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> Any:
    """Wait for a process of `start`: what its child returned. A failure ends the benchmark."""
    text, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{process.args!r} failed with status {process.returncode}")
    return json.loads(text.splitlines()[-1])


def two_workers(
    halves: Sequence[Sequence[object]],
    whole: Sequence[object],
    rounds: int,
    *,
    made: Sequence[Path] = (),
    least: float = 0.85,
) -> None:
    """Compare one child with two workers with two independent ones, each on half of the work.

    By the clock, so it needs an idle machine.

    halves, whole: the words of `start` for each child.
    made: folders that children make, removed after each turn.
    """

    def seconds(*children: Sequence[object]) -> float:
        begun = time.perf_counter()
        for process in [start(*words) for words in children]:
            finish(process)
        taken = time.perf_counter() - begun
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        return taken

    pairs = [(seconds(*halves), seconds(whole)) for _ in range(rounds)]
    two, one = map(median, zip(*pairs, strict=True))
    found = median(a / b for a, b in pairs)
    what = f"two independent processes {two:.2f} s, two workers {one:.2f} s, of their joint rate"
    bounded(what, found, least=least)


def grows(
    peak: Callable[[int], float], small: int, large: int, unit: str, *, most: float | None
) -> None:
    """Compare the peak memory at two sizes; `peak` returns its bytes at a size."""
    few, many = peak(small), peak(large)
    what = f"peak memory: {few / 1e6:.0f} MB at {small:,} {unit}, {many / 1e6:.0f} MB at {large:,},"
    bounded(f"{what} ratio", many / few, most=most)


def peak_bytes(*, children: bool = False) -> int:
    """Peak resident memory of this process, with or without its living children.

    Not ru_maxrss: that begins at what the parent had when it forked.
    """
    peak = _peak_bytes("self")
    if children:
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that has ended
                peak += sum(map(_peak_bytes, (task / "children").read_text().split()))
    return peak


def _peak_bytes(process: str) -> int:
    """Of one process; 0 if it has ended, whether or not it was waited for."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def python(words: Sequence[str], variables: Mapping[str, str]) -> float:
    """CPU seconds of one call of Python in the checkout, and of what it starts and waits for."""
    environment = {**os.environ, **variables, "PYTHONPATH": str(CHECKOUT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words],
        env=environment,
        cwd=CHECKOUT,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{words!r} failed with status {done.returncode}:\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_seconds() -> float:
    """CPU seconds so far: of this process, its dead children, and its living ones.

    A build reads Parquet in a child that stays for the next file, which `time.process_time` does
    not count.
    """
    times = os.times()
    below = {os.getpid()}
    processes = sorted(_processes())
    for _ in range(4):  # a grandchild may have a smaller number than its parent
        below |= {number for number, parent, _ in processes if parent in below}
    living = sum(seconds for number, _, seconds in processes if number in below - {os.getpid()})
    return time.process_time() + times.children_user + times.children_system + living


def _processes() -> list[tuple[int, int, float]]:
    """Number, parent and CPU seconds of every process, those of dead threads included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            threads = [
                int((task / "schedstat").read_text().split()[0]) / 1e9
                for task in (stat.parent / "task").iterdir()
            ]
        except OSError:
            continue  # it has ended since
        # The second counts dead threads, too, in steps of a hundredth of a second.
        seconds = max(sum(threads), (int(fields[11]) + int(fields[12])) * _TICK)
        found.append((int(stat.parent.name), int(fields[1]), seconds))
    return found
