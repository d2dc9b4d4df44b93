"""Packing whole drops: goldens, parts, workers, resumption, quarantine, warnings, tables."""

import dataclasses
import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.builders import pack as pack_builder
from gristmill.macroxue.builders.pack import cut_parts, make_part, read_rows
from gristmill.macroxue.format.files import (
    content_sha256,
    read_lines,
    read_runs,
    read_session,
    read_valuation_types,
)
from gristmill.macroxue.format.rows import PACKED46, open_steps, step_files
from gristmill.macroxue.laws import pack_laws
from gristmill.macroxue.raw import read_run
from gristmill.macroxue.raw.drops import RunFiles, find_runs
from gristmill.macroxue.raw.strict_parser import TooManyNames
from gristmill.run.parts import PartStore
from tests.macroxue.lines import contents, step, write_run
from tests.paths import CHECKOUT, REAL_DATA

REAL = REAL_DATA / "macroxue"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="the real drops are not here")


def packed_rows(path: Path) -> np.ndarray[Any, Any]:
    return np.concatenate([open_steps(file) for file in step_files(path)])


@pytest.mark.real
@needs_real
@pytest.mark.parametrize(
    ("drop", "config", "prefix"),
    [
        ("d6_v1", PackConfig("packed46"), "d6"),
        (".", PackConfig("packed46", 40_000), "both_sharded"),
    ],
)
def test_goldens(tmp_path, drop, config, prefix):
    golden = json.loads((REAL / "golden.json").read_text())
    summary = pack(REAL / drop, tmp_path / "p", config)
    files = {name: entry for name, entry in golden["files"].items() if name.startswith(prefix)}
    assert [f"{prefix}/{file.name}" for file in step_files(tmp_path / "p")] == sorted(files)
    for name, entry in files.items():
        octets = (tmp_path / "p" / Path(name).name).read_bytes()
        assert len(octets) == entry["bytes"]
        assert hashlib.sha256(octets).hexdigest() == entry["sha256"]
    assert list(pack_laws(tmp_path / "p")) == []
    assert summary.rows == sum(summary.rows_by_valuation_type.values())
    aligned = pack(REAL / drop, tmp_path / "a", dataclasses.replace(config, layout="aligned48"))
    assert dataclasses.replace(aligned, files=summary.files) == summary
    assert list(pack_laws(tmp_path / "a")) == []
    ours, peers = packed_rows(tmp_path / "a"), packed_rows(tmp_path / "p")
    assert all(ours[name].tobytes() == peers[name].tobytes() for name in PACKED46.names)
    if prefix == "d6":
        runs = read_runs(tmp_path / "p" / "metadata.db")
        expected = golden["runs"]["d6_v1"]
        assert len(runs) == expected["count"]
        assert list(dataclasses.astuple(runs[0])) == expected["first"]
        assert list(dataclasses.astuple(runs[-1])) == expected["last"]


@pytest.mark.slow
@pytest.mark.real
@needs_real
@pytest.mark.parametrize("drop", ["d6_v1", "d7_v1"])
def test_strict_parser_gives_the_same_pack(tmp_path, monkeypatch, drop):
    pack(REAL / drop, tmp_path / "scanned", PackConfig())
    assert "gristmill.macroxue.raw.fast_scanner" in sys.modules
    monkeypatch.delitem(sys.modules, "gristmill.macroxue.raw.fast_scanner")
    monkeypatch.setattr("gristmill.macroxue.builders.pack._SCANNER_PAYS", 1 << 60)
    pack(REAL / drop, tmp_path / "strict", PackConfig())
    assert contents(tmp_path / "strict") == contents(tmp_path / "scanned")


def test_many_small_drops_of_a_process_load_the_compiled_scanner(tmp_path, monkeypatch):
    """One of them alone does not pay for it."""
    write_run(tmp_path / "drop", "g", [step(step_index=k) for k in range(9)])
    size = next((tmp_path / "drop").glob("*.jsonl.gz")).stat().st_size
    monkeypatch.setattr("gristmill.macroxue.builders.pack._SCANNER_PAYS", 3 * size)
    monkeypatch.setattr("gristmill.macroxue.builders.pack._met", Counter())
    loaded = []
    for name in ("a", "b", "c"):
        monkeypatch.delitem(sys.modules, "gristmill.macroxue.raw.fast_scanner", raising=False)
        pack(tmp_path / "drop", tmp_path / name, PackConfig())
        loaded.append("gristmill.macroxue.raw.fast_scanner" in sys.modules)
    assert loaded == [False, False, True]
    assert contents(tmp_path / "c") == contents(tmp_path / "a")


