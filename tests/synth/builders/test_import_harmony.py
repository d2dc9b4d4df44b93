"""Import of a finished conversion."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gristmill.contract import GristmillError
from gristmill.run.progress import Progress, Report
from gristmill.synth.builders import harmony_shard, import_harmony, manifests
from gristmill.synth.builders.import_harmony import import_manifest, import_shard
from gristmill.untrusted.files import LinkRule


@pytest.mark.real
def test_a_finished_conversion_is_copied_byte_for_byte(real, tmp_path):
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


def test_an_incomplete_folder_is_refused(harmony, tmp_path):
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


@pytest.fixture
def conversion(harmony: Path, tmp_path: Path) -> Path:
    """A finished conversion of one shard."""
    folder = tmp_path / "conversion"
    folder.mkdir()
    shutil.copy(harmony, folder)
    (folder / "manifest.json").write_text('{"schema_version": "synth_harmony_v1"}')
    (folder / "metadata.json").write_text("{}")
    return folder


def test_a_shard_without_rows_is_refused(conversion, harmony, tmp_path):
    pq.write_table(pq.read_table(harmony).slice(0, 0), conversion / harmony.name)
    (violation,) = import_harmony.folder_violations(conversion)
    rule = f"{harmony.name}: rows: has no rows, and a dataset needs all shards: give it a row"
    assert str(violation) == rule
    with pytest.raises(GristmillError) as caught:
        import_shard(conversion, tmp_path / "out", "00")
    assert str(caught.value) == f"{conversion}: {rule}"


_STORAGE = '{"schema_version": "synth_harmony_v1", "storage": %s}'
_NO_NUMBER = "storage.total_rows is not a number of rows"


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("manifest.json", "{}", "schema_version None"),
        ("manifest.json", "[]", "is not a JSON object"),
        ("manifest.json", "[" * 100_000, "nested deeper than 64 levels"),
        (
            "manifest.json",
            json.dumps({"schema_version": "v" * 999}),
            "schema_version '" + "v" * 284,
        ),
        ("manifest.json", _STORAGE % "{}", None),
        ("manifest.json", _STORAGE % "[]", _NO_NUMBER),
        ("manifest.json", _STORAGE % '{"total_rows": "many"}', _NO_NUMBER),
        ("manifest.json", _STORAGE % '{"total_rows": -1}', _NO_NUMBER),
        ("manifest.json", _STORAGE % f'{{"total_rows": {2**53 - 1}}}', None),
        ("manifest.json", _STORAGE % f'{{"total_rows": {2**53}}}', _NO_NUMBER),
        ("manifest.json", _STORAGE % f'{{"x": {"1" * 101}}}', "a number of more than 100 digits"),
        ("manifest.json", _STORAGE % ("[" * 63 + "]" * 63), _NO_NUMBER),
        ("manifest.json", _STORAGE % ("[" * 64 + "]" * 64), "nested deeper than 64 levels"),
        ("metadata.json", "{", "cannot be read: "),
        ("metadata.json", "null", "is not a JSON object"),
    ],
)
def test_both_json_files_are_objects_within_limits(conversion, tmp_path, name, text, rule):
    (conversion / name).write_text(text)
    found = [(each.where, each.found) for each in import_harmony.folder_violations(conversion)]
    if rule is None:
        assert found == []
        claimed = import_manifest(conversion, tmp_path / "fine").claimed_rows
        assert claimed == json.loads(text)["storage"].get("total_rows", 0)
        return
    ((where, words),) = found
    assert where == name and words.startswith(rule) and len(words) <= 300
    with pytest.raises(GristmillError) as raised:
        import_manifest(conversion, tmp_path / "out")
    assert str(raised.value).startswith(f"{conversion}: {name}: {name.partition('.')[0]}: {rule}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["manifest.json", "metadata.json"])
def test_a_json_file_may_be_so_large(conversion, name, monkeypatch):
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
    "name", ["manifest.json", "metadata.json", "synth_harmony_shard_00.parquet"]
)
def test_files_that_are_links_are_refused_unless_links_are_allowed(conversion, tmp_path, name):
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


def test_an_imported_shard_reports_its_rows(harmony, tmp_path):
    reports: list[Report] = []
    import_shard(harmony.parent, tmp_path / "out", "00", progress=Progress(reports.append, 0.0))
    rows = pq.read_metadata(harmony).num_rows
    assert reports[-1] == Report("digest", rows, rows, "rows")
