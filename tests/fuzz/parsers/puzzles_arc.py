"""The parsers of ARC tasks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.fuzz.parser import Parser

_WORDS = (
    *(b'{"', b'":', b"null", b"true", b"1e999", b"-0", b"[[", b"\\u0000", b"\\ud800", b"NaN"),
    *(b'{"train":[', b'"test":[', b'{"input":[[', b'"output":[[', b'"name":"', b"]]}", b"]}"),
)


def task(data: bytes) -> None:
    """A task: its grids are those that the standard library reads, and survive encoding.

    The first byte chooses the sub-folder.
    """
    from gristmill.puzzles.domains.arc_augment import aug_id, augmentation, flat, parse_id
    from gristmill.puzzles.domains.arc_grid import decode, encode
    from gristmill.puzzles.domains.arc_kernels import kept_draws
    from gristmill.puzzles.domains.arc_vote import inverse
    from gristmill.puzzles.raw.arc_tasks import parse_task

    place = ("training", "evaluation")[(data[:1] or b"0")[0] % 2]
    read = parse_task(data[1:], Path("arc"), f"{place}/a.json")
    value = json.loads(data[1:])
    listed = [pair for key in value if key != "name" for pair in value[key]]
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


PARSERS = (
    Parser(
        "puzzles_arc_task",
        task,
        ("gristmill.puzzles.raw.arc_tasks", "gristmill.puzzles.domains.arc_augment"),
        words=_WORDS,
    ),
)
