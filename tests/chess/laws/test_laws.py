"""Every law holds of what is built, and each breach of one is found and named."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gristmill.chess import (
    CacheConfig,
    GameConfig,
    SpliceConfig,
    ValidateConfig,
    build_game_dataset,
    build_splice_cache,
    build_splice_dataset,
    validate,
)
from gristmill.chess.build.splits import SplitLeakage
from gristmill.chess.format.cache_arrays import LAYOUT
from gristmill.chess.laws.game_dataset import dataset_laws
from gristmill.chess.laws.splice_cache import cache_laws
from gristmill.chess.laws.splice_dataset import splice_laws
from gristmill.chess.laws.validate import validated_laws
from gristmill.chess.read.row_batches import RowBatch
from gristmill.families import Subject, check


@pytest.fixture(scope="module")
def built(valid: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("laws")
    shutil.copytree(valid, root / "valid")
    build_game_dataset(valid, root / "game")
    build_splice_cache(root / "game", root / "game" / "runtime_splice_cache")
    build_splice_dataset(valid, root / "splice", SpliceConfig(max_samples_per_game=8))
    return root


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


def edit(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def edit_json(path: Path, change: Callable[[dict], None]) -> None:  # type: ignore[type-arg]
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def flip(path: Path, at: int, by: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= by
    path.write_bytes(data)


def test_all_laws_hold(built: Path, valid: Path, tmp_path: Path) -> None:
    for asset, folder in (
        ("chess/valid_games", built / "valid"),
        ("chess/game_dataset", built / "game"),
        ("chess/splice_cache", built / "game" / "runtime_splice_cache"),
        ("chess/splice_dataset", built / "splice"),
    ):
        assert list(check(asset, Subject(folder))) == []
    build_game_dataset(valid, tmp_path / "shuffled", GameConfig(split="shuffle", allow_draws=True))
    assert list(dataset_laws(tmp_path / "shuffled")) == []
    build_splice_cache(
        tmp_path / "shuffled", tmp_path / "aside", CacheConfig(max_samples_per_game=3)
    )
    assert list(cache_laws(tmp_path / "aside")) == []


@pytest.mark.parametrize(
    ("law", "breach"),
    [
        ("rows_as_sidecar", lambda p: edit(p / "valid_games.jsonl", b'"e2e4"', b'"e2e3"')),
        (
            "winner_of_result",
            lambda p: edit(p / "valid_games.jsonl", b'"W", "plies"', b'"B", "plies"'),
        ),
        ("phases_rederived", lambda p: flip(p / "sidecar" / "games.phases.bin", 40, 2)),
        ("rows_as_sidecar", lambda p: flip(p / "sidecar" / "games.games.bin", 32)),
        ("has_sidecar", lambda p: (p / "sidecar" / "games.games.bin").unlink()),
        (
            "valid_counted",
            lambda p: edit_json(p / "summary.json", lambda s: s.update(valid_games=3)),
        ),
        ("invalid_counted", lambda p: edit(p / "invalid_games.csv", b"\r\n", b"\r\nx,y\r\n")),
        ("plies_profiled", lambda p: edit_json(p / "profile.json", lambda s: s.update(plies=1))),
        ("readable_json", lambda p: (p / "summary.json").write_text("{")),
        ("readable_json", lambda p: (p / "summary.json").write_text("{}")),
        ("readable_json", lambda p: (p / "profile.json").unlink()),
        ("plies_profiled", lambda p: edit_json(p / "profile.json", lambda s: s.pop("plies"))),
        ("has_key", lambda p: edit_json(p / "summary.json", lambda s: s.pop("total_games"))),
        (
            "artifact_complete",
            lambda p: edit_json(p / "summary.json", lambda s: s.update(invalid_reason_counts=1)),
        ),
        ("readable_csv", lambda p: (p / "invalid_games.csv").unlink()),
        ("readable_csv", lambda p: (p / "invalid_games.csv").write_bytes(b"\xff\xfe\r\n")),
        ("rows_as_sidecar", lambda p: (p / "valid_games.jsonl").unlink()),
    ],
)
def test_breaches_of_validated_games(
    copy: Path, law: str, breach: Callable[[Path], object]
) -> None:
    breach(copy / "valid")
    found = list(validated_laws(copy / "valid"))
    assert law in {violation.law for violation in found}
    assert not any(str(copy) in violation.where for violation in found)


def test_an_error_text_may_be_longer_than_a_csv_field_is_by_default(copy: Path) -> None:
    path = copy / "valid"
    limit = csv.field_size_limit()
    with (path / "invalid_games.csv").open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(["", "x.pgn", "pgn_errors", 0, "*", "e" * (limit + 1), 0])

    def more(summary: dict) -> None:  # type: ignore[type-arg]
        summary["total_games"] += 1
        summary["invalid_games"] += 1
        summary["invalid_reason_counts"]["pgn_errors"] = (
            summary["invalid_reason_counts"].get("pgn_errors", 0) + 1
        )

    edit_json(path / "summary.json", more)
    assert list(validated_laws(path)) == []
    assert csv.field_size_limit() == limit


def straddle(path: Path) -> None:
    """File a train game in val too, with a sidecar to match."""
    from gristmill.chess.format.sidecar import GAME, Sidecar, write_rows

    line = (path / "train.jsonl").read_bytes().split(b"\n")[0] + b"\n"
    val = (path / "val.jsonl").read_bytes()
    train = Sidecar.open(path, "train")
    assert train
    record = train.records(0, 1).copy()
    codes = train.phases(0, int(record["plies"][0])).tobytes()
    record["row"] = len(val)
    (path / "val.jsonl").write_bytes(val + line)
    for name, piece in (("games", record.tobytes()), ("phases", codes)):
        file = path / "sidecar" / f"val.{name}.bin"
        file.write_bytes(file.read_bytes() + piece)
    assert GAME.itemsize == len(record.tobytes())
    counts = {s: (path / f"{s}.jsonl").read_bytes().count(b"\n") for s in ("train", "val", "test")}
    write_rows(path, {s: (path / f"{s}.jsonl", n) for s, n in counts.items()})
    edit_json(path / "stats.json", lambda s: s.update(split_games=counts))


@pytest.mark.parametrize(
    ("law", "breach"),
    [
        ("no_leakage", straddle),
        ("split_of_moves", straddle),
        (
            "rows_as_sidecar",
            lambda p: edit(p / "val.jsonl", b'"moves": ["', b'"moves": ["a2a3", "'),
        ),
        ("rows_noted", lambda p: edit(p / "val.jsonl", b"1-0", b"0-1")),
        ("phases_rederived", lambda p: flip(p / "sidecar" / "test.phases.bin", 9, 3)),
        ("missing_file", lambda p: (p / "test.jsonl").unlink()),
        ("readable_json", lambda p: (p / "stats.json").write_text("{}")),
        ("has_key", lambda p: edit_json(p / "stats.json", lambda s: s.pop("split_games"))),
        (
            "artifact_complete",
            lambda p: edit_json(p / "stats.json", lambda s: s["split_games"].pop("val")),
        ),
        ("artifact_complete", lambda p: (p / "sidecar" / "rows.json").write_text("{")),
        ("rows_noted", lambda p: (p / "sidecar" / "rows.json").write_text('{"x": {}}')),
        ("games_decisive", lambda p: edit(p / "val.jsonl", b'"W"', b'"D"')),
        (
            "games_counted",
            lambda p: edit_json(p / "stats.json", lambda s: s["split_games"].update(val=1)),
        ),
        (
            "games_spliceable",
            lambda p: edit_json(
                p / "stats.json", lambda s: s["runtime_splice_defaults"].update(min_context=90)
            ),
        ),
    ],
)
def test_breaches_of_game_datasets(copy: Path, law: str, breach: Callable[[Path], object]) -> None:
    breach(copy / "game")
    assert law in {violation.law for violation in dataset_laws(copy / "game")}


def manifest(path: Path, change: Callable[[dict], None]) -> None:  # type: ignore[type-arg]
    edit_json(path / "manifest.json", change)


def add(path: Path, name: str, at: int, value: int, dtype: str) -> None:
    """Change one element and vouch for the bytes in the manifest: only the rows can tell."""
    import hashlib

    array = np.fromfile(path / "val" / name, dtype)
    array[at] += value
    (path / "val" / name).write_bytes(array.tobytes())
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    manifest(path, lambda m: m["splits"]["val"]["files"][name].update(sha256=digest))


@pytest.mark.parametrize(
    ("law", "breach"),
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
        ("offsets_start_lines", lambda p: add(p, "offsets.u64.bin", 3, 1, "<u8")),
        ("splice_indices_in_games", lambda p: add(p, "splice_indices.u32.bin", 50, 9999, "<u4")),
        ("phases_rederived", lambda p: add(p, "sample_phase_ids.u8.bin", 2, 1, "|u1")),
        ("path_ids", lambda p: add(p, "path_ids.u32.bin", 1, 1, "<u4")),
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
        ("vocabulary_of_train", lambda p: edit(p / "vocab_rows_meta.json", b'"e2e4"', b'"e2e5"')),
    ],
)
def test_breaches_of_caches(copy: Path, law: str, breach: Callable[[Path], object]) -> None:
    path = copy / "game" / "runtime_splice_cache"
    breach(path)
    assert law in {violation.law for violation in cache_laws(path)}


@pytest.mark.parametrize(
    ("law", "breach"),
    [
        ("missing_file", lambda p: (p / "val.jsonl").unlink()),
        ("samples_counted", lambda p: edit(p / "val.jsonl", b"\n", b"\n\n")),
        (
            "sample_rows",
            lambda p: edit(p / "val.jsonl", b'"context": ["', b'"context": ["a2a3", "'),
        ),
        ("sample_rows", lambda p: edit(p / "val.jsonl", b'"next_move": "', b'"next_move": "x')),
        ("sample_rows", lambda p: edit(p / "val.jsonl", b"late", b"early")),
        ("sample_rows", lambda p: edit(p / "val.jsonl", b'"phase": "middlegame"', b'"phase": "x"')),
        ("readable_json", lambda p: (p / "stats.json").write_text("{}")),
        ("has_key", lambda p: edit_json(p / "stats.json", lambda s: s.pop("params"))),
        (
            "artifact_complete",
            lambda p: edit_json(p / "stats.json", lambda s: s["split_samples"].pop("val")),
        ),
        (
            "phases_counted",
            lambda p: edit_json(p / "stats.json", lambda s: s["split_phase_counts"].update(val={})),
        ),
    ],
)
def test_breaches_of_splices(copy: Path, law: str, breach: Callable[[Path], object]) -> None:
    breach(copy / "splice")
    assert law in {violation.law for violation in splice_laws(copy / "splice")}


def copy_to_val(path: Path, new_id: str = "") -> None:
    """File all rows of a train game that shows all its moves in val too, counted."""
    lines = (path / "train.jsonl").read_bytes().splitlines(keepends=True)
    whole = next(row for row in map(json.loads, lines) if row["plies_remaining"] <= 4)["game_id"]
    mine = [line for line in lines if json.loads(line)["game_id"] == whole]
    phases = [json.loads(line)["phase"] for line in mine]
    text = b"".join(mine).replace(whole.encode(), (new_id or whole).encode())
    (path / "val.jsonl").write_bytes((path / "val.jsonl").read_bytes() + text)

    def more(stats: dict) -> None:  # type: ignore[type-arg]
        stats["split_samples"]["val"] += len(mine)
        for phase in phases:
            counts = stats["split_phase_counts"]["val"]
            counts[phase] = counts.get(phase, 0) + 1

    edit_json(path / "stats.json", more)


@pytest.mark.parametrize("new_id", ["", "f" * 40])
def test_the_same_moves_in_two_splits_of_splices(copy: Path, new_id: str) -> None:
    copy_to_val(copy / "splice", new_id)
    found = list(splice_laws(copy / "splice"))
    assert [(v.law, v.found) for v in found] == [
        ("no_leakage", "1 move sequences in more than one split")
    ]


@pytest.mark.parametrize("cap", [0, 1])
def test_the_same_id_in_two_splits_of_shuffled_splices(
    valid: Path, tmp_path: Path, cap: int
) -> None:
    config = SpliceConfig(split="shuffle", max_samples_per_game=cap)
    build_splice_dataset(valid, tmp_path / "splice", config)
    assert list(splice_laws(tmp_path / "splice")) == []
    copy_to_val(tmp_path / "splice", "f" * 40)
    assert list(splice_laws(tmp_path / "splice")) == []
    copy_to_val(tmp_path / "splice")
    assert [(v.law, v.found) for v in splice_laws(tmp_path / "splice")] == [
        ("no_leakage", "1 game ids in more than one split")
    ]


def test_earlier_ids_that_collide_are_no_leak_where_moves_decide(tmp_path: Path) -> None:
    """Games with the same first 16 plies share their id (docs/formats/chess.md#reference-ids)."""
    start = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O"
    pgn = tmp_path / "x.pgn"
    pgn.write_text(
        "".join(
            f'[Event "E"]\n[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n{start} 9. {n} 1-0\n\n'
            for n in ("h3", "d4", "a4", "Na3", "Bc2", "d3", "a3", "h4", "g3", "Qe2", "Re2", "Nh4")
        )
    )
    validate([pgn], tmp_path / "valid", ValidateConfig(compat="reference"))
    summary = build_splice_dataset(tmp_path / "valid", tmp_path / "splice")
    assert [summary.games[split] for split in ("train", "val", "test")] == [1, 1, 1]
    assert list(splice_laws(tmp_path / "splice")) == []


def test_a_split_that_leaks_is_not_built(
    valid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_place(block: RowBatch, *_: object) -> NDArray[np.uint8]:
        return (np.arange(len(block.columns)) % 2).astype(np.uint8)

    monkeypatch.setattr("gristmill.chess.build.splits.splits_of", by_place)
    for build, config in (
        (build_game_dataset, GameConfig(allow_draws=True, min_context=1)),
        (build_splice_dataset, SpliceConfig(allow_draws=True, min_context=1)),
    ):
        with pytest.raises(SplitLeakage, match="move sequences stand in more than one split"):
            build(valid, tmp_path / build.__name__, config)  # type: ignore[operator]


FOLDERS = {
    "chess/valid_games": "valid",
    "chess/game_dataset": "game",
    "chess/splice_cache": "game/runtime_splice_cache",
}


def test_a_sample_of_games_is_replayed_the_same_each_time(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gristmill.chess.laws.rows._REPLAYED", 4)
    for asset, folder in FOLDERS.items():
        assert list(check(asset, Subject(copy / folder, sampled=True))) == []
    # One code that is wrong is found by the whole replay; if all are, by any sample.
    codes = copy / "valid" / "sidecar" / "games.phases.bin"
    told = []
    for at in range(0, codes.stat().st_size, 997):
        flip(codes, at, 2)
        assert "phases_rederived" in {
            v.law for v in check("chess/valid_games", Subject(copy / "valid"))
        }
        found = [
            list(check("chess/valid_games", Subject(copy / "valid", sampled=True)))
            for _ in range(2)
        ]
        assert found[0] == found[1]
        told.append(bool(found[0]))
        flip(codes, at, 2)
    assert not all(told)
    codes.write_bytes(bytes(code ^ 2 for code in codes.read_bytes()))
    laws = {v.law for v in check("chess/valid_games", Subject(copy / "valid", sampled=True))}
    assert "phases_rederived" in laws


@pytest.mark.parametrize("name", ["offsets.u64.bin", "splice_indices.u32.bin"])
def test_every_element_of_a_cache_is_asked_for_where_few_games_are_replayed(
    copy: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("gristmill.chess.laws.rows._REPLAYED", 1)
    path = copy / "game" / "runtime_splice_cache"
    add(path, name, 40, 1, LAYOUT[name])
    assert [v.where for v in check("chess/splice_cache", Subject(path, sampled=True))] == [
        f"val/{name}"
    ]


def test_a_cache_of_a_sidecar_with_other_phases_is_found(copy: Path) -> None:
    for split in ("train", "val", "test"):
        codes = copy / "game" / "sidecar" / f"{split}.phases.bin"
        codes.write_bytes(bytes(code ^ 3 for code in codes.read_bytes()))
    cache = copy / FOLDERS["chess/splice_cache"]
    shutil.rmtree(cache)
    build_splice_cache(copy / "game", cache)
    assert {v.law for v in check("chess/splice_cache", Subject(cache, sampled=True))} == {
        "phases_rederived"
    }


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[1]", b"\xff\x00{"])
def test_no_damage_to_a_file_makes_a_law_raise(copy: Path, data: bytes | None) -> None:
    folders = {
        "chess/valid_games": copy / "valid",
        "chess/game_dataset": copy / "game",
        "chess/splice_cache": copy / "game" / "runtime_splice_cache",
        "chess/splice_dataset": copy / "splice",
    }
    silent = set()
    for asset, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            if path.is_dir() or (asset == "chess/game_dataset" and "cache" in str(path)):
                continue
            whole = path.read_bytes()
            path.unlink()
            if data is not None:
                path.write_bytes(data)
            if not list(check(asset, Subject(folder))) and whole != (data or b""):
                silent.add(path.name)
            path.write_bytes(whole)
    # What no count or row depends on; its bytes are in the record.
    assert silent <= {"flagged_games.csv", "sources.json", "rows.json", "vocab_rows_meta.json"}
