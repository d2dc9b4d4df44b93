"""The flags of games that may have lost moves, slowly: one character after another.

Written from docs/formats/chess.md#words-that-are-no-moves, and shares nothing with the readers.
"""

import re
from pathlib import Path

import numpy as np

from gristmill.chess import ValidateConfig
from gristmill.chess.builders.validate import validate_range
from gristmill.chess.builders.verdicts import RangeTask
from gristmill.chess.format.folders import GAME
from gristmill.chess.raw.pgn import plan

NAMES = {32: "number_gap", 64: "no_result", 128: "ply_count", 256: "passed_over"}
_TAG = re.compile(r'[ \t]*\[[ \t]*([A-Za-z0-9][\w+#=:-]*)[ \t]*"(.*)"[ \t]*\][ \t]*', re.ASCII)
_MOVE = re.compile(
    r"[NBKRQ]?[a-h]?[1-8]?[-x]?[a-h][1-8](=?[nbrqkNBRQK])?|[Oo]-[Oo](-[Oo])?|0-0(-0)?"
)
_OTHERS = (r"\$[0-9]+", r"1-0|0-1|1/2-1/2|\*", r"\((?!\))|[)]")


def flags_of(game: bytes, plies: int) -> set[str] | None:
    """The flags of a valid game of so many plies, but `ply_count` of a last position.

    None where the rules of letters and results, which other tests have, come first.
    """
    text = game.decode("utf-8", "replace")
    lines = re.sub("(^|\n)\ufeff", r"\1", re.sub("\r\n?", "\n", text)).split("\n")
    tags: dict[str, str] = {}
    while lines and (lines[0].strip() == "" or lines[0][0] in "%;[" or _TAG.fullmatch(lines[0])):
        if tag := _TAG.fullmatch(lines.pop(0)):
            tags[tag[1]] = tag[2]
    body = "\n".join(lines)
    if (
        not body.isascii()
        or any(value.count('"') for value in tags.values())
        or re.search(r"[01]:[01]|1/2", body.replace("1/2-1/2", ""))
    ):
        return None
    found: set[str] = set()
    at, depth, ply, ended, words = 0, 0, 0, False, [""]
    while at < len(body):
        rest, char = body[at:], body[at]
        comment = {"{": r"\{[^}]*\}", ";": r"[^\n]*"}.get(char)
        if char == "%" and (at == 0 or body[at - 1] == "\n"):
            comment = r"[^\n]*"
        if comment and (skipped := re.match(comment, rest)):
            at, words = at + skipped.end(), [*words, ""]
            continue
        if char in "()" and (depth or (char == "(" and ply)):
            depth += 1 if char == "(" else -1
            at, words = at + 1, [*words, ""]
            continue
        token = re.match(_MOVE, rest) or re.match("|".join(_OTHERS[:2]), rest)
        if not token:
            if not depth:
                words += [""] if char in "()" else []
                words[-1] += " " if char == "\0" else char
            at += 1
            continue
        at += token.end()
        if depth:
            continue
        if re.fullmatch(_MOVE, token[0]):
            found |= _said(words, ply, token[0])
            ply, words = ply + 1, [""]
        else:
            ended |= token[0][0] != "$"
            words.append("")
    found |= _said(words, ply, "") | ({"no_result"} if not ended else set())
    count = tags.get("PlyCount", "")
    if count.isascii() and count.isdigit() and count.lstrip("0") != str(plies):
        found.add("ply_count")
    return found


def _said(words: list[str], ply: int, move: str) -> set[str]:
    """The flags of the words between two moves."""
    found: set[str] = set()
    text = re.sub(r"\[[^][]*\]", " ", " ".join(words))
    text = re.sub(r"(?<!\w)(e[.]p[.]?|\d+([.,]\d+)?/\d+)(?!\w)", " ", text)
    if move[:1] in [*"abcdefgh12345678-x"] and re.search(r"(?<!\w)D[\Wx]*$", " ".join(words)):
        found.add("passed_over")
    for word in re.findall(r"[A-Za-z0-9_{}()\[\]]+", text):
        if not word.isdigit():
            found |= set() if word in ("ep", "ch", "mate", "N", "D", "RR") else {"passed_over"}
        elif len(word) > 9 or int(word) != ply // 2 + 1:
            found.add("number_gap")
    return found


def check(pgn: Path) -> int:
    """Compare the flags of a file's valid games with the rules; returns how many were compared."""
    streams, _ = validate_range(RangeTask(plan(pgn, 1 << 40)[0], 0, pgn.name, ValidateConfig()))
    data, compared = pgn.read_bytes(), 0
    for game in np.frombuffer(bytes(streams["games.games"]), GAME):
        start = int(game["pgn"])
        text = data[start : start + int(game["size"])]
        if (wanted := flags_of(text, int(game["plies"]))) is not None:
            found = {name for bit, name in NAMES.items() if int(game["flags"]) & bit}
            if b"CurrentPosition" in text:
                wanted, found = wanted - {"ply_count"}, found - {"ply_count"}
            assert found == wanted, (text, found, wanted)
            compared += 1
    return compared
