"""StepDataset: rows, runs, boards, values, SQL, splits, its source, and what it refuses."""

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.loading import Grouped, Loader, Plan
from gristmill.macroxue import MergeConfig, StepDataset, ValueConfig, merge, value_sidecar
from gristmill.macroxue.format.files import Run
from gristmill.macroxue.format.rows import Rows, to_packed
from tests.macroxue.games import NAMES, all_rows, cut, play, run_table, step_rows, write_pack
from tests.macroxue.step_drops import LEGACY, SELF_PLAY

GAMES = [play(seed, 40 + 5 * seed) for seed in range(12)] + [play(99, 50, [17, 16, *[0] * 13, 1])]


@cache
def all_steps() -> np.ndarray:
    return step_rows(GAMES)


@cache
def bounds() -> np.ndarray:
    """The first step of each game, and the end."""
    return np.cumsum([0, *(len(one.boards) for one in GAMES)])


def fields_equal(a: Rows, b: Rows) -> bool:
    return all(a[name].tobytes() == b[name].tobytes() for name in a.dtype.names)


@pytest.fixture(params=["single", "even", "uneven", "packed"])
def pack(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    form: dict[str, object] = {
        "single": {},
        "even": {"shard_rows": 100},
        "uneven": {"shard_rows": [3, 300, 1, len(all_steps()) - 304]},
        "packed": {"shard_rows": 101, "layout": "packed46"},
    }[request.param]
    return write_pack(tmp_path / "p", GAMES, **form)  # type: ignore[arg-type]


def test_rows_and_batches_decode_with_the_mask(pack):
    data = StepDataset(pack)
    assert len(data) == len(all_steps())
    random = np.random.default_rng(0)
    count = len(all_steps())
    for indices in (random.integers(0, count, 500), np.arange(count)[::-1], [5], []):
        rows = data.rows(np.array(indices, np.int64))
        expected = all_steps()[np.array(indices, np.int64)]
        if rows.dtype.itemsize == 46:
            expected = to_packed(expected)
        assert fields_equal(rows, expected)
        assert rows.flags.writeable
    for outside in ([-1], [len(all_steps())], [0, 1 << 40]):
        with pytest.raises(IndexError, match=rf"no row {outside[-1]}: there are {count}"):
            data.rows(np.array(outside))
    indices = np.random.default_rng(1).integers(0, len(all_steps()), 300)
    batch = data.batch(indices)
    truth = np.concatenate([one.boards for one in GAMES])[indices]
    assert (batch["ranks"] == np.minimum(truth, 16)).all()
    assert batch["ranks"].max() == 16
    for name in ("run_id", "step_index", "board_eval", "move_dir", "valuation_type", "max_rank"):
        assert batch[name].dtype == all_steps()[name].dtype
        assert (batch[name] == all_steps()[name][indices]).all()
    assert (batch["branch_evs"] == all_steps()["branch_evs"][indices]).all()
    for bit in range(4):
        assert (batch["ev_legal"][:, bit] == all_steps()["ev_legal"][indices] >> bit & 1).all()
    assert all(column.flags.c_contiguous for column in batch.values())
    assert data.names == NAMES


def test_runs_and_steps_have_ranks_above_65536(pack):
    data = StepDataset(pack)
    for run_id in (0, 5, 12):
        assert data.run_bounds(run_id) == (bounds()[run_id], bounds()[run_id + 1])
        assert data.row_of(run_id, 7) == bounds()[run_id] + 7
    for missing in ((13, 0), (0, 40), (3, 1 << 33)):
        with pytest.raises(KeyError):
            data.row_of(*missing)
    assert GAMES[12].boards.max() == 17
    for run_id in (3, 12):
        assert (data.run_ranks(run_id).ranks == GAMES[run_id].boards).all()


@pytest.mark.parametrize("shard_rows", [0, 2])
@pytest.mark.parametrize("index", [[0, 2, 2, 3], [3, 5, 7, 9], [3, 5, 5, 1]])
def test_the_first_of_several_equal_steps_is_found(tmp_path, shard_rows, index):
    games = [GAMES[1], cut(GAMES[0], 4)]
    steps, first = step_rows(games), len(GAMES[1].boards)
    steps["step_index"][first:] = index
    data = StepDataset(write_pack(tmp_path / "p", games, steps=steps, shard_rows=shard_rows))
    for step in range(11):
        if step in index:
            assert data.row_of(1, step) == first + index.index(step)
        else:
            with pytest.raises(KeyError, match=f"run 1 has no step {step}"):
                data.row_of(1, step)


def test_values_are_joined_row_by_row(pack, tmp_path):
    value_sidecar(pack, tmp_path / "v", ValueConfig())
    data = StepDataset(pack, tmp_path / "v")
    indices = np.random.default_rng(2).integers(0, len(all_steps()), 200)
    values = data.values(indices)
    assert (values["run_id"] == all_steps()["run_id"][indices]).all()
    assert (values["step_index"] == all_steps()["step_index"][indices]).all()
    batch = data.batch(indices)
    for name in ("reward", "reward_scaled", "return_raw", "return_scaled"):
        assert (batch[name] == values[name]).all()
    with pytest.raises(ValueError, match="no value sidecar"):
        StepDataset(pack).values(indices)


def test_values_of_another_pack_are_refused(tmp_path):
    pack = write_pack(tmp_path / "p", GAMES)
    cut = write_pack(tmp_path / "q", GAMES, shard_rows=100)
    swapped = write_pack(tmp_path / "r", [GAMES[1], GAMES[0], *GAMES[2:]])
    for other in (cut, swapped):
        value_sidecar(other, tmp_path / f"v{other.name}", ValueConfig())
    with pytest.raises(BadInput, match="has shards of"):
        StepDataset(pack, tmp_path / "vq")
    with pytest.raises(BadInput, match="has another run_id than the pack"):
        StepDataset(pack, tmp_path / "vr")


def test_sql_over_runs_can_only_read(pack):
    data = StepDataset(pack)
    before = (pack / "metadata.db").read_bytes()
    expected = [i for i, one in enumerate(GAMES) if one.score > 300]
    assert 0 < len(expected) < len(GAMES)
    ids = data.runs("SELECT id FROM runs WHERE max_score > ? ORDER BY seed DESC", (300,))
    assert ids.tolist() == expected
    counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 2 FROM n WHERE i < 7) "
    assert data.runs(counted + "SELECT i FROM n").tolist() == [1, 3, 5, 7]
    for sql in (
        "DELETE FROM runs",
        "INSERT INTO session VALUES ('a', 'b')",
        f"ATTACH '{pack}/new.db' AS other",
        "PRAGMA journal_mode=WAL",
        "CREATE TEMP TABLE t (x)",
    ):
        with pytest.raises(sqlite3.DatabaseError):
            data.runs(sql)
    with pytest.raises(ValueError, match="gives 999, which is not the id"):
        data.runs("SELECT 999")
    rule = r"a seed of 2\*\*63 or more is in the table as seed - 2"
    with pytest.raises(OverflowError, match=rule):
        data.runs("SELECT id FROM runs WHERE seed = ?", (2**64 - 1,))
    assert (pack / "metadata.db").read_bytes() == before
    assert not (pack / "new.db").exists()


