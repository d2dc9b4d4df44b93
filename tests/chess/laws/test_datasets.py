"""Laws of datasets, caches and legacy rows on damaged copies."""

import hashlib
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
from gristmill.chess.format.folders import GAME, LAYOUT, Sidecar, write_rows
from gristmill.chess.laws.datasets import (
    _key_of,
    _keys_in,
    _row_faults,
    _write_keys,
    cache_laws,
    dataset_laws,
    splice_laws,
)
from gristmill.chess.laws.games import validated_laws
from gristmill.contract import FileNote
from gristmill.families import Subject
from tests.chess.laws.damage import cut, edit, edit_json, flip, grow, on

CACHE = "game/runtime_splice_cache"
manifest, stats, summary = (
    partial(on, f"{name}.json", edit_json) for name in ("manifest", "stats", "summary")
)


def copy_game_to_val(path: Path) -> None:
    """Put a train game into val too, with a sidecar and counts to match."""
    line = (path / "train.jsonl").read_bytes().split(b"\n")[0] + b"\n"
    val = (path / "val.jsonl").read_bytes()
    train = Sidecar.open(path, "train")
    assert train
    record = train.records(0, 1).copy()
    plies = int(record["plies"][0])
    codes, moves = train.phases(0, plies).tobytes(), train.moves(0, plies).tobytes()
    span = train.spans(0, 1)
    span["first"] = (path / "sidecar" / "val.phases.bin").stat().st_size
    record["row"] = len(val)
    (path / "val.jsonl").write_bytes(val + line)
    more = {"games": record.tobytes(), "phases": codes, "moves.u16": moves, "spans": span.tobytes()}
    for name, data in more.items():
        file = path / "sidecar" / f"val.{name}.bin"
        file.write_bytes(file.read_bytes() + data)
    assert GAME.itemsize == len(record.tobytes())
    octets = {s: (path / f"{s}.jsonl").read_bytes() for s in ("train", "val", "test")}
    counts = {split: data.count(b"\n") for split, data in octets.items()}
    digests = {split: hashlib.sha256(data).hexdigest() for split, data in octets.items()}
    notes = {s: FileNote(counts[s], sha256=digests[s], bytes=len(octets[s])) for s in octets}
    write_rows(path, notes)
    edit_json(path / "stats.json", lambda s: s.update(split_games=counts))


LAWS = {"valid": validated_laws, "game": dataset_laws, CACHE: cache_laws, "splice": splice_laws}


