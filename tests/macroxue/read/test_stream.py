"""Rows of a pack in order and by number, facts of its runs, and their gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.contract import BadInput
from gristmill.macroxue.format.files import Gap, Run
from gristmill.macroxue.format.rows import (
    PACKED46,
    STEP_ROW_DTYPE,
    as_bytes,
    copied,
    open_steps,
    step_files,
    to_aligned,
)
from gristmill.macroxue.read.stream import Gather, StepStream, gaps_of, played, run_facts
from tests.macroxue.games import play, run_table, step_rows, write_pack


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    st.integers(0, 60),
    st.integers(1, 50),
    st.sampled_from(["aligned48", "packed46"]),
)
@settings(max_examples=30, deadline=None)
def test_any_runs_in_any_shards(
    lengths: list[int], shard_rows: int, most: int, layout: str
) -> None:
    total = sum(lengths)
    octets = np.random.default_rng(total).integers(0, 256, total * 46, dtype=np.uint8)
    steps = to_aligned(octets.view(PACKED46))
    ids = np.sort(np.random.default_rng(1).choice(1000, len(lengths), replace=False))
    steps["run_id"] = np.repeat(ids, lengths)
    runs = [Run(int(i), 0, n, 0, 0) for i, n in zip(ids, lengths, strict=True)]
    with TemporaryDirectory() as scratch:
        pack = write_pack(
            Path(scratch) / "p",
            [],
            steps=steps,
            runs=runs,
            shard_rows=shard_rows,
            layout=layout,  # type: ignore[arg-type]
        )
        stream = StepStream(pack)
        for whole_runs in (True, False):
            at = 0
            for batch in stream.batches(whole_runs=whole_runs, most=most):
                rows = to_aligned(batch.rows)
                assert batch.start == at
                assert rows.tobytes() == steps[at : at + len(rows)].tobytes()
                places = np.arange(len(batch.counts)) + batch.first_run
                assert (np.repeat(ids[places], batch.counts) == rows["run_id"]).all()
                if whole_runs:
                    assert all(
                        count == lengths[place]
                        for place, count in zip(places, batch.counts, strict=True)
                    )
                    assert len(rows) <= most or np.count_nonzero(batch.counts) == 1
                else:
                    assert len(rows) == min(most, total - at)
                at += len(rows)
            assert at == total
        for place, length in enumerate(lengths):
            start, stop = stream.run_bounds(place)
            assert (stop - start, start) == (length, sum(lengths[:place]))
        gather = Gather([open_steps(file) for file in step_files(pack)])
        wanted = np.random.default_rng(2).integers(0, total, 70)
        assert to_aligned(gather.rows(wanted)).tobytes() == as_bytes(steps)[wanted].tobytes()
        assert gather.dtype in (STEP_ROW_DTYPE, PACKED46)


@pytest.mark.parametrize(("run_id", "fits"), [(0, True), ((1 << 32) - 1, True), (1 << 32, False)])
def test_run_ids_fit_their_column(tmp_path: Path, run_id: int, fits: bool) -> None:
    steps = np.zeros(3, STEP_ROW_DTYPE)
    steps["run_id"] = run_id & 0xFFFFFFFF
    pack = write_pack(tmp_path / "p", [], steps=steps, runs=[Run(run_id, 0, 3, 0, 0)])
    if fits:
        assert StepStream(pack).runs[0].id == run_id
    else:
        with pytest.raises(BadInput, match="run ids must fit"):
            StepStream(pack)


HIGH = [17, 16, *[0] * 13, 1]
GAMES = [play(seed, 60) for seed in range(4)] + [play(7, 60, HIGH)]


def test_facts_of_runs_leave_out_a_run_without_rows(tmp_path: Path) -> None:
    runs = [Run(0, 1, 2, 0, 2), Run(1, 1, 0, 0, 2), Run(2, 1, 3, 0, 2)]
    steps = step_rows(GAMES[:1])[:5]
    steps["run_id"], steps["step_index"] = [0, 0, 2, 2, 2], [0, 1, 0, 1, 3]
    stream = StepStream(write_pack(tmp_path / "p", [], steps=steps, runs=runs))
    facts = run_facts(stream.batch(0, 5), np.array([1, 2, 4, 8, 16]))
    assert list(facts) == [(0, slice(0, 2), 3, True), (2, slice(2, 5), 28, False)]


@pytest.mark.parametrize(
    ("cut", "run", "gap"),
    [
        (slice(100, 101), 1, Gap(1, 41, "board")),
        (slice(60, 61), 1, None),  # it starts late, and its first board tells what is missing
        (slice(118, 120), 1, Gap(1, 57, "score")),
        (slice(250, 252), 4, Gap(4, 12, "board")),
    ],
)
def test_missing_steps_are_found_by_boards_and_by_the_score(
    tmp_path: Path, cut: slice, run: int, gap: Gap | None
) -> None:
    kept = np.ones(300, np.bool_)
    kept[cut] = False
    steps, runs = copied(step_rows(GAMES), kept), run_table(GAMES)
    runs[run] = replace(runs[run], steps=60 - (cut.stop - cut.start))
    stream = StepStream(write_pack(tmp_path / "p", GAMES, steps=steps, runs=runs))
    batch = stream.batch(0, stream.rows)
    found = [
        each for each in gaps_of(batch, stream.runs, played(batch)) if each.run_id != 4 or run == 4
    ]
    assert found == ([gap] if gap else [])


def test_step_index_does_not_decide_about_gaps(tmp_path: Path) -> None:
    steps = step_rows(GAMES[:2])
    steps["step_index"] *= 3
    stream = StepStream(write_pack(tmp_path / "p", GAMES[:2], steps=steps))
    batch = stream.batch(0, stream.rows)
    assert list(gaps_of(batch, stream.runs, played(batch))) == []
