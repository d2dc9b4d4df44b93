"""A conversation in one text with marks. Source: `docs/formats/chat.md#transcripts`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.reasoning.raw.flatten import Unfit

CONTROL: Final = "control"
"""The key of texts around messages that are part of none."""
_SHOWN: Final = 40


def listed(value: Any) -> list[str]:
    """A text or a list of texts, as a recipe has it; none for None."""
    return [] if value is None else [value] if isinstance(value, str) else [*value]


class Transcripts:
    """Divides texts by the marks of a recipe.

    marks: texts of each role, as a text or a list; and those of `CONTROL`.
    """

    def __init__(self, marks: Mapping[str, Any]) -> None:
        self._control = listed(marks.get(CONTROL))
        self._roles = {
            mark: role for role in marks if role != CONTROL for mark in listed(marks[role])
        }
        # At one place the longest mark counts, as `[INST] <<SYS>>` before `[INST]`.
        in_order = sorted(self._roles, key=len, reverse=True)
        self._mark = re.compile("|".join(map(re.escape, in_order)))
        self._begin = "\n" * max(len(mark) - len(mark.lstrip("\n")) for mark in in_order)

    def divided(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield role and text of each message, without blanks and `control` around it.

        text: with LF alone. Line feeds that a mark begins with may lack before the first one.

        Raises Unfit where there is no mark, or a text before the first one.
        """
        whole = self._begin + text
        found = [*self._mark.finditer(whole)]
        if not found:
            rule = f"has none of the marks {_shown([*self._roles])}"
            raise Unfit("messages", f"{rule}: write in `marks` what begins its messages")
        if before := self.bare(whole[: found[0].start()]):
            rule = f"has a text before the first mark, {before[:_SHOWN]!r}"
            raise Unfit("messages", f"{rule}: name it in `marks.{CONTROL}` if it is part of none")
        ends = [each.start() for each in found[1:]] + [len(whole)]
        for mark, end in zip(found, ends, strict=True):
            role, said = self._roles[mark[0]], self.bare(whole[mark.end() : end])
            # What a person does not go on to say is no question, and no rules are no system.
            is_none = role in ("system", "developer") or (role == "user" and end == len(whole))
            if said or not is_none:
                yield role, said

    def head(self, text: str) -> str | None:
        """What stands before the first mark of a text; None where there is no mark."""
        found = self._mark.search(whole := self._begin + text)
        return None if found is None else whole[: found.start()]

    def bare(self, text: str) -> str:
        """A text without blanks and `control` around it. text: any."""
        return bare(text, self._control)


def bare(text: str, control: Sequence[str]) -> str:
    """A text without some texts around it, and without the blanks around it and these.

    text: any. control: those texts; without one the text stays as it is but for blanks around it.
    """
    text, before = text.strip(), None
    while text != before:
        before = text
        for each in control:
            text = text.removeprefix(each).removesuffix(each).strip()
    return text


def _shown(marks: Sequence[str]) -> str:
    return ", ".join(repr(mark[:_SHOWN]) for mark in marks)
