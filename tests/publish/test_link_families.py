"""What each family publishes in the link form: the bytes of the other form."""

import json
from typing import Any

import pytest

from gristmill.hashing import sha256_file
from gristmill.publish import storage
from tests.report_day import day_of
from tests.sample_root import SampleRoot

pytestmark = pytest.mark.slow


def _payload(root: SampleRoot) -> dict[str, Any]:
    """Data version and payload of each artifact partition, manifests without their times."""
    return {
        f"{record.artifact} {record.partition}": (
            record.data_version,
            {
                item.path: item.content_sha256 or sha256_file(folder / item.path)
                for item in record.outputs
                if item.payload
            },
        )
        for folder, record in root.records()
    }


def _without_paths_of_versions(root: SampleRoot) -> bool:
    """Whether no published text names a version, which the next build removes."""
    names = [folder / item.path for folder, record in root.records() for item in record.outputs]
    texts = [path for path in names if path.suffix in (".json", ".jsonl", ".md", ".html", ".txt")]
    assert len(texts) > 50
    return all(b".gristmill/versions" not in path.read_bytes() for path in texts)


def test_all_samples_in_the_link_form(
    sample_root, vocabulary_root, sample_drops, tmp_path, monkeypatch
):
    monkeypatch.setenv(storage.VARIABLE, "link")
    day = day_of(sample_root.data)
    linked = SampleRoot.build(tmp_path, vocabulary_root, sample_drops, day)
    folders = {folder for folder, _ in linked.records()}
    assert folders and all(
        folder.is_symlink() or any(above.is_symlink() for above in folder.parents)
        for folder in folders
    )
    assert _payload(linked) == _payload(sample_root)
    assert _without_paths_of_versions(linked)
    assert "nothing needed doing" in linked.command("materialize", "--all")
    assert "are as their records say" in linked.command("verify", str(linked.data))
    listed = json.loads(linked.command("ls", str(linked.data), "--json"))
    assert len(listed) == len(linked.records())
    assert {item["state"] for item in listed} == {"current"}
