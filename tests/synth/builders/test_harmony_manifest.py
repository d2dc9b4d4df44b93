"""Both JSON files of a Harmony dataset, from the records of its shards."""

import json
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.run.progress import Progress, Report
from gristmill.synth.builders.harmony import system_message, to_harmony
from gristmill.synth.builders.manifests import write_harmony_manifest
from gristmill.synth.config import HarmonyConfig
from tests.synth.records import record


def test_both_files_have_the_values_of_the_records(raw_files: list[Path], tmp_path: Path) -> None:
    config = HarmonyConfig(developer=None, max_rows=100)
    records = []
    for shard in (1, 0):
        summary = to_harmony(raw_files, tmp_path / str(shard), shard, config)
        records.append(record(tmp_path / str(shard), f"0{shard}", config, summary))
    reports: list[Report] = []
    written = write_harmony_manifest(
        records,
        tmp_path / "out",
        config,
        dataset_dir="data/x",
        created_unix_s=7,
        git_sha="abc",
        progress=Progress(reports.append, 0.0),
    )
    assert reports[-1] == Report("write", 2, 2, "files")
    metadata, manifest = (
        json.loads((tmp_path / "out" / f"{name}.json").read_text(encoding="ascii"))
        for name in ("metadata", "manifest")
    )
    assert metadata == {
        "dataset": "PleIAs/SYNTH",
        "split": "train",
        "streaming": False,
        "num_shards": 4,
        "shard_index": None,
        "max_rows": 100,
        "metadata_fields": list(config.metadata_fields),
        "system_message": system_message(config),
        "developer_message": None,
    }
    outputs: list[dict[str, Any]] = [records[1]["outputs"][0], records[0]["outputs"][0]]
    assert manifest["storage"].pop("shards") == [
        {
            "path": f"data/x/{output['path']}",
            "bytes": output["bytes"],
            "rows": output["rows"],
            "row_groups": 1,
            "sha256": output["sha256"],
        }
        for output in outputs
    ]
    columns = ("messages_json", "metadata_json", *config.metadata_fields)
    rows = sum(output["rows"] for output in outputs)
    assert manifest["storage"] == {
        "format": "parquet",
        "glob": "synth_harmony_shard_*.parquet",
        "schema_arrow": "\n".join(f"{name}: string" for name in columns),
        "total_rows": rows,
        "total_bytes": sum(output["bytes"] for output in outputs),
        "skipped_rows": 200 - rows,
        "max_rows": 100,
    }
    del metadata["shard_index"], metadata["max_rows"]
    assert manifest["conversion"] == metadata
    assert {k: v for k, v in manifest.items() if k not in ("conversion", "storage")} == {
        "schema_version": "synth_harmony_v1",
        "created_unix_s": 7,
        "git_sha": "abc",
        "dataset_dir": "data/x",
    }
    assert (written.shards, written.rows, written.skipped) == (2, rows, 200 - rows)
    assert all(note.payload and note.content_sha256 for note in written.files.values())


@pytest.mark.real
def test_harmony_manifests_have_the_references_keys(
    raw_files: list[Path], real: Path, tmp_path: Path
) -> None:
    config = HarmonyConfig()
    records = []
    for shard in (1, 0):
        out = tmp_path / str(shard)
        summary = to_harmony(raw_files, out, shard, config)
        records.append(record(out, f"0{shard}", config, summary))
    written = write_harmony_manifest(
        records, tmp_path / "out", config, dataset_dir="data/x", created_unix_s=7, git_sha="abc"
    )
    for name in ("manifest.json", "metadata.json"):
        ours = json.loads((tmp_path / "out" / name).read_text())
        theirs = json.loads((real / "synth_harmony" / name).read_text())
        assert list(ours) == list(theirs)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    reference = json.loads((real / "synth_harmony/manifest.json").read_text())
    assert list(manifest["conversion"]) == list(reference["conversion"])
    assert list(manifest["storage"])[:6] == list(reference["storage"])
    assert manifest["storage"]["schema_arrow"] == reference["storage"]["schema_arrow"]
    shards = manifest["storage"]["shards"]
    assert list(shards[0])[:4] == list(reference["storage"]["shards"][0])
    assert [s["path"] for s in shards] == [
        f"data/x/synth_harmony_shard_0{number}.parquet" for number in (0, 1)
    ]
    assert sum(s["rows"] for s in shards) == written.rows == manifest["storage"]["total_rows"]
    assert written.rows + written.skipped == 360
    assert manifest["storage"]["total_bytes"] == written.bytes
    # The name of the dataset changes no row.
    records[1]["config"]["dataset"] = "elsewhere"
    write_harmony_manifest(
        records, tmp_path / "other", config, dataset_dir="x", created_unix_s=7, git_sha=None
    )
    with pytest.raises(GristmillError, match="built with another reasoning_effort"):
        write_harmony_manifest(
            records,
            tmp_path / "no",
            HarmonyConfig(reasoning_effort="low"),
            dataset_dir="x",
            created_unix_s=7,
            git_sha=None,
        )
