"""What the words of a movetext say of its moves, beyond what python-chess reads of them.

It passes over each word that it does not know, so a move that was misspelled or cut off is missing
in silence. Source: docs/formats/chess.md#words-that-are-no-moves
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gristmill.chess.format import rows

_COMMENT = re.compile(r"\{[^}]*\}?|;[^\n]*|^%[^\n]*", re.MULTILINE)
# What good files have between moves, besides signs, dots and numbers.
_PASSES = re.compile(r"\[[^][]*\]|(?<!\w)(?:e\.p\.?|ep|ch|mate|N|D|RR|\d+(?:[.,]\d+)?/\d+)(?!\w)")
# Signs say nothing, but those of which one of a pair is missing, and U+FFFD.
_WORD = re.compile(r"[\w{}()\[\]\ufffd]+")
# Before the square of a move: a piece, and perhaps its file or rank; the move is then a pawn's.
_LONE = re.compile(r"(?<!\w)([KQRBN][a-h1-8]?|D)(?:\W|x)*\Z")
_CUT_CASTLING = re.compile(r"(?<!\w)O\s*-|-\s*O(?!\w)")
_RESULT = re.compile(r"(?<!\S)(?:1/2(?::1/2)?|[01]:[01])(?=\s*(?:[{;]|\Z))")


@dataclass
class Words:
    """What the words of a movetext say.

    plies: moves, or those before the fault. gap: whether a number is not that of the next move.
    passed: the first word that may not pass; empty for none. fault: why the moves from here on are
    not those that were written; empty for none.
    """

    plies: int = 0
    gap: bool = False
    passed: str = ""
    fault: str = ""

    def add(self, between: str, move: str = "") -> None:
        """Take what is between two moves, and the move behind it; none at the end of the game."""
        lone = _LONE.search(between) if move[:1] in tuple("abcdefgh12345678x-") else None
        if lone and lone[1] != "D":
            self.fault = f"{lone[1]!r} and {move!r} are apart: write {lone[1] + move}"
        text = _PASSES.sub(" ", between)
        if _CUT_CASTLING.search(text):
            self.fault = "castling is cut in two: write O-O or O-O-O as one word"
        words = _WORD.findall(text)
        for word in [*words, lone[1]] if lone else words:
            if not (word.isascii() and word.isdigit()):
                self.passed = self.passed or word[:80]
            elif word.lstrip("0") != str(self.plies // 2 + 1):
                self.gap = True


def read_words(movetext: str, tokens: re.Pattern[str]) -> Words:
    """Read a movetext. tokens: what python-chess reads, with the moves in group 1."""
    text = _COMMENT.sub(" ", movetext)
    words, between, at, depth, result = Words(), "", 0, 0, ""
    for found in tokens.finditer(text):
        token = found[0]
        between += "" if depth else f"{text[at : found.start()]} "
        at = found.end()
        if token == ")" and depth:
            depth -= 1
        elif token == "(" and (depth or words.plies):
            depth += 1
        elif depth:
            continue
        elif token in ("(", ")"):  # it opens or closes nothing
            between += token
        elif found[1]:
            words.add(between, token)
            if result:
                words.fault = f"moves follow the result {result}: the next game needs a new line"
            if words.fault:
                return words
            words.plies, between = words.plies + 1, ""
        elif token in rows.RESULTS:
            result = token
    words.add(between + ("" if depth else text[at:]))
    return words


def result_of(text: str) -> str:
    """A result in the form of PGN, as 1/2-1/2 for 1/2 and 1-0 for 1:0; another text as it is.

    text: with the signs and dashes of ASCII.
    """
    plain = "".join(text.split()).replace(":", "-")
    plain = "1/2-1/2" if plain == "1/2" else plain
    return plain if plain in rows.RESULTS[1:] else text


def with_results(line: str) -> str:
    """A line of movetext with the result at its end in the form of PGN."""
    return _RESULT.sub(lambda found: result_of(found[0]), line)
