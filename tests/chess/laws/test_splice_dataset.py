"""Laws of legacy splice datasets: each one finds the damage that it is there for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gristmill.chess import SpliceConfig, ValidateConfig, build_splice_dataset, validate
from gristmill.chess.laws.splice_dataset import (
    _key_of,
    _keys_in,
    _row_faults,
    _write_keys,
    splice_laws,
)
from gristmill.families import Subject
from tests.chess.laws.damage import edit, edit_json


@pytest.mark.parametrize(
    ("law", "damage"),
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
def test_damage_to_a_splice_dataset_breaks_its_law(
    copy: Path, law: str, damage: Callable[[Path], object]
) -> None:
    damage(copy / "splice")
    assert law in {violation.law for violation in splice_laws(Subject(copy / "splice"))}


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
def test_the_same_moves_in_two_splits_of_splices(copy: Path, new_id: str) -> None:
    copy_to_val(copy / "splice", new_id)
    violations = splice_laws(Subject(copy / "splice"))
    assert [(v.law, v.found) for v in violations] == [
        ("no_leakage", "1 move sequences in more than one split")
    ]


@pytest.mark.parametrize("cap", [0, 1])
def test_the_same_id_in_two_splits_of_shuffled_splices(
    valid: Path, tmp_path: Path, cap: int
) -> None:
    config = SpliceConfig(split="shuffle", max_samples_per_game=cap)
    build_splice_dataset(valid, tmp_path / "splice", config)
    assert list(splice_laws(Subject(tmp_path / "splice"))) == []
    copy_to_val(tmp_path / "splice", "f" * 40)
    assert list(splice_laws(Subject(tmp_path / "splice"))) == []
    copy_to_val(tmp_path / "splice")
    assert [(v.law, v.found) for v in splice_laws(Subject(tmp_path / "splice"))] == [
        ("no_leakage", "1 game ids in more than one split")
    ]


def test_reference_ids_that_collide_are_no_leak_where_moves_decide(tmp_path: Path) -> None:
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
def test_an_opening_in_two_splits_of_splices_is_a_leak(
    valid: Path, tmp_path: Path, plies: int, cap: int
) -> None:
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
def test_the_kernel_reads_the_keys_that_json_gives(
    valid: Path, tmp_path: Path, plies: int | None, cap: int
) -> None:
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
def test_a_row_that_is_no_json_ends_the_keys(
    copy: Path, tmp_path: Path, change: tuple[bytes, bytes]
) -> None:
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
def test_the_key_of_a_row_is_of_as_many_moves_as_the_rule_says(
    plies: int, k: int, shown: int
) -> None:
    moves = [*ROW["context"], *ROW["target"]][:shown]
    line = json.dumps({"game_id": 'a "b"', "winner_side": "W", **ROW}).encode()
    assert _key_of(line, plies, k) == " ".join(moves).encode()


def test_a_row_at_every_bound_has_no_fault() -> None:
    assert _row_faults(ROW, PARAMS) == []


@pytest.mark.parametrize(
    ("change", "params", "fault"),
    [
        ({"splice_index": 8}, {}, "context and splice index disagree"),
        ({}, {"min_context": 9}, "the context is too short"),
        ({}, {"k": 3}, "the target has not the plies it should have"),
        ({}, {"min_target": 5}, "the target is too short"),
        ({"next_move": "f8e7"}, {}, "next_move is not the first move of the target"),
        ({"plies_remaining": 5}, {}, "plies_remaining is wrong"),
        ({"plies_remaining_bucket": "11-20"}, {}, "plies_remaining_bucket is wrong"),
        ({"relative_progress_bucket": "mid"}, {}, "relative_progress_bucket is wrong"),
        ({"phase": "endgame"}, {}, "phase or its reason is not that of the replayed context"),
        (
            {"phase_reason": "default_transition"},
            {},
            "phase or its reason is not that of the replayed context",
        ),
    ],
)
def test_a_rule_that_a_row_breaks_is_named(
    change: dict[str, Any], params: dict[str, Any], fault: str
) -> None:
    assert _row_faults(ROW | change, PARAMS | params) == [fault]
