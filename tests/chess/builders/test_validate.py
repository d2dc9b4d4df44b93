"""Validation: bytes do not depend on workers, parts, ranges or a kill; filters and verdicts."""

import csv
import json
from typing import Any

import pytest

from gristmill.chess import ValidateConfig, build_game_dataset, validate
from gristmill.chess.builders.verdicts import end_class, time_class
from gristmill.chess.config import SPLITS
from gristmill.run.parts import PartStore
from tests.chess.both_readers import both_ways
from tests.chess.builders.chain import chain, digests, rows
from tests.chess.generated_pgn import one_game


@pytest.mark.slow
def test_bytes_do_not_depend_on_workers_parts_or_ranges(month, tmp_path):
    one = chain([month], tmp_path / "one", 1, parts=False)
    assert chain([month], tmp_path / "kept", 2, parts=True) == one
    assert chain([month], tmp_path / "two", 2, parts=False) == one
    whole = tmp_path / "whole"
    whole.mkdir()
    validate([month], whole / "valid")
    build_game_dataset(whole / "valid", whole / "game")
    assert {k: v for k, v in one.items() if k.startswith(("valid", "game"))} == digests(whole)
    assert not list((tmp_path / "two").rglob("*.part"))


def test_a_killed_build_goes_on_with_its_parts(month, tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    store = PartStore(tmp_path / "parts")
    config = ValidateConfig(share_bytes=12_000)
    validate([month], tmp_path / "whole", config)
    done: list[str] = []

    class Killed(Exception):
        pass

    finished = PartStore.finished

    def dying(of: PartStore, name: str) -> Any:
        if len(done) == 3:
            raise Killed
        done.append(name)
        return finished(of, name)

    monkeypatch.setattr(PartStore, "finished", dying)
    with pytest.raises(Killed):
        validate([month], tmp_path / "first", config, parts=store)
    monkeypatch.undo()
    before = {path: path.stat().st_mtime_ns for path in store.folder.glob("*.part")}
    assert len(before) == 3
    validate([month], tmp_path / "second", config, parts=store)
    assert digests(tmp_path / "second") == digests(tmp_path / "whole")
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())


def test_ids_do_not_depend_on_the_file_and_games_keep_their_split(month, tmp_path):
    elsewhere = tmp_path / "some where" / "other.pgn"
    elsewhere.parent.mkdir()
    # The same games in the reverse order, in another file, beside the first.
    games = month.read_text().split("[Event ")[1:]
    elsewhere.write_text("".join("[Event " + game for game in reversed(games)))
    for name, pgns in (("a", [month]), ("b", [elsewhere]), ("both", [month, elsewhere])):
        validate(pgns, tmp_path / name)
        build_game_dataset(tmp_path / name, tmp_path / f"{name}_game")
    ids = [
        sorted(row["game_id"] for row in rows(tmp_path / name / "valid_games.jsonl"))
        for name in ("a", "b")
    ]
    assert ids[0] == ids[1]
    for split in SPLITS:
        a, b, both = (
            [tuple(row["moves"]) for row in rows(tmp_path / f"{name}_game" / f"{split}.jsonl")]
            for name in ("a", "b", "both")
        )
        assert sorted(a) == sorted(b)
        assert both == a + b
        assert a


def test_a_game_of_exactly_the_least_plies_is_valid_and_an_unterminated_one_is_abandoned(tmp_path):
    moves = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6"
    games = [moves, moves.removesuffix(" Nf6")]
    pgn = tmp_path / "two.pgn"
    pgn.write_text("".join(f'[Event "{n}"]\n\n{game} 1-0\n\n' for n, game in enumerate(games)))
    summary = validate([pgn], tmp_path / "valid", ValidateConfig(min_plies=8))
    assert (summary.valid_games, summary.invalid_games) == (1, 1)
    (row,) = rows(tmp_path / "valid/valid_games.jsonl")
    assert len(row["moves"]) == 8
    assert "too_short" in (tmp_path / "valid/invalid_games.csv").read_text()
    pgn = tmp_path / "x.pgn"
    ends = ("Normal", "Time forfeit", "Unterminated", "Abandoned", "Rules infraction")
    tags = '[Result "1-0"]\n[Termination "{}"]\n'
    pgn.write_text("".join(one_game(tags.format(end), "1-0") for end in ends))
    summary = validate([pgn], tmp_path / "out", ValidateConfig(drop_abandoned=True))
    assert (summary.valid_games, summary.reasons) == (2, {"abandoned": 3})
    assert validate([pgn], tmp_path / "all").valid_games == 5


@pytest.mark.parametrize(
    ("control", "name"),
    [
        ("15", "ultrabullet"), ("29", "ultrabullet"), ("30", "bullet"), ("179", "bullet"),
        ("300", "blitz"), ("479", "blitz"), ("600", "rapid"), ("1499", "rapid"),
        ("1500", "classical"), ("999999", "classical"), ("0+1", "bullet"), ("180+2", "blitz"),
        ("600+0", "rapid"), ("-", "correspondence"), ("1/86400", "correspondence"),
        ("1/259200", "correspondence"), ("2/172800", "correspondence"), ("1/86399", "unknown"),
        ("2/172799", "unknown"), ("0/86400", "unknown"), ("40/7200", "unknown"),
        ("40/7200:3600", "unknown"), ("1/", "unknown"), ("*180", "unknown"), ("", "unknown"),
        ("?", "unknown"), ("1000000", "unknown"), ("180+", "unknown"), ("+2", "unknown"),
        ("3 min", "unknown"), ("\u0663", "unknown"), ("600\n", "unknown"),
    ],
)  # fmt: skip
def test_time_controls_of_lichess_and_chess_com_have_a_class(control, name):
    assert time_class(control) == name


