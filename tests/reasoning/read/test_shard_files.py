"""A file that is opened when it is read is of the version that was opened, or refused.

Checksums of shards: every difference between disk, metas and manifest is found.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.hashing import sha256_file
from gristmill.provenance import RECORD
from gristmill.reading import StaleDataset, Verify
from gristmill.reading.folder import Generation, opened
from gristmill.reasoning.builders.manifest import write_manifest
from gristmill.reasoning.format import names
from gristmill.reasoning.read.shard_files import reopened, verify_shards
from tests.chess.laws.damage import flip
from tests.paths import open_below
from tests.reading.tiny import Tiny, tiny
from tests.reasoning import shard_folders
from tests.reasoning.shard_folders import SmallShards

__all__ = ["tiny"]


def known(folder: Path) -> Generation:
    _, found = opened(lambda opening: opening.folder(folder).check("a.bin"), "sizes")
    return found[(folder, RECORD)]


def read(generation: Generation, level: Verify = "sizes") -> bytes:
    with reopened(generation, RECORD, "a.bin", level) as path:
        return path.read_bytes()


def test_a_file_is_read_after_a_rebuild_with_an_equal_payload_and_no_other(tiny: Tiny) -> None:
    generation, descriptors = known(tiny.folder), open_below(tiny.root)
    assert read(generation) == b"0000"
    tiny.publish(1)
    with pytest.raises(StaleDataset, match=r"tiny/p: was rebuilt .*; now there is data version"):
        read(generation)
    tiny.publish(0)
    assert read(generation, "hash") == b"0000"
    (tiny.folder / "a.bin").write_bytes(b"0001")
    with pytest.raises(BadInput, match=r"a\.bin: does not have the sha256"):
        read(generation, "hash")
    (tiny.folder / "a.bin").unlink()
    with pytest.raises(BadInput, match=r"a\.bin: is missing: build the artifact again"):
        read(generation)
    assert open_below(tiny.root) == descriptors


def test_errors_in_the_body_name_the_file(tiny: Tiny) -> None:
    with (
        pytest.raises(BadInput, match=r"tiny/p/a\.bin: cannot be read"),
        reopened(known(tiny.folder), RECORD, "a.bin", "sizes"),
    ):
        raise ValueError("broken")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> SmallShards:
    """Shards with their manifest, below a data root with the raw manifest."""
    root = tmp_path_factory.mktemp("root")
    shards = shard_folders.build(root / "made", vocabulary_root)
    tokenized = root / names.TOKENIZED
    tokenized.parent.mkdir(parents=True)
    shards.tokenized.rename(tokenized)
    shards.normalized.rename(root / names.NORMALIZED)
    shards = replace(shards, normalized=root / names.NORMALIZED, tokenized=tokenized)
    write_manifest(tokenized, root / "manifest", ["gsm8k__train"])
    for name in (names.MANIFEST, names.INDEX):
        (root / "manifest" / name).rename(tokenized / name)
    path = names.normalized("gsm8k", "train")
    file = {"path": path, "sha256": sha256_file(shards.normalized / path)}
    manifest = {"gsm8k": {"files": {"train": file}}, "wiqa": {}}
    (shards.normalized / names.MANIFEST).write_text(json.dumps(manifest))
    return shards


@pytest.fixture
def copied(built: SmallShards, tmp_path: Path) -> SmallShards:
    shards = built.copied(tmp_path)
    folder = tmp_path / names.TOKENIZED
    folder.parent.mkdir(parents=True)
    shards.tokenized.rename(folder)
    shards.normalized.rename(tmp_path / names.NORMALIZED)
    return replace(shards, tokenized=folder, normalized=tmp_path / names.NORMALIZED)


def found(shards: SmallShards) -> list[str]:
    return [str(each) for each in verify_shards(shards.tokenized)]


def test_a_published_folder_has_no_difference(built: SmallShards, copied: SmallShards) -> None:
    assert found(built) == []
    meta = copied.metas()[0]
    copied.write_meta(replace(meta, num_sequences=6, seq_len=4))
    assert any(": shape: is (3, 8)" in each for each in found(copied))
    one, two = copied.metas()[:2]
    copied.write_meta(two, one.path)
    assert any(": path: is that of " in each for each in found(copied))


def test_metas_with_the_seed_s_keys_alone_are_enough(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b" / "c"
    shard_folders.write_folder(root, {"gsm8k/train": [3, 2]})
    assert verify_shards(root) == []


def edit_manifest(shards: SmallShards, change: Callable[[list[dict[str, object]]], object]) -> None:
    path = shards.tokenized / names.MANIFEST
    entries = json.loads(path.read_bytes())
    change(entries)
    path.write_text(json.dumps(entries))


def first(shards: SmallShards) -> Path:
    return shards.tokenized / shards.metas()[0].path


CHANGES: dict[str, tuple[Callable[[SmallShards], object], set[str]]] = {
    "id": (lambda s: flip(first(s), 704), {": sha256: ", ": file_sha256: "}),
    "zip": (lambda s: flip(first(s), 3), {": shard: "}),
    "no shard": (lambda s: first(s).unlink(), {": orphan: "}),
    "no meta": (
        lambda s: (s.tokenized / names.meta(s.metas()[0].path)).unlink(),
        {": orphan: ", ": manifest: lists "},
    ),
    "other meta": (
        lambda s: s.write_meta(replace(s.metas()[0], first_example="x")),
        {": manifest: differs from "},
    ),
    "no json": (
        lambda s: (s.tokenized / names.meta(s.metas()[0].path)).write_text("{"),
        {": meta: ", ": orphan: ", ": manifest: lists "},
    ),
    "other keys": (
        lambda s: (s.tokenized / names.meta(s.metas()[0].path)).write_text("{}"),
        {": meta: its first keys", ": orphan: ", ": manifest: lists "},
    ),
    "unlisted": (lambda s: edit_manifest(s, lambda e: e.pop()), {": manifest: does not list "}),
    "twice": (lambda s: edit_manifest(s, lambda e: e.append(e[0])), {"lists a shard twice"}),
    "no list": (
        lambda s: (s.tokenized / names.MANIFEST).write_text("5"),
        {": manifest: is no list"},
    ),
    "no manifest": (lambda s: (s.tokenized / names.MANIFEST).unlink(), {": manifest: is missing"}),
    "normalised": (
        lambda s: flip(s.normalized / names.normalized("gsm8k", "train"), 20),
        {": normalised file: has "},
    ),
    "no normalised": (
        lambda s: (s.normalized / names.normalized("gsm8k", "train")).unlink(),
        {": normalised file: cannot be read"},
    ),
    "raw manifest": (
        lambda s: (s.normalized / names.MANIFEST).write_text("[]"),
        {": raw manifest: cannot be read"},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(copied: SmallShards, change: str) -> None:
    make, expected = CHANGES[change]
    make(copied)
    differences = found(copied)
    assert len(differences) == len(expected), differences
    for rule in expected:
        assert any(rule in each for each in differences), differences


def test_a_split_that_was_removed_with_its_record_is_no_difference(copied: SmallShards) -> None:
    normalized = copied.normalized
    listed = json.loads((normalized / names.MANIFEST).read_bytes())
    (normalized / listed["gsm8k"]["files"]["train"]["path"]).unlink()
    assert any("normalised file" in each for each in found(copied))
    records = normalized / "provenance"
    records.mkdir()
    assert found(copied) == []
    (records / "gsm8k__train.json").write_text("{}")
    assert any("normalised file" in each for each in found(copied))
