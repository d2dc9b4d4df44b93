"""Random games as PGN in every common form, and with characters changed."""

import random
from pathlib import Path

import chess
import chess.pgn

ALPHABET = "abcdefgh12345678NBRQKOx+#=-!?().{};$ \n\t[]%*/\"'0e.p\r\\é"


def played(dice: random.Random, plies: int) -> tuple[list[str], str]:
    """Random legal moves in SAN, promotions of all kinds, and the board's result."""
    board, moves = chess.Board(), []
    while len(moves) < plies and not board.is_game_over():
        choices = list(board.legal_moves)
        keen = [m for m in choices if m.promotion or board.is_capture(m) or board.is_castling(m)]
        back = [m for m in choices if moves and m.to_square == board.peek().from_square]
        move = dice.choice(keen if keen and dice.random() < 0.3 else choices)
        if len(board.move_stack) >= 2 and dice.random() < 0.25:
            mine = board.move_stack[-2]  # undo one's last move: repetitions
            undo = chess.Move(mine.to_square, mine.from_square)
            move = undo if undo in choices else dice.choice(back or choices)
        moves.append(board.san(move))
        board.push(move)
    return moves, board.result(claim_draw=True)


def game_text(dice: random.Random, moves: list[str], result: str) -> str:
    """One game as PGN, with every legal way to write it that the scanner should take."""
    said = result if dice.random() < 0.7 else dice.choice(["1-0", "0-1", "1/2-1/2", "*", "?"])
    tags = [f'[Event "E{dice.randrange(9)}"]', '[Site "s"]', f'[White "{dice.choice("AB")}"]']
    if dice.random() < 0.8:
        tags.append(f'[Result "{said}"]')
    if dice.random() < 0.3:
        tags.append(
            dice.choice(['[UTCDate "2024.01.01"]', '[Black "Jürgen \\"x\\" q"y"]', '[a ""]'])
        )
    dice.shuffle(tags)
    words: list[str] = []
    for ply, move in enumerate(moves):
        if ply % 2 == 0 or dice.random() < 0.05:
            words.append(f"{ply // 2 + 1}." + "." * dice.choice([0, 0, 2]))
        words.append(move + dice.choice(["", "", "", "", "!", "?!", " $3", "{ c (x) }"]))
        if dice.random() < 0.05:
            words.append(dice.choice(["{a\n\nb}", "(1. e4 (1. d4) e5 {)})", "; rest\n", "{x}"]))
    words.append(said if dice.random() < 0.8 else dice.choice(["1-0", "0-1", "*", ""]))
    text, width = "", 0
    for word in words:
        text += word
        width += len(word)
        if width > 70 and dice.random() < 0.5 and not word.endswith("\n"):
            text, width = text + "\n", 0
        elif not word.endswith("\n"):
            text += " " * dice.choice([1, 1, 1, 2])
    newline = dice.choice(["\n", "\n", "\r\n"])
    whole = "\n".join(tags) + "\n\n" + text.strip() + "\n\n" + "\n" * dice.choice([0, 0, 1])
    return whole.replace("\n", newline)


def mutated(dice: random.Random, text: str) -> str:
    """The text with a few characters put in, taken out or changed."""
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(text))
        cut = at + dice.choice([0, 1, 1, 2])
        text = text[:at] + dice.choice(["", dice.choice(ALPHABET)]) + text[cut:]
    return text


def write_games(path: Path, seed: int, games: int, fraction_mutated: float) -> Path:
    dice = random.Random(seed)
    texts = []
    for _ in range(games):
        moves, result = played(dice, dice.choice([0, 3, 9, 30, 80, 160]))
        text = game_text(dice, moves, result)
        texts.append(mutated(dice, text) if dice.random() < fraction_mutated else text)
    path.write_bytes("".join(texts).encode())
    return path


def one_game(tags: str, end: str) -> str:
    moves = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7"
    return f'[Event "E"]\n[White "A"]\n[Black "B"]\n{tags}\n{moves} {end}\n\n'
