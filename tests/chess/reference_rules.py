"""The original code's rules as simple loops over python-chess, to compare with.

Rules: docs/formats/chess.md (#compatibility-mode, #pgn-reading, #legacy-rows). Slow.
"""

import csv
import hashlib
import io
import json
import logging
import random
from pathlib import Path
from typing import Any

import chess
import chess.pgn
import chess.variant

logging.getLogger("chess.pgn").setLevel(logging.CRITICAL + 1)
ROSTER = ("Event", "Site", "Date", "Round", "White", "Black", "Result")


class Visitor(chess.pgn.BaseVisitor):
    def begin_game(self) -> None:
        self.headers = chess.pgn.Headers({})
        self.moves: list[str] = []
        self.errors = 0
        self.board: Any = None

    def begin_headers(self) -> Any:
        return self.headers

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self.headers[tagname] = tagvalue

    def begin_variation(self) -> Any:
        return chess.pgn.SKIP

    def visit_board(self, board: Any) -> None:
        self.board = board

    def visit_move(self, board: Any, move: Any) -> None:
        self.moves.append(move.uci())

    def visit_result(self, result: str) -> None:
        if self.headers.get("Result", "*") == "*":
            self.headers["Result"] = result

    def handle_error(self, error: Exception) -> None:
        self.errors += 1

    def result(self) -> "Visitor":
        return self


def validated(path: Path, source: str, min_plies: int = 8) -> tuple[bytes, bytes]:
    """valid_games.jsonl and invalid_games.csv (docs/formats/chess.md#compatibility-mode)."""
    valid, table = [], io.StringIO()
    invalid = csv.writer(table)
    invalid.writerow(["game_id", "source_file", "reason", "offending_ply", "result"])
    with path.open(encoding="utf-8", errors="replace") as file:
        while (game := chess.pgn.read_game(file, Visitor=Visitor)) is not None:
            result = game.headers.get("Result", "*")
            plies = len(game.moves)
            if game.errors:
                invalid.writerow(["", source, "pgn_errors", plies, result])
                continue
            if not game.moves:
                invalid.writerow(["", source, "empty_game", 0, result])
                continue
            said = game.board.result(claim_draw=True)
            if "*" not in (said, result) and said != result:
                invalid.writerow(["", source, "result_mismatch", plies, result])
                continue
            words = [source, *(game.headers.get(tag, "") for tag in ROSTER[:6])]
            text = "|".join([*words, " ".join(game.moves[:16])])
            game_id = hashlib.sha1(text.encode()).hexdigest()
            if plies < min_plies:
                invalid.writerow([game_id, source, "too_short", plies, result])
                continue
            row = {
                "game_id": game_id,
                "source_file": source,
                "headers": dict(game.headers),
                "result": result,
                "winner_side": {"1-0": "W", "0-1": "B", "1/2-1/2": "D"}.get(result, "?"),
                "plies": plies,
                "moves": game.moves,
                "moves_uci": game.moves,
            }
            valid.append(json.dumps(row) + "\n")
    return "".join(valid).encode(), table.getvalue().encode()


def phase(board: chess.Board, ply: int) -> tuple[str, str]:
    weights = {chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
    material = sum(weights.get(piece.piece_type, 0) for piece in board.piece_map().values())
    if material <= 14:
        return "endgame", "low_nonpawn_material"
    if not board.queens and material <= 20:
        return "endgame", "queens_off_low_material"
    if ply <= 20 and board.castling_rights:
        return "opening", "early_with_castling_rights"
    return "middlegame", "default_transition"


def phases(moves: list[str]) -> list[tuple[str, str]]:
    board, expected = chess.Board(), []
    for ply, text in enumerate(moves, 1):
        try:
            move = chess.Move.from_uci(text)
            if not board.is_legal(move):
                break
        except ValueError:
            break
        board.push(move)
        expected.append(phase(board, ply))
    return expected + [("unknown", "invalid_moves_uci")] * (len(moves) - len(expected))


def splices(
    row: dict[str, Any], k: int, min_context: int, min_target: int, cap: int, seed: int
) -> str:
    """The legacy sample rows of a validated row."""
    moves, expected = row["moves"], phases(row["moves"])
    n, out = len(row["moves"]), []
    for i in range(min_context - 1, n - min_target):
        target = moves[i + 1 : i + 1 + k]
        if len(target) < min_target:
            continue
        left, progress = max(0, n - i - 1), (i + 1) / n
        sample = {
            "game_id": row["game_id"],
            "winner_side": row["winner_side"],
            "splice_index": i,
            "ply": i + 1,
            "plies_remaining": left,
            "plies_remaining_bucket": "<=10" if left <= 10 else "11-20" if left <= 20 else ">20",
            "relative_progress_bucket": (
                "early" if progress < 0.33 else "mid" if progress < 0.66 else "late"
            ),
            "phase": expected[i][0],
            "phase_reason": expected[i][1],
            "phase_rule_version": "material_castling_v1",
            "context": moves[: i + 1],
            "target": target,
            "next_move": target[0],
            "plies_total": n,
        }
        out.append(json.dumps(sample) + "\n")
    if 0 < cap < len(out):
        digest = hashlib.sha1(f"{seed}:{row['game_id']}".encode()).hexdigest()
        random.Random(int(digest[:8], 16)).shuffle(out)
        out = out[:cap]
    return "".join(out)
