"""Examples by the extras of the index, such as `difficulty` and `subject`.

Corpora and splits are chosen by the manifest: see `shard_list.py`.
Source: `docs/formats/reasoning.md#reader`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.contract import GristmillError
from gristmill.reasoning.format.index import SELECTORS


@dataclass(frozen=True)
class Selection:
    """Which examples to read.

    values: for each extra the values that are taken; an example must have one of each. Empty for
        all examples.
    """

    values: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, asked: Mapping[str, Any] | None) -> Selection:
        """The selection that an argument `select` means.

        asked: value, or several values, by name of the extra; default all examples.

        Raises GristmillError for a name that the index does not have.
        """
        values = {}
        for name, value in sorted((asked or {}).items()):
            if name not in SELECTORS:
                raise GristmillError(
                    f"select: the index has no {name!r}; it has {', '.join(SELECTORS)}; corpora"
                    " and splits are arguments of their own"
                )
            many = isinstance(value, list | tuple | set | frozenset)
            values[name] = tuple(sorted(value, key=repr)) if many else (value,)
        return cls(values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Whether an example is selected, by its row of the index."""
        extras = row.get("extras") or {}
        return all(extras.get(name) in values for name, values in self.values.items())

    def __str__(self) -> str:
        return json.dumps(self.values, ensure_ascii=False)
