"""What a PGN may be: its name, its first bytes, how large its parts are, the words between moves.

A name says a month, and by its ending what a file is. python-chess passes over each word that it
does not know, so a move that was misspelled or cut off is missing in silence: the words say so.
Source: docs/formats/chess.md#months, docs/formats/chess.md#text-limits and
docs/formats/chess.md#words-that-are-no-moves
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from gristmill.chess.format import rows
from gristmill.contract import BadInput

# The first archive of the database.
FIRST_MONTH = "2020-06"
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
_BARE = re.compile(r"\d{4}-\d{2}", re.ASCII)
_NAMED = re.compile(r"(?<!\d)\d{4}-\d{2}(?!\d)", re.ASCII)
_LINK = re.compile(r"lichess_elite_(\d{4}-\d{2})\.zip(?:\?|$)", re.ASCII)


def check_month(month: str) -> str:
    """Return a month. Raises BadInput unless it is `YYYY-MM` and not before the first archive."""
    if not _MONTH.fullmatch(month) or month < FIRST_MONTH:
        raise BadInput(month, f"is not a month of the archive (YYYY-MM, {FIRST_MONTH} or later)")
    return month


def parse_month_list(text: str, name: str = "month list") -> list[str]:
    """The months of a list, without repetitions: one month or one link a line.

    Empty lines and lines that begin with `#` are skipped. Raises BadInput for any other line, with
    `name` for the list, and for a list without months.
    """
    months: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        link = _LINK.search(entry)
        if not link and not _BARE.fullmatch(entry):
            rule = f"Unsupported month entry {entry!r}; write YYYY-MM or a link"
            raise BadInput(name, rule, number)
        months[check_month(link[1] if link else entry)] = None
    if not months:
        raise BadInput(name, "has no months; write one a line, as YYYY-MM")
    return list(months)


def is_month(key: str) -> bool:
    """Whether a partition key is that of a month, and not of a collection."""
    return _BARE.fullmatch(key) is not None


def month_in(name: str) -> str | None:
    """The month in the name of a drop; None unless there is exactly one."""
    months = set(_NAMED.findall(name))
    return months.pop() if len(months) == 1 else None


def has_ended(month: str, day: date) -> bool:
    """Whether a month is one of the archive, and over on a day."""
    return bool(_MONTH.fullmatch(month)) and FIRST_MONTH <= month < f"{day:%Y-%m}"


def month_before(month: str) -> str:
    """The month before a month."""
    year, number = int(month[:4]), int(month[5:])
    return f"{year - 1}-12" if number == 1 else f"{year}-{number - 1:02d}"


def due_months(
    tick: date, present: Collection[str], limit: int = 3, look_back: int = 12
) -> list[str]:
    """The months that a tick of the schedule should ask for, oldest first.

    tick: date of the tick. present: months that need not be asked for.
    limit: months to return at most, 3 by default; of more the choice changes from week to week, so
        that months that stay unpublished or damaged cannot keep the others waiting.
    look_back: how many months before the tick count, 12 by default, from the first archive on.
    """
    missing: list[str] = []
    month = f"{tick.year}-{tick.month:02d}"
    for _ in range(look_back):
        month = month_before(month)
        if month >= FIRST_MONTH and month not in present:
            missing.append(month)
    missing.reverse()
    if len(missing) <= limit:
        return missing
    start = (tick.toordinal() // 7) * limit % len(missing)
    return sorted((missing + missing)[start : start + limit])


MONTH_ENDINGS: Final = (".zip", ".pgn", ".pgn.zst")
"""What the name of a month's drop ends in."""
ENDINGS: Final = (*MONTH_ENDINGS, ".pgn.gz", ".pgn.bz2")
"""What the name of a collection's file ends in."""
# Archives of other kinds, and what unpacks them.
_OTHER: Final = {
    ".gz": "gunzip",
    ".bz2": "bunzip2",
    ".xz": "unxz",
    ".7z": "7z x",
    ".rar": "unrar x",
    ".tar": "tar -xf",
    ".tgz": "tar -xf",
    ".zst": "unzstd",
}