@pytest.mark.parametrize(
    ("folder", "law", "damage"),
    [
        ("valid", "rows_as_sidecar", on("valid_games.jsonl", edit, b'"e2e4"', b'"e2e3"')),
        ("valid", "winner_of_result",
         on("valid_games.jsonl", edit, b'"W", "plies"', b'"B", "plies"')),
        ("valid", "moves_packed", on("sidecar/games.moves.u16.bin", flip, 40)),
        ("valid", "moves_packed", on("sidecar/games.moves.u16.bin", grow)),
        ("valid", "rows_as_sidecar", on("sidecar/games.games.bin", flip, 32)),
        ("valid", "has_sidecar", on("sidecar/games.games.bin", Path.unlink)),
        ("valid", "valid_counted", summary(lambda s: s.update(valid_games=3))),
        ("valid", "invalid_counted", on("invalid_games.csv", edit, b"\r\n", b"\r\nx,y\r\n")),
        ("valid", "plies_profiled", on("profile.json", edit_json, lambda s: s.update(plies=1))),
        ("valid", "readable_json", on("summary.json", Path.write_text, "{")),
        ("valid", "readable_json", on("summary.json", Path.write_text, "{}")),
        ("valid", "readable_json", on("profile.json", Path.unlink)),
        ("valid", "reasons_counted", summary(lambda s: s["invalid_reason_counts"].clear())),
        ("valid", "total_counted", summary(lambda s: s.update(total_games=1))),
        ("valid", "plies_counted", on("valid_games.jsonl", edit, b'"plies": 1', b'"plies": 2')),
        ("valid", "moves_legal", on("sidecar/games.phases.bin", flip, 0, 1)),
        ("valid", "plies_profiled", on("profile.json", edit_json, lambda s: s.pop("plies"))),
        ("valid", "artifact_complete", summary(lambda s: s.pop("total_games"))),
        ("valid", "artifact_complete", summary(lambda s: s.update(invalid_reason_counts=1))),
        ("valid", "readable_csv", on("invalid_games.csv", Path.unlink)),
        ("valid", "readable_csv", on("invalid_games.csv", Path.write_bytes, b"\xff\xfe\r\n")),
        ("valid", "rows_as_sidecar", on("valid_games.jsonl", Path.unlink)),
        ("game", "no_leakage", copy_game_to_val),
        ("game", "split_of_moves", copy_game_to_val),
        ("game", "rows_as_sidecar", on("val.jsonl", edit, b'"moves": ["', b'"moves": ["a2a3", "')),
        ("game", "rows_noted", on("val.jsonl", edit, b"1-0", b"0-1")),
        ("game", "moves_packed", on("sidecar/val.moves.u16.bin", flip, 41)),
        *(("game", "moves_packed", on("sidecar/val.spans.bin", flip, at)) for at in (16, 24, 28)),
        ("game", "moves_packed", on("sidecar/val.spans.bin", grow)),
        ("game", "rows_as_sidecar", on("sidecar/val.moves.u16.bin", Path.unlink)),
        ("game", "missing_file", on("test.jsonl", Path.unlink)),
        ("game", "readable_json", on("stats.json", Path.write_text, "{}")),
        ("game", "artifact_complete", stats(lambda s: s.pop("split_games"))),
        ("game", "artifact_complete", stats(lambda s: s["split_games"].pop("val"))),
        ("game", "artifact_complete", on("sidecar/rows.json", Path.write_text, "{")),
        ("game", "rows_noted", on("sidecar/rows.json", Path.write_text, '{"x": {}}')),
        ("game", "games_decisive", on("val.jsonl", edit, b'"W"', b'"D"')),
        ("game", "games_counted", stats(lambda s: s["split_games"].update(val=1))),
        ("game", "games_spliceable",
         stats(lambda s: s["runtime_splice_defaults"].update(min_context=90))),
        (CACHE, "missing_manifest", on("manifest.json", Path.unlink)),
        (CACHE, "invalid_manifest_json", on("manifest.json", Path.write_text, "[")),
        (CACHE, "invalid_manifest_json", on("manifest.json", Path.write_text, "{}")),
        (CACHE, "artifact_complete", manifest(lambda m: m["splits"]["val"].pop("files"))),
        (CACHE, "artifact_complete",
         manifest(lambda m: m["splits"]["val"]["source"].pop("sha256"))),
        (CACHE, "artifact_complete",
         manifest(lambda m: m["splits"]["val"].pop("sample_rows_total"))),
        (CACHE, "readable_json", on("vocab_rows_meta.json", Path.write_text, "{}")),
        (CACHE, "manifest_kind_unexpected", manifest(lambda m: m.update(kind="x"))),
        (CACHE, "artifact_complete", manifest(lambda m: m["splits"].pop("test"))),
        (CACHE, "missing_file", on("val/offsets.u64.bin", Path.unlink)),
        (CACHE, "row_count_mismatch", on("val/path_ids.u32.bin", Path.write_bytes, b"")),
        (CACHE, "whole_elements", on("val/path_ids.u32.bin", Path.write_bytes, b"x")),
        (CACHE, "bytes_as_manifest", on("test/splice_indices.u32.bin", flip, 0)),
        (CACHE, "invalid_paths_json", on("val/paths.json", Path.write_text, "[")),
        (CACHE, "paths_json_empty_or_invalid", on("val/paths.json", Path.write_text, "[]")),
        (CACHE, "paths_of_split", on("val/paths.json", Path.write_text, '["/x/train.jsonl"]')),
        (CACHE, "games_of_samples", on("val/sample_games.u32.bin", cut)),
        (CACHE, "games_of_samples", on("val/sample_games.u32.bin", grow)),
        (CACHE, "games_of_samples", on("val/sample_games.u32.bin", Path.unlink)),
        (CACHE, "source_unchanged", lambda p: edit(p.parent / "val.jsonl", b"1-0", b"0-1")),
        (CACHE, "source_path_missing", lambda p: (p.parent / "val.jsonl").unlink()),
        (CACHE, "one_config",
         manifest(lambda m: m["splits"]["test"]["config"].update(min_context=3))),
        (CACHE, "samples_counted",
         manifest(lambda m: m["splits"]["val"].update(sample_rows_total=7))),
        ("splice", "missing_file", on("val.jsonl", Path.unlink)),
        ("splice", "samples_counted", on("val.jsonl", edit, b"\n", b"\n\n")),
        ("splice", "sample_rows",
         on("val.jsonl", edit, b'"context": ["', b'"context": ["a2a3", "')),
        ("splice", "sample_rows", on("val.jsonl", edit, b'"next_move": "', b'"next_move": "x')),
        ("splice", "sample_rows", on("val.jsonl", edit, b"late", b"early")),
        ("splice", "sample_rows", on("val.jsonl", edit, b'"phase": "middlegame"', b'"phase": "x"')),
        ("splice", "readable_json", on("stats.json", Path.write_text, "{}")),
        ("splice", "artifact_complete", stats(lambda s: s.pop("params"))),
        ("splice", "artifact_complete", stats(lambda s: s["split_samples"].pop("val"))),
        ("splice", "phases_counted", stats(lambda s: s["split_phase_counts"].update(val={}))),
    ],
)  # fmt: skip
def test_damage_to_an_artifact_breaks_its_law(copy, folder, law, damage):
    damage(copy / folder)
    violations = list(LAWS[folder](Subject(copy / folder)))
    assert law in {violation.law for violation in violations}
    assert not any(f"{copy / folder}/" in violation.where for violation in violations)


