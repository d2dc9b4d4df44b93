"""Rows of a pack in order and by number, their gaps; all readers on damaged files."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.cli import main
from gristmill.contract import BadInput
from gristmill.macroxue import (
    MergeConfig,
    PackConfig,
    StepDataset,
    ValueConfig,
    merge,
    pack,
    value_sidecar,
)
from gristmill.macroxue.builders.pool import pool_members
from gristmill.macroxue.format.files import Gap, Run, read_lines, read_session, run_of
from gristmill.macroxue.format.rows import (
    PACKED46,
    STEP_ROW_DTYPE,
    as_bytes,
    copied,
    open_steps,
    step_files,
    to_aligned,
)
from gristmill.macroxue.laws import game_laws, pack_laws, pool_laws
from gristmill.macroxue.read.stream import Gather, StepStream, gaps_of, played, run_facts
from tests.macroxue.games import play, run_table, step_rows, write_pack
from tests.macroxue.lines import step, write_run


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    st.integers(0, 60),
    st.integers(1, 50),
    st.sampled_from(["aligned48", "packed46"]),
)
@settings(max_examples=30, deadline=None)
def test_any_runs_in_any_shards(lengths, shard_rows, most, layout):
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
def test_run_ids_fit_their_column(tmp_path, run_id, fits):
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


def test_facts_of_runs_leave_out_an_empty_run_and_the_step_index_decides_no_gap(tmp_path):
    runs = [Run(0, 1, 2, 0, 2), Run(1, 1, 0, 0, 2), Run(2, 1, 3, 0, 2)]
    steps = step_rows(GAMES[:1])[:5]
    steps["run_id"], steps["step_index"] = [0, 0, 2, 2, 2], [0, 1, 0, 1, 3]
    stream = StepStream(write_pack(tmp_path / "p", [], steps=steps, runs=runs))
    facts = run_facts(stream.batch(0, 5), np.array([1, 2, 4, 8, 16]))
    assert list(facts) == [(0, slice(0, 2), 3, True), (2, slice(2, 5), 28, False)]
    (tmp_path := tmp_path / "next").mkdir()
    steps = step_rows(GAMES[:2])
    steps["step_index"] *= 3
    stream = StepStream(write_pack(tmp_path / "p", GAMES[:2], steps=steps))
    batch = stream.batch(0, stream.rows)
    assert list(gaps_of(batch, stream.runs, played(batch))) == []


@pytest.mark.parametrize(
    ("cut", "run", "gap"),
    [
        (slice(100, 101), 1, Gap(1, 41, "board")),
        (slice(60, 61), 1, None),  # it starts late, and its first board tells what is missing
        (slice(118, 120), 1, Gap(1, 57, "score")),
        (slice(250, 252), 4, Gap(4, 12, "board")),
    ],
)
def test_missing_steps_are_found_by_boards_and_by_the_score(tmp_path, cut, run, gap):
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


@pytest.fixture
def pools(tmp_path: Path) -> Path:
    """Packs `a` and `b`, each with a warning, and their pool."""
    for name in "ab":
        write_run(tmp_path / "drops" / name, "g", [step()], meta={"num_moves": 5})
        pack(tmp_path / "drops" / name, tmp_path / name, PackConfig())
    merge([tmp_path / "a", tmp_path / "b"], tmp_path / "pool", MergeConfig())
    return tmp_path


@pytest.mark.parametrize("line", ["[]", "{}", "\udcff", "[" * 5000, '{"run_id":{}}'])
def test_a_damaged_trace_is_named(pools, line):
    for name in ("a", "pool"):
        trace = pools / name / "trace.jsonl"
        trace.write_bytes(line.encode("utf-8", "surrogateescape") + b"\n")
    assert [v.law for v in pack_laws(pools / "a")] == ["trace"]
    assert list(pool_laws(pools / "pool"))
    shown = CliRunner().invoke(main, ["trace", str(pools / "a"), "0"])
    assert shown.exit_code != 0
    assert isinstance(shown.exception, SystemExit)
    assert "a" in shown.output


def test_side_files_that_are_no_files_are_named(pools):
    (pools / "a" / "warnings.jsonl").unlink()
    (pools / "a" / "warnings.jsonl").mkdir()
    with pytest.raises(BadInput, match=r"a/warnings\.jsonl: cannot be read: Is a directory"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert [v.law for v in game_laws(pools / "a")] == ["files_open"]
    (pools / "b" / "steps.npy").unlink()
    (pools / "b" / "steps.npy").mkdir()
    with pytest.raises(BadInput, match=r"b/steps\.npy: is not a file"):
        StepDataset(pools / "b")


def test_a_warning_whose_run_is_no_number_names_no_run(pools):
    unusual = {"kind": "count_mismatch", "run_id": [0]}
    with (pools / "a" / "warnings.jsonl").open("a") as file:
        file.write(json.dumps(unusual) + "\n")
    list(game_laws(pools / "a"))
    merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert {**unusual, "pack": "a"} in read_lines(pools / "out" / "warnings.jsonl")
    assert [run_of({"run_id": value}) for value in (3, True, "3", None)] == [3, None, None, None]


@pytest.mark.parametrize("value", ["NULL", "X'ff'", "2.5"])
def test_a_session_value_that_is_no_text(pools, value):
    path = pools / "a" / "metadata.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE session")
        # As older recorders made it, and looser: any value.
        db.execute("CREATE TABLE session (meta_key PRIMARY KEY, meta_value)")
        db.execute(f"INSERT INTO session VALUES ('ts', {value})")
    with pytest.raises(BadInput, match=r"a/metadata\.db: session key 'ts' holds .* must be text"):
        read_session(path)
    with pytest.raises(BadInput, match=r"a/metadata\.db: session key 'ts'"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert not (pools / "out").exists()


@pytest.mark.parametrize("sample", ["\u00b2", "1" * 5000, "x"])
def test_a_run_to_trace_is_a_number(pools, sample):
    shown = CliRunner().invoke(main, ["trace", str(pools / "a"), sample])
    assert shown.exit_code == 2
    assert "is not a sample number" in shown.output


def test_rows_are_asked_for_by_number_and_folders_by_any_path(pools):
    merge([str(pools / "a"), str(pools / "b")], str(pools / "out"), MergeConfig())  # type: ignore
    value_sidecar(str(pools / "out"), str(pools / "v"), ValueConfig())  # type: ignore[arg-type]
    data = StepDataset(pools / "out", pools / "v")
    everything = data.rows_of([0, 1])
    for wrong in (np.array([True, False]), np.array([0.5])):
        for ask in (data.rows, data.values, everything.rows):
            with pytest.raises(TypeError, match="row numbers are integers"):
                ask(wrong)  # type: ignore[arg-type]
    assert len(data.rows(np.array([]))) == 0  # type: ignore[arg-type]
    assert len(data.rows([1, 0])) == 2  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="by must be"):
        data.split(0.5, by="game")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["{", "7", "[{}]", '[{"name": 1}]'])
def test_a_pool_with_damaged_members_is_named(pools, text):
    path = pools / "pool" / "metadata.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE session SET meta_value = ? WHERE meta_key = 'packs'", (text,))
    with pytest.raises(BadInput, match=r"pool/metadata\.db: session key 'packs'"):
        pool_members(pools / "pool")
    assert [v.law for v in pool_laws(pools / "pool")] == ["members"]


def test_an_origin_that_is_no_list(pools):
    trace = pools / "a" / "trace.jsonl"
    trace.write_text(trace.read_text().replace("{", '{"from":7,', 1))
    with pytest.raises(BadInput, match=r"a/trace\.jsonl:1: `from` is not a list"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, text) for name in ("steps.npy", "metadata.db", "valuation_types.json")
          for text in (None, "")),
        ("valuation_types.json", "[" * 5000 + "]" * 5000),
        ("valuation_types.json", json.dumps({"9" * 5000: "search"})),
        ("valuation_types.json", '["search", "\\ud800"]'),
    ],
)  # fmt: skip
def test_a_file_that_is_missing_empty_or_damaged_is_named(pools, name, text):
    (pools / "a" / name).unlink()
    if text is not None:
        (pools / "a" / name).write_text(text)
    with pytest.raises(BadInput, match=name if text is not None or name != "steps.npy" else "a"):
        merge([pools / "a", pools / "b"], pools / "out", MergeConfig())
    assert not (pools / "out").exists()
    assert [v.law for v in pack_laws(pools / "a")] == ["files_open"]
    if text:
        with pytest.raises(BadInput, match=f"a/{name}"):
            StepDataset(pools / "a")