def ending_in(name: str, endings: Sequence[str] = ENDINGS) -> str:
    """The ending of a name, in small letters; empty for none of `endings`."""
    return next((each for each in endings if name.lower().endswith(each)), "")


def ending_of(file: Path, endings: Sequence[str] = MONTH_ENDINGS) -> str:
    """The ending of a file, in small letters; BadInput, with what to do, for none of `endings`."""
    if ending := ending_in(file.name, endings):
        return ending
    if rule := packed_otherwise(file.name):
        raise BadInput(file, rule)
    raise BadInput(file, f"is neither {' nor '.join(endings)}; pack or rename it")


def packed_otherwise(name: str) -> str:
    """What to do with an archive of another kind; empty for what is none."""
    known = (word for each, word in _OTHER.items() if name.lower().endswith(each))
    if command := next(known, None):
        command = _OTHER[".tar"] if ".tar." in name.lower() else command
        rule = "is packed in a form that is not read"
        return f"{rule}: unpack it with `{command}`, and bring the .pgn"
    return ""


LINE_BYTES = 1 << 20
GAME_BYTES = 16 << 20
TAGS = 1_000
PLIES = 20_000
ERRORS = 1_000
LINES = 1 << 20
BLANK_LINES = 10_000
# python-chess copies the rest of a line at each comment in it.
COMMENT_WORK = 1 << 28


class TooMuch(ValueError):
    """A game passes a limit; the text says which."""


def with_short_lines(reads: Iterable[bytes], path: Path, at: int = 0) -> Iterator[bytes]:
    """The same reads; BadInput before the read that makes a line longer than LINE_BYTES."""
    begun = at
    for data in reads:
        end = at + len(data)
        while end - begun > LINE_BYTES:
            cut = _last_line_end(data, max(begun - at, 0), begun - at + LINE_BYTES + 1)
            if cut < 0:
                rule = f"the line at byte {begun} has more than {LINE_BYTES} bytes; break it"
                raise BadInput(path, rule)
            begun = at + cut + 1
        cut = _last_line_end(data, max(begun - at, 0), len(data))
        begun = at + cut + 1 if cut >= 0 else begun
        at = end
        yield data


def _last_line_end(data: bytes, start: int, stop: int) -> int:
    newline = data.rfind(b"\n", start, stop)
    return newline if newline >= 0 else data.rfind(b"\r", start, stop)


class Budget:
    """What one game may still cost python-chess; each method raises TooMuch at its limit."""

    def __init__(self) -> None:
        self.tags = self.plies = self.errors = self.lines = self.blank = self.work = 0

    def tag(self) -> None:
        """One more tag."""
        self.tags += 1
        if self.tags > TAGS:
            raise TooMuch(f"it has more than {TAGS} tags")

    def ply(self) -> None:
        """One more ply."""
        self.plies += 1
        if self.plies > PLIES:
            raise TooMuch(f"it has more than {PLIES} plies")

    def error(self) -> None:
        """One more token that cannot be read."""
        self.errors += 1
        if self.errors > ERRORS:
            raise TooMuch(f"more than {ERRORS} of its moves cannot be read")

    def line(self, line: bytes) -> None:
        """One more line."""
        self.lines += 1
        if self.lines > LINES:
            raise TooMuch(f"it has more than {LINES} lines")
        self.blank += not line.strip()
        if self.blank > BLANK_LINES:
            raise TooMuch(f"it has more than {BLANK_LINES} blank lines; is a comment left open?")
        self.work += line.count(b"{") * len(line)
        if self.work > COMMENT_WORK:
            raise TooMuch("it has lines with too many comments; break the lines")