@pytest.mark.parametrize("by", ["hash", "permutation"])
def test_splits_share_no_run_and_cover_all(pack, by):
    data = StepDataset(pack)
    for seed in range(20):
        train, held = data.split(0.3, by=by, seed=seed)  # type: ignore[arg-type]
        assert not set(train.run_ids) & set(held.run_ids)
        assert sorted([*train.run_ids, *held.run_ids]) == list(range(13))
        rows = np.concatenate([train.all_rows(), held.all_rows()])
        assert (np.sort(rows) == np.arange(len(all_steps()))).all()
        for side in (train, held):
            assert set(all_steps()["run_id"][side.all_rows()]) == set(side.run_ids)
            assert len(side) == len(side.all_rows())
        if by == "permutation":
            assert len(held.run_ids) == 4
    again, other = (
        [side.run_ids.tolist() for side in each.split(0.3, by=by, seed=3)]  # type: ignore[arg-type]
        for each in (data, StepDataset(pack))
    )
    assert again == other
    assert data.split(0.0)[1].run_ids.tolist() == []
    assert len(data.split(1.0)[0]) == 0
    with pytest.raises(ValueError, match="fraction of 0 to 1"):
        data.split(1.5)
    some, few = data.split(0.5, by=by, among=np.array([2, 3, 4]))  # type: ignore[arg-type]
    assert sorted([*some.run_ids, *few.run_ids]) == [2, 3, 4]