def test_a_dataset_of_finished_games_has_none_without_a_result(valid, tmp_path):
    out = tmp_path / "finished"
    build_game_dataset(valid, out, GameConfig(games="finished"))
    assert list(dataset_laws(Subject(out))) == []
    edit(out / "val.jsonl", b'"winner_side": "D"', b'"winner_side": "?"')
    broken = {violation.law: violation.found for violation in dataset_laws(Subject(out))}
    assert broken["games_decisive"] == "winners ['?', 'B', 'W']"
    edit_json(out / "stats.json", lambda stats: stats.pop("games"))
    assert "games_decisive" not in {violation.law for violation in dataset_laws(Subject(out))}


def test_a_game_in_the_split_of_another_opening_breaks_its_law(valid, tmp_path):
    out = tmp_path / "opening"
    build_game_dataset(valid, out, GameConfig(split="opening", opening_plies=12))
    assert list(dataset_laws(Subject(out))) == []
    edit_json(out / "stats.json", lambda stats: stats.update(opening_plies=11))
    assert {violation.law for violation in dataset_laws(Subject(out))} == {"split_of_opening"}
    edit_json(out / "stats.json", lambda stats: stats.update(opening_plies=12))
    copy_game_to_val(out)
    assert {v.law for v in dataset_laws(Subject(out))} == {"split_of_opening", "no_leakage"}


def test_an_id_in_two_splits_of_a_shuffled_dataset_breaks_its_law(valid, tmp_path):
    build_game_dataset(valid, tmp_path / "shuffled", GameConfig(split="shuffle"))
    copy_game_to_val(tmp_path / "shuffled")
    [violation] = dataset_laws(Subject(tmp_path / "shuffled"))
    assert (violation.law, violation.where) == ("ids_in_one_split", "val.jsonl")
    assert f'"{violation.found}"' in (tmp_path / "shuffled" / "train.jsonl").read_text()


def test_the_shortest_game_that_can_be_spliced_breaks_no_law(copy):
    lines = (copy / "game" / "val.jsonl").read_text().splitlines()
    shortest = min(len(json.loads(line)["moves"]) for line in lines)
    for min_context, laws in ((shortest - 1, []), (shortest, ["games_spliceable"])):
        edit_json(
            copy / "game" / "stats.json",
            lambda s, n=min_context: s["runtime_splice_defaults"].update(min_context=n),
        )
        broken = [v.law for v in dataset_laws(Subject(copy / "game")) if v.where == "val.jsonl"]
        assert broken == laws


def test_a_dataset_of_another_program_needs_no_sidecar(copy):
    shutil.rmtree(copy / "game" / "sidecar")
    assert {v.law for v in dataset_laws(Subject(copy / "game"))} == {"has_sidecar"}
    subject = Subject(copy / "game", has_record=False)
    assert list(dataset_laws(subject)) == []
    assert subject.left_out == [
        "phases_rederived, rows_as_sidecar, rows_noted: there is no sidecar"
    ]


