"""Which months are built from files in the inbox."""

from __future__ import annotations

from pathlib import Path

from assets.chess.drops import available
from resources.lake import Lake

GAME = b'[Event "x"]\n\n1. e4 *\n'


def test_a_month_whose_drop_is_refused_is_not_built(tmp_path: Path) -> None:
    inbox = tmp_path / "drops/chess"
    inbox.mkdir(parents=True)
    (inbox / "lichess_elite_2024-01.pgn").write_bytes(GAME)
    (inbox / "lichess_elite_2024-03.pgn").symlink_to("/etc/passwd")
    (inbox / "lichess_elite_2024-04.pgn").write_bytes(GAME)
    (inbox / "lichess_elite_2024-04.zip").write_bytes(GAME)
    (inbox / "lichess_elite_2019-04.pgn").write_bytes(GAME)
    assert available(Lake(data_root=str(tmp_path))) == {"2024-01"}
