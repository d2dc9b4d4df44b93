"""TorchSteps in a training loop: a DataLoader with workers over a pool and its values."""

from pathlib import Path

import numpy as np
import pytest

from gristmill.macroxue import MergeConfig, StepDataset, ValueConfig, merge, value_sidecar
from gristmill.macroxue.read.stream import RowSet
from tests.later import later
from tests.macroxue.games import play, write_pack

torch = later("torch")

GAMES = [play(seed, 150) for seed in range(10)]


@pytest.fixture
def pool(tmp_path: Path) -> StepDataset:
    a = write_pack(tmp_path / "a", GAMES[:5], layout="packed46", shard_rows=99)
    b = write_pack(tmp_path / "b", GAMES[5:])
    merge([a, b], tmp_path / "pool", MergeConfig(shard_rows=200))
    value_sidecar(tmp_path / "pool", tmp_path / "values", ValueConfig())
    return StepDataset(tmp_path / "pool", tmp_path / "values")


def test_tensors_are_the_columns_of_the_batch(pool: StepDataset) -> None:
    data = pool.as_torch()
    numbers = [3, 900, 0]
    batch, columns = data[numbers], pool.batch(np.array(numbers))
    assert set(batch) == {*columns, "tokens"} - {"ranks"}
    assert batch["tokens"].dtype == torch.int64
    assert (batch["tokens"].numpy() == columns["ranks"]).all()
    for name in set(columns) - {"ranks"}:
        assert (batch[name].numpy() == columns[name]).all()
    one = data[900]
    assert one["tokens"].shape == (16,)
    assert one["return_raw"] == batch["return_raw"][1]
    with pytest.raises(IndexError):
        data[len(pool)]


def test_rows_of_another_dataset_are_refused(pool: StepDataset) -> None:
    pack = StepDataset(pool.pack.parent / "a")
    ids = [run.id for run in pack.run_table]
    apart = pack.rows_of([ids[0], ids[2]])
    (_, stop), (first, end) = (pack.run_bounds(run) for run in (ids[0], ids[2]))
    own = pack.rows_of(ids[1:3])
    assert len(pack.as_torch(own)) == len(own)
    assert len(pack.as_torch(pack.rows_of([]))) == 0
    firsts = [pack.run_bounds(run)[0] for run in ids[1:3]]
    one, other = (pack.run_bounds(run)[1] - pack.run_bounds(run)[0] for run in ids[1:3])
    for wrong in (
        RowSet(own.run_ids, firsts, [one, other - 1]),
        RowSet(own.run_ids, firsts, [one - 1, other + 1]),
        RowSet(own.run_ids, firsts, [one + 1, other - 1]),
        RowSet(own.run_ids, [firsts[0] + 1, firsts[1]], [one, other]),
        RowSet(own.run_ids, [firsts[0], firsts[1] + 1], [one, other]),
        RowSet(apart.run_ids, [0, first + 1], [stop + 1, end - first - 1]),
        RowSet(np.array([ids[1], 4_000_000_000], np.uint32), firsts, [one, other]),
    ):
        text = f"these {len(wrong)} rows of 2 runs are of another dataset, and not those of .*/a:"
        with pytest.raises(ValueError, match=text):
            pack.as_torch(wrong)