HEAD_BYTES = 1 << 20
_BINARY_BYTES = 4096
_BLANKS = b"\xef\xbb\xbf \t\r\n"
_LFS = b"version https://git-lfs.github.com/spec/"
# A tag; the number of a move and the move; a move without its number.
_GAME_TEXT = re.compile(
    rb"^(?:\xef\xbb\xbf)?[ \t]*(?:\[[ \t]*[A-Za-z0-9][\w+#=:-]*\s*\""
    rb"|(?:\d+[ \t]*\.[ .\t]*)(?:[KQRBN]?[a-h]?[1-8]?[x-]?[a-h][1-8]|[O0]-[O0]|--|Z0|\{|[\r\n])"
    rb"|(?:[KQRBN]?[a-h]?[1-8]?[x-]?[a-h][1-8]|[O0]-[O0])[+#!?=QRBN]*(?:\s|\Z))",
    re.MULTILINE,
)
_USUAL = (b"Event", b"Site", b"Date", b"Round", b"White", b"Black", b"Result", b"FEN", b"Variant")
_USUAL_TAG = re.compile(
    rb"^[ \t]*\[[ \t]*(" + b"|".join(_USUAL) + rb")(?![\w+#=:-])[^\n]*",
    re.MULTILINE | re.IGNORECASE,
)
_TAG_LINE = re.compile(rb"\s*\[\s*\w+\s*\"[^\n]*\"\s*\]\s*")
_KINDS = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!", "RAR"),
    (b"\xfd7zXZ", "xz"),
    (b"PK", "ZIP"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


def snippet(head: bytes) -> str:
    """The first 200 bytes of unexpected data as one line of text, for an error."""
    return " ".join(head[:200].decode("utf-8", "replace").split())


def other_kind(head: bytes) -> str:
    """What to do about a file that is of another kind than its name says, by its first bytes."""
    if head.lstrip(_BLANKS).startswith(b"<"):
        return f"likely HTML/error page: {snippet(head)!r}; download it again"
    if head.startswith(_LFS):
        return "it is a pointer of Git LFS; get the file itself with `git lfs pull`"
    kind = _packed_as(head)
    if kind in ("ZIP", "zstd"):
        return f"it is {kind}; give it the ending .{'zip' if kind == 'ZIP' else 'pgn.zst'}"
    if kind:
        return f"it is {kind}; unpack it, and bring the .pgn"
    return f"it holds {snippet(head)!r}; give it the ending of its kind: .zip, .pgn or .pgn.zst"


def _packed_as(head: bytes) -> str | None:
    return next((name for magic, name in _KINDS if head.startswith(magic)), None)


def has_game_text(head: bytes) -> bool:
    """Whether a line of a text begins with a tag or a move."""
    return _GAME_TEXT.search(head) is not None


def unread_tag(head: bytes) -> str:
    """The first line of a usual tag in a form that is not read; empty where there is none."""
    lines = head.replace(b"\r", b"\n").rpartition(b"\n")[0]
    for found in _USUAL_TAG.finditer(lines):
        if found[1] not in _USUAL or not _TAG_LINE.fullmatch(found[0]):
            return snippet(found[0])
    return ""


def check_head(head: bytes, path: Path, *, whole: bool) -> None:
    """Check that a text can be PGN."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadInput(path, "does not hold PGN text in UTF-8 but in UTF-16; save it as UTF-8")
    is_packed = b"\0" in head[:_BINARY_BYTES] and _packed_as(head) is not None
    if head.lstrip(_BLANKS).startswith(b"<") or head.startswith(_LFS) or is_packed:
        raise BadInput(path, f"does not hold PGN text: {other_kind(head)}")
    # Each letter of UTF-16 has a NUL.
    has_game = has_game_text(head) or has_game_text(head[:_BINARY_BYTES].replace(b"\0", b""))
    if has_game and (nul := head.find(b"\0", 0, _BINARY_BYTES)) >= 0:
        rule = f"has a NUL at byte {nul}, as a damaged copy or UTF-16 has; copy it again as UTF-8"
        raise BadInput(path, rule)
    if b"\0" in head[:_BINARY_BYTES] or (whole and not has_game):
        found = f"no tag and no move is in it, but {snippet(head)!r}"
        raise BadInput(path, f"does not hold PGN text: {found}; export the games as PGN")


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
    """A result in the form of PGN, as 1/2-1/2 for 1/2 and 1-0 for 1:0; another text as it is."""
    plain = "".join(text.split()).replace(":", "-")
    plain = "1/2-1/2" if plain == "1/2" else plain
    return plain if plain in rows.RESULTS[1:] else text


def with_results(line: str) -> str:
    """A line of movetext with the result at its end in the form of PGN."""
    return _RESULT.sub(lambda found: result_of(found[0]), line)
