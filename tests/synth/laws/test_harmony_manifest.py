"""Laws of the two JSON files of a Harmony dataset."""

from pathlib import Path

import pytest

from gristmill.families import Subject
from gristmill.synth.laws import harmony_manifest_law as law


@pytest.mark.parametrize(
    ("manifest", "metadata", "files"),
    [
        ("{}", "{}", []),
        ("[]", "{}", ["manifest.json"]),
        ("{}", "{", ["metadata.json"]),
        (None, "null", ["manifest.json", "metadata.json"]),
    ],
)
def test_both_files_must_be_json_objects(
    tmp_path: Path, manifest: str | None, metadata: str, files: list[str]
) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    (tmp_path / "metadata.json").write_text(metadata)
    violations = list(law(Subject(tmp_path, "manifest")))
    assert [(v.law, v.where) for v in violations] == [("readable", file) for file in files]
