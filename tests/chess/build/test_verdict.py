"""Games rejected by a filter."""

import csv
from pathlib import Path
from typing import Literal

import pytest

from gristmill.chess import MonthConfig, ValidateConfig, validate
from gristmill.provenance.canonical import config_fields
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


def test_the_filter_of_bots_moves_no_fingerprint_where_it_is_off() -> None:
    assert "drop_bots" not in config_fields(ValidateConfig(), affecting_output=True)
    assert config_fields(ValidateConfig(drop_bots=True), affecting_output=True)["drop_bots"]
    assert MonthConfig(drop_bots=True).validate().drop_bots
