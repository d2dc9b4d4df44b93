"""What the readers of puzzle files do alike: marks of an encoding, and ends of lines."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput

BYTE_ORDER_MARK: Final = codecs.BOM_UTF8
CARRIAGE_RETURN: Final = (
    "has line ends of one carriage return (CR), as an old Mac writes them: convert them, such as"
    " with `tr '\\r' '\\n'`"
)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def check_encoding(head: bytes, path: Path) -> None:
    """Refuse a file in UTF-16.

    head: its first bytes, two at least. path: the file, for the error.
    """
    if head.startswith(_UTF_16):
        raise BadInput(path, "is UTF-16: save it as UTF-8")
