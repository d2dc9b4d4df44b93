"""Which conversations a dataset leaves out, and which are in the validation split.

See also `plain.py`: the texts of a conversation. Source: `docs/formats/synth.md#distill-filters`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from gristmill.synth.config import DistillConfig

_FAILED: Final = "failed after maximum attempts"
_RESULT: Final = re.compile(r"result\s*:\s*([^\s,;]+)", re.IGNORECASE)
_LETTER: Final = re.compile(r"\**\s*([A-D])\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
_TOLERANCE: Final = 1e-6
_MEMORIZATION, _ENGLISH = "memorization", "en"
UNKNOWN: Final = "unknown"


def draw(seed: int, salt: str, name: str) -> float:
    """The number from 0 to 1 that a seed, a salt and the id of a row give."""
    digest = blake2b(f"{seed}:{salt}:{name}".encode(), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") / 2**64)


def label(text: object) -> str:
    """A language or a kind of exercise as it is compared: in lower case, `unknown` without one."""
    return ("" if text is None else str(text)).strip().lower() or UNKNOWN


def is_valid(config: DistillConfig, name: str) -> bool:
    """Whether a row is in the validation split. name: its id."""
    # The share of the other split is what the project's configuration has: 1 - 0.99 > 0.01.
    return draw(config.seed, "split", name) < 1.0 - (1.0 - config.valid_fraction)


def is_wrong(constraints: str, answer: str) -> bool:
    """Whether an answer is another than `result:` of its constraints; False where one is unread."""
    if (found := _RESULT.search(constraints)) is None:
        return False
    expected, answer = found[1], answer.strip()
    if len(expected) == 1 and expected.upper() in "ABCD":
        letter = _LETTER.match(answer)
        return letter is not None and letter[1].upper() != expected.upper()
    numbers = [_number(text) for text in (expected, answer)]
    if numbers[0] is None or numbers[1] is None:
        return False
    return abs(numbers[0] - numbers[1]) > _TOLERANCE * max(1.0, abs(numbers[0]))


def _number(text: str) -> float | None:
    found = _NUMBER.search(text)
    return None if found is None else float(found[0].replace(",", ""))


def fault(config: DistillConfig, constraints: str, answer: str) -> str:
    """Why an answer is left out; "" for one that stays."""
    if not answer.strip():
        return "empty_answer"
    if config.drop_failed and _FAILED in constraints.lower():
        return "failed"
    return "wrong_answer" if config.drop_wrong and is_wrong(constraints, answer) else ""


@dataclass(frozen=True)
class Shares:
    """The shares of rows that stay, so that memorization and other languages keep their bounds.

    memorization: of the exercise of this name. other_languages: of all languages but English.
    """

    memorization: float = 1.0
    other_languages: float = 1.0


def shares(config: DistillConfig, counts: Counter[tuple[str, str]]) -> Shares:
    """The shares that stay. counts: rows whose answer stays, by exercise and language.

    A shard without English cannot have a share of it: its other languages stay.
    """
    total = counts.total()
    memorized = sum(count for (kind, _), count in counts.items() if kind == _MEMORIZATION)
    others, cap, keep = total - memorized, config.memorization_cap, 1.0
    if memorized and others and memorized / total > cap:
        keep = cap * others / (1.0 - cap) / memorized
    foreign = 0.0
    for (kind, language), count in counts.items():
        if language != _ENGLISH:
            foreign += count * (keep if kind == _MEMORIZATION else 1.0)
    most = (others + memorized * keep) * (1.0 - config.english_share)
    has_english = any(language == _ENGLISH for _, language in counts)
    return Shares(keep, most / foreign if has_english and foreign > most else 1.0)


def sampled_out(config: DistillConfig, kept: Shares, name: str, kind: str, language: str) -> str:
    """Why a row is left out by its draws; "" for one that stays. name: its id."""
    for reason, salt, share in (
        ("memorization", "mem", kept.memorization if kind == _MEMORIZATION else 1.0),
        ("language", "lang", kept.other_languages if language != _ENGLISH else 1.0),
        ("share", "global", config.keep),
    ):
        if share < 1.0 and draw(config.seed, salt, name) > share:
            return reason
    return ""
