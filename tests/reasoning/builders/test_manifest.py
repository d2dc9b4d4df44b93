"""The manifest of the normalised files: merged, with the nine keys first."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.corpora.corpus import CORPORA
from gristmill.reasoning.builders.manifest import write_raw_manifest
from gristmill.reasoning.laws.texts import raw_manifest_laws

NINE = [
    "name",
    "hf_path",
    "subset",
    "splits",
    "question_column",
    "answer_column",
    "cot_column",
    "extra_columns",
    "notes",
]


def record(partition: str, records: int = 3, **counts: int) -> dict[str, Any]:
    """What a provenance record says about a normalised split."""
    corpus, split = partition.split("__")
    return {
        "partition": partition,
        "outputs": [
            {"path": f"origins/{partition}.npy", "sha256": "0" * 64, "bytes": 1},
            {"path": f"{corpus}/{split}.jsonl", "sha256": "ab" * 32, "bytes": 10 * records},
        ],
        "counts": {"records": records, "rejected": 1, **(counts or {"shapes/seed": records})},
    }


def written(
    out: Path, records: list[dict[str, Any]], previous: Any = None, at: str = "2026-11-22T00:00:00"
) -> dict[str, Any]:
    write_raw_manifest(records, previous, out, generated_at=at)
    text = (out / "manifest.json").read_text()
    manifest: dict[str, Any] = json.loads(text)
    assert text == json.dumps(manifest, indent=2, ensure_ascii=False)
    assert list(raw_manifest_laws(out)) == []
    return manifest


def test_a_corpus_has_the_nine_keys_first_and_then_its_licence_and_files(tmp_path: Path) -> None:
    parts = {"shapes/seed": 2, "shapes/public": 1}
    manifest = written(tmp_path / "out", [record("wiqa__test", **parts), record("gsm8k__train")])
    assert list(manifest) == ["gsm8k", "wiqa"]
    entry = manifest["wiqa"]
    assert list(entry) == [
        *NINE,
        "licence",
        "source_shape",
        "files",
        "generated_at",
        "schema_version",
    ]
    assert entry["hf_path"] == "allenai/wiqa" and entry["subset"] is None
    assert entry["extra_columns"] == ["perturbation", "effect1", "effect2"]
    assert entry["licence"] == asdict(CORPORA["wiqa"].licence)
    assert entry["source_shape"] == {"test": {"public": 1, "seed": 2}}
    assert entry["files"] == {
        "test": {
            "path": "wiqa/test.jsonl",
            "sha256": "ab" * 32,
            "bytes": 30,
            "records": 3,
            "rejected": 1,
        }
    }
    assert (entry["generated_at"], entry["schema_version"]) == ("2026-11-22T00:00:00", 1)


def test_what_has_no_record_any_more_stays(tmp_path: Path) -> None:
    first = written(tmp_path / "1", [record("gsm8k__train"), record("trip__test")], at="1")
    second = written(tmp_path / "2", [record("gsm8k__test", 5)], first, at="2")
    assert second["trip"] == first["trip"]
    assert list(second["gsm8k"]["files"]) == ["train", "test"]
    assert second["gsm8k"]["generated_at"] == "2"
    third = written(tmp_path / "3", [record("gsm8k__test", 5)], second, at="3")
    assert third == second


def test_a_corpus_of_another_version_stays_behind_the_known_ones(tmp_path: Path) -> None:
    entry = {**written(tmp_path / "1", [record("gsm8k__train")])["gsm8k"], "name": "zeta"}
    entry["files"]["train"]["path"] = "zeta/train.jsonl"
    entry["extra_columns"] = ["règle"]  # written as it is: `written` compares the texts
    second = written(tmp_path / "2", [record("wiqa__test")], {"zeta": entry})
    assert list(second) == ["wiqa", "zeta"]


def test_times_do_not_change_the_data_version(tmp_path: Path) -> None:
    notes = [
        write_raw_manifest([record("gsm8k__train")], None, tmp_path / at, generated_at=at)
        for at in ("1", "2")
    ]
    assert notes[0].files == notes[1].files
    other = write_raw_manifest([record("gsm8k__train", 4)], None, tmp_path / "3", generated_at="1")
    assert other.files != notes[0].files
    assert (other.corpora, other.splits, other.records, other.rejected) == (1, 1, 4, 1)


@pytest.mark.parametrize(
    "previous",
    [
        {"gsm8k": []},
        {"x": None},
        {"gsm8k": {}},
        {"gsm8k": {"files": {"train": {}}, "source_shape": {}}},
        {"gsm8k": {"files": [], "source_shape": {}}},
        {"gsm8k": {"files": {}}},
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, previous: Any) -> None:
    with pytest.raises(GristmillError, match="is damaged: remove the file"):
        write_raw_manifest([record("gsm8k__test")], previous, tmp_path / "out", generated_at="1")


def test_a_record_without_its_file_is_refused(tmp_path: Path) -> None:
    wrong = record("gsm8k__test") | {"outputs": []}
    with pytest.raises(GristmillError, match=r"gsm8k__test has no gsm8k/test\.jsonl"):
        write_raw_manifest([wrong], None, tmp_path / "out", generated_at="1")
