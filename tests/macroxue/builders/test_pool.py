"""Merge: every row and table of the pool against the packs; refusals; bytes the same anyhow."""

import hashlib
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import MergeConfig, ValueConfig, merge, value_sidecar
from gristmill.macroxue.builders import pool as builder
from gristmill.macroxue.builders.pool import pool_members
from gristmill.macroxue.format import rows
from gristmill.macroxue.format.files import (
    Run,
    content_sha256,
    read_lines,
    read_runs,
    read_session,
    read_valuation_types,
)
from gristmill.macroxue.laws import pool_laws
from gristmill.macroxue.read.stream import StepStream
from gristmill.run.progress import Progress, Report
from tests.macroxue.games import all_rows, joined, play, run_table, step_rows, write_pack
from tests.macroxue.lines import contents

GAMES = [play(seed, 60 + seed) for seed in range(9)]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 50 rows, so that runs and shards straddle them."""
    monkeypatch.setattr(builder, "BATCH_ROWS", 50)


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """Three packs: either layout, single and sharded, every form of the enum."""
    a = write_pack(tmp_path / "a", GAMES[:3], session={"source": "x", "depth": "[6]"})
    b = write_pack(
        tmp_path / "b",
        GAMES[3:5],
        layout="packed46",
        shard_rows=37,
        names=("search", "line_plan", "tuple10"),
        enum_form="object",
        session={"source": "y"},
    )
    c = write_pack(tmp_path / "c", GAMES[5:], shard_rows=1000, names=("tuple10", "zzz", "search"))
    (c / "valuation_types.json").write_text('{"1": "zzz", "0": "tuple10", "2": "search"}')
    return [a, b, c]


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two packs of a game each, with a key of the session."""
    return [
        write_pack(tmp_path / name, GAMES[at : at + 1], session={"k": "v"})
        for at, name in enumerate(("one", "two"))
    ]


def digests(folder: Path) -> dict[str, str]:
    return {
        file.name: content_sha256(file)
        if file.suffix == ".db"
        else hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
    }


def member_names(pool: Path) -> list[str]:
    return [member["name"] for member in pool_members(pool)]


def _session_of(pool: Path, name: str) -> dict[str, str]:
    """The table `session` of a member before the merge."""
    session = read_session(pool / "metadata.db")
    keys = next(entry["session"] for entry in pool_members(pool) if entry["name"] == name)
    return {key: session[f"{name}/{key}"] for key in keys}


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("layout", ["aligned48", "packed46"])
@pytest.mark.parametrize("shard_rows", [0, 64, 100])
def test_rows_change_in_run_id_and_valuation_type_alone(tmp_path, three, layout, shard_rows):
    before = {pack: digests(pack) for pack in three}
    summary = merge(three, tmp_path / "pool", MergeConfig(layout, shard_rows))
    assert {pack: digests(pack) for pack in three} == before
    names = ("search", "tuple11", "tuple10", "line_plan", "zzz")
    assert read_valuation_types(tmp_path / "pool" / "valuation_types.json") == names
    expected = []
    first = 0
    for pack, kinds in zip(three, ([0, 1, 2], [0, 3, 2], [2, 4, 0]), strict=True):
        member_rows = all_rows(pack)
        member_rows["run_id"] += first
        member_rows["valuation_type"] = np.array(kinds, np.uint8)[member_rows["valuation_type"]]
        expected.append(member_rows)
        first += len(read_runs(pack / "metadata.db"))
    assert all_rows(tmp_path / "pool").tobytes() == joined(expected).tobytes()
    files = rows.step_files(tmp_path / "pool")
    assert {rows.open_steps(file).dtype for file in files} == {rows.STEP_FORMATS[layout].dtype}
    counts = [len(rows.open_steps(file)) for file in files]
    total = sum(map(len, expected))
    size = shard_rows or total
    assert counts == [min(size, total - at) for at in range(0, total, size)]
    assert (summary.packs, summary.runs, summary.rows) == (3, 9, total)
    assert (summary.shards, summary.names, summary.untraced_runs) == (len(files), 5, 9)
    assert summary.rows_by_pack == {p.name: len(e) for p, e in zip(three, expected, strict=True)}
    assert set(summary.files) == {path.name for path in (tmp_path / "pool").iterdir()}
    assert list(pool_laws(tmp_path / "pool")) == []


