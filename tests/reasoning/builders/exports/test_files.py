"""Exports of a token dataset: those of `gristmill project`, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import NothingToBuild
from gristmill.exports.project import project
from tests.reasoning.exported_root import FORMATS, broken, build_dataset
from tests.reasoning.published_root import built


def files(folder: Path) -> dict[str, bytes]:
    """The files below a folder, without records."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "provenance.json"
    }


def test_an_export_has_the_files_of_the_projection_and_breaks_no_law(tmp_path: Path) -> None:
    root = tmp_path / "data"
    build_dataset(root)
    with pytest.raises(NothingToBuild, match=r"set formats of \[reasoning.exports\]"):
        built(root, "reasoning/exports", "mine")
    record = built(root, "reasoning/exports", "mine", formats=FORMATS, file_tokens=400)
    assert broken(root, record, shared=False) == []
    for name in FORMATS:
        place = root / ("reasoning/raw" if name == "nanochat" else "reasoning/tokens/mine")
        project(place, tmp_path / name, name, 400)
        assert files(root / "reasoning/exports/mine" / name) == files(tmp_path / name)
    assert record.counts["tokens/llm.c"] == record.counts["tokens/litdata"] > 800
    assert record.counts["texts/nanochat"] == 24
    assert record.tokenizer is not None
    assert record.tokenizer.name == "tiny"
