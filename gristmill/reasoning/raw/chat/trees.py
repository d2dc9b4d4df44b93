"""Rows with the id of the message before them. Source: `docs/formats/chat.md#trees`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gristmill.contract import GristmillError
from gristmill.reasoning.raw.chat.recipe import ALIASES, Chat
from gristmill.reasoning.raw.flatten import Unfit, flattened
from gristmill.reasoning.raw.forms.groups import MOST_BYTES, Place
from gristmill.reasoning.raw.forms.templates import Row

_ROW_BYTES: Final = 500
_MOST_DEPTH: Final = 1000


class Trees:
    """The messages of the trees of a drop.

    chat: a recipe with `tree`. most_bytes: of their texts, at most.
    """

    def __init__(self, chat: Chat, most_bytes: int = MOST_BYTES) -> None:
        tree = chat.tree or {}
        self._id, self._parent, self._best = tree["id"], tree["parent"], tree.get("best")
        self._role, self._text = chat.keys.get("role", "role"), tree.get("text", "text")
        self._kept = (self._role, self._text, *chat.keys.values())
        self._roles = {**ALIASES, **chat.roles}
        self._left = most_bytes
        self._rows: dict[str, tuple[Place, Mapping[str, Any], float]] = {}
        self._children: dict[str | None, list[str]] = {}
        self.rows = 0

    def add(self, row: Row, place: Place) -> None:
        """Take a message.

        Raises Unfit for one without an id or with that of another, GristmillError where the
        messages of the drop are too large together.
        """
        key, parent = flattened(row.get(self._id)), flattened(row.get(self._parent))
        if not key:
            raise Unfit("messages", f"its {self._id} is empty")
        if key in self._rows:
            raise Unfit("messages", f"its {self._id} {key[:40]!r} is that of a row before it")
        # As `content`, so that a message of a tree is read as any other.
        item = {name: row.get(name) for name in self._kept}
        item["content"] = item.pop(self._text)
        self._left -= _ROW_BYTES + sum(len(str(value)) for value in item.values())
        if self._left < 0:
            raise GristmillError(
                f"the messages of the trees have more than {MOST_BYTES:,} bytes of text: divide "
                "the drop by trees"
            )
        self._rows[key] = place, item, self._rank(row)
        self._children.setdefault(parent or None, []).append(key)
        self.rows += 1

    def _rank(self, row: Row) -> float:
        value = None if self._best is None else row.get(self._best)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        return float("inf")

    def conversations(self) -> Iterator[tuple[Place, Sequence[Mapping[str, Any]]]]:
        """Yield the messages of each conversation, with the place of the last one, in file order.

        With `best`: of each tree the path that takes the best answer each time, the first of
        equal ones. Without it: every path from a root to a leaf. A path ends with the last
        assistant on it; paths that are equal then are one.
        """
        found: dict[Place, Sequence[Mapping[str, Any]]] = {}
        for whole in self._paths():
            path = [*whole]
            while path and not self._is_answer(path[-1]):
                path.pop()
            if path:
                place = self._rows[path[-1]][0]
                found.setdefault(place, [self._rows[key][1] for key in path])
        yield from sorted(found.items(), key=lambda each: each[0])

    def lost(self) -> list[Place]:
        """The places of messages that no root leads to: their parent is not there."""
        reached = {key for path in self._all_paths() for key in path}
        return sorted(place for key, (place, _, _) in self._rows.items() if key not in reached)

    def _is_answer(self, key: str) -> bool:
        return self._roles.get(str(self._rows[key][1].get(self._role))) == "assistant"

    def _paths(self) -> Iterator[list[str]]:
        if self._best is None:
            yield from self._all_paths()
            return
        for root in self._children.get(None, ()):
            path = [root]
            while children := self._children.get(path[-1]):
                path.append(min(children, key=lambda key: self._rows[key][2]))
                _check_depth(path)
            yield path

    def _all_paths(self) -> Iterator[list[str]]:
        waiting = [[root] for root in reversed(self._children.get(None, []))]
        while waiting:
            path = waiting.pop()
            _check_depth(path)
            children = self._children.get(path[-1], [])
            waiting += [[*path, child] for child in reversed(children)]
            if not children:
                yield path


def _check_depth(path: Sequence[str]) -> None:
    if len(path) > _MOST_DEPTH:
        raise GristmillError(f"a tree has more than {_MOST_DEPTH:,} messages below one another")