@pytest.mark.usefixtures("small_batches")
def test_runs_session_trace_and_warnings_tell_where_all_came_from(tmp_path, three):
    traced = {"rows": 0, "first_row": 0, "drop": "d|6"}
    lines = [json.dumps({"run_id": i, **traced, "meta": f"{i}.json"}) + "\n" for i in range(2)]
    (three[1] / "trace.jsonl").write_text("".join(lines))
    noted = [{"kind": "count_mismatch", "run_id": 1}, {"kind": "unpaired_meta"},
             *({"kind": "empty_run", "run_id": run} for run in (0, 7))]  # fmt: skip
    (three[1] / "warnings.jsonl").write_text("".join(json.dumps(each) + "\n" for each in noted))
    pool = tmp_path / "pool"
    summary = merge(three, pool, MergeConfig(names=("a", "bee", "c")), session={"k": "v"})
    was = [run for pack in three for run in read_runs(pack / "metadata.db")]
    runs = read_runs(pool / "metadata.db")
    assert runs == [replace(run, id=number) for number, run in enumerate(was)]
    session = read_session(pool / "metadata.db")
    assert [session[key] for key in ("a/source", "bee/source", "k")] == ["x", "y", "v"]
    assert _session_of(pool, "a") == {"source": "x", "depth": "[6]"}
    assert _session_of(pool, "c") == {}
    trace = read_lines(pool / "trace.jsonl")
    assert trace[4] == {
        **{"run_id": 4, "rows": was[4].steps, "first_row": sum(run.steps for run in was[:4])},
        **{"drop": "d|6", "meta": "1.json", "from": [{"pack": "bee", "run_id": 1}]},
    }
    assert trace[8]["from"] == [{"pack": "c", "run_id": 3}]
    ids = [{"run_id": 4}, {}, {"run_id": 3}, {"run_id": 7}]
    assert read_lines(pool / "warnings.jsonl") == [
        {**line, **own, "pack": "bee"} for line, own in zip(noted, ids, strict=True)
    ]
    assert (summary.warnings, summary.untraced_runs, summary.repeated_runs) == (4, 7, 0)


def test_a_pool_can_be_merged_again(tmp_path, three):
    merge(three[:2], tmp_path / "p", MergeConfig())
    merge([three[2], tmp_path / "p"], tmp_path / "q", MergeConfig(layout="packed46", shard_rows=99))
    assert list(pool_laws(tmp_path / "q")) == []
    last = read_lines(tmp_path / "q" / "trace.jsonl")[-1]
    assert last["from"] == [{"pack": "p", "run_id": 4}, {"pack": "b", "run_id": 1}]
    assert _session_of(tmp_path / "q", "p")["a/depth"] == "[6]"
    assert member_names(tmp_path / "q") == ["c", "p"]
    # Names by first sight: c's own order leads now.
    names = read_valuation_types(tmp_path / "q" / "valuation_types.json")
    assert names == ("tuple10", "zzz", "search", "tuple11", "line_plan")


@pytest.mark.usefixtures("small_batches")
def test_bytes_do_not_depend_on_workers_or_process(tmp_path, three):
    merge(three, tmp_path / "one", MergeConfig(shard_rows=100))
    merge(three, tmp_path / "many", MergeConfig(shard_rows=100, workers=3))
    code = (
        "import sys; from pathlib import Path; from gristmill.macroxue import merge, MergeConfig\n"
        "merge([Path(p) for p in sys.argv[2:]], Path(sys.argv[1]),"
        " MergeConfig(shard_rows=100, workers=2))"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "else"), *map(str, three)], check=True
    )
    assert digests(tmp_path / "one") == digests(tmp_path / "many") == digests(tmp_path / "else")


def test_packs_need_names_of_their_own_or_those_of_their_artifacts(tmp_path):
    packs = [write_pack(tmp_path / name / "same", GAMES[:1]) for name in "xy"]
    with pytest.raises(BadInput, match="called 'same' too"):
        merge(packs, tmp_path / "pool", MergeConfig())
    assert not (tmp_path / "pool").exists()
    merge(packs, tmp_path / "pool", MergeConfig(names=("x", "y")))
    assert member_names(tmp_path / "pool") == ["x", "y"]
    (tmp_path := tmp_path / "next").mkdir()
    packs = [tmp_path / name for name in ("d6", "d7")]
    for path in packs:
        version = write_pack(tmp_path / ".gristmill/versions" / path.name / ("a" * 32), GAMES[:1])
        path.symlink_to(version.relative_to(tmp_path))
    merge(packs, tmp_path / "pool", MergeConfig())
    assert member_names(tmp_path / "pool") == ["d6", "d7"]


