"""Which question of evaluation sets a row holds, for builds that leave such rows out.

Source: `docs/leaks.md#what-can-be-done`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gristmill.contract import BadInput
from gristmill.leaks.method import Index, compiled
from gristmill.leaks.texts import leaves
from gristmill.leaks.words import seeds_of


class Held:
    """Says of rows which question they hold; it can be sent to other processes.

    sets: by name the place and the text of each question. Raises BadInput for one without any.
    """

    def __init__(self, sets: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        for name, questions in sets.items():
            if not questions:
                raise BadInput(name, "the evaluation set holds no question: put some into it")
        seeds = seeds_of(b"")  # what is built depends on no key, and these hashes are kept nowhere
        made = [compiled([text for _, text in each], seeds) for each in sets.values()]
        self._index = Index(made, seeds)
        self._places = {name: [place for place, _ in each] for name, each in sets.items()}

    def __call__(self, rows: Sequence[Any]) -> list[str]:
        """Of each row, as `leaves` takes it, its most whole question; empty where it holds none."""
        texts = [[text for _, text in leaves(row)] for row in rows]
        of = np.repeat(np.arange(len(rows)), [len(each) for each in texts])
        said, most = [""] * len(rows), [0.0] * len(rows)
        _, _, hits = self._index.find([*chain.from_iterable(texts)])
        for (name, places), hit in zip(self._places.items(), hits, strict=True):
            for text, question, share, changed in zip(
                *(each.tolist() for each in hit), strict=True
            ):
                row = int(of[text])
                if share > most[row] and not changed:
                    most[row] = share
                    said[row] = f"holds a question of {name}: {places[question]} ({share:.0%})"
        return said
