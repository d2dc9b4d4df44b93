"""How TRM scores ARC: names and tasks from two files of a folder, votes by task and input."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.consumers.arc_answers import cropped, hashed, undone


def score(folder: Path, batches: Iterable[tuple[dict[str, Any], Any]]) -> tuple[float, int]:
    """Score predictions.

    folder: has `identifiers.json` and `test_puzzles.json`. batches: of the reader, each with
    predictions [rows, 900].

    Returns pass@1, and the fewest votes that a test pair has; a pair without any counts as wrong.
    """
    names = json.loads((folder / "identifiers.json").read_text())
    tasks = json.loads((folder / "test_puzzles.json").read_text())
    votes: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for batch, predicted in batches:
        rows = zip(batch["puzzle_identifiers"].tolist(), batch["inputs"], predicted, strict=True)
        for number, given, said in rows:
            if number:
                task, *how = names[number].split("|||")
                before, after = (cropped(np.asarray(tokens)) for tokens in (given, said))
                if how:
                    before, after = (undone(grid, how[0], how[1]) for grid in (before, after))
                votes[task, hashed(before)][hashed(after)] += 1
    scores, fewest = [], []
    for task, pairs in tasks.items():
        right = []
        for pair in pairs["test"]:
            given, answer = (hashed(np.array(pair[key], np.uint8)) for key in ("input", "output"))
            counted = votes.get((task, given), {})
            fewest.append(sum(counted.values()))
            best = max(counted, key=lambda said: counted[said], default=None)
            right.append(best == answer)
        scores.append(sum(right) / len(right))
    return sum(scores) / len(scores), min(fewest)
