"""Games rejected by a filter."""

import csv
import json
from pathlib import Path
from typing import Any, Literal

import pytest

from gristmill.chess import MonthConfig, ValidateConfig, validate
from gristmill.chess.builders.verdicts import end_class, time_class
from gristmill.provenance.record import config_fields
from tests.chess.both_readers import both_ways
from tests.chess.generated_pgn import one_game


def test_unterminated_games_count_as_abandoned(tmp_path: Path) -> None:
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
def test_time_controls_of_lichess_and_chess_com_have_a_class(control: str, name: str) -> None:
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
def test_terminations_of_lichess_and_chess_com_have_a_class(termination: str, name: str) -> None:
    assert end_class(termination) == name


def test_an_archive_of_chess_com_is_filtered_as_one_of_lichess(tmp_path: Path) -> None:
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
def test_games_of_bots_are_rejected_if_asked(
    tmp_path: Path, compat: Literal["current", "reference"]
) -> None:
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
def test_games_are_chosen_by_title_and_event(
    tmp_path: Path, filters: dict[str, Any], reason: str, valid: set[int]
) -> None:
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


def test_the_filter_of_bots_moves_no_fingerprint_where_it_is_off() -> None:
    later = {"drop_bots", "titles", "events"}
    assert not later & {*config_fields(ValidateConfig(), affecting_output=True)}
    assert config_fields(ValidateConfig(drop_bots=True), affecting_output=True)["drop_bots"]
    assert MonthConfig(drop_bots=True).validate().drop_bots
