"""From a run or row to the bytes of its raw files, and what is refused."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError, Trace
from gristmill.families import Request
from gristmill.macroxue import MergeConfig, PackConfig, merge, pack
from gristmill.macroxue.read.dataset import StepDataset
from gristmill.macroxue.read.trace import step_line, trace, traced
from gristmill.provenance.trace_inputs import NotTraced
from tests.macroxue.games import play, write_pack
from tests.macroxue.lines import step, write_run


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    """Packs `a` (runs of 2 and 3 rows) and `b` (a run of 1 row)."""
    write_run(tmp_path / "drops" / "a" / "x", "g0", [step()] * 2)
    write_run(tmp_path / "drops" / "a" / "x", "g1", [step()] * 3, zipped_meta=True)
    write_run(tmp_path / "drops" / "b", "g0", [step()])
    for name in "ab":
        pack(tmp_path / "drops" / name, tmp_path / name, PackConfig())
    return tmp_path


def test_runs_in_any_order_lead_to_their_files(packs):
    origin = trace(packs / "a", 1)
    assert [origin[key] for key in ("run_id", "rows", "first_row", "drop")] == [1, 3, 2, "a"]
    assert (origin["meta"], origin["steps"]) == ("x/g1.meta.json.gz", "x/g1.jsonl.gz")
    for name in ("meta", "steps"):
        octets = (packs / "drops" / "a" / origin[name]).read_bytes()
        assert origin[f"{name}_bytes"] == len(octets)
        assert origin[f"{name}_sha256"] == hashlib.sha256(octets).hexdigest()
    assert origin["from"] is None
    lines = (packs / "a" / "trace.jsonl").read_text().splitlines()
    assert origin.facts() == json.loads(lines[1])
    path = packs / "a" / "trace.jsonl"
    wanted = [trace(packs / "a", run) for run in (0, 1)]
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert [trace(packs / "a", run) for run in (0, 1)] == wanted
    path.write_text(path.read_text() + "[]\n")
    assert trace(packs / "a", 1) == wanted[1]


def test_pools_of_pools_and_members_without_trace_lead_to_their_runs(packs):
    merge([packs / "a", packs / "b"], packs / "inner", MergeConfig())
    merge([packs / "b", packs / "inner"], packs / "outer", MergeConfig())
    origin = trace(packs / "outer", 3)
    assert origin["from"] == [{"pack": "inner", "run_id": 2}, {"pack": "b", "run_id": 0}]
    assert (origin["drop"], origin["meta"], origin["first_row"]) == ("b", "g0.meta.json", 6)
    lines = (packs / "outer" / "trace.jsonl").read_text().splitlines()
    assert origin.facts() == json.loads(lines[3])
    write_pack(packs / "c", [play(1, 5)])
    merge([packs / "a", packs / "c"], packs / "pool", MergeConfig())
    origin = trace(packs / "pool", 2)
    assert origin["drop"] is None
    assert (origin["rows"], origin["first_row"]) == (5, 5)
    assert list(origin.facts()) == ["run_id", "rows", "first_row", "from"]


@pytest.mark.parametrize("run", [2, -1])
def test_a_run_that_is_not_there_is_refused(packs, run):
    with pytest.raises(GristmillError, match=rf"trace\.jsonl has no run {run}: it traces 2 runs"):
        trace(packs / "a", run)
    with pytest.raises(GristmillError, match=r"has no trace\.jsonl: trace a pack or pool"):
        trace(packs / "drops", run)


def change_line(folder: Path, number: int, **changes: Any) -> None:
    """Change keys of one line of trace.jsonl; `...` removes a key."""
    path = folder / "trace.jsonl"
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    values = lines[number] | changes
    lines[number] = {key: value for key, value in values.items() if value is not ...}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


RAW = ("drop", "meta", "steps", "meta_bytes", "meta_sha256", "steps_bytes", "steps_sha256")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"run_id": "1"}, "`run_id` is not an integer"),
        ({"run_id": True}, "`run_id` is not an integer"),
        ({"run_id": ...}, "`run_id` is not an integer"),
        ({"rows": None}, "`rows` is not a count"),
        ({"rows": -1}, "`rows` is not a count"),
        ({"first_row": 2.0}, "`first_row` is not a count"),
        ({"drop": 7}, "`drop` is not a text"),
        ({"steps": ...}, "`steps` is not a text"),
        ({"meta_bytes": "9"}, "`meta_bytes` is not a count"),
        ({"steps_sha256": None}, "`steps_sha256` is not a text"),
        ({"raw_run": "7"}, "`raw_run` is not a run id"),
        ({"from": 7}, "`from` is not a list"),
        ({"from": [{"pack": "a"}]}, "`from` is not a list"),
        ({"from": [{"pack": 1, "run_id": 0}]}, "`from` is not a list"),
        ({"from": ["a"]}, "`from` is not a list"),
        (dict.fromkeys(RAW, ...), "neither raw files nor a member"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(packs, changes, rule):
    change_line(packs / "a", 1, **changes)
    with pytest.raises(BadInput, match=rule) as caught:
        trace(packs / "a", 1)
    assert (caught.value.file, caught.value.row) == (str(packs / "a" / "trace.jsonl"), 2)
    assert trace(packs / "a", 0)["run_id"] == 0


def test_lines_behind_the_run_are_not_read(packs):
    path = packs / "a" / "trace.jsonl"
    path.write_text(path.read_text() + "{\n")
    assert trace(packs / "a", 1)["run_id"] == 1
    with pytest.raises(BadInput, match=r"trace\.jsonl:3: not JSON"):
        trace(packs / "a", 2)


MOVES = ("up", "down", "left", "right")


def _line(root: Path, steps: list[Trace]) -> dict[str, Any]:
    """The JSON object at the place that the last step names, once by line, once by bytes."""
    facts = steps[-1].facts()
    text = gzip.decompress((root / str(facts["raw_steps"])).read_bytes())
    begin, end = map(int, str(facts["raw_unpacked_bytes"]).split("-"))
    line = text[begin:end]
    assert line == text.splitlines(keepends=True)[int(str(facts["raw_line"])) - 1]
    found: dict[str, Any] = json.loads(line)
    return found


def _is_line_of(pack: StepDataset, row: int, line: dict[str, Any]) -> None:
    (step,) = pack.rows(np.array([row]))
    run = int(step["run_id"])
    ranks = pack.run_ranks(run).ranks[row - pack.run_bounds(run)[0]]
    assert (line["step_index"], line["move"]) == (step["step_index"], MOVES[step["move_dir"]])
    assert line["board"] == ranks.tolist()
    assert pack.names is not None
    name = pack.names[step["valuation_type"]]
    assert line.get("valuation_type", name) == name


def _run(pack: Path, run: int, step: int) -> list[Trace]:
    return list(traced("macroxue/pack", Request(pack, str(run), {"step": step})))


def _values(data: Path, row: int) -> list[Trace]:
    return list(traced("macroxue/values", Request(data / "macroxue/values/sample_d6", str(row))))


@pytest.mark.parametrize("folder", ["packs/sample_d6", "packs/sample_d7", "pools/samples"])
def test_a_step_of_a_run_is_the_line_that_its_trace_names(sample_root, folder):
    pack = StepDataset(sample_root.data / "macroxue" / folder)
    for run in (pack.run_table[0], pack.run_table[-1]):
        for at in (0, 7, run.steps - 1):
            steps = _run(pack.pack, run.id, at)
            _is_line_of(pack, pack.row_of(run.id, at), _line(sample_root.data, steps))


@pytest.mark.parametrize("row", [0, 508, 509, 1234, -1])
def test_a_row_of_a_value_sidecar_is_the_line_that_its_trace_names(sample_root, row):
    pack = StepDataset(sample_root.data / "macroxue/packs/sample_d6")
    row %= len(pack)
    _is_line_of(pack, row, _line(sample_root.data, _values(sample_root.data, row)))


def test_a_row_that_does_not_exist_is_refused(sample_root):
    with pytest.raises(GristmillError):
        _values(sample_root.data, 10**7)
    with pytest.raises(GristmillError, match="has no step 9999999"):
        _run(sample_root.data / "macroxue/packs/sample_d6", 0, 9_999_999)


def test_values_of_a_pack_that_was_built_again_are_not_traced(sample_root, tmp_path):
    data = sample_root.copy(tmp_path).data
    record = data / "macroxue/packs/sample_d6/provenance.json"
    text = record.read_text()
    version = json.loads(text)["data_version"]
    record.write_text(text.replace(version, "0" * 64))
    with pytest.raises(NotTraced, match="was built again after macroxue/values sample_d6 was made"):
        _values(data, 3)


def test_steps_are_not_looked_for_in_other_bytes(sample_root, tmp_path):
    data = sample_root.copy(tmp_path).data
    found = _run(data / "macroxue/packs/sample_d6", 2, 0)[-1].facts()
    path = data / str(found["raw_steps"])
    octets = bytearray(path.read_bytes())
    octets[-1] ^= 1
    path.write_bytes(octets)
    (last,) = _run(data / "macroxue/packs/sample_d6", 2, 0)[1:]
    assert "has other bytes than when macroxue/pack sample_d6 was built" in str(
        last.facts()["not_traced"]
    )


def test_blank_lines_have_no_row(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'\n{"a":1}\r\n \t\n{"b":2}'))
    assert step_line(path, 0) == (2, 1, 10)
    assert step_line(path, 1) == (4, 13, 20)
    with pytest.raises(GristmillError, match="no line for this row"):
        step_line(path, 2)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BadInput, match="is damaged"):
        step_line(path, 1)