def test_permutation_is_the_one_of_the_training_loader(tmp_path):
    # The first ceil(fraction * runs) of a PCG64 permutation with seed 42
    # (docs/formats/macroxue.md#splits).
    data = StepDataset(write_pack(tmp_path / "p", GAMES))
    order = np.random.Generator(np.random.PCG64(42)).permutation(13)
    assert data.split(0.1, by="permutation")[1].run_ids.tolist() == sorted(order[:2].tolist())


@pytest.fixture
def pool(tmp_path: Path) -> StepDataset:
    """Four games are in both packs, `a` and `b`."""
    packs = [write_pack(tmp_path / "a", GAMES[:8]), write_pack(tmp_path / "b", GAMES[4:])]
    merge(packs, tmp_path / "pool", MergeConfig())
    return StepDataset(tmp_path / "pool")


@pytest.mark.parametrize("by", ["hash", "permutation"])
def test_a_game_that_occurs_twice_stays_on_one_side(pool, by):
    for seed in range(20):
        train, held = pool.split(0.4, by=by, seed=seed)  # type: ignore[arg-type]
        seeds = [{pool.run_table[i].seed for i in side.run_ids} for side in (train, held)]
        assert not seeds[0] & seeds[1]
        if by == "hash":
            # And on the side that it has in its own pack.
            alone = StepDataset(pool.pack.with_name("a")).split(0.4, seed=seed)[1]
            assert {GAMES[i].seed for i in alone.run_ids} <= seeds[1]


def test_splits_by_sql_must_exclude_each_other(pool):
    train, held = pool.split_by_sql(
        "SELECT id FROM runs WHERE seed % 2 = 0", "SELECT id FROM runs WHERE seed % 2 = 1"
    )
    assert not set(train.run_ids) & set(held.run_ids)
    assert len(train) + len(held) == len(pool)
    runs = "SELECT id FROM runs"
    for sides in ((f"{runs} WHERE id < 9", f"{runs} WHERE id > 8"), (runs, f"{runs} WHERE id = 0")):
        with pytest.raises(ValueError, match="is the same game"):
            pool.split_by_sql(*sides)


def test_rows_outside_a_set_or_not_where_metadata_says_are_refused(tmp_path):
    some = StepDataset(write_pack(tmp_path / "p", GAMES)).rows_of([3, 1])
    assert some.run_ids.tolist() == [1, 3]
    assert some.rows(np.array([0, len(some) - 1])).tolist() == [bounds()[1], bounds()[4] - 1]
    for outside in (-1, len(some)):
        with pytest.raises(IndexError):
            some.rows(np.array([outside]))
    assert len(some.rows(np.array([], np.int64))) == 0
    runs = run_table(GAMES)
    runs[3:5] = Run(3, 3, runs[3].steps + 1, 0, 2), Run(4, 4, runs[4].steps - 1, 0, 2)
    with pytest.raises(BadInput, match=r"row 190 belongs to run 4, but metadata.db says run 3"):
        StepDataset(write_pack(tmp_path / "a", GAMES, runs=runs))
    with pytest.raises(BadInput, match=r"counts \d+ steps, the files have"):
        StepDataset(write_pack(tmp_path / "b", GAMES, runs=runs[:-1]))