def mixed_drop(root: Path, *, bad: bool) -> None:
    """Nine runs over several folders; names met in an order that parts see differently."""
    for i in range(9):
        kind = ["search", "line_plan", "block_plan", "tuple10"][(i * 7) % 4]
        lines = [step(step_index=k, seed=i, valuation_type=kind) for k in range(i * 30)]
        if bad and i in (2, 5):
            lines[-1] = step(move="UP", valuation_type="never kept")
            lines[3] = step(valuation_type="never kept")
        lines.insert(0, b"")
        write_run(
            root / f"w{i // 4}", f"g{i}", lines, meta={"num_moves": i * 30}, zipped_meta=i == 3
        )


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut drops of a few kilobytes into several parts."""
    monkeypatch.setattr(pack_builder, "PART_BYTES", 500)
    monkeypatch.setattr(pack_builder, "_BATCH_ROWS", 50)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("bad", [False, True])
def test_bytes_do_not_depend_on_workers_parts_or_scanner(tmp_path, monkeypatch, bad, request):
    mixed_drop(tmp_path / "drop", bad=bad)
    if bad:  # processes are started for the other
        request.getfixturevalue("worker_threads")
    config = PackConfig(shard_rows=100, on_error="quarantine", quarantine_share=0.3)
    summaries = {}
    for workers in (1, 3) if bad else (1, 2):
        out = tmp_path / f"w{workers}"
        summaries[out] = pack(tmp_path / "drop", out, dataclasses.replace(config, workers=workers))
    monkeypatch.setattr("gristmill.macroxue.builders.pack._SCANNER_PAYS", 0)
    summaries[tmp_path / "scan"] = pack(tmp_path / "drop", tmp_path / "scan", config)
    monkeypatch.setattr("gristmill.macroxue.builders.pack._SCANNER_PAYS", 1 << 60)
    monkeypatch.delitem(sys.modules, "gristmill.macroxue.raw.fast_scanner", raising=False)
    summaries[tmp_path / "strict"] = pack(tmp_path / "drop", tmp_path / "strict", config)
    monkeypatch.setattr(pack_builder, "PART_BYTES", 1 << 30)
    summaries[tmp_path / "one_part"] = pack(tmp_path / "drop", tmp_path / "one_part", config)
    first = contents(tmp_path / "w1")
    for out, summary in summaries.items():
        assert contents(out) == first
        assert summary == summaries[tmp_path / "w1"]
        assert list(pack_laws(out)) == []
    kept = [i for i in range(9) if not (bad and i in (2, 5))]
    rows = packed_rows(tmp_path / "w1")
    assert rows["seed"].tolist() == [i for i in kept for _ in range(i * 30)]
    assert rows["run_id"].tolist() == [n for n, i in enumerate(kept) for _ in range(i * 30)]
    names = read_valuation_types(tmp_path / "w1" / "valuation_types.json")
    # Run 2 is the first with block_plan and run 3 with line_plan; if run 2 is
    # set aside, block_plan is met again in run 6 only.
    met = ("line_plan", "block_plan") if bad else ("block_plan", "line_plan")
    assert names == ("search", "tuple11", "tuple10", *met)
    expected = [["search", "line_plan", "block_plan", "tuple10"][(i * 7) % 4] for i in rows["seed"]]
    assert [names[kind] for kind in rows["valuation_type"]] == expected
    assert summaries[tmp_path / "w1"].quarantined == (2 if bad else 0)


@pytest.mark.usefixtures("small_parts")
def test_a_killed_pack_goes_on_from_its_parts(tmp_path):
    mixed_drop(tmp_path / "drop", bad=False)
    config = PackConfig(shard_rows=64)
    pack(tmp_path / "drop", tmp_path / "whole", config)
    store = PartStore(tmp_path / "parts")
    store.folder.mkdir()
    calls: list[str] = []

    def killed(part: pack_builder.Part, path: Path) -> dict[str, Any]:
        calls.append(part.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return make_part(part, path)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("gristmill.macroxue.builders.pack.make_part", killed)
        pack(tmp_path / "drop", tmp_path / "torn", config, store)
    done = sorted(path.name for path in store.folder.glob("*.part"))
    assert len(done) == 2
    (store.folder / done[1]).write_bytes(b"torn by a power loss")
    read: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pack_builder,
            "read_run",
            lambda files, *rest: (read.append(files.meta_name), read_run.read_run(files, *rest))[1],
        )
        pack(tmp_path / "drop", tmp_path / "again", config, store)
    assert contents(tmp_path / "again") == contents(tmp_path / "whole")
    assert 0 < len(read) < 9
    assert "w0/g0.meta.json" not in read


@pytest.mark.usefixtures("small_parts")
def test_an_error_in_a_worker_is_the_error_of_the_pack(tmp_path):
    mixed_drop(tmp_path / "drop", bad=True)
    for workers in (1, 2):
        with pytest.raises(BadInput, match="move must be") as caught:
            pack(tmp_path / "drop", tmp_path / f"w{workers}", PackConfig(workers=workers))
        assert (Path(caught.value.file).name, caught.value.row) == ("g2.jsonl.gz", 61)


NO_GZIP = "Error -4 Invalid gzip/zlib wrapper found: fetch the file anew"
WHOLE = gzip.compress(step() + b"\n", mtime=0)
BAD: dict[str, tuple[dict[str, Any], int | None, str]] = {
    "move": ({"lines": [step(), b"", step(move="UP")]}, 3,
             'move must be "up", "down", "left" or "right"'),
    "not JSON": ({"lines": [b"{"]}, 1,
                 "not JSON: Expecting property name enclosed in double quotes at character 1"),
    "text behind": ({"lines": [step() + b"x"]}, 1,
                    f"text after the JSON value at character {len(step())}"),
    "rank 32": ({"lines": [step(board=[32] + [0] * 15)]}, 1,
                "board holds rank 32: board_eval knows ranks up to 31"),
    "twice": ({"lines": [step().replace(b"{", b'{"seed":1,', 1)]}, 1, "key 'seed' stands twice"),
    "meta": ({"meta": b"{}"}, None, "key 'seed' is missing"),
    "meta is not gzip": ({"lines": [step()], "zip_lie": True}, None,
                         f"gzip: {NO_GZIP}"),
    "0 bytes": ({"steps": b""}, None, "0 bytes: not even an empty gzip file"),
    "cut short": ({"steps": WHOLE[:-3]}, None,
                  "the gzip stream is cut short: fetch the file anew"),
    "second member": ({"steps": WHOLE + WHOLE[:5]}, None,
                      "what stands behind gzip member 1 is cut short: fetch the file anew"),
    "garbage": ({"steps": WHOLE + b"x" * 20}, None,
                f"behind gzip member 1: {NO_GZIP}"),
}  # fmt: skip
"""Files of a run, the line that is wrong, and the rule, a published text that stays."""


@pytest.mark.parametrize("case", BAD)
def test_strict_refuses_and_quarantine_sets_aside(tmp_path, case):
    drop, (files, row, rule) = tmp_path / "drop", BAD[case]
    write_run(drop, "a", [step()] * 2)
    write_run(drop, "b", **{key: value for key, value in files.items() if key != "zip_lie"})
    if "zip_lie" in files:
        (drop / "b.meta.json").rename(drop / "b.meta.json.gz")
    write_run(drop, "c", [step()] * 3)
    with pytest.raises(BadInput, match=re.escape(rule)) as caught:
        pack(drop, tmp_path / "strict", PackConfig())
    assert (Path(caught.value.file).name[:2], caught.value.row) == ("b.", row)
    config = PackConfig(on_error="quarantine", quarantine_share=0.34)
    summary = pack(drop, tmp_path / "kept", config)
    assert (summary.runs, summary.rows, summary.quarantined) == (2, 5, 1)
    (entry,) = read_lines(tmp_path / "kept" / "quarantine.jsonl")
    assert (entry["meta"][:11], entry["row"], entry["rule"]) == ("b.meta.json", row, rule)
    assert packed_rows(tmp_path / "kept")["run_id"].tolist() == [0, 0, 1, 1, 1]
    assert list(pack_laws(tmp_path / "kept")) == []
    assert summary.quarantined_by_rule == {rule: 1}
    with pytest.raises(
        BadInput, match=r"1 of 3 runs are bad and quarantine_share allows 0.*raise q"
    ):
        pack(drop, tmp_path / "refused", PackConfig(on_error="quarantine", quarantine_share=0.33))


def test_warnings_trace_session_and_summary(tmp_path):
    drop = tmp_path / "d9"
    write_run(drop, "a", [step()], meta={"num_moves": 5, "seconds": 0.1, "depth": 9})
    write_run(drop, "b", [], meta={"num_moves": 0, "seconds": 0.2})
    write_run(drop, "c", [step(branch_evs={"up": None, "LEFT": 1})] * 2, meta={"seconds": None})
    write_run(drop, "d", [step()])
    (drop / "d.jsonl.gz").unlink()
    write_run(drop, "killed", [step()])
    (drop / "killed.meta.json").unlink()
    write_run(drop, "e", [], steps=gzip.compress(step() + b"\n") + gzip.compress(step() + b"\n"))
    (drop / "e.meta.json").write_bytes((drop / "c.meta.json").read_bytes())
    summary = pack(drop, tmp_path / "p", PackConfig(), session={"fingerprint": "f00"})
    assert read_lines(tmp_path / "p" / "warnings.jsonl") == [
        {"drop": "d9", "kind": "unpaired_meta", "path": "d.meta.json"},
        {"drop": "d9", "kind": "unpaired_log", "path": "killed.jsonl.gz"},
        {"kind": "count_mismatch", "run_id": 0, "drop": "d9", "meta": "a.meta.json", "rows": 1,
         "num_moves": 5},
        {"kind": "empty_run", "run_id": 1, "drop": "d9", "meta": "b.meta.json"},
        {"kind": "unknown_branches", "run_id": 2, "drop": "d9", "meta": "c.meta.json",
         "rows": {"LEFT": 2}},
        {"kind": "no_legal_branch", "run_id": 2, "drop": "d9", "meta": "c.meta.json"},
    ]  # fmt: skip
    assert not (tmp_path / "p" / "quarantine.jsonl").exists()
    trace = read_lines(tmp_path / "p" / "trace.jsonl")
    assert [(line["rows"], line["first_row"]) for line in trace] == [(1, 0), (0, 1), (2, 1), (2, 3)]
    for line in trace:
        for kind in ("meta", "steps"):
            raw = (drop / line[kind]).read_bytes()
            assert line[f"{kind}_bytes"] == len(raw)
            assert line[f"{kind}_sha256"] == hashlib.sha256(raw).hexdigest()
    assert read_session(tmp_path / "p" / "metadata.db") == {
        "source": "macroxue self-play logs",
        "drop": "d9",
        "drops": '["d9"]',
        "depth": "[6,9]",
        "seconds": "0.30000000000000004",
        "runs_depth": "[9,6,6,6]",
        "runs_seconds": "[0.1,0.2,null,null]",
        "fingerprint": "f00",
    }
    assert (summary.runs, summary.rows, summary.unpaired, summary.empty_runs) == (4, 5, 1, 1)
    assert (summary.count_mismatches, summary.warnings, summary.shards) == (1, 6, 1)
    assert (summary.unpaired_logs, summary.repeated_runs) == (1, 1)  # e is c again
    assert (summary.quarantined, summary.quarantined_by_rule) == (0, {})
    assert (summary.score_min, summary.score_max) == (80004, 80004)
    assert summary.rows_by_valuation_type == {"search": 5, "tuple11": 0, "tuple10": 0}
    assert summary.rows_by_max_rank == {"3": 5}
    assert summary.runs_by_highest_tile == {"4096": 4}
    content = content_sha256(tmp_path / "p" / "metadata.db")
    assert summary.files["metadata.db"].content_sha256 == content
    assert set(summary.files) == set(contents(tmp_path / "p"))
    with pytest.raises(ValueError, match="reserved for the pack"):
        pack(drop, tmp_path / "q", PackConfig(), session={"seconds": "1"})


def test_a_drop_without_a_good_game_or_without_steps_is_refused(tmp_path):
    for name in "ab":
        write_run(tmp_path / "drop", name, [step(), b"{}"])
    config = PackConfig(on_error="quarantine", quarantine_share=1.0)
    rule = r"drop: none of its 2 runs can be read; the last is b\.jsonl\.gz line 2: .*; mend these"
    with pytest.raises(BadInput, match=rule):
        pack(tmp_path / "drop", tmp_path / "p", config)
    (tmp_path := tmp_path / "next").mkdir()
    (tmp_path / "drop").mkdir()
    with pytest.raises(BadInput, match="no run found"):
        pack(tmp_path / "drop", tmp_path / "a", PackConfig())
    assert not (tmp_path / "a").exists()
    write_run(tmp_path / "drop", "g", [])
    with pytest.raises(BadInput, match="1 runs, but no step in any of them"):
        pack(tmp_path / "drop", tmp_path / "b", PackConfig())


def test_shares_of_a_quarantine_are_counted_by_rule_and_rounded_once(tmp_path):
    write_run(tmp_path / "drop", "good", [step()])
    for number in (0, *range(23)):
        bad = step(branch_evs={f"x{number}\n": ""})
        write_run(tmp_path / "drop", f"x{len(list((tmp_path / 'drop').iterdir()))}", [bad])
    config = PackConfig(on_error="quarantine", quarantine_share=1.0)
    counted = pack(tmp_path / "drop", tmp_path / "p", config).quarantined_by_rule
    assert len(counted) == 21 and counted["other rules"] == 3
    assert next(iter(counted.items())) == (r"branch_evs['x0\n'] must be a number or null", 2)
    (tmp_path := tmp_path / "next").mkdir()
    # 0.58 * 50 is below 29 in binary fractions.
    for number in range(50):
        lines = [step(move="UP" if number < 29 else "up")]
        write_run(tmp_path / "drop", f"g{number:02d}", lines)
    config = PackConfig(on_error="quarantine", quarantine_share=0.58)
    assert pack(tmp_path / "drop", tmp_path / "p", config).quarantined == 29


def test_scores_beyond_floats_are_counted_and_255_names_at_most(tmp_path):
    for name, score in (("a", 12), ("b", 4), ("c", 8)):
        meta = {"score": score, "max_tile": score, "seconds": 1.5e308}
        write_run(tmp_path / "drop", name, [step()], meta=meta)
    summary = pack(tmp_path / "drop", tmp_path / "p", PackConfig())
    assert (summary.score_min, summary.score_max) == (4, 12)
    assert list(summary.runs_by_highest_tile.items()) == [("4", 1), ("8", 1), ("12", 1)]
    assert summary.seconds_played == sys.float_info.max
    assert read_session(tmp_path / "p" / "metadata.db")["seconds"] == repr(sys.float_info.max)
    drop = tmp_path / "drop"
    lines = [step(valuation_type=f"n{i}") for i in range(252)]
    write_run(drop, "a", lines)
    pack(drop, tmp_path / "full", PackConfig(enum_form="object"))
    assert len(read_valuation_types(tmp_path / "full" / "valuation_types.json")) == 255
    write_run(drop, "b", [step(valuation_type="one more")])
    for on_error in ("strict", "quarantine"):
        with pytest.raises(TooManyNames, match="'one more' would be name 256"):
            pack(drop, tmp_path / on_error, PackConfig(on_error=on_error, quarantine_share=1))


def test_long_lines_are_taken_up_to_the_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(read_run, "BATCH_BYTES", 300)
    monkeypatch.setattr(read_run, "MAX_LINE_BYTES", 4000)
    drop = tmp_path / "drop"
    lines = [step(step_index=i, note="x" * (i * 37 % 1500)) for i in range(200)]
    raw = gzip.compress(b"\r\n".join(lines))
    write_run(drop, "a", [], steps=raw, meta={"num_moves": 200})
    summary = pack(drop, tmp_path / "p", PackConfig())
    assert (summary.rows, summary.warnings) == (200, 0)
    assert packed_rows(tmp_path / "p")["step_index"].tolist() == list(range(200))
    write_run(drop, "b", [step(note="x" * 9000)])
    with pytest.raises(BadInput, match=r"b\.jsonl\.gz: a line of more than 4000 bytes"):
        pack(drop, tmp_path / "q", PackConfig())


def test_running_index_defaults_and_row_bytes(tmp_path):
    drop = tmp_path / "drop"
    late = {"seed": 2**33 + 5, "max_rank": 11}
    lines = [
        step(["step_index", "seed", "max_rank", "valuation_type", "branch_evs"]),
        step(step_index=10, seed=2**32 + 1, branch_evs={"up": 1e39, "down": -0.1, "left": 3}),
        step(step_index=None),
        step(step_index=3, board=[17, 16, 15] + [0] * 12 + [16]),
    ]
    write_run(drop, "a", lines, meta=late)
    pack(drop, tmp_path / "p", PackConfig("packed46"))
    rows = packed_rows(tmp_path / "p")
    assert rows["step_index"].tolist() == [0, 10, 11, 3]
    assert rows["seed"].tolist() == [5, 1, 7, 7]
    assert rows["max_rank"].tolist() == [11, 3, 3, 3]
    assert rows["ev_legal"].tolist() == [0, 0b0111, 0b1110, 0b1110]
    assert rows["branch_evs"][1].tolist() == [np.inf, np.float32(-0.1), 3, 0]
    assert (int(rows["board"][3]), int(rows["tile_65536_mask"][3])) == (0xFFF000000000000F, 0x8003)
    assert rows["board_eval"][3] == -10092544


def test_import_stays_cheap():
    code = (
        "import sys, gristmill.macroxue as m;"
        "assert not {'numpy', 'numba', 'isal'} & set(sys.modules);"
        "m.StepDataset; m.merge; m.value_sidecar; import gristmill.macroxue.laws;"
        "import gristmill.macroxue.builders.pack; assert callable(m.pack);"
        "assert not {'torch', 'numba', 'polars', 'pyarrow', 'dagster'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CHECKOUT)


@pytest.fixture
def runs(tmp_path: Path) -> tuple[RunFiles, ...]:
    """Five runs whose steps files have 30 bytes each, as cut_parts sees them."""
    for name in "abcde":
        write_run(tmp_path / "drop", name, [step()])
    return tuple(replace(run, steps_size=30) for run in find_runs(tmp_path / "drop").runs)


@pytest.mark.parametrize(
    ("part_bytes", "counts"),
    [(1, [1] * 5), (30, [1] * 5), (31, [2, 2, 1]), (60, [2, 2, 1]), (150, [5]), (151, [5])],
)
def test_a_part_is_full_at_its_bytes(runs, monkeypatch, part_bytes, counts):
    monkeypatch.setattr(pack_builder, "PART_BYTES", part_bytes)
    parts = cut_parts(runs, "aligned48", "strict", scanner=False)
    assert [len(part.runs) for part in parts] == counts
    assert [part.first_id for part in parts] == [sum(counts[:at]) for at in range(len(counts))]
    assert [part.size for part in parts] == [30 * count for count in counts]
    assert tuple(run for part in parts for run in part.runs) == runs


def test_the_name_of_a_part_depends_on_the_names_and_sizes_of_its_runs(runs):
    others = [
        runs,
        runs[:4],
        (*runs[:4], replace(runs[4], steps_size=31)),
        (*runs[:4], replace(runs[4], drop="other")),
        (*runs[:4], replace(runs[4], meta_name="f.meta.json")),
    ]
    names = {cut_parts(each, "aligned48", "strict", scanner=False)[0].name for each in others}
    assert len(names) == len(others)
    assert all(name.startswith("rows-000000-") for name in names)


@pytest.mark.parametrize("scanner", [False, True])
def test_rows_of_a_run_that_is_set_aside_do_not_stay_in_the_part(tmp_path, monkeypatch, scanner):
    monkeypatch.setattr(read_run, "BATCH_ROWS", 4)
    write_run(tmp_path / "drop", "a", [step()] * 6)
    write_run(tmp_path / "drop", "b", [*[step()] * 9, step(move="UP")])
    runs = find_runs(tmp_path / "drop").runs
    (part,) = cut_parts(runs, "aligned48", "quarantine", scanner)
    summary = make_part(part, tmp_path / "part")
    assert (tmp_path / "part").stat().st_size == 6 * 48
    (rows,) = read_rows(tmp_path / "part", "aligned48")
    assert rows["run_id"].tolist() == [0] * 6
    assert summary["runs"][1]["row"] == 10


@pytest.mark.parametrize(
    ("steps", "likely"),
    [
        (gzip.compress(step(board=[2, 32, *[0] * 14])), "a board holds exponents"),
        (step(), "a log that is not zipped needs `gzip`"),
        (gzip.compress(gzip.compress(step())), "write UTF-8, and zip it once"),
        (gzip.compress(b"\xff\xfe" + step()), "write UTF-8, and zip it once"),
        (gzip.compress(b"\xef\xbb\xbf" + step()), "write objects, without a byte order mark"),
        (gzip.compress(step(move="UP")), ""),
    ],
)
def test_a_refusal_says_what_is_likely_and_what_to_do(tmp_path, steps, likely):
    write_run(tmp_path / "drop", "a", steps=steps)
    (part,) = cut_parts(find_runs(tmp_path / "drop").runs, "aligned48", "strict", scanner=False)
    with pytest.raises(BadInput) as caught:
        make_part(part, tmp_path / "part")
    cure = '; mend the game, take it out, or set on_error = "quarantine" to set it aside'
    assert caught.value.rule.endswith(cure)
    assert f"({likely}" in caught.value.rule if likely else "(" not in caught.value.rule
