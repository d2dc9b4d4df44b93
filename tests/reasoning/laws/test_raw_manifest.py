"""Every law of the raw manifest finds what it is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill.reasoning.builders.raw_manifest import write_raw_manifest
from gristmill.reasoning.laws.raw_manifest import raw_manifest_laws
from tests.reasoning.builders.test_raw_manifest import record


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A manifest with one corpus."""
    records = [record("gsm8k__train"), record("gsm8k__test")]
    write_raw_manifest(records, None, tmp_path / "out", generated_at="1")
    return tmp_path / "out" / "manifest.json"


def _laws(path: Path) -> set[str]:
    return {violation.law for violation in raw_manifest_laws(path.parent)}


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda entry: entry.pop("notes"), "keys"),
        (lambda entry: entry.update(more=1), "keys"),
        (lambda entry: entry.update(name=entry.pop("name")), "keys"),
        (lambda entry: entry.update(hf_path="x"), "corpus"),
        (lambda entry: entry.update(name="x"), "corpus"),
        (lambda entry: entry["licence"].pop("id"), "licence"),
        (lambda entry: entry["licence"].update(id="x"), "corpus"),
        (lambda entry: entry.update(licence=None), "licence"),
        (lambda entry: entry["files"]["test"].update(path="x"), "files"),
        (lambda entry: entry["files"]["test"].update(sha256="0"), "files"),
        (lambda entry: entry["files"]["test"].update(bytes=-1), "files"),
        (lambda entry: entry["files"]["test"].update(rejected=True), "files"),
        (lambda entry: entry["files"]["test"].update(records=4), "shapes"),
        (lambda entry: entry["files"].update(test=None), "files"),
        (lambda entry: entry["files"].update(other={}), "files"),
        (lambda entry: entry.update(files=[]), "files"),
        (lambda entry: entry["source_shape"].pop("test"), "shapes"),
        (lambda entry: entry["source_shape"].update(test=3), "shapes"),
    ],
)
def test_a_changed_entry_breaks_its_law(
    manifest: Path, change: Callable[[dict[str, Any]], None], law: str
) -> None:
    assert _laws(manifest) == set()
    content = json.loads(manifest.read_text())
    change(content["gsm8k"])
    manifest.write_text(json.dumps(content, indent=2))
    assert law in _laws(manifest)


@pytest.mark.parametrize(
    ("text", "law"),
    [("", "readable"), ("[]", "readable"), ("{}\n", "form"), ('{"x": 1}', "keys")],
)
def test_a_file_that_is_no_manifest_is_found(manifest: Path, text: str, law: str) -> None:
    manifest.write_text(text)
    assert law in _laws(manifest)


def test_a_missing_manifest_is_found(manifest: Path) -> None:
    manifest.unlink()
    assert _laws(manifest) == {"readable"}
