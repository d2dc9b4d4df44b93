"""Merge: every row and table of the pool against the packs; refusals; bytes the same anyhow."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.builders.pool import merge, pool_members
from gristmill.macroxue.config import MergeConfig
from gristmill.macroxue.format import rows
from gristmill.macroxue.format.files import (
    Run,
    content_sha256,
    read_runs,
    read_session,
    read_valuation_types,
)
from gristmill.macroxue.laws import pool_laws
from gristmill.macroxue.read.stream import StepStream
from tests.macroxue.games import all_rows, joined, play, step_rows, write_pack

GAMES = [play(seed, 60 + seed) for seed in range(9)]


def _session_of(pool: Path, name: str) -> dict[str, str]:
    """The table `session` of a member before the merge."""
    session = read_session(pool / "metadata.db")
    keys = next(entry["session"] for entry in pool_members(pool) if entry["name"] == name)
    return {key: session[f"{name}/{key}"] for key in keys}


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 50 rows, so that runs and shards straddle them."""
    monkeypatch.setattr("gristmill.macroxue.builders.pool.BATCH_ROWS", 50)


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


def digests(folder: Path) -> dict[str, str]:
    return {
        file.name: content_sha256(file)
        if file.suffix == ".db"
        else hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
    }


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("layout", ["aligned48", "packed46"])
@pytest.mark.parametrize("shard_rows", [0, 64, 100])
def test_rows_change_in_run_id_and_valuation_type_alone(
    tmp_path: Path, three: list[Path], layout: rows.Layout, shard_rows: int
) -> None:
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
    total = sum(len(member_rows) for member_rows in expected)
    size = shard_rows or total
    assert counts == [min(size, total - at) for at in range(0, total, size)]
    assert (summary.packs, summary.runs, summary.rows) == (3, 9, total)
    assert (summary.shards, summary.names, summary.untraced_runs) == (len(files), 5, 9)
    assert summary.rows_by_pack == {p.name: len(e) for p, e in zip(three, expected, strict=True)}
    assert set(summary.files) == {path.name for path in (tmp_path / "pool").iterdir()}
    assert list(pool_laws(tmp_path / "pool")) == []


@pytest.mark.usefixtures("small_batches")
def test_runs_session_and_trace_tell_where_all_came_from(tmp_path: Path, three: list[Path]) -> None:
    (three[1] / "trace.jsonl").write_text(
        "".join(
            json.dumps({"run_id": i, "rows": 0, "first_row": 0, "drop": "d|6", "meta": f"{i}.json"})
            + "\n"
            for i in range(2)
        )
    )
    (three[1] / "warnings.jsonl").write_text(
        '{"kind":"count_mismatch","run_id":1}\n{"kind":"unpaired_meta"}\n'
    )
    pool = tmp_path / "pool"
    summary = merge(three, pool, MergeConfig(names=("a", "bee", "c")), session={"k": "v"})
    was = [run for pack in three for run in read_runs(pack / "metadata.db")]
    runs = read_runs(pool / "metadata.db")
    assert [run.id for run in runs] == list(range(9))
    assert [(r.seed, r.steps, r.max_score, r.highest_tile) for r in runs] == [
        (r.seed, r.steps, r.max_score, r.highest_tile) for r in was
    ]
    session = read_session(pool / "metadata.db")
    assert session["a/source"] == "x"
    assert session["bee/source"] == "y"
    assert session["k"] == "v"
    assert _session_of(pool, "a") == {"source": "x", "depth": "[6]"}
    assert _session_of(pool, "c") == {}
    lines = [json.loads(text) for text in (pool / "trace.jsonl").read_text().splitlines()]
    first = sum(run.steps for run in was[:4])
    assert lines[4] == {
        "run_id": 4,
        "rows": was[4].steps,
        "first_row": first,
        "drop": "d|6",
        "meta": "1.json",
        "from": [{"pack": "bee", "run_id": 1}],
    }
    assert lines[8]["from"] == [{"pack": "c", "run_id": 3}]
    assert (pool / "warnings.jsonl").read_text() == (
        '{"kind":"count_mismatch","run_id":4,"pack":"bee"}\n{"kind":"unpaired_meta","pack":"bee"}\n'
    )
    assert (summary.warnings, summary.untraced_runs, summary.repeated_runs) == (2, 7, 0)


