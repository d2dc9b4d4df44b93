"""Tags around thoughts in answers, as `<reasoning>..</reasoning>`, found by their words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

_OPENS: Final = re.compile(
    r"\s*(?:<\|(?P<begin>begin_of_|start_of_|)(?P<bar>\w{1,40})\|>"
    r"|<(?P<angle>\w{1,40})>|\[(?P<square>\w{1,40})\])"
)
_WORDS: Final = {
    *("think", "thinking", "thought", "thoughts", "reasoning", "reason", "rationale"),
    *("scratchpad", "cot", "reflection", "analysis"),
}
_ANSWERS: Final = {"answer", "solution", "response", "output", "final"}
_TOKEN: Final = r"<\|[^<>|\s]{1,30}\|>:?|</?s>|<(?:eo[a-z]{1,6}|bos)>"
_BEGIN: Final = re.compile(rf"^(?:{_TOKEN})")
_END: Final = re.compile(rf"(?:{_TOKEN})$")
_MOST: Final = 0.8


class Tags(NamedTuple):
    """What marks a thought. tags: two around it, and two more around the answer behind it."""

    tags: tuple[str, ...]
    share: float


def tags_of(texts: Sequence[str]) -> Tags | None:
    """The tags that most texts with a thought have, None where none begins with one."""
    found = Counter(tags for text in texts if (tags := _tags(text)))
    if not found:
        return None
    tags, count = found.most_common(1)[0]
    return Tags(tags, count / len(texts))


def around_of(texts: Sequence[str]) -> tuple[str, str] | None:
    """The two tags around eight of ten answers without a thought, as `<answer>`; else None."""
    found: Counter[tuple[str, str]] = Counter()
    for text in texts:
        if (pair := _pair(text)) and _ANSWERS.intersection(pair[2].lower().split("_")):
            found[pair[:2]] += text.rstrip().endswith(pair[1])
    tags, count = found.most_common(1)[0] if found else (("", ""), 0)
    return tags if count and count >= _MOST * len(texts) else None


def ends_of(texts: Sequence[str]) -> list[str]:
    """The tokens of a template that eight of ten texts begin or end with, as `</s>`."""
    found: Counter[str] = Counter()
    for text in texts:
        said = (form.search(text.strip()) for form in (_BEGIN, _END))
        found.update(match[0] for match in said if match)
    return [each for each, count in found.items() if count >= _MOST * len(texts)]


def _tags(text: str) -> tuple[str, ...]:
    """The tags of a text that begins with a thought; none for another."""
    if (first := _pair(text)) is None:
        return ()
    opens, closes, word = first
    _, closed, rest = text.partition(closes)
    if not closed or not _WORDS.intersection(word.lower().split("_")):
        return ()
    second = _pair(rest)
    is_around = second is not None and rest.rstrip().endswith(second[1])
    return (opens, closes, *second[:2]) if second and is_around else (opens, closes)


def _pair(text: str) -> tuple[str, str, str] | None:
    """The tag that a text begins with, the one that closes it, and its word; None for none."""
    if (match := _OPENS.match(text)) is None:
        return None
    opens = match[0].lstrip()
    if word := match["angle"]:
        return opens, f"</{word}>", word
    if word := match["square"]:
        return opens, f"[/{word}]", word
    word = match["bar"]
    return opens, f"<|end_of_{word}|>" if match["begin"] else f"<|/{word}|>", word
