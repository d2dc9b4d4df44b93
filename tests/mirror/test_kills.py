"""A push or a pull that is killed at any step leaves whole versions, and the next one continues."""

import sys
from pathlib import Path

import pytest

from tests import budget
from tests.paths import ran


def _killed(folder: Path, words: list[str]) -> dict[str, str]:
    """How each kill ended and what it left, by its word."""
    done = ran([sys.executable, "-m", "tests.mirror.kill_server", str(folder), *words])
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if ":" in line.split(" ")[0]]
    return dict(lines)


# Files, flushes, versions; then files, times, what is kept, renames, what follows.
# Not the last ones: threads come to some steps in another order, or to one less.
QUICK = {"push": (3, 10, 16, 17, 19), "pull": (4, 14, 22, 27, 30, 39)}
MOST = {"push": 22, "pull": 39}


@pytest.mark.slow
def test_a_kill_in_each_phase(tmp_path):
    words = [f"{how}:{number}" for how, numbers in QUICK.items() for number in numbers]
    found = _killed(tmp_path, words)
    assert [word for word in words if found[word].startswith("killed")] == words
    assert {found[word] for word in words} >= {
        "killed fresh1",
        "killed fresh2",
        "killed old",
        "killed new",
    }


@pytest.mark.slow
@pytest.mark.parametrize("how", ["push", "pull"])
def test_a_kill_at_every_step(tmp_path, how):
    kills = [f"{how}:{number}" for number in range(1, MOST[how])]
    batches = [kills[start : start + 10] for start in range(0, len(kills), 10)]
    for number, batch in enumerate(budget.some(batches, each=2, share=0.4)):
        found = _killed(tmp_path / str(number), batch)
        assert not any(each.startswith("failed") for each in found.values())