def test_other_pools_are_named_with_their_reader(tmp_path):
    pack = write_pack(tmp_path / "p", GAMES)
    for rows, text in (
        (np.zeros(5, SELF_PLAY), r"self-play v1 rows.*make_collate_steps"),
        (np.zeros(5, LEGACY), r"legacy expectimax rows.*tile_65536_mask.*make_collate_steps"),
        (np.zeros((5, 8), np.float32), "not one column of rows"),
    ):
        np.save(pack / "steps.npy", rows)
        with pytest.raises(BadInput, match=text) as caught:
            StepDataset(pack)
        assert caught.value.file == str(pack / "steps.npy")
    with pytest.raises(BadInput, match="self-play v1"):
        np.save(pack / "steps.npy", np.zeros(5, SELF_PLAY))
        merge([pack, write_pack(tmp_path / "q", GAMES)], tmp_path / "pool", MergeConfig())


def test_a_pack_without_enum_or_session_can_be_read(tmp_path):
    pack = write_pack(tmp_path / "p", GAMES)
    (pack / "valuation_types.json").unlink()
    with sqlite3.connect(pack / "metadata.db") as db:
        db.execute("DROP TABLE session")
    data = StepDataset(pack)
    assert data.names is None
    assert fields_equal(data.rows(np.arange(len(all_steps()))), all_rows(pack))


def test_queries_are_of_the_version_that_was_opened(pack):
    data = StepDataset(pack)
    with closing(sqlite3.connect(pack / "metadata.db")) as db:
        db.execute("PRAGMA journal_mode=WAL")
    logged = StepDataset(pack)
    (pack / "metadata.db").unlink()
    for reader in (data, logged):
        assert reader.runs("SELECT id FROM runs").tolist() == list(range(len(GAMES)))


def test_a_database_that_was_cut_or_is_damaged_is_named(pack):
    path = pack / "metadata.db"
    octets = path.read_bytes()
    path.write_bytes(octets[:-1])
    with pytest.raises(BadInput, match=r"metadata\.db: has \d+ bytes, fewer than \d+ pages"):
        StepDataset(pack)
    path.write_bytes(octets)
    data = StepDataset(pack)
    # The same file, damaged after the opening: a query must not end in an error of SQLite.
    with path.open("r+b") as file:
        file.seek(0)
        file.write(b"no database at all")
    with pytest.raises(BadInput, match=r"metadata\.db: SQLite cannot read it"):
        data.runs("SELECT id FROM runs")


@pytest.mark.parametrize("run_id", [-1, 1 << 32])
def test_an_id_that_no_row_can_have_is_refused(tmp_path, run_id):
    runs = [*run_table(GAMES), Run(run_id, 1, 0, 0, 2)]
    folder = write_pack(tmp_path / "p", GAMES, runs=sorted(runs, key=lambda run: run.id))
    with pytest.raises(BadInput, match=f"run id {run_id} has no 32 bits"):
        StepDataset(folder)


def test_an_epoch_has_one_row_of_each_run_and_values_change_no_order(sample_root):
    data = StepDataset(sample_root.data / "macroxue/packs/sample_d6")
    source = data.source()
    runs = [run.id for run in data.run_table]
    view = Grouped(source, source.game_bounds)  # type: ignore[attr-defined]
    (batch,) = Loader(Plan(view, seed=1), len(runs), form="numpy")
    assert sorted(batch["run_id"].tolist()) == sorted(runs)
    pack, values = (
        sample_root.data / "macroxue" / kind / "sample_d6" for kind in ("packs", "values")
    )
    plain, joined = StepDataset(pack).source(), StepDataset(pack, values=values).source()
    assert plain.identity.text == joined.identity.text
    numbers = np.array([3, 0])
    assert set(joined.read(numbers)) > set(plain.read(numbers))