def test_a_pool_can_be_merged_again(tmp_path: Path, three: list[Path]) -> None:
    merge(three[:2], tmp_path / "p", MergeConfig())
    merge([three[2], tmp_path / "p"], tmp_path / "q", MergeConfig(layout="packed46", shard_rows=99))
    assert list(pool_laws(tmp_path / "q")) == []
    lines = [json.loads(text) for text in (tmp_path / "q" / "trace.jsonl").read_text().splitlines()]
    assert lines[-1]["from"] == [{"pack": "p", "run_id": 4}, {"pack": "b", "run_id": 1}]
    assert _session_of(tmp_path / "q", "p")["a/depth"] == "[6]"
    assert [m["name"] for m in pool_members(tmp_path / "q")] == ["c", "p"]
    # Names by first sight: c's own order leads now.
    names = read_valuation_types(tmp_path / "q" / "valuation_types.json")
    assert names == ("tuple10", "zzz", "search", "tuple11", "line_plan")


@pytest.mark.usefixtures("small_batches")
def test_bytes_do_not_depend_on_workers_or_process(tmp_path: Path, three: list[Path]) -> None:
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


def test_the_same_game_twice_is_kept_and_counted(tmp_path: Path) -> None:
    a = write_pack(tmp_path / "a", GAMES[:2])
    b = write_pack(tmp_path / "b", GAMES[1:3])
    assert merge([a, b], tmp_path / "pool", MergeConfig()).repeated_runs == 1


def test_packs_of_one_folder_name_need_names(tmp_path: Path) -> None:
    a = write_pack(tmp_path / "x" / "same", GAMES[:1])
    b = write_pack(tmp_path / "y" / "same", GAMES[1:2])
    with pytest.raises(BadInput, match="called 'same' too"):
        merge([a, b], tmp_path / "pool", MergeConfig())
    assert not (tmp_path / "pool").exists()
    merge([a, b], tmp_path / "pool", MergeConfig(names=("x", "y")))
    assert [m["name"] for m in pool_members(tmp_path / "pool")] == ["x", "y"]


def test_members_in_the_link_form_are_called_by_their_artifact(tmp_path: Path) -> None:
    packs = []
    for name, games in (("d6", GAMES[:1]), ("d7", GAMES[1:2])):
        version = write_pack(tmp_path / ".gristmill/versions" / name / ("a" * 32), games)
        (tmp_path / name).symlink_to(version.relative_to(tmp_path))
        packs.append(tmp_path / name)
    merge(packs, tmp_path / "pool", MergeConfig())
    assert [member["name"] for member in pool_members(tmp_path / "pool")] == ["d6", "d7"]


def test_a_run_without_steps_keeps_its_place(tmp_path: Path) -> None:
    runs = [
        Run(0, 1, 0, 0, 2),
        Run(7, 2, 60, 5, 2),
        Run(9, 3, 0, 1, 2),
    ]
    steps = step_rows([play(1, 60)])
    steps["run_id"] = 7
    a = write_pack(tmp_path / "a", [], steps=steps, runs=runs)
    b = write_pack(tmp_path / "b", GAMES[:1])
    merge([a, b], tmp_path / "pool", MergeConfig())
    merged = read_runs(tmp_path / "pool" / "metadata.db")
    assert [(run.id, run.steps) for run in merged] == [(0, 0), (1, 60), (2, 0), (3, 60)]
    assert np.unique(all_rows(tmp_path / "pool")["run_id"]).tolist() == [1, 3]
    assert list(pool_laws(tmp_path / "pool")) == []


def pack_with(tmp_path: Path, change: str) -> Path:
    steps = step_rows(GAMES[:3])
    runs = [Run(i, g.seed, len(g.boards), g.score, g.highest_tile) for i, g in enumerate(GAMES[:3])]
    if change == "row too few":
        steps = steps[:-1]
    elif change == "row too many":
        steps = joined([steps, steps[-1:]])
    elif change == "moved":
        steps["run_id"][60] = 0
    elif change == "disorder":
        steps["run_id"][[59, 60]] = steps["run_id"][[60, 59]]
    elif change == "stranger":
        steps["run_id"][-1] = 8
    elif change == "enum":
        steps["valuation_type"][100] = 3
    return write_pack(tmp_path / "bad", [], steps=steps, runs=runs)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("row too few", "run 2 has 62 steps by metadata.db, but 61 rows"),
        ("row too many", "run 2 has 62 steps by metadata.db, but 63 rows"),
        ("moved", "run 0 has 60 steps by metadata.db, but 61 rows"),
        ("disorder", "rows do not stand run by run"),
        ("stranger", "row 182 belongs to run 8, which metadata.db does not have"),
        ("enum", r"row 100 has valuation_type 3, but valuation_types.json names 3"),
    ],
)
def test_rows_that_disagree_with_the_tables_are_refused(
    tmp_path: Path, change: str, rule: str
) -> None:
    good = write_pack(tmp_path / "good", GAMES[:1])
    bad = pack_with(tmp_path, change)
    with pytest.raises(BadInput, match=rule) as caught:
        merge([good, bad], tmp_path / "pool", MergeConfig())
    assert caught.value.file == str(bad)


