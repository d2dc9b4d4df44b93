"""Random texts that are hard to encode: runs, control texts, all code points, awkward slices."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from gristmill.vocabularies.encode import WHITE_SPACE

CONTROL = (
    "<|endoftext|>",
    "<|start|>",
    "<|end|>",
    "<|fim_prefix|>",
    "<|",
    "|>",
    "<|reserved_200017|>",
)
ALPHABETS = (
    "abcXYZ",
    "\u00e9\u00c9\u00df\u0130\u0131\u017f\u212a",
    "\u0391\u03c9\u03c2",
    "\u0416\u044f",
    "\u05d0\u0634\u064e",
    "\u0939\u093f\u094d",
    "\u4e2d\u6587\u3042\uac00",
    "0123\u0663\u00b2\u2167",
    "'\u2019\"sStTdDmMlLvVrReE",
    "\u02b0\u01c5\u0301\u20dd",
    ".,/!?-_=+*#@<|>{}[]()",
    WHITE_SPACE + "\x1c\x1f\u200b\ufeff",
    "\n\r\n",
    "\U0001f600\U0001f3fd\u200d\U0001f469",
)
CONTRACTIONS = ("'s", "'LL", "'\u017f", "'Re", "'ve", "'D", "'t", "'m", "\u0130'\u017f'LLe")


def real_text() -> bytes:
    """Text of many kinds, as UTF-8: what the installed packages bring."""
    folder = Path(random.__file__).parent
    files = sorted(folder.glob("test/*.py"))[:80] + sorted(folder.glob("encodings/*.py"))
    return b"".join(path.read_bytes() for path in files)


def _code_point(dice: random.Random) -> str:
    while True:
        code = dice.randrange(dice.choice((0x80, 0x800, 0x10000, 0x20000, sys.maxunicode + 1)))
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def _piece(dice: random.Random, text: bytes) -> str:
    kind = dice.randrange(7)
    if kind == 0:
        return dice.choice(CONTROL + CONTRACTIONS)
    if kind == 1:
        return "".join(_code_point(dice) for _ in range(dice.randrange(1, 9)))
    if kind == 2:
        alphabet = "".join(dice.sample(ALPHABETS, dice.randrange(1, 4)))
        return "".join(dice.choice(alphabet) for _ in range(dice.randrange(1, 20)))
    if kind == 3:
        return dice.choice(dice.choice(ALPHABETS)) * int(1 / (dice.random() + 0.002))
    if kind == 4 and dice.random() < 0.01:
        return (dice.choice(dice.choice(ALPHABETS)) + dice.choice("a ")) * dice.randrange(5_000)
    begin = dice.randrange(len(text))
    # Both cuts may be within a character.
    return text[begin : begin + dice.randrange(1, 120)].decode(
        errors=dice.choice(("ignore", "replace"))
    )


def texts(dice: random.Random, count: int) -> Iterator[str]:
    text = real_text()
    for _ in range(count):
        yield "".join(_piece(dice, text) for _ in range(dice.randrange(1, 6)))


def long_runs() -> Iterator[str]:
    """Yield texts of up to a million characters that regular expressions and merges find hard."""
    for unit in (
        "a",
        "A",
        "\u4e2d",
        "1",
        "-",
        "'s",
        "aA",
        "a1",
        "\u0301",
        "ab ",
        " a",
        "\n.",
        "=\n",
    ):
        yield unit * (1_000_000 // len(unit))
    for unit in (" ", "\n", "\t", "\u3000", "\r\n", " \n", "\x85"):
        for before, after in (("", ""), ("x", ""), ("", "x"), ("x ", "\n'll")):
            yield before + (unit * 100_000)[:99_990] + after
