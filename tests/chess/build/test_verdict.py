"""Games rejected by a filter."""

from pathlib import Path

from gristmill.chess import ValidateConfig, validate
from tests.chess.generated_pgn import one_game


def test_unterminated_games_count_as_abandoned(tmp_path: Path) -> None:
    pgn = tmp_path / "x.pgn"
    ends = ("Normal", "Time forfeit", "Unterminated", "Abandoned", "Rules infraction")
    tags = '[Result "1-0"]\n[Termination "{}"]\n'
    pgn.write_text("".join(one_game(tags.format(end), "1-0") for end in ends))
    summary = validate([pgn], tmp_path / "out", ValidateConfig(drop_abandoned=True))
    assert (summary.valid_games, summary.reasons) == (2, {"abandoned": 3})
    assert validate([pgn], tmp_path / "all").valid_games == 5
