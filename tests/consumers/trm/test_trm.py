"""The evaluator of TRM counts all votes of ARC."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.consumers.puzzle_builds import AUGMENTATIONS, arc, wrong
from tests.consumers.trm import TRM
from tests.consumers.trm.evaluator import score
from tests.puzzles.read.plain_reader import PlainReader


def answered(folder: Path, share: float = 0.0) -> Iterator[tuple[dict[str, Any], Any]]:
    """The batches of a test split with answers, of which a share is wrong."""
    reader = PlainReader(folder, "test", seed=0, size=8, test=True)
    for number, (_, batch, _) in enumerate(reader):
        yield batch, wrong(batch["labels"], share, number)


@TRM.opens("puzzles/arc", how="`data_paths_test` and the evaluator: `trm/` in the folder")
def test_the_evaluator_of_trm_counts_every_vote(tmp_path):
    folder = arc(tmp_path, first_identifier=4) / "trm"
    assert score(folder, answered(folder)) == (1.0, AUGMENTATIONS + 1)
    assert score(folder, answered(folder, 0.3)) == (1.0, AUGMENTATIONS + 1)
    assert score(folder, answered(folder, 1.0))[0] == 0.0