def add(path: Path, name: str, at: int, value: int, dtype: str) -> None:
    """Change one element of val, and its hash in the manifest: only the rows can tell."""
    array = np.fromfile(path / "val" / name, dtype)
    array[at] += value
    (path / "val" / name).write_bytes(array.tobytes())
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    edit_json(
        path / "manifest.json", lambda m: m["splits"]["val"]["files"][name].update(sha256=digest)
    )


@pytest.mark.parametrize("has_sidecar", [True, False])
@pytest.mark.parametrize(
    ("law", "damage"),
    [
        ("offsets_start_lines", lambda p: add(p, "offsets.u64.bin", 3, 1, "<u8")),
        ("splice_indices_in_games", lambda p: add(p, "splice_indices.u32.bin", 50, 9999, "<u4")),
        ("phases_rederived", lambda p: add(p, "sample_phase_ids.u8.bin", 2, 1, "|u1")),
        ("path_ids", lambda p: add(p, "path_ids.u32.bin", 1, 1, "<u4")),
        ("games_of_samples", on("val/sample_games.u32.bin", flip, 7, 128)),
        ("games_of_samples", on("val/sample_games.u32.bin", grow)),
        ("vocabulary_of_train", on("vocab_rows_meta.json", edit, b'"e2e4"', b'"e2e5"')),
    ],
)
def test_every_element_of_a_cache_without_a_record_is_compared_with_the_rows(
    copy, law, damage, has_sidecar
):
    path = copy / CACHE
    if not has_sidecar:
        shutil.rmtree(copy / "game" / "sidecar")
    assert list(cache_laws(Subject(path, has_record=False))) == []
    damage(path)
    found = {violation.law for violation in cache_laws(Subject(path, has_record=False))}
    # Only a sidecar has the numbers of the games.
    assert found == ({law} if has_sidecar or law != "games_of_samples" else set())


def test_a_cache_from_a_sidecar_with_wrong_phases_breaks_a_law_without_a_record(copy):
    for split in ("train", "val", "test"):
        codes = copy / "game" / "sidecar" / f"{split}.phases.bin"
        codes.write_bytes(bytes(code ^ 3 for code in codes.read_bytes()))
    cache = copy / CACHE
    shutil.rmtree(cache)
    build_splice_cache(copy / "game", cache)
    assert list(cache_laws(Subject(cache))) == []
    assert {v.law for v in cache_laws(Subject(cache, has_record=False))} == {"phases_rederived"}


def test_a_cache_outside_its_dataset_names_the_folder_of_its_rows(valid, tmp_path):
    config = GameConfig(split="shuffle", games="all")
    build_game_dataset(valid, tmp_path / "shuffled", config)
    assert list(dataset_laws(Subject(tmp_path / "shuffled"))) == []
    cache = tmp_path / "elsewhere"
    build_splice_cache(tmp_path / "shuffled", cache, CacheConfig(max_samples_per_game=3))
    assert list(cache_laws(Subject(cache))) == []
    (tmp_path / "shuffled").rename(tmp_path / "moved")
    assert {v.law for v in cache_laws(Subject(cache))} >= {"source_path_missing"}
    assert list(cache_laws(Subject(cache, inputs=[tmp_path / "moved"]))) == []


def test_the_manifest_of_another_program_need_not_name_its_source(copy):
    path = copy / CACHE
    edit_json(
        path / "manifest.json", lambda m: [entry.pop("source") for entry in m["splits"].values()]
    )
    assert {violation.law for violation in cache_laws(Subject(path))} == {"source_unchanged"}
    subject = Subject(path, has_record=False)
    assert list(cache_laws(subject)) == []
    assert subject.left_out == ["source_unchanged: where the manifest does not name the source"]


