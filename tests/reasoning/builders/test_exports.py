"""The file of control pairs: which traces it has, in which order, and their parts.

Exports of a token dataset: those of `gristmill project`, byte for byte.
"""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from gristmill.contract import BadInput, NothingToBuild
from gristmill.exports.project import project
from gristmill.reasoning.builders.exports import write_controls
from gristmill.reasoning.config import SpansConfig
from gristmill.reasoning.render.annotations import VARIANTS
from tests.publish.tiny import snapshot
from tests.reasoning.exported_root import FORMATS, broken, build_dataset
from tests.reasoning.published_root import built

RANGES = {
    **{key: [0, 1] for key in ("whole", "expression", "result", "inner_eq")},
    **{"outer_eq": None, "operands": [], "operators": []},
}
ROW = {
    **{"trace_id": "", "example_id": "e", "example_idx": 0, "raw_file": 0, "ann_idx": 0},
    **{"ann_text": "<<48/2=24>>", "expr_str": "48/2", "C": 24.0, "log_abs_C": 3.2},
    **{"magnitude": "[10,100)", "characters": RANGES, "bytes": RANGES, "tokens": RANGES},
    **{"result_token_count": 1, "result_token_id": 0, "skipped": "", "part": "evaluation"},
}


def made(folder: Path, rows: list[dict[str, Any]], **values: object) -> dict[str, Any]:
    """The controls of such rows of spans, as the file has them."""
    spans, path = folder / "train.spans.jsonl", folder / "train.controls.json"
    spans.write_bytes(b"".join(orjson.dumps({**ROW, **row}) + b"\n" for row in rows))
    path.unlink(missing_ok=True)
    config = SpansConfig(**{"control_traces": 500, **values})  # type: ignore[arg-type]
    note = write_controls(path, spans, "train", config)
    found = json.loads(path.read_bytes())
    assert note.rows == found["num_controls"] == len(found["controls"]) == len(found["audits"])
    assert len(path.read_bytes().splitlines()) == len(found["controls"]) + 2
    assert isinstance(found, dict)
    return found


def test_traces_come_by_their_ids_and_rows_that_rl_decoder_skips_are_no_steps(
    tmp_path: Path,
) -> None:
    rows = [{"trace_id": f"t{number}", "example_idx": number} for number in (3, 1, 2, 1)]
    found = made(tmp_path, rows, control_traces=2)
    keys = ("trace_id", "example_idx", "num_steps")
    heads = [tuple(each[key] for key in keys) for each in found["controls"]]
    assert heads == [("t1", 1, 4)] * len(VARIANTS) + [("t2", 2, 2)] * len(VARIANTS)
    assert [each["variant"] for each in found["controls"]] == [*VARIANTS] * 2
    assert {each["gsm8k_split"] for each in found["controls"]} == {"train"}
    for audit, control in zip(found["audits"], found["controls"], strict=True):
        assert audit == {
            "trace_id": control["trace_id"],
            "control_variant": control["variant"],
            "gold_label": control["gold_label"],
        }
    rows = [
        {"trace_id": "a", "skipped": "multi_token_result"},
        {"trace_id": "b", "skipped": "token_alignment"},
        {"trace_id": "b"},
    ]
    found = made(tmp_path, rows)
    assert {(each["trace_id"], each["num_steps"]) for each in found["controls"]} == {("b", 2)}
    assert found["split"]["trace_ids_eval"] == ["b"]
    nothing = made(tmp_path, rows[:1])
    assert (nothing["controls"], nothing["split"]["trace_ids_eval"]) == ([], [])


def test_the_seed_decides_what_is_wrong_and_other_rows_are_refused(tmp_path: Path) -> None:
    rows = [{"trace_id": f"t{number}"} for number in range(4)]
    one, same, other = (made(tmp_path, rows, control_seed=seed) for seed in (17, 17, 18))
    assert one == same != other
    with pytest.raises(BadInput, match=r"train\.spans\.jsonl.*no row of spans: build it again"):
        made(tmp_path, [{"trace_id": 5}])


def test_an_export_has_the_files_of_the_projection_and_breaks_no_law(tmp_path: Path) -> None:
    root = tmp_path / "data"
    build_dataset(root)
    with pytest.raises(NothingToBuild, match=r"set formats of \[reasoning.exports\]"):
        built(root, "reasoning/exports", "mine")
    record = built(root, "reasoning/exports", "mine", formats=FORMATS, file_tokens=400)
    assert broken(root, record, shared=False) == []
    for name in FORMATS:
        place = root / ("reasoning/raw" if name == "nanochat" else "reasoning/tokens/mine")
        project(place, tmp_path / name, name, 400, notes=(notes := list[str]()))
        made = snapshot(tmp_path / name)
        assert snapshot(root / "reasoning/exports/mine" / name) == made
    assert record.counts["tokens/llm.c"] == record.counts["tokens/litdata"] > 800
    assert record.counts["texts/nanochat"] == 24 and notes[0].startswith("enough for 1 ranks: ")
    assert record.tokenizer is not None
    assert record.tokenizer.name == "tiny"