def test_what_is_no_pack_with_rows_is_refused(tmp_path: Path) -> None:
    good = write_pack(tmp_path / "good", GAMES[:1])
    empty = write_pack(tmp_path / "empty", [])
    with pytest.raises(BadInput, match="holds no rows"):
        merge([good, empty], tmp_path / "pool", MergeConfig())
    (tmp_path / "nothing").mkdir()
    with pytest.raises(BadInput, match=r"neither steps.npy"):
        merge([good, tmp_path / "nothing"], tmp_path / "pool", MergeConfig())
    with pytest.raises(BadInput, match="is not a folder"):
        merge([good, tmp_path / "absent"], tmp_path / "pool", MergeConfig())
    for few in ([], [good]):
        with pytest.raises(BadInput, match="two packs or more"):
            merge(few, tmp_path / "pool", MergeConfig())
    (good / "trace.jsonl").write_text('{"run_id": 3}\n')
    other = write_pack(tmp_path / "other", GAMES[1:2])
    with pytest.raises(BadInput, match="one line for each run"):
        merge([good, other], tmp_path / "pool", MergeConfig())
    assert not (tmp_path / "pool").exists()


def test_more_than_255_names_are_refused(tmp_path: Path) -> None:
    a = write_pack(tmp_path / "a", GAMES[:1], names=[f"a{i}" for i in range(200)])
    b = write_pack(tmp_path / "b", GAMES[1:2], names=[f"b{i}" for i in range(56)])
    with pytest.raises(BadInput, match="makes 256 names"):
        merge([a, b], tmp_path / "pool", MergeConfig())


def test_mixed_layouts_in_one_pack_are_read(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "a", GAMES[:3], shard_rows=70)
    whole = all_rows(pack)
    second = pack / "steps-00001.npy"
    packed = rows.to_packed(np.array(rows.open_steps(second)))
    second.write_bytes(rows.STEP_FORMATS["packed46"].header(len(packed)) + packed.tobytes())
    stream = StepStream(pack)
    assert rows.to_aligned(stream.read(0, stream.rows)).tobytes() == whole.tobytes()
    b = write_pack(tmp_path / "b", GAMES[3:4])
    merge([pack, b], tmp_path / "pool", MergeConfig())
    assert all_rows(tmp_path / "pool")[: len(whole)].tobytes() == whole.tobytes()


def test_padding_becomes_0(tmp_path: Path) -> None:
    steps = step_rows(GAMES[:1])
    rows.as_bytes(steps)[:, 26:28] = 7
    a = write_pack(tmp_path / "a", GAMES[:1], steps=steps)
    b = write_pack(tmp_path / "b", GAMES[1:2])
    merge([a, b], tmp_path / "pool", MergeConfig())
    assert not rows.as_bytes(all_rows(tmp_path / "pool"))[:, 26:28].any()


def test_255_names_fit(tmp_path: Path) -> None:
    a = write_pack(tmp_path / "a", GAMES[:1], names=[f"a{i}" for i in range(200)])
    b = write_pack(tmp_path / "b", GAMES[1:2], names=[f"b{i}" for i in range(55)])
    assert merge([a, b], tmp_path / "pool", MergeConfig()).names == 255


def test_names_and_further_session_keys_are_checked(tmp_path: Path) -> None:
    packs = [write_pack(tmp_path / name, GAMES[:1], session={"k": "v"}) for name in "ab"]
    with pytest.raises(ValueError, match="3 names for 2 packs"):
        merge(packs, tmp_path / "pool", MergeConfig(names=("x", "y", "z")))
    for at, key in enumerate(("packs", "b/k")):
        with pytest.raises(ValueError, match="reserved for the pool"):
            merge(packs, tmp_path / f"pool{at}", MergeConfig(), session={key: "w"})


def test_warnings_of_each_run_get_its_new_id(tmp_path: Path) -> None:
    a = write_pack(tmp_path / "a", GAMES[:2])
    b = write_pack(tmp_path / "b", GAMES[2:4])
    text = "".join(f'{{"kind":"empty_run","run_id":{run}}}\n' for run in (0, 1, 7))
    (b / "warnings.jsonl").write_text(text)
    merge([a, b], tmp_path / "pool", MergeConfig())
    lines = (tmp_path / "pool" / "warnings.jsonl").read_text().splitlines()
    assert [json.loads(line)["run_id"] for line in lines] == [2, 3, 7]
