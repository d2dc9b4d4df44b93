import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import BadInput
from gristmill.reasoning.format import align

_ROW = align.AlignRow(
    example_id="gsm8k_test_000007",
    sequence_index=3,
    shard_path="reasoning/tokenized/gpt2/gsm8k/test/shard_00000.pt",
    text_offset_ranges=[[0, 4], [6, 9]],
    token_offset_ranges=[[0, 1], [2, 4]],
    step_labels=["Step 1", "Answer"],
    confidence=0.89,
    notes="heuristic:lines; pending manual audit",
)


def test_rows_have_the_keys_of_the_seed_and_are_read_back_or_named(tmp_path: Path) -> None:
    assert align.line(_ROW) == (
        b'{"example_id": "gsm8k_test_000007", "sequence_index": 3, '
        b'"shard_path": "reasoning/tokenized/gpt2/gsm8k/test/shard_00000.pt", '
        b'"text_offset_ranges": [[0, 4], [6, 9]], "token_offset_ranges": [[0, 1], [2, 4]], '
        b'"step_labels": ["Step 1", "Answer"], "confidence": 0.89, '
        b'"notes": "heuristic:lines; pending manual audit"}\n'
    )
    path = tmp_path / "test.align.jsonl"
    path.write_bytes(align.line(_ROW) * 2)
    assert list(align.rows(path)) == [_ROW, _ROW]
    with pytest.raises(BadInput, match="build reasoning/alignment"):
        list(align.rows(tmp_path / "none"))


_VALUES: dict[str, Any] = json.loads(align.line(_ROW))


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (_VALUES | {"example_id": 7}, "example_id: must be of type str"),
        (_VALUES | {"sequence_index": True}, "sequence_index: must be of type int"),
        (_VALUES | {"confidence": 1}, "confidence: must be of type float"),
        (_VALUES | {"text_offset_ranges": [[1]]}, "text_offset_ranges holds"),
        (_VALUES | {"token_offset_ranges": [[1, 2.0]]}, "token_offset_ranges holds"),
        (_VALUES | {"token_offset_ranges": [[True, 2]]}, "token_offset_ranges holds"),
        (_VALUES | {"step_labels": ["Step 1", 2]}, "step_labels holds"),
        (_VALUES | {"more": 1}, "the keys must be|must be an object"),
        (dict(reversed(_VALUES.items())), "the keys must be|must be an object"),
    ],
)
def test_a_broken_row_is_refused(tmp_path: Path, values: dict[str, Any], rule: str) -> None:
    path = tmp_path / "test.align.jsonl"
    path.write_bytes(align.line(_ROW) + json.dumps(values).encode() + b"\n")
    with pytest.raises(BadInput, match=rule) as caught:
        list(align.rows(path))
    assert caught.value.row == 2


@pytest.mark.parametrize("line", [b"{", b"[]", b"\xff", b"\n", b"[" * 100_000])
def test_a_line_that_is_no_row_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "test.align.jsonl"
    path.write_bytes(line)
    with pytest.raises(BadInput, match="build the alignment again"):
        list(align.rows(path))


def test_notes_tell_the_state_of_the_audit() -> None:
    assert align.notes("regex:markers", None) == "regex:markers; pending manual audit"
    assert align.notes("regex:markers", "right") == "regex:markers; verified"
    assert align.notes("regex:markers", "wrong") == "regex:markers; found wrong by manual audit"
    assert _ROW.rule == "heuristic:lines"
