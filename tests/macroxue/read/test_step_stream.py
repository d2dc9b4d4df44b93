"""Reading a pack from first to last row and at random, for any runs and shards."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.contract import BadInput
from gristmill.macroxue.format.metadata_db import Run
from gristmill.macroxue.format.rows import PACKED46, STEP_ROW_DTYPE, as_bytes, to_aligned
from gristmill.macroxue.format.shards import open_steps, step_files
from gristmill.macroxue.read.gather import Gather
from gristmill.macroxue.read.step_stream import StepStream
from tests.macroxue.games import write_pack


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
