"""What columns hold: counted as NumPy counts, the same by any way of parsing, and kept."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from gristmill.browse import lines
from gristmill.browse.columns import of_arrays
from gristmill.browse.source import Source, Stored, Table
from gristmill.browse.statistics import Statistics
from gristmill.browse.table import StillCounting

ROWS = 200_000


def table(file: Path, source: Source) -> Table:
    return Table(file.parent, "corn/mill", Stored("t", lambda: source), {}, lambda _: ())


def test_numbers_are_counted_in_round_classes_over_all_steps(tmp_path):
    made = np.random.default_rng(1)
    arrays = {
        "whole": np.sort(made.integers(-900, 70_000, ROWS)),
        "part": made.normal(0, 3, ROWS) ** 3,
        "big": made.integers(0, 2**63, ROWS, np.uint64),
        "few": np.arange(ROWS) % 3,
    }
    arrays["part"][::10] = np.nan
    source = of_arrays([tmp_path / "a"], [arrays | {"list": np.zeros((ROWS, 81), np.uint8)}])
    source._step = 1 << 14
    held = Statistics(table(tmp_path / "a", source), None).ask(100)
    for name in ("whole", "part"):
        values, bars = arrays[name][np.isfinite(arrays[name])], held[name].bars
        assert 5 < len(bars) <= 20
        edges = [bar.begin for bar in bars] + [bars[-1].end + (name == "whole")]
        assert [bar.rows for bar in bars] == np.histogram(values, edges)[0].tolist()
        assert sum(bar.rows for bar in bars) == len(values) == ROWS - held[name].empty
    assert held["whole"].bars[0].end % 10 == 9
    assert held["big"].distinct == pytest.approx(ROWS, rel=0.02)
    assert not held["big"].exactly
    assert dict(held["few"].values) == {str(n): len(range(n, ROWS, 3)) for n in range(3)}
    assert [tuple(bar) for bar in held["list"].bars] == [(81, 81, ROWS)]


def test_lines_hold_the_same_parsed_together_or_alone_and_are_kept(tmp_path, monkeypatch):
    made = random.Random(2)
    words = ["alpha", "gamma", "delta", "flour"]
    rows = [
        {
            "text": " ".join(made.choices(words, k=12)) if at % 7 else "",
            "who": {"White": made.choice(words), "Elo": made.randrange(3_000)},
            "moves": ["e2e4"] * (at % 5),
            "share": made.random(),
            "ok": at % 2 == 0,
            "none": None,
        }
        for at in range(4_000)
    ]
    file, kept = tmp_path / "a.jsonl", tmp_path / "keep/x.values"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.setattr(lines, "_CHUNK", 1 << 14)

    def asked(path: Path | None = None) -> object:
        counting = Statistics(table(file, lines.jsonl(file, None, None, None)), path)
        while True:
            try:
                return counting.ask(0)
            except StillCounting as error:
                assert 0 < error.done < 1

    together = asked(kept)
    assert together["text"].empty == len(range(0, 4_000, 7))
    assert {word for word, _ in together["text"].words} == {*words}
    assert together["who.White"].distinct == 4
    assert together["none"].empty == 4_000
    assert together["moves"].bars[-1].end == 4
    monkeypatch.setattr(lines, "_MOST_OPENED", 0)
    assert asked() == together
    assert Statistics(table(file, lines.jsonl(file, None, None, None)), kept).known == together
    kept.write_bytes(b"[{")
    assert asked(kept) == together
