"""Laws of game datasets: each one finds the damage that it is there for."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.chess import GameConfig, build_game_dataset
from gristmill.chess.format.folders import GAME, Sidecar, write_rows
from gristmill.chess.laws.game_dataset import dataset_laws
from gristmill.families import Subject
from tests.chess.laws.damage import edit, edit_json, flip, grow


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
    counts = {s: (path / f"{s}.jsonl").read_bytes().count(b"\n") for s in ("train", "val", "test")}
    write_rows(path, {s: (path / f"{s}.jsonl", n) for s, n in counts.items()})
    edit_json(path / "stats.json", lambda s: s.update(split_games=counts))


@pytest.mark.parametrize(
    ("law", "damage"),
    [
        ("no_leakage", copy_game_to_val),
        ("split_of_moves", copy_game_to_val),
        (
            "rows_as_sidecar",
            lambda p: edit(p / "val.jsonl", b'"moves": ["', b'"moves": ["a2a3", "'),
        ),
        ("rows_noted", lambda p: edit(p / "val.jsonl", b"1-0", b"0-1")),
        ("moves_packed", lambda p: flip(p / "sidecar" / "val.moves.u16.bin", 41)),
        *(
            ("moves_packed", lambda p, at=at: flip(p / "sidecar" / "val.spans.bin", at))
            for at in (16, 24, 28)
        ),
        ("moves_packed", lambda p: grow(p / "sidecar" / "val.spans.bin")),
        ("rows_as_sidecar", lambda p: (p / "sidecar" / "val.moves.u16.bin").unlink()),
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
def test_damage_to_a_game_dataset_breaks_its_law(
    copy: Path, law: str, damage: Callable[[Path], object]
) -> None:
    damage(copy / "game")
    assert law in {violation.law for violation in dataset_laws(Subject(copy / "game"))}


def test_a_dataset_of_finished_games_has_none_without_a_result(valid: Path, tmp_path: Path) -> None:
    out = tmp_path / "finished"
    build_game_dataset(valid, out, GameConfig(games="finished"))
    assert list(dataset_laws(Subject(out))) == []
    edit(out / "val.jsonl", b'"winner_side": "D"', b'"winner_side": "?"')
    broken = {violation.law: violation.found for violation in dataset_laws(Subject(out))}
    assert broken["games_decisive"] == "winners ['?', 'B', 'W']"
    edit_json(out / "stats.json", lambda stats: stats.pop("games"))
    assert "games_decisive" not in {violation.law for violation in dataset_laws(Subject(out))}


def test_a_game_in_the_split_of_another_opening_breaks_its_law(valid: Path, tmp_path: Path) -> None:
    out = tmp_path / "opening"
    build_game_dataset(valid, out, GameConfig(split="opening", opening_plies=12))
    assert list(dataset_laws(Subject(out))) == []
    edit_json(out / "stats.json", lambda stats: stats.update(opening_plies=11))
    assert {violation.law for violation in dataset_laws(Subject(out))} == {"split_of_opening"}
    edit_json(out / "stats.json", lambda stats: stats.update(opening_plies=12))
    copy_game_to_val(out)
    assert {v.law for v in dataset_laws(Subject(out))} == {"split_of_opening", "no_leakage"}


def test_a_shuffled_dataset_breaks_no_law(valid: Path, tmp_path: Path) -> None:
    config = GameConfig(split="shuffle", games="all")
    build_game_dataset(valid, tmp_path / "shuffled", config)
    assert list(dataset_laws(Subject(tmp_path / "shuffled"))) == []


def test_an_id_in_two_splits_of_a_shuffled_dataset_breaks_its_law(
    valid: Path, tmp_path: Path
) -> None:
    build_game_dataset(valid, tmp_path / "shuffled", GameConfig(split="shuffle"))
    copy_game_to_val(tmp_path / "shuffled")
    [violation] = dataset_laws(Subject(tmp_path / "shuffled"))
    assert (violation.law, violation.where) == ("ids_in_one_split", "val.jsonl")
    assert f'"{violation.found}"' in (tmp_path / "shuffled" / "train.jsonl").read_text()


def test_the_shortest_game_that_can_be_spliced_breaks_no_law(copy: Path) -> None:
    lines = (copy / "game" / "val.jsonl").read_text().splitlines()
    shortest = min(len(json.loads(line)["moves"]) for line in lines)
    for min_context, laws in ((shortest - 1, []), (shortest, ["games_spliceable"])):
        edit_json(
            copy / "game" / "stats.json",
            lambda s, n=min_context: s["runtime_splice_defaults"].update(min_context=n),
        )
        broken = [v.law for v in dataset_laws(Subject(copy / "game")) if v.where == "val.jsonl"]
        assert broken == laws


def test_a_dataset_of_another_program_needs_no_sidecar(copy: Path) -> None:
    shutil.rmtree(copy / "game" / "sidecar")
    assert {v.law for v in dataset_laws(Subject(copy / "game"))} == {"has_sidecar"}
    subject = Subject(copy / "game", has_record=False)
    assert list(dataset_laws(subject)) == []
    assert subject.left_out == [
        "phases_rederived, rows_as_sidecar, rows_noted: there is no sidecar"
    ]
