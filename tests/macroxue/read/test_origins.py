"""The line and bytes that a trace names hold the step that was traced."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.contract import BadInput, GristmillError, Trace
from gristmill.families import Request
from gristmill.macroxue.builders.pack import pack
from gristmill.macroxue.config import PackConfig
from gristmill.macroxue.read.dataset import StepDataset
from gristmill.macroxue.read.origins import of_value, run_origins, step_line
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.provenance.trace_inputs import NotTraced
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from tests.paths import REAL_DATA
from tests.sample_root import SampleRoot

MOVES = ("up", "down", "left", "right")


def _line(root: Path, steps: list[Trace]) -> dict[str, Any]:
    """The JSON object at the place that the last step names, once by line, once by bytes."""
    facts = steps[-1].facts()
    text = gzip.decompress((root / str(facts["raw_steps"])).read_bytes())
    begin, end = map(int, str(facts["raw_line_bytes"]).split()[0].split("-"))
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


def _values(data: Path, row: int) -> list[Trace]:
    return list(of_value(Request(data / "macroxue/values/sample_d6", str(row))))


@pytest.mark.parametrize("folder", ["packs/sample_d6", "packs/sample_d7", "pools/samples"])
def test_a_step_of_a_run_is_the_line_that_its_trace_names(
    sample_root: SampleRoot, folder: str
) -> None:
    pack = StepDataset(sample_root.data / "macroxue" / folder)
    for run in (pack.run_table[0], pack.run_table[-1]):
        for step in (0, 7, run.steps - 1):
            steps = list(run_origins(pack.pack, run.id, step))
            _is_line_of(pack, pack.row_of(run.id, step), _line(sample_root.data, steps))


@pytest.mark.parametrize("row", [0, 508, 509, 1234, -1])
def test_a_row_of_a_value_sidecar_is_the_line_that_its_trace_names(
    sample_root: SampleRoot, row: int
) -> None:
    pack = StepDataset(sample_root.data / "macroxue/packs/sample_d6")
    row %= len(pack)
    _is_line_of(pack, row, _line(sample_root.data, _values(sample_root.data, row)))


@pytest.mark.skipif(not (REAL_DATA / "macroxue").is_dir(), reason="no real data")
@pytest.mark.parametrize("name", ["d6_v1", "d7_v1"])
def test_a_step_of_a_real_run_is_the_line_that_its_trace_names(tmp_path: Path, name: str) -> None:
    drop = tmp_path / "drops/macroxue" / name
    drop.mkdir(parents=True)
    for file in sorted((REAL_DATA / "macroxue" / name).glob("*"))[:4]:
        (drop / file.name).write_bytes(file.read_bytes())
    config = PackConfig()
    publish(
        Build(
            root=tmp_path,
            artifact=f"macroxue/packs/{name}",
            asset="macroxue/pack",
            partition=name,
            code_version="1",
            config=config,
            inputs=raw_inputs(tmp_path, sorted(drop.iterdir()), "macroxue/raw_drop", name, {}),
            make=lambda attempt: pack(drop, attempt.out, config),
        )
    )
    packed = StepDataset(tmp_path / "macroxue/packs" / name)
    for run in packed.run_table:
        for step in (0, run.steps // 2, run.steps - 1):
            steps = list(run_origins(packed.pack, run.id, step))
            _is_line_of(packed, packed.row_of(run.id, step), _line(tmp_path, steps))


def test_a_row_that_does_not_exist_is_refused(sample_root: SampleRoot) -> None:
    with pytest.raises(GristmillError):
        _values(sample_root.data, 10**7)
    with pytest.raises(GristmillError, match="has no step 9999999"):
        list(run_origins(sample_root.data / "macroxue/packs/sample_d6", 0, 9_999_999))


def test_values_of_a_pack_that_was_built_again_are_not_traced(
    sample_root: SampleRoot, tmp_path: Path
) -> None:
    data = sample_root.copy(tmp_path).data
    record = data / "macroxue/packs/sample_d6/provenance.json"
    text = record.read_text()
    version = json.loads(text)["data_version"]
    record.write_text(text.replace(version, "0" * 64))
    with pytest.raises(NotTraced, match="was built again after macroxue/values sample_d6 was made"):
        _values(data, 3)


def test_steps_are_not_looked_for_in_other_bytes(sample_root: SampleRoot, tmp_path: Path) -> None:
    data = sample_root.copy(tmp_path).data
    found = list(run_origins(data / "macroxue/packs/sample_d6", 2, 0))[-1].facts()
    path = data / str(found["raw_steps"])
    octets = bytearray(path.read_bytes())
    octets[-1] ^= 1
    path.write_bytes(octets)
    (last,) = list(run_origins(data / "macroxue/packs/sample_d6", 2, 0))[1:]
    assert "has other bytes than the run was read from" in str(last.facts()["not_traced"])


def test_blank_lines_have_no_row(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'\n{"a":1}\r\n \t\n{"b":2}'))
    assert step_line(path, 0) == (2, 1, 10)
    assert step_line(path, 1) == (4, 13, 20)
    with pytest.raises(GristmillError, match="no line for this row"):
        step_line(path, 2)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BadInput, match="is damaged"):
        step_line(path, 1)
