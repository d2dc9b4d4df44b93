"""Samples, traces, pictures and previews: the same each time, back to the byte, small and right."""

import base64
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import chess
import pytest

from gristmill.chess import ValidateConfig, trace, validate
from gristmill.chess.read.trace import find
from gristmill.chess.samples import make_games, write_month
from gristmill.chess.show.board import board_svg, place
from gristmill.chess.show.preview import (
    dataset_preview,
    drift,
    length_bars,
    positions,
    read_profile,
    validated_preview,
)
from gristmill.contract import BadInput

SVG = "{http://www.w3.org/2000/svg}"


def images(markdown: str) -> list[str]:
    found = re.findall(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([^)]+)\)", markdown)
    return [base64.b64decode(image, validate=True).decode() for image in found]


def test_samples_are_legal_deterministic_and_varied(tmp_path: Path, month: Path) -> None:
    write_month(tmp_path / "again.pgn", "2024-01", 240, 11)
    assert (tmp_path / "again.pgn").read_bytes() == month.read_bytes()
    write_month(tmp_path / "a.zip", "2024-01", 30, 1)
    write_month(tmp_path / "b.zip", "2024-01", 30, 1)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert make_games("2024-02", 5, 1) != make_games("2024-01", 5, 1)
    for game in make_games("2024-01", 20, 3):
        board = chess.Board()
        for san in game.moves:
            assert board.san(board.push_san(san) and board.pop()) == san
            board.push_san(san)
    summary = validate([month], tmp_path / "v")
    assert (summary.total_games, summary.oracle_games) == (240, 0)
    assert set(summary.reasons) == {"too_short"}
    assert summary.flags["result_conflict"] > 0
    assert summary.duplicate_games > 0
    assert min(summary.phases[p] for p in ("opening", "middlegame", "endgame")) > 200
    filtered = ValidateConfig(elo_floor=2300, time_controls=("rapid",), drop_abandoned=True)
    reasons = validate([month], tmp_path / "f", filtered).reasons
    assert set(reasons) == {"too_short", "below_elo", "other_time_control", "abandoned"}


def test_a_row_leads_back_to_its_bytes(valid: Path, dataset: Path, month: Path) -> None:
    for path, split, row in ((valid, None, 17), (dataset, "train", 30), (dataset, "test", 2)):
        traced = trace(path, row, split)
        text = traced.pgn(month).decode()
        assert text.startswith('[Event "')
        words = text.split("\n\n")[1].split()
        sans = [word for word in words[:-1] if not word[0].isdigit()]
        board = chess.Board()
        assert [board.push_san(san).uci() for san in sans] == traced.row["moves"]
        assert (split, row) in find(path, traced.row["game_id"])
        assert traced.source["name"] == month.name
    with pytest.raises(BadInput, match="no row"):
        trace(valid, 10**6)
    with pytest.raises(BadInput, match="split"):
        trace(dataset, 0, "dev")
    with pytest.raises(BadInput, match="sidecar"):
        trace(valid.parent, 0)


def test_boards_are_those_of_python_chess() -> None:
    for game in make_games("2024-01", 12, 9):
        board, uci = chess.Board(), []
        for san in game.moves:
            uci.append(board.push_san(san).uci())
        told = [board.piece_at(square) for square in range(64)]
        assert place(uci) == [piece.symbol() if piece else "" for piece in told]


def test_a_board_shows_every_piece_and_the_last_move() -> None:
    svg = board_svg(["e2e4", "d7d5", "e4d5"], title="<b>&", phase="opening", notes=["note"])
    root = ET.fromstring(svg)
    uses = [node.attrib["href"] for node in root.iter(f"{SVG}use")]
    assert len(uses) == 31
    assert uses.count("#wp") == 8
    assert uses.count("#bp") == 7
    defined = {node.attrib["id"] for node in root.iter(f"{SVG}g")}
    assert {use[1:] for use in uses} <= defined
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert "<b>&" in texts
    assert "ply 3 · e4d5 · black to move · opening" in texts
    assert svg.count("#e9d56b") == svg.count("#d9bd3c") == 1
    assert len(svg) < 8000


def test_previews(valid: Path, dataset: Path) -> None:
    profile = read_profile(valid)
    documents = validated_preview(valid, profile)
    assert list(documents) == ["distributions", "openings", "reasons", "positions", "drift"]
    assert sum(len(document.encode()) for document in documents.values()) < 100_000
    assert all(value == 0 for value in drift(profile, profile).values())
    assert rf"| too\_short | invalid | {profile['reasons']['too_short']} |" in documents["reasons"]
    boards = images(documents["positions"])
    assert len(boards) == 6
    for svg in boards + images(documents["distributions"]):
        ET.fromstring(svg)
    phases = [next(w for w in ("opening", "middlegame", "endgame") if w in svg) for svg in boards]
    assert phases[0] == "opening"
    assert "| E20 | Nimzo-Indian Defense |" in documents["openings"]
    shown = dataset_preview(dataset)
    assert shown["splits"].count("\n") == 4
    assert sum(len(document.encode()) for document in shown.values()) < 100_000


def test_another_month_drifts(valid: Path, tmp_path: Path) -> None:
    write_month(tmp_path / "b.pgn", "2024-02", 120, 12)
    validate([tmp_path / "b.pgn"], tmp_path / "b")
    moved = drift(read_profile(tmp_path / "b"), read_profile(valid))
    assert moved["openings"] > 1
    assert set(moved) >= {"white_wins", "draws", "mean_plies", "invalid_games"}


def test_length_bars_count_every_game() -> None:
    assert length_bars({"0": 1, "10": 2, "20": 3, "190": 4, "210": 5, "1990": 6}) == [
        ("0", 3), ("20", 3), *((str(low), 0) for low in range(40, 180, 20)),
        ("180", 4), ("200–", 11),
    ]  # fmt: skip


def test_text_of_others_cannot_leave_its_place(tmp_path: Path) -> None:
    wicked = "](x) | <script>`&" + "x" * 200
    pgn = tmp_path / "w.pgn"
    moves = " ".join(("e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "Ba4", "Nf6", "O-O", "Be7"))
    tags = (
        f'[White "{wicked}"]\n[Black "\\u202e"]\n[Result "1-0"]\n[ECO "C60"]\n[Opening "{wicked}"]'
    )
    pgn.write_text(f"{tags}\n\n{moves} 1-0\n\n")
    validate([pgn], tmp_path / "v")
    documents = validated_preview(tmp_path / "v")
    assert "<script" not in "".join(documents.values())
    row = documents["openings"].splitlines()[2]
    assert row.count("|") - row.count("\\|") == 7
    assert len(row) < 120
    assert ET.fromstring(images(positions(tmp_path / "v"))[0]).tag == f"{SVG}svg"
    assert (tmp_path / "v" / "valid_games.jsonl").read_text().count("\n") == 1
