"""Import of a finished conversion."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gristmill.contract import GristmillError
from gristmill.synth.builders import harmony_shard, import_harmony, manifests
from gristmill.synth.builders.import_harmony import import_manifest, import_shard
from gristmill.untrusted.files import LinkRule


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


def test_a_shard_without_rows_is_refused(harmony: Path, tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"schema_version": "synth_harmony_v1"}')
    (folder / "metadata.json").write_text("{}")
    pq.write_table(pq.read_table(harmony).slice(0, 0), folder / harmony.name)
    (violation,) = import_harmony.folder_violations(folder)
    rule = f"{harmony.name}: rows: has no rows, and a dataset needs all shards: give it a row"
    assert str(violation) == rule
    with pytest.raises(GristmillError) as caught:
        import_shard(folder, tmp_path / "out", "00")
    assert str(caught.value) == f"{folder}: {rule}"


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


@pytest.fixture
def conversion(harmony: Path, tmp_path: Path) -> Path:
    """A finished conversion of one shard."""
    folder = tmp_path / "conversion"
    folder.mkdir()
    shutil.copy(harmony, folder)
    (folder / "manifest.json").write_text('{"schema_version": "synth_harmony_v1"}')
    (folder / "metadata.json").write_text("{}")
    return folder


@pytest.mark.parametrize("name", ["manifest.json", "metadata.json"])
def test_a_json_file_may_be_so_large(
    conversion: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = conversion / name
    text = json.dumps(json.loads(path.read_text()) | {"x": "y" * 100})
    path.write_text(text)
    limits = replace(manifests.LIMITS, bytes=len(text))
    monkeypatch.setattr(manifests, "LIMITS", limits)
    assert list(import_harmony.folder_violations(conversion)) == []
    path.write_text(text + " ")
    (violation,) = import_harmony.folder_violations(conversion)
    assert violation.where == name
    assert violation.found == f"cannot be read: has more than {len(text):,} bytes"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (f'{{"total_rows": {2**53 - 1}}}', None),
        (f'{{"total_rows": {2**53}}}', "storage.total_rows is not a number of rows"),
        (f'{{"x": {"1" * 101}}}', "a number of more than 100 digits"),
        ("[" * 63 + "]" * 63, "storage.total_rows is not a number of rows"),
        ("[" * 64 + "]" * 64, "nested deeper than 64 levels"),
    ],
    ids=["rows", "too many rows", "digits", "levels", "too many levels"],
)
def test_the_numbers_and_levels_of_a_manifest_have_limits(
    conversion: Path, value: str, rule: str | None
) -> None:
    text = f'{{"schema_version": "synth_harmony_v1", "storage": {value}}}'
    (conversion / "manifest.json").write_text(text)
    found = [violation.found for violation in import_harmony.folder_violations(conversion)]
    assert found == ([] if rule is None else [rule])


def test_a_long_version_is_cut(conversion: Path) -> None:
    (conversion / "manifest.json").write_text(json.dumps({"schema_version": "v" * 100_000}))
    (violation,) = import_harmony.folder_violations(conversion)
    assert len(violation.found) == 300


@pytest.mark.parametrize(
    "name", ["manifest.json", "metadata.json", "synth_harmony_shard_00.parquet"]
)
def test_files_that_are_links_are_refused_unless_links_are_allowed(
    conversion: Path, tmp_path: Path, name: str
) -> None:
    target = (conversion / name).rename(tmp_path / "elsewhere")
    (conversion / name).symlink_to(target)
    (violation,) = import_harmony.folder_violations(conversion)
    assert "is a link: a drop may hold regular files" in violation.found
    with pytest.raises(GristmillError, match="is a link"):
        import_manifest(conversion, tmp_path / "out")
    rule = LinkRule(True, (str(tmp_path),))
    assert list(import_harmony.folder_violations(conversion, rule)) == []
    assert import_manifest(conversion, tmp_path / "out", links=rule).claimed_rows == 0
    if name.endswith(".parquet"):
        with pytest.raises(GristmillError, match="is a link"):
            import_shard(conversion, tmp_path / "shard", "00")
        assert not (tmp_path / "shard").exists()
        summary = import_shard(conversion, tmp_path / "shard", "00", links=rule)
        assert (tmp_path / "shard" / name).read_bytes() == target.read_bytes()
        assert not (tmp_path / "shard" / name).is_symlink()
        assert summary.rows > 0
