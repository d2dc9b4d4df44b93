"""Import of a finished conversion."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import GristmillError
from gristmill.synth.build import harmony_shard, import_harmony
from gristmill.synth.build.import_harmony import import_manifest, import_shard


@pytest.mark.real
def test_a_finished_conversion_is_copied_byte_for_byte(real: Path, tmp_path: Path) -> None:
    """The reference's manifest claims millions of rows, because it describes the full run."""
    source = real / "synth_harmony"
    assert list(import_harmony.folder_violations(source)) == []
    assert list(harmony_shard.shards(source)) == ["00", "01", "02", "03"]
    summary = import_shard(source, tmp_path / "shard", "02")
    (path,) = (tmp_path / "shard").iterdir()
    assert path.read_bytes() == (source / path.name).read_bytes()
    assert summary.rows == 250
    manifest = import_manifest(source, tmp_path / "manifest")
    assert manifest.manifest_sha256 == (
        "ace21923e385fa898eda8e81d081bb4b45644339c437c075201b45ff6c567383"
    )
    assert manifest.claimed_rows == 75_958_895
    for name in ("manifest.json", "metadata.json"):
        assert (tmp_path / "manifest" / name).read_bytes() == (source / name).read_bytes()


def test_an_incomplete_folder_is_refused(harmony: Path, tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    assert {v.law for v in import_harmony.folder_violations(folder)} == {
        "manifest",
        "metadata",
        "shards",
    }
    shutil.copy(harmony, folder)
    (folder / "metadata.json").write_text("{}")
    (folder / "manifest.json").write_text('{"schema_version": "other"}')
    assert [v.found for v in import_harmony.folder_violations(folder)] == ["schema_version 'other'"]
    with pytest.raises(GristmillError, match="schema_version 'other'"):
        import_manifest(folder, tmp_path / "a")
    (folder / harmony.name).write_bytes(b"nothing")
    with pytest.raises(GristmillError, match="not a readable Parquet"):
        import_shard(folder, tmp_path / "b", "00")


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("manifest.json", "[]", "manifest.json: manifest: is not a JSON object"),
        ("manifest.json", "[" * 100_000, "manifest.json: manifest: nested deeper than 64 levels"),
        ("manifest.json", "storage", "storage.total_rows is not a number of rows"),
        ("manifest.json", "no number", "storage.total_rows is not a number of rows"),
        ("manifest.json", "below 0", "storage.total_rows is not a number of rows"),
        ("metadata.json", "{", "metadata.json: metadata: cannot be read"),
        ("metadata.json", "null", "metadata.json: metadata: is not a JSON object"),
    ],
)
def test_an_invalid_manifest_is_refused(
    harmony: Path, tmp_path: Path, name: str, text: str, rule: str
) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    shutil.copy(harmony, folder)
    manifest: dict[str, Any] = {"schema_version": "synth_harmony_v1"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "metadata.json").write_text("{}")
    assert list(import_harmony.folder_violations(folder)) == []
    assert import_manifest(folder, tmp_path / "fine").claimed_rows == 0
    storages: dict[str, Any] = {
        "storage": [],
        "no number": {"total_rows": "many"},
        "below 0": {"total_rows": -1},
    }
    if text in storages:
        text = json.dumps(manifest | {"storage": storages[text]})
    (folder / name).write_text(text)
    with pytest.raises(GristmillError, match=rule):
        import_manifest(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
