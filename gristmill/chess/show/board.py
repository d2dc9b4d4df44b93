"""A position as an SVG board with the last move and the phase."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.svg import BOLD, INK, MIDDLE, SOFT, card, fitted, small_card, small_text, text_at

_LIGHT, _DARK, _FROM, _TO = "#efe6d2", "#b58f6b", "#e9d56b", "#d9bd3c"
_CELL, _LEFT, _TOP = 34, 20, 34
_SIDE = 8 * _CELL
_BASE = "M10 36H30V32H10Z"
# Paths on a square of 40 by 40 units.
_SHAPES = {
    "p": f"{_BASE}M14 32C18 27 18 24 15 21C12 13 28 13 25 21C22 24 22 27 26 32Z",
    "r": f"{_BASE}M13 32L15 18H25L27 32ZM12 18V9H16V12H18V9H22V12H24V9H28V18Z",
    "n": f"{_BASE}M13 32C13 24 19 22 19 18L13 21L10 18C12 12 16 9 19 9L20 5L24 9"
    "C30 12 30 24 28 32Z",
    "b": f"{_BASE}M15 32L17 24C11 20 14 11 20 6C26 11 29 20 23 24L25 32Z",
    "q": f"{_BASE}M13 32L8 12L14 20L16 9L20 19L24 9L26 20L32 12L27 32Z",
    "k": f"{_BASE}M13 32L10 20C10 14 18 14 20 18C22 14 30 14 30 20L27 32ZM20 16V5M16 9H24",
}
# Outlines for white, so that colours are not needed to tell the sides.
GLYPHS = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))


def squares_after(moves: Sequence[str]) -> list[str]:
    """The pieces on the 64 squares after some moves.

    moves: legal UCI moves from the start position. A text that is no move of a piece, such
        as `0000`, is passed over.
    Returns one letter a square from a1, b1 to h8: upper case for White, empty for no piece.
    """
    back = "rnbqkbnr"
    board = [*back.upper(), *"P" * 8, *[""] * 32, *"p" * 8, *back]
    for move in moves:
        if len(move) < 4 or move[0] not in "abcdefgh" or move[2] not in "abcdefgh":
            continue
        origin, target = _square(move[:2]), _square(move[2:4])
        piece = board[origin]
        if piece.lower() == "p" and move[0] != move[2] and not board[target]:
            board[target + (-8 if piece == "P" else 8)] = ""  # en passant
        if piece.lower() == "k" and abs(target - origin) == 2:
            rook = (target + 1, target - 1) if target > origin else (target - 2, target + 1)
            board[rook[0]], board[rook[1]] = "", board[rook[0]]
        promoted = move[4:5]
        if promoted:
            piece = promoted.upper() if piece.isupper() else promoted
        board[origin], board[target] = "", piece
    return board


def _square(name: str) -> int:
    return ord(name[0]) - 97 + 8 * (ord(name[1]) - 49)


def _corner(square: int) -> tuple[int, int]:
    return _LEFT + square % 8 * _CELL, _TOP + (7 - square // 8) * _CELL


def _cell(square: int) -> str:
    x, y = _corner(square)
    return f"M{x} {y}h{_CELL}v{_CELL}h-{_CELL}z"


def _piece(square: int, piece: str) -> str:
    x, y = _corner(square)
    kind = "w" if piece.isupper() else "b"
    return f'<use href="#{kind}{piece.lower()}" x="{x}" y="{y}"/>'


def _definitions(pieces: set[str]) -> str:
    """SVG definitions of these pieces."""
    shapes = []
    for piece in sorted(pieces):
        white = piece.isupper()
        fill, line = ("#fffdf6", "#2d2823") if white else ("#3a332d", "#0f0d0b")
        detail = "#2d2823" if white else "#e9e1d2"
        shape = _SHAPES[piece.lower()]
        name = f"{'w' if white else 'b'}{piece.lower()}"
        scale = _CELL / 40
        shapes.append(
            f'<g id="{name}"><path transform="scale({scale:g})" d="{shape}" fill="{fill}"'
            f' stroke="{line}" stroke-width="1.6" stroke-linejoin="round"/>'
        )
        if piece.lower() == "b":
            shapes.append(
                f'<path transform="scale({scale:g})" d="M20 11V18M17 14H23" fill="none"'
                f' stroke="{detail}" stroke-width="1.6"/>'
            )
        if piece.lower() == "n":
            shapes.append(
                f'<circle transform="scale({scale:g})" cx="19" cy="13.5" r="1.4" fill="{detail}"/>'
            )
        shapes.append("</g>")
    return f"<defs>{''.join(shapes)}</defs>"


def board_svg(
    moves: Sequence[str], *, title: str = "", phase: str = "", notes: Sequence[str] = ()
) -> str:
    """Draw the position after some moves, with the squares of the last move marked.

    title: line above the board; empty by default.
    """
    board = squares_after(moves)
    last = moves[-1] if moves and len(moves[-1]) >= 4 else ""
    marked = {}
    if last and last[0] in "abcdefgh":
        marked = {_square(last[:2]): _FROM, _square(last[2:4]): _TO}
    body = [_definitions({piece for piece in board if piece})]
    body.append(text_at(_LEFT, 22, fitted(title, _SIDE, 12.5), 12.5, INK, BOLD))
    body.append(f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="{_LIGHT}"/>')
    # Each row is a dashed line: its gaps are the light squares.
    middles = range(_TOP + _CELL // 2, _TOP + _SIDE, _CELL)
    starts = (_LEFT + _CELL, _LEFT) * 4
    ends = _LEFT + _SIDE
    rows = "".join(f"M{x} {y}H{ends}" for x, y in zip(starts, middles, strict=True))
    dashes = f'stroke="{_DARK}" stroke-width="{_CELL}" stroke-dasharray="{_CELL}"'
    body.append(f'<path d="{rows}" {dashes}/>')
    body += [f'<path d="{_cell(square)}" fill="{fill}"/>' for square, fill in marked.items()]
    body += [_piece(square, piece) for square, piece in enumerate(board) if piece]
    for i in range(8):
        x = _LEFT + i * _CELL + _CELL / 2
        body.append(text_at(x, _TOP + _SIDE + 13, "abcdefgh"[i], 11, SOFT, MIDDLE))
        y = _TOP + (7 - i) * _CELL + _CELL / 2 + 4
        body.append(text_at(_LEFT / 2 + 1, y, str(i + 1), 11, SOFT, MIDDLE))
    bottom = _TOP + _SIDE + 33
    turn = "black" if len(moves) % 2 else "white"
    caption = f"ply {len(moves)} · {last or 'start'} · {turn} to move" + (
        f" · {phase}" * bool(phase)
    )
    lines = [caption, *notes]
    for i, line in enumerate(lines):
        body.append(text_at(_LEFT, bottom + 16 * i, fitted(line, _SIDE + 20, 11.5), 11.5, SOFT))
    return card(_SIDE + 2 * _LEFT, bottom + 16 * len(lines) - 4, title or caption, body)


def small_board_svg(moves: Sequence[str], title: str, note: str) -> str:
    """The position after some moves for the overview of an asset, with pieces as characters."""
    board, cell, top = squares_after(moves), 22, 46
    dark = "".join(f"M{1 - row % 2} {row}.5h{7 + row % 2}" for row in range(8))
    rows = []
    for row in range(8):
        pieces = board[56 - 8 * row : 64 - 8 * row]
        held = [file for file, piece in enumerate(pieces) if piece]
        if held:
            glyphs = "".join(GLYPHS[pieces[file]] for file in held)
            places = " ".join(map(str, held))
            rows.append(f"<text x='{places}' y='{row}'>{glyphs}</text>")
    side = 8 * cell
    left = (224 - side) // 2
    return small_card(
        top + side + 10,
        [
            small_text(10, 20, title, " font-weight='700'"),
            small_text(10, 38, note, f" fill='{SOFT}'"),
            f"<g transform='translate({left} {top}) scale({cell})'>"
            f"<path d='M0 4h8' stroke='{_LIGHT}' stroke-width='8'/>"
            f"<path d='{dark}' stroke='{_DARK}' stroke-dasharray='1'/>",
            f"<g transform='translate(.5 .82)' font-size='.86' text-anchor='middle' fill='#111'>"
            f"{''.join(rows)}</g></g>",
        ],
    )