def test_samples_after_the_last_row_break_a_law(copy):
    path = copy / CACHE
    for name, dtype in LAYOUT.items():
        array = np.fromfile(path / "val" / name, dtype)
        data = np.append(array, array[-1:]).tobytes()
        (path / "val" / name).write_bytes(data)
        recorded = {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        edit_json(
            path / "manifest.json",
            lambda m, n=name, r=recorded: m["splits"]["val"]["files"][n].update(r),
        )
    samples = len(array) + 1
    edit_json(
        path / "manifest.json", lambda m: m["splits"]["val"].update(sample_rows_total=samples)
    )
    assert {(v.law, v.found) for v in cache_laws(Subject(path, has_record=False))} == {
        (law, "has samples of no row")
        for law in (
            "path_ids",
            "offsets_start_lines",
            "splice_indices_in_games",
            "phases_rederived",
        )
    }


def copy_to_val(path: Path, new_id: str = "") -> None:
    """Put all rows of a train game that shows all its moves into val too, and count them."""
    lines = (path / "train.jsonl").read_bytes().splitlines(keepends=True)
    game_id = next(row for row in map(json.loads, lines) if row["plies_remaining"] <= 4)["game_id"]
    copied = [line for line in lines if json.loads(line)["game_id"] == game_id]
    phases = [json.loads(line)["phase"] for line in copied]
    text = b"".join(copied).replace(game_id.encode(), (new_id or game_id).encode())
    (path / "val.jsonl").write_bytes((path / "val.jsonl").read_bytes() + text)

    def count_them(stats: dict[str, Any]) -> None:
        stats["split_samples"]["val"] += len(copied)
        for phase in phases:
            counts = stats["split_phase_counts"]["val"]
            counts[phase] = counts.get(phase, 0) + 1

    edit_json(path / "stats.json", count_them)


@pytest.mark.parametrize("new_id", ["", "f" * 40])
def test_the_same_moves_in_two_splits_of_splices(copy, new_id):
    copy_to_val(copy / "splice", new_id)
    violations = splice_laws(Subject(copy / "splice"))
    assert [(v.law, v.found) for v in violations] == [
        ("no_leakage", "1 move sequences in more than one split")
    ]


@pytest.mark.parametrize("cap", [0, 1])
def test_the_same_id_in_two_splits_of_shuffled_splices(valid, tmp_path, cap):
    config = SpliceConfig(split="shuffle", max_samples_per_game=cap)
    build_splice_dataset(valid, tmp_path / "splice", config)
    assert list(splice_laws(Subject(tmp_path / "splice"))) == []
    copy_to_val(tmp_path / "splice", "f" * 40)
    assert list(splice_laws(Subject(tmp_path / "splice"))) == []
    copy_to_val(tmp_path / "splice")
    assert [(v.law, v.found) for v in splice_laws(Subject(tmp_path / "splice"))] == [
        ("no_leakage", "1 game ids in more than one split")
    ]


def test_reference_ids_that_collide_are_no_leak_where_moves_decide(tmp_path):
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
    assert list(splice_laws(Subject(tmp_path / "splice"))) == []


@pytest.mark.parametrize("plies", [6, 12, 11])
@pytest.mark.parametrize("cap", [0, 8])
def test_an_opening_in_two_splits_of_splices_is_a_leak(valid, tmp_path, plies, cap):
    """Also where only the target of a row reaches the end of the opening."""
    config = SpliceConfig(split="opening", opening_plies=plies, max_samples_per_game=cap)
    build_splice_dataset(valid, tmp_path / "splice", config)
    assert list(splice_laws(Subject(tmp_path / "splice"))) == []
    train, val = (tmp_path / "splice" / f"{split}.jsonl" for split in ("train", "val"))
    shown = next(
        line
        for line in train.read_text().splitlines(keepends=True)
        if plies - 4 <= json.loads(line)["ply"] < max(plies, 9)
    )
    other = json.dumps({**json.loads(shown), "game_id": "other"}) + "\n"
    val.write_text(val.read_text() + other)
    edit_json(
        tmp_path / "splice" / "stats.json",
        lambda stats: (
            stats["split_samples"].update(val=stats["split_samples"]["val"] + 1),
            stats["split_phase_counts"]["val"].update(
                opening=stats["split_phase_counts"]["val"]["opening"] + 1
            ),
        ),
    )
    (violation,) = splice_laws(Subject(tmp_path / "splice"))
    assert (violation.law, violation.found) == ("no_leakage", "1 openings in more than one split")


@pytest.mark.parametrize("plies", [None, 0, 6, 11, 24])
@pytest.mark.parametrize("cap", [0, 8])
def test_the_kernel_reads_the_keys_that_json_gives(valid, tmp_path, plies, cap):
    config = SpliceConfig(max_samples_per_game=cap, k=3)
    build_splice_dataset(valid, tmp_path / "splice", config)
    data = (tmp_path / "splice/train.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    # Rows of any other form are read as JSON, between those that the kernel reads.
    other = [line.replace(b", ", b" , ", 1) if i % 3 == 1 else line for i, line in enumerate(lines)]
    expected = [text for line in lines if (text := _key_of(line, plies, 3))]
    for changed in (data, b"".join(other).replace(b" , ", b",  ")):
        rows, texts, fault = _keys_in(changed, plies, 3)
        assert (rows, fault) == (len(lines), None)
        assert set(texts) == set(expected)
        assert plies is None or texts == expected


@pytest.mark.parametrize(
    "change",
    [
        (b'"plies_total": ', b'"plies_total": x'),
        (b'"context": ["', b'"context": ["\xff'),
        (b'"], "target"', b'", "target"'),
        (b'"next_move"', b"next_move"),
        (b'{"game_id"', b'"game_id"'),
        (b"}", b""),
    ],
)
def test_a_row_that_is_no_json_ends_the_keys(copy, tmp_path, change):
    lines = (copy / "splice/val.jsonl").read_bytes().splitlines(keepends=True)
    last = next(i for i, line in enumerate(lines) if json.loads(line)["plies_remaining"] <= 4)
    lines[last] = lines[last].replace(*change)
    (tmp_path / "val.jsonl").write_bytes(b"".join(lines))
    count, (fault,) = _write_keys(tmp_path / "val.jsonl", 0, 4, tmp_path / "keys")
    assert (count, fault.law) == (len(lines), "sample_rows")
    assert f": row {last + 1}: " in fault.where


ROW: dict[str, Any] = {
    "splice_index": 7,
    "ply": 8,
    "plies_remaining": 4,
    "plies_remaining_bucket": "<=10",
    "relative_progress_bucket": "late",
    "phase": "opening",
    "phase_reason": "early_with_castling_rights",
    "context": ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6"],
    "target": ["e1g1", "f8e7", "f1e1", "b7b5"],
    "next_move": "e1g1",
    "plies_total": 12,
}
PARAMS = {"k": 4, "min_context": 8, "min_target": 4}


@pytest.mark.parametrize(
    ("plies", "k", "shown"),
    [
        (6, 4, 6), (8, 4, 8), (9, 4, 9), (12, 4, 12), (13, 4, 12), (0, 4, 12),
        (12, 3, 0), (13, 3, 0), (0, 3, 0), (11, 3, 11),
    ],
)  # fmt: skip
def test_the_key_of_a_row_is_of_as_many_moves_as_the_rule_says(plies, k, shown):
    moves = [*ROW["context"], *ROW["target"]][:shown]
    line = json.dumps({"game_id": 'a "b"', "winner_side": "W", **ROW}).encode()
    assert _key_of(line, plies, k) == " ".join(moves).encode()


@pytest.mark.parametrize(
    ("change", "params", "fault"),
    [
        ({}, {}, ""),  # at every bound
        ({"splice_index": 8}, {}, "context and splice index disagree"),
        ({}, {"min_context": 9}, "the context is too short"),
        ({}, {"k": 3}, "the target has not the plies it should have"),
        ({}, {"min_target": 5}, "the target is too short"),
        ({"next_move": "f8e7"}, {}, "next_move is not the first move of the target"),
        ({"plies_remaining": 5}, {}, "plies_remaining is wrong"),
        ({"plies_remaining_bucket": "11-20"}, {}, "plies_remaining_bucket is wrong"),
        ({"relative_progress_bucket": "mid"}, {}, "relative_progress_bucket is wrong"),
        ({"phase": "endgame"}, {}, "phase or its reason is not that of the replayed context"),
        ({"phase_reason": "default_transition"}, {},
         "phase or its reason is not that of the replayed context"),
    ],
)  # fmt: skip
def test_a_rule_that_a_row_breaks_is_named(change, params, fault):
    assert _row_faults(ROW | change, PARAMS | params) == [fault] * bool(fault)