def test_a_run_without_steps_keeps_its_place(tmp_path, two):
    runs = [Run(0, 1, 0, 0, 2), Run(7, 2, 60, 5, 2), Run(9, 3, 0, 1, 2)]
    steps = step_rows([play(1, 60)])
    steps["run_id"] = 7
    a = write_pack(tmp_path / "a", [], steps=steps, runs=runs)
    merge([a, two[0]], tmp_path / "pool", MergeConfig())
    merged = read_runs(tmp_path / "pool" / "metadata.db")
    assert [(run.id, run.steps) for run in merged] == [(0, 0), (1, 60), (2, 0), (3, 60)]
    assert np.unique(all_rows(tmp_path / "pool")["run_id"]).tolist() == [1, 3]
    assert list(pool_laws(tmp_path / "pool")) == []


def _put(column: str, row: int, value: int) -> Callable[[rows.Rows], rows.Rows]:
    def change(steps: rows.Rows) -> rows.Rows:
        steps[column][row] = value
        return steps

    return change


def _swapped(steps: rows.Rows) -> rows.Rows:
    steps["run_id"][[59, 60]] = steps["run_id"][[60, 59]]
    return steps


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda steps: steps[:-1], "run 2 has 62 steps by metadata.db, but 61 rows"),
        (lambda steps: joined([steps, steps[-1:]]), "run 2 has 62 steps by .*, but 63 rows"),
        (_put("run_id", 60, 0), "run 0 has 60 steps by metadata.db, but 61 rows"),
        (_swapped, "rows do not stand run by run"),
        (_put("run_id", -1, 8), "row 182 belongs to run 8, which metadata.db does not have"),
        (_put("valuation_type", 100, 3), "row 100 has valuation_type 3, but .*json names 3"),
    ],
)
def test_rows_that_disagree_with_the_tables_are_refused(tmp_path, two, change, rule):
    steps = change(step_rows(GAMES[:3]))
    bad = write_pack(tmp_path / "bad", [], steps=steps, runs=run_table(GAMES[:3]))
    with pytest.raises(BadInput, match=rule) as caught:
        merge([two[0], bad], tmp_path / "pool", MergeConfig())
    assert caught.value.file == str(bad)


def test_what_is_no_pack_with_rows_is_refused(tmp_path, two):
    good, other = two
    (tmp_path / "nothing").mkdir()
    for packs, rule in (
        ([good, write_pack(tmp_path / "empty", [])], "holds no rows"),
        ([good, tmp_path / "nothing"], r"neither steps.npy"),
        ([good, tmp_path / "absent"], "is not a folder"),
        ([], "two packs or more"),
        ([good], "two packs or more"),
    ):
        with pytest.raises(BadInput, match=rule):
            merge(packs, tmp_path / "pool", MergeConfig())
    (good / "trace.jsonl").write_text('{"run_id": 3}\n')
    with pytest.raises(BadInput, match="one line for each run"):
        merge([good, other], tmp_path / "pool", MergeConfig())
    assert not (tmp_path / "pool").exists()


def test_at_most_255_names_fit(tmp_path):
    a, b, c = (
        write_pack(tmp_path / name, GAMES[:1], names=[f"{name}{i}" for i in range(count)])
        for name, count in (("a", 200), ("b", 55), ("c", 56))
    )
    assert merge([a, b], tmp_path / "pool", MergeConfig()).names == 255
    with pytest.raises(BadInput, match="makes 256 names"):
        merge([a, c], tmp_path / "more", MergeConfig())


def test_mixed_layouts_in_one_pack_are_read(tmp_path, two):
    pack = write_pack(tmp_path / "a", GAMES[:3], shard_rows=70)
    whole = all_rows(pack)
    second = pack / "steps-00001.npy"
    packed = rows.to_packed(np.array(rows.open_steps(second)))
    second.write_bytes(rows.STEP_FORMATS["packed46"].header(len(packed)) + packed.tobytes())
    stream = StepStream(pack)
    assert rows.to_aligned(stream.read(0, stream.rows)).tobytes() == whole.tobytes()
    merge([pack, two[0]], tmp_path / "pool", MergeConfig())
    assert all_rows(tmp_path / "pool")[: len(whole)].tobytes() == whole.tobytes()


