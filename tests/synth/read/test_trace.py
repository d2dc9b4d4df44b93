"""One document back to its row."""

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.synth.format.trace import path
from gristmill.synth.read.trace import Trace, trace
from tests.synth.format.test_trace import write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset whose trace has three row groups of 10, 10 and 5 documents."""
    monkeypatch.setattr("gristmill.synth.format.trace._ROW_GROUP", 10)
    write(tmp_path / path("03"), [0, 25])
    return tmp_path


@pytest.mark.parametrize("document", [0, 9, 10, 24])
def test_a_document_leads_to_its_row_in_every_row_group(folder: Path, document: int) -> None:
    traced = trace(folder, "03", "train", document)
    assert traced == Trace(
        input="synth_harmony_shard_00.parquet",
        row=document + 1,
        synth_id=f"id {document}",
        language=None,
        exercise="math",
        offsets=[0, 5, 9],
    )
    assert traced.message_bounds() == [(0, 5), (5, 9)]


@pytest.mark.parametrize(("split", "document"), [("train", 25), ("train", -1), ("valid", 0)])
def test_a_document_that_does_not_exist_is_refused(folder: Path, split: str, document: int) -> None:
    with pytest.raises(BadInput, match=f"no document {document} in {split} of shard 03"):
        trace(folder, "03", split, document)


def test_a_shard_without_trace_file_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match=r"trace_00\.parquet: shard 00 has no trace file"):
        trace(folder, "00", "train", 0)