@pytest.mark.parametrize(
    ("termination", "name"),
    [
        ("", "normal"), ("?", "normal"), ("-", "normal"), ("NORMAL", "normal"),
        ("Time forfeit", "time_forfeit"), ("Abandoned", "abandoned"),
        ("Rules infraction", "rules_infraction"), ("Unterminated", "unterminated"),
        ("U0 won by resignation", "normal"), ("Jo Doe won by checkmate", "normal"),
        ("Game drawn by agreement", "normal"), ("Game drawn by repetition", "normal"),
        ("Game drawn by stalemate", "normal"), ("game drawn by insufficient material", "normal"),
        ("Game drawn by 50-move rule", "normal"), ("bob won on time", "time_forfeit"),
        ("Game drawn by timeout vs insufficient material", "time_forfeit"),
        ("U3 won - game abandoned", "abandoned"), ("Game abandoned", "abandoned"),
        ("won by checkmate", "unknown"), ("A won by lot", "unknown"), ("adjudication", "unknown"),
        ("A won by resignation.", "unknown"), ("Game drawn by agreement of both", "unknown"),
        ("A won by checkmate - game abandoned", "unknown"), ("A won on time\n", "unknown"),
    ],
)  # fmt: skip
def test_terminations_of_lichess_and_chess_com_have_a_class(termination, name):
    assert end_class(termination) == name


def test_an_archive_of_chess_com_is_filtered_as_one_of_lichess(tmp_path):
    pgn = tmp_path / "x.pgn"
    games = [
        ("600", "A won by resignation"), ("180+2", "B won on time"),
        ("300", "A won - game abandoned"), ("1/259200", "A won by checkmate"),
        ("40/7200", "Game drawn by agreement"), ("60", "Normal"),
    ]  # fmt: skip
    tags = '[Result "1-0"]\n[TimeControl "{}"]\n[Termination "{}"]\n'
    pgn.write_text("".join(one_game(tags.format(*pair), "1-0") for pair in games))
    config = ValidateConfig(time_controls=("blitz", "rapid", "correspondence"), drop_abandoned=True)
    summary = validate([pgn], tmp_path / "out", config)
    assert summary.valid_games == 3
    assert summary.reasons == {"abandoned": 1, "other_time_control": 2}


@pytest.mark.parametrize("compat", ["current", "reference"])
def test_games_of_bots_are_rejected_if_asked(tmp_path, compat):
    """In the compiled reader's form and in that of the oracle; other reasons come first."""
    pgn = tmp_path / "x.pgn"
    titles = [("", "BOT"), ("GM", "IM"), ("bot", "GM"), ("BOT", ""), ("Bot X", ""), (" BOT", "")]
    tags = '[Result "1-0"]\n[WhiteTitle "{}"]\n[BlackTitle "{}"]\n'
    plain = [one_game(tags.format(*pair), "1-0") for pair in titles]
    odd = [text.replace("1. e4 e5", "1. e2e4 e7e5") for text in plain]
    short = '[Event "E"]\n[WhiteTitle "BOT"]\n\n1. e4 e5 1-0\n\n'
    pgn.write_text("".join([*plain, *odd, short]))
    config = ValidateConfig(drop_bots=True, compat=compat, source_names=("x.pgn",))
    summary = validate([pgn], tmp_path / "out", config)
    assert (summary.valid_games, summary.reasons) == (6, {"bot_player": 6, "too_short": 1})
    both_ways(pgn, config)
    with (tmp_path / "out" / "invalid_games.csv").open(newline="") as table:
        ply, *others = [row["offending_ply"] for row in csv.DictReader(table)]
    assert ply == "10" and others[-1] == "2"
    assert validate([pgn], tmp_path / "all").valid_games == 12


@pytest.mark.parametrize(
    ("filters", "reason", "valid"),
    [
        ({"titles": ("gm", "IM")}, "other_title", {1}),
        ({"events": ("candidates", "Titled ")}, "other_event", {1, 2}),
        ({"titles": ("GM",), "events": ("x",)}, "other_title", set()),
        ({"titles": ("GM",), "drop_bots": True}, "bot_player", set()),
    ],
)
def test_games_are_chosen_by_title_and_event(tmp_path, filters, reason, valid):
    """In the compiled reader's form and in that of the oracle."""
    games = [
        ("BOT", "GM", "Rated blitz"),
        ("GM", "im", "FIDE CANDIDATES 2024"),
        ("GM", "", "Titled Tuesday"),
        ("WGM", "GM", "Titled"),
    ]
    tags = '[Event "{2}"]\n[Result "1-0"]\n[WhiteTitle "{0}"]\n[BlackTitle "{1}"]\n'
    plain = [one_game(tags.format(*game), "1-0") for game in games]
    odd = [text.replace("1. e4 e5", "1. e2e4 e7e5") for text in plain]
    pgn = tmp_path / "x.pgn"
    pgn.write_text("".join([*plain, *odd]))
    config = ValidateConfig(**filters, source_names=("x.pgn",))
    summary = validate([pgn], tmp_path / "out", config)
    assert summary.valid_games == 2 * len(valid) and reason in summary.reasons
    both_ways(pgn, config)
    events = [
        json.loads(line)["headers"]["Event"] for line in (tmp_path / "out/valid_games.jsonl").open()
    ]
    assert events == 2 * [games[number][2] for number in sorted(valid)]
