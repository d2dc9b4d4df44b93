"""The parsers of ARC tasks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.fuzz.parser import Parser, file, split

_WORDS = (
    *(b'{"', b'":', b"null", b"true", b"1e999", b"-0", b"[[", b"\\u0000", b"\\ud800", b"NaN"),
    *(b'{"train":[', b'"test":[', b'{"input":[[', b'"output":[[', b'"name":"', b"]]}", b"]}"),
)


def task(data: bytes) -> None:
    """A task: its grids are those that the standard library reads, and survive encoding.

    The first byte chooses the sub-folder.
    """
    from gristmill.puzzles.domains.arc_augment import aug_id, augmentation, flat, inverse, parse_id
    from gristmill.puzzles.domains.arc_grid import decode, encode
    from gristmill.puzzles.domains.arc_kernels import kept_draws
    from gristmill.puzzles.raw.arc_tasks import parse_task

    place = ("training", "evaluation")[(data[:1] or b"0")[0] % 2]
    read = parse_task(data[1:], Path("arc"), f"{place}/a.json")
    value = json.loads(data[1:])
    listed = [pair for key in value if key in ("train", "test") for pair in value[key]]
    grids = [[grid.tolist() for grid in pair] for pair in read.pairs]
    assert grids == [[pair["input"], pair["output"]] for pair in listed]
    assert sorted(read.numbers("train") + read.numbers("test")) == list(range(len(listed)))
    change = augmentation(1, read.base, 1)
    name = aug_id(read.base, change)
    assert parse_id(name) == (read.base, change)
    for pair in read.pairs[:3]:
        for grid in pair:
            after = change.apply(grid)
            found = decode(encode(after, 30 - after.shape[0], 30 - after.shape[1])).grid
            np.testing.assert_array_equal(inverse(name, found), grid)
    numbers, _, _ = kept_draws(np.uint64(1), 3, 15, *flat(read.pairs))
    assert numbers[0] == 0 and (np.diff(numbers) > 0).all()


def collection(data: bytes) -> None:
    """Challenges and their solutions: each task has the outputs that the standard library reads."""
    from gristmill.puzzles.raw.arc_collections import read_subset, subsets_of
    from gristmill.puzzles.raw.arc_tasks import read_tasks
    from gristmill.puzzles.raw.arc_together import tasks_in
    from gristmill.untrusted.files import REFUSE_LINKS
    from gristmill.untrusted.limits import Limits

    challenges, solutions = split(data, 2)
    path = file("arc/a_training_challenges.json", challenges)
    other = file("arc/a_training_solutions.json", solutions)
    together = tasks_in(path.parent, {path.name: len(challenges)}, REFUSE_LINKS)
    assert together is None or together.file in together.cure
    read_tasks(path.parent)  # refuses what is no task
    (subset,) = subsets_of(path.parent, [path.name, other.name])
    limits = Limits(bytes=1 << 20, depth=8, values=1 << 16, digits=20)
    tasks, _ = read_subset(path.parent, subset, limits, REFUSE_LINKS)
    outputs = json.loads(solutions)
    assert [task for task, _ in tasks] == list(json.loads(challenges))
    for name, task in tasks:
        assert [pair["output"] for pair in task["test"]] == outputs[name]


PARSERS = (
    Parser(
        "puzzles_arc_task",
        task,
        ("gristmill.puzzles.raw.arc_tasks", "gristmill.puzzles.domains.arc_augment"),
        words=_WORDS,
    ),
    Parser(
        "puzzles_arc_collection",
        collection,
        ("gristmill.puzzles.raw.arc_collections", "gristmill.puzzles.raw.arc_together"),
        covers=("gristmill.untrusted.json_text",),
        words=(*_WORDS, b"\xff\xfe", b'{"a":', b'{"test":[{"input":[[1]]}],"train":[]}'),
    ),
)
