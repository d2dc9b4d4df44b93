"""The data version of a manifest: its contents, without times and places."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from gristmill.synth.builders.manifests import content_note


def _manifest(root: str = "data/x", **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "v1",
        "created_unix_s": 7,
        "git_sha": "abc",
        "dataset_dir": root,
        "input": {"manifest_path": f"{root}/manifest.json", "manifest_sha256": "00", "glob": "*"},
        "tokenizer": {"model_path": "data/v", "vocab_size": 5},
        "shards": [{"path": f"{root}/a", "bytes": 3}],
        "about": "data/xylophone",
    } | changes


def test_the_digest_is_of_json_without_times_and_places() -> None:
    text = (
        '{"about":"data/xylophone","input":{"glob":"*"},"schema_version":"v1",'
        '"shards":[{"bytes":3,"path":"/a"}],"tokenizer":{"vocab_size":5}}'
    )
    note = content_note(_manifest(), ["data/x"])
    assert note.payload
    assert note.content_sha256 == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        _manifest(created_unix_s=8),
        _manifest(git_sha=None),
        _manifest(input={"manifest_path": "b", "manifest_sha256": "11", "glob": "*"}),
        _manifest(tokenizer={"model_path": "elsewhere/v", "vocab_size": 5}),
    ],
)
def test_times_and_places_leave_the_data_version_alone(other: dict[str, Any]) -> None:
    assert content_note(other, ["data/x"]) == content_note(_manifest(), ["data/x"])


def test_another_data_root_leaves_the_data_version_alone() -> None:
    here, there = (
        content_note(_manifest(), ["data/x"]),
        content_note(_manifest("lake/x"), ["lake/x"]),
    )
    assert here == there


@pytest.mark.parametrize(
    "other",
    [
        _manifest(schema_version="v2"),
        _manifest(shards=[{"path": "data/x/a", "bytes": 4}]),
        _manifest(shards=[{"path": "data/x/b", "bytes": 3}]),
        _manifest(shards=[]),
        _manifest(about="data/x/ylophone"),
        _manifest(tokenizer={"model_path": "data/v", "vocab_size": 6}),
    ],
)
def test_other_contents_change_the_data_version(other: dict[str, Any]) -> None:
    assert content_note(other, ["data/x"]) != content_note(_manifest(), ["data/x"])
