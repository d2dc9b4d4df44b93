"""What is fetched has the bytes of the manifest, part by part and as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import GristmillError
from gristmill.mirror.fetch import Fetcher
from gristmill.mirror.layout import File, Manifest, object_key, sha256_of
from gristmill.mirror.store import Store
from gristmill.run.progress import SILENT

PARTS = [b"a" * 64, b"b" * 64, b"c" * 9]


def fetched(folder: Path, sha256: str) -> Path:
    """Fetch a file of three parts, which a manifest says to have this sha256."""
    store = Store(str(folder / "mirror"))
    for part in PARTS:
        store.create(object_key(sha256_of(part)), part)
    size = sum(map(len, PARTS))
    file = File(path="a/new/b.bin", bytes=size, sha256=sha256, parts=[*map(sha256_of, PARTS)])
    manifest = Manifest(
        artifact="family/tiny",
        partition=None,
        shared=False,
        record="provenance.json",
        part_bytes=64,
        files=[file],
    )
    with SILENT.stage("fetch", "bytes", size) as stage:
        fetcher = Fetcher(store, 2, stage)
        try:
            fetcher.fetch(manifest, folder / "out")
        finally:
            fetcher.close()
    return folder / "out/a/new/b.bin"


def test_parts_are_put_together_in_their_order(tmp_path: Path) -> None:
    whole = b"".join(PARTS)
    assert fetched(tmp_path, sha256_of(whole)).read_bytes() == whole


def test_a_file_of_right_parts_that_is_another_as_a_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GristmillError, match="after it was fetched, 0000"):
        fetched(tmp_path, "0" * 64)
    assert not (tmp_path / "out/a/new/b.bin").exists()
