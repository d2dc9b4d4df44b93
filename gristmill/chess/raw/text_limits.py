"""Whether a text can be PGN, by its first bytes, and how large a PGN, a game and a line may be.

Source: docs/formats/chess.md#text-limits
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gristmill.contract import BadInput

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
    """The same reads, as long as no line in them is longer than LINE_BYTES.

    Raises BadInput for a longer line, before the read that completes it is yielded.
    """
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
    """What one game may still cost python-chess.

    Each method raises TooMuch where the game passes the limit.
    """

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
    """What to do about a file that is of another kind than its name says.

    head: its first bytes.
    """
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
    """The first line of a usual tag in a form that is not read; empty where there is none.

    head: the first bytes of a PGN; a line that they may cut does not count.
    """
    lines = head.replace(b"\r", b"\n").rpartition(b"\n")[0]
    for found in _USUAL_TAG.finditer(lines):
        if found[1] not in _USUAL or not _TAG_LINE.fullmatch(found[0]):
            return snippet(found[0])
    return ""


def check_head(head: bytes, path: Path, *, whole: bool) -> None:
    """Check that a text can be PGN.

    head: its first bytes, up to `HEAD_BYTES`.
    """
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
