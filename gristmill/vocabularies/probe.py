"""The texts with which a placed tokenizer is proved: fixed ones, and some of its own tokens."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import cache
from typing import Final

from gristmill.vocabularies.encode import WHITE_SPACE

_TEXTS: Final = 5000
_OWN_TEXTS: Final = 1000
_SEED: Final = 20_26
_WORDS: Final = (
    "the of and to in is that for with as on it by this are be from or at which have one not but",
    "Problem Answer Step Let Then Therefore Thus Suppose Find Given number numbers apples total",
    "don't we'll I'm you've she'd they're it's can't O'Neill rock'n'roll l'eau DON'T It'S",
    "international representation counterintuitive electroencephalography HTTPServer camelCase",
    "der die Straße Größe über école déjà naïve señor mañana čeština łódź İstanbul ığ ﬁn",
    "Это простая задача Ответ число Ελληνικά αριθμός λόγος שלום مرحبا العدد हिन्दी संख्या ไทย",
    "中文 数学 问题 答案 日本語 カタカナ ひらがな 한국어 문제 Việt số ₂ x² ½ Ⅷ ٣٤ १२",
)
_CODE: Final = (
    "def f(x):\n    return x**2 + 1\n",
    'for (int i = 0; i < n; ++i) { a[i] += "\\n"; }\n',
    "\\frac{a}{b} = \\sqrt{x_1^2 + y^{10}}$$ \\boxed{42}",
    "<div class='a'>&nbsp;</div>\r\n<!-- x -->",
    '{"key": [1, 2.5e-3, null], "k2": "v"}',
    "SELECT * FROM t WHERE id=0x1F; -- c\t\t\n\n",
    "| a | b |\n|---|---|\n- item\n1. one\n# Title\n",
    "https://example.org/a/b?c=d&e=%20#f user@example.org 2026-01-31T23:59:59Z",
)
_ENDS: Final = (" ", " ", " ", "\n", ", ", ". ", "  ", "\n\n", "\t", "", "-", "...", "'", '"')
_RUNS: Final = (" ", "\n", "a", "=", "0", "\u00e9", "\u4e2d", "\u0301", "\U0001f600", "\u200b")


@cache
def texts() -> Sequence[str]:
    """The fixed texts, the same in every version of Python."""
    dice = random.Random(_SEED)
    return [_text(dice) for _ in range(_TEXTS)]


def digest() -> str:
    """The hex sha256 of the fixed texts."""
    return hashlib.sha256("\0".join(texts()).encode()).hexdigest()


def own_texts(tokens: Sequence[bytes]) -> list[str]:
    """Texts of a tokenizer's own tokens, so that its merges are tried.

    tokens: bytes of each id. Those that are no whole characters are left out.
    """
    dice = random.Random(_SEED)
    if not any(tokens):
        return []
    drawn = (dice.choices(tokens, k=40) for _ in range(_OWN_TEXTS))
    return [dice.choice(("", " ", "\n")).join(map(_whole, each)) for each in drawn]


def _whole(token: bytes) -> str:
    return token.decode("utf-8", "ignore")


def _text(dice: random.Random) -> str:
    return "".join(_piece(dice) for _ in range(dice.randrange(1, 30)))


def _piece(dice: random.Random) -> str:
    kind = dice.randrange(20)
    if kind < 12:
        return dice.choice(dice.choice(_WORDS).split()) + dice.choice(_ENDS)
    if kind < 15:
        return dice.choice(_CODE)
    if kind == 15:
        return dice.choice(_RUNS) * dice.randrange(1, 40)
    if kind == 16:
        return "".join(dice.choice(WHITE_SPACE) for _ in range(dice.randrange(1, 6)))
    if kind == 17:
        return str(dice.randrange(10 ** dice.randrange(1, 12))) + dice.choice(_ENDS)
    if kind == 18:
        return "".join(dice.choice("abcdefghijklmnopqrstuvwxyzABC") for _ in range(9))
    return "".join(_character(dice) for _ in range(dice.randrange(1, 9)))


def _character(dice: random.Random) -> str:
    code = dice.randrange(dice.choice((0x80, 0x250, 0x3000, 0xD7FF, 0x1FBFF)))
    return "" if 0xD800 <= code < 0xE000 else chr(code)
