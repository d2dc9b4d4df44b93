"""Laws of splice caches: each one finds the damage that it is there for."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.chess import CacheConfig, GameConfig, build_game_dataset, build_splice_cache
from gristmill.chess.format.folders import LAYOUT
from gristmill.chess.laws.splice_cache import cache_laws
from gristmill.families import Subject
from tests.chess.laws.damage import cut, edit, edit_json, flip, grow


def manifest(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    edit_json(path / "manifest.json", change)


def add(path: Path, name: str, at: int, value: int, dtype: str) -> None:
    """Change one element of val, and its hash in the manifest: only the rows can tell."""
    array = np.fromfile(path / "val" / name, dtype)
    array[at] += value
    (path / "val" / name).write_bytes(array.tobytes())
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    manifest(path, lambda m: m["splits"]["val"]["files"][name].update(sha256=digest))


@pytest.mark.parametrize(
    ("law", "damage"),
    [
        ("missing_manifest", lambda p: (p / "manifest.json").unlink()),
        ("invalid_manifest_json", lambda p: (p / "manifest.json").write_text("[")),
        ("invalid_manifest_json", lambda p: (p / "manifest.json").write_text("{}")),
        (
            "manifest_complete",
            lambda p: manifest(p, lambda m: m["splits"]["val"].pop("files")),
        ),
        (
            "manifest_complete",
            lambda p: manifest(p, lambda m: m["splits"]["val"]["source"].pop("sha256")),
        ),
        (
            "manifest_complete",
            lambda p: manifest(p, lambda m: m["splits"]["val"].pop("sample_rows_total")),
        ),
        ("readable_json", lambda p: (p / "vocab_rows_meta.json").write_text("{}")),
        ("manifest_kind_unexpected", lambda p: manifest(p, lambda m: m.update(kind="x"))),
        ("manifest_complete", lambda p: manifest(p, lambda m: m["splits"].pop("test"))),
        ("missing_file", lambda p: (p / "val" / "offsets.u64.bin").unlink()),
        ("row_count_mismatch", lambda p: (p / "val" / "path_ids.u32.bin").write_bytes(b"")),
        ("whole_elements", lambda p: (p / "val" / "path_ids.u32.bin").write_bytes(b"x")),
        ("bytes_as_manifest", lambda p: flip(p / "test" / "splice_indices.u32.bin", 0)),
        ("invalid_paths_json", lambda p: (p / "val" / "paths.json").write_text("[")),
        ("paths_json_empty_or_invalid", lambda p: (p / "val" / "paths.json").write_text("[]")),
        ("paths_of_split", lambda p: (p / "val" / "paths.json").write_text('["/x/train.jsonl"]')),
        ("games_of_samples", lambda p: cut(p / "val" / "sample_games.u32.bin")),
        ("games_of_samples", lambda p: grow(p / "val" / "sample_games.u32.bin")),
        ("games_of_samples", lambda p: (p / "val" / "sample_games.u32.bin").unlink()),
        ("source_unchanged", lambda p: edit(p.parent / "val.jsonl", b"1-0", b"0-1")),
        ("source_path_missing", lambda p: (p.parent / "val.jsonl").unlink()),
        (
            "one_config",
            lambda p: manifest(p, lambda m: m["splits"]["test"]["config"].update(min_context=3)),
        ),
        (
            "samples_counted",
            lambda p: manifest(p, lambda m: m["splits"]["val"].update(sample_rows_total=7)),
        ),
    ],
)
def test_damage_to_a_cache_breaks_its_law(
    copy: Path, law: str, damage: Callable[[Path], object]
) -> None:
    path = copy / "game" / "runtime_splice_cache"
    damage(path)
    assert law in {violation.law for violation in cache_laws(Subject(path))}


@pytest.mark.parametrize("has_sidecar", [True, False])
@pytest.mark.parametrize(
    ("law", "damage"),
    [
        ("offsets_start_lines", lambda p: add(p, "offsets.u64.bin", 3, 1, "<u8")),
        ("splice_indices_in_games", lambda p: add(p, "splice_indices.u32.bin", 50, 9999, "<u4")),
        ("phases_rederived", lambda p: add(p, "sample_phase_ids.u8.bin", 2, 1, "|u1")),
        ("path_ids", lambda p: add(p, "path_ids.u32.bin", 1, 1, "<u4")),
        ("games_of_samples", lambda p: flip(p / "val" / "sample_games.u32.bin", 7, 128)),
        ("games_of_samples", lambda p: grow(p / "val" / "sample_games.u32.bin")),
        ("vocabulary_of_train", lambda p: edit(p / "vocab_rows_meta.json", b'"e2e4"', b'"e2e5"')),
    ],
)
def test_every_element_of_a_cache_without_a_record_is_compared_with_the_rows(
    copy: Path, law: str, damage: Callable[[Path], object], has_sidecar: bool
) -> None:
    path = copy / "game" / "runtime_splice_cache"
    if not has_sidecar:
        shutil.rmtree(copy / "game" / "sidecar")
    assert list(cache_laws(Subject(path, has_record=False))) == []
    damage(path)
    found = {violation.law for violation in cache_laws(Subject(path, has_record=False))}
    # Only a sidecar has the numbers of the games.
    assert found == ({law} if has_sidecar or law != "games_of_samples" else set())


def test_a_cache_from_a_sidecar_with_wrong_phases_breaks_a_law_without_a_record(copy: Path) -> None:
    for split in ("train", "val", "test"):
        codes = copy / "game" / "sidecar" / f"{split}.phases.bin"
        codes.write_bytes(bytes(code ^ 3 for code in codes.read_bytes()))
    cache = copy / "game" / "runtime_splice_cache"
    shutil.rmtree(cache)
    build_splice_cache(copy / "game", cache)
    assert list(cache_laws(Subject(cache))) == []
    assert {v.law for v in cache_laws(Subject(cache, has_record=False))} == {"phases_rederived"}


def test_a_cache_outside_its_dataset_names_the_folder_of_its_rows(
    valid: Path, tmp_path: Path
) -> None:
    config = GameConfig(split="shuffle", games="all")
    build_game_dataset(valid, tmp_path / "shuffled", config)
    cache = tmp_path / "elsewhere"
    build_splice_cache(tmp_path / "shuffled", cache, CacheConfig(max_samples_per_game=3))
    assert list(cache_laws(Subject(cache))) == []
    (tmp_path / "shuffled").rename(tmp_path / "moved")
    assert {v.law for v in cache_laws(Subject(cache))} >= {"source_path_missing"}
    assert list(cache_laws(Subject(cache, inputs=[tmp_path / "moved"]))) == []


def test_the_manifest_of_another_program_need_not_name_its_source(copy: Path) -> None:
    path = copy / "game" / "runtime_splice_cache"
    manifest(path, lambda m: [entry.pop("source") for entry in m["splits"].values()])
    assert {violation.law for violation in cache_laws(Subject(path))} == {"source_unchanged"}
    subject = Subject(path, has_record=False)
    assert list(cache_laws(subject)) == []
    assert subject.left_out == ["source_unchanged: where the manifest does not name the source"]


def test_samples_after_the_last_row_break_a_law(copy: Path) -> None:
    path = copy / "game" / "runtime_splice_cache"
    for name, dtype in LAYOUT.items():
        array = np.fromfile(path / "val" / name, dtype)
        data = np.append(array, array[-1:]).tobytes()
        (path / "val" / name).write_bytes(data)
        recorded = {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        manifest(path, lambda m, n=name, r=recorded: m["splits"]["val"]["files"][n].update(r))
    samples = len(array) + 1
    manifest(path, lambda m: m["splits"]["val"].update(sample_rows_total=samples))
    assert {(v.law, v.found) for v in cache_laws(Subject(path, has_record=False))} == {
        (law, "has samples of no row")
        for law in (
            "path_ids",
            "offsets_start_lines",
            "splice_indices_in_games",
            "phases_rederived",
        )
    }
