"""The notebook by which HRM scores ARC: votes by name and input, the truth from the labels."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.consumers.arc_answers import cropped, hashed, undone


def score(folder: Path, predictions: Any) -> tuple[int, float, int]:
    """Score the predictions of a test split, [examples, 900] in the order of its rows.

    Returns how many tasks the notebook sees, the share of right pairs, and the fewest votes of one.
    Raises AssertionError where an input is twice in a task.
    """
    names = json.loads((folder / "identifiers.json").read_text())
    arrays = {
        field: np.load(folder / f"test/all__{field}.npy")
        for field in ("inputs", "labels", "puzzle_identifiers", "puzzle_indices")
    }
    owners = np.repeat(arrays["puzzle_identifiers"], np.diff(arrays["puzzle_indices"]))
    truth: dict[str, dict[str, str]] = defaultdict(dict)
    votes: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for row, number in enumerate(owners.tolist()):
        task, *tail = names[number].split("_")
        how = (tail[-2], tail[-1]) if tail else ("t0", "0123456789")
        tokens = (arrays["inputs"][row], predictions[row], arrays["labels"][row])
        given, said, label = (hashed(undone(cropped(np.asarray(t)), *how)) for t in tokens)
        if not tail:
            assert given not in truth[task], "an input is twice in a task"
            truth[task][given] = label
        votes[task][given][said] += 1
    pairs = [(votes[task][given], label) for task in truth for given, label in truth[task].items()]
    right = [counted.most_common(1)[0][0] == label for counted, label in pairs]
    return len(votes), sum(right) / len(right), min(counted.total() for counted, _ in pairs)