def test_a_game_twice_is_kept_and_names_and_session_keys_are_checked(tmp_path, two):
    steps = step_rows(GAMES[1:3])
    rows.as_bytes(steps)[:, 26:28] = 7
    a = write_pack(tmp_path / "a", GAMES[1:3], steps=steps)
    assert merge([a, two[1]], tmp_path / "pool", MergeConfig()).repeated_runs == 1
    assert not rows.as_bytes(all_rows(tmp_path / "pool"))[:, 26:28].any()
    with pytest.raises(ValueError, match="3 names for 2 packs"):
        merge(two, tmp_path / "pool", MergeConfig(names=("x", "y", "z")))
    for key in ("packs", "two/k"):
        with pytest.raises(ValueError, match="reserved for the pool"):
            merge(two, tmp_path / f"pool-{key[0]}", MergeConfig(), session={key: "w"})


@pytest.mark.parametrize(
    ("packs", "out"),
    [
        (["a", "b"], "a/pool"),
        (["a", "b"], "."),
        (["a", "b"], "a"),
        (["a", "a/inner"], "pool"),
        (["a", "b", "a"], "pool"),
        (["a", "b", "link"], "pool"),
        (["a", "b"], "b/../link/pool"),
    ],
)
def test_merge_refuses_folders_in_one_another(tmp_path, packs, out):
    """The original deletes its own output, or an input before it is read."""
    for number, name in enumerate(("a", "b", "a/inner")):
        write_pack(tmp_path / name, GAMES[number : number + 1])
    (tmp_path / "link").symlink_to(tmp_path / "a", target_is_directory=True)
    before = contents(tmp_path)
    with pytest.raises(BadInput, match=r"is the same folder|is inside"):
        merge([tmp_path / name for name in packs], tmp_path / out, MergeConfig())
    assert contents(tmp_path) == before


def peak_of(build: object, *arguments: object) -> int:
    tracemalloc.start()
    build(*arguments)  # type: ignore[operator]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    """Merge and values hold batches and runs, not packs."""
    games = [play(seed, 100) for seed in range(6)]
    few = [write_pack(tmp_path / f"few{i}", games, shard_rows=5000) for i in range(2)]
    monkeypatch.setattr(StepStream.batches, "__kwdefaults__", {"most": 1 << 14})
    big = step_rows(games * 80)
    assert len(big) > 40_000
    many = [
        write_pack(tmp_path / f"many{i}", games * 80, steps=big, shard_rows=19_999)
        for i in range(2)
    ]
    merge(few, tmp_path / "warm", MergeConfig())
    value_sidecar(few[0], tmp_path / "warmv", ValueConfig())
    with monkeypatch.context() as patch:
        patch.setattr(builder, "BATCH_ROWS", 2_000)
        # Of the 480 runs each pack keeps a few hundred bytes.
        assert peak_of(merge, many, tmp_path / "pool", MergeConfig()) < big.nbytes // 3
    # So many rows at a time, whatever the pack: three times the rows, the same peak.
    one = peak_of(value_sidecar, many[0], tmp_path / "v", ValueConfig())
    both = peak_of(value_sidecar, tmp_path / "pool", tmp_path / "w", ValueConfig())
    assert both < one * 1.15 + 200_000


def test_what_stands_is_not_overwritten(tmp_path):
    """Builders make a new folder or nothing: no mix of generations, no late conflict."""
    packs = [write_pack(tmp_path / name, GAMES[:1]) for name in "ab"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "steps.npy").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        merge(packs, tmp_path / "out", MergeConfig())
    with pytest.raises(FileExistsError):
        value_sidecar(packs[0], tmp_path / "out", ValueConfig())
    assert contents(tmp_path / "out") == {"steps.npy": b"precious"}


def test_values_and_pools_report_rows(tmp_path, two):
    counts = [len(all_rows(each)) for each in two]
    reports: list[Report] = []
    progress = Progress(reports.append, 0.0)
    value_sidecar(two[0], tmp_path / "values", ValueConfig(), progress=progress)
    assert reports[-1] == Report("values", counts[0], counts[0], "rows")
    merge(two, tmp_path / "pool", MergeConfig(workers=2), progress=progress)
    assert reports[-1] == Report("merge", sum(counts), sum(counts), "rows")
