"""Real puzzles through Dagster: the whole of ARC-1 and ConceptARC, a bank of Sudokus, games."""

import shutil
from collections.abc import Iterator

import dagster as dg
import pytest

from assets.puzzles import FAMILY
from commands.graph import register
from gristmill import provenance
from resources import Lake
from tests.assets.helpers import built, failure, materialized
from tests.assets.puzzles.drops import put_recipe
from tests.paths import REAL_DATA

REAL = REAL_DATA / "puzzles"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.skipif(not REAL.exists(), reason="the real puzzles are not there"),
]
EXPECTED = {
    ("arc", "arc-small"): {
        "tasks": 960,
        "groups/train": 960,
        "groups/test": 400,
        "examples/test": 1676,
        "known_leaks": 2,
        "leaks_dropped": 0,
    },
    ("sudoku", "bank"): {"sources_read": 3000, "leaks_dropped": 0, "ambiguous_dropped": 0},
    ("domino", "domino-optimal-play"): {},
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A data root with the drops and recipes."""
    lake = Lake(data_root=str(tmp_path_factory.mktemp("real")))
    for name, folder in (
        ("arc", "arc_agi"),
        ("concept_arc", "concept_arc"),
        ("sudoku_bank", "bank"),
    ):
        shutil.copytree(REAL / name, lake.inbox("puzzles") / folder)
    put_recipe(lake, "arc-small", "arc", ["arc_agi", "concept_arc/corpus"], num_aug=3)
    put_recipe(lake, "bank", "sudoku", ["bank"], num_aug=2)
    return lake


@pytest.fixture(scope="module")
def instance(lake: Lake) -> Iterator[dg.DagsterInstance]:
    """An instance that knows the drops and recipes."""
    with dg.DagsterInstance.ephemeral() as ephemeral:
        assert [line for inbox in FAMILY.inboxes for line in register(ephemeral, lake, inbox)] == []
        yield ephemeral


@pytest.mark.parametrize(("kind", "name"), EXPECTED, ids=str)
def test_real_puzzles_are_published_without_a_finding(lake, instance, kind, name):
    instance.add_dynamic_partitions(f"puzzles_{kind}_recipes", [name])
    assets = [*FAMILY.assets, *FAMILY.checks]
    result = materialized(built(f"puzzles/{kind}"), assets, lake, instance, name)
    assert result.success, failure(result)
    checks = result.get_asset_check_evaluations()
    assert {(check.check_name, check.passed) for check in checks} == {
        ("built", True),
        ("intact", True),
        ("lawful", True),
        # ARC-1 holds a task twice, and the bank some puzzles.
        ("noteworthy", kind == "domino"),
    }
    folder = lake.root / "puzzles" / name
    assert provenance.verify(folder, data_root=lake.root) == []
    counts = provenance.read_record(folder / provenance.RECORD).counts
    assert {key: counts[key] for key in EXPECTED[kind, name]} == EXPECTED[kind, name]
    if kind == "arc":
        assert counts["puzzles/train"] == 4 * counts["tasks"]
    elif kind == "sudoku":
        assert counts["examples/train"] == 3 * counts["groups/train"]
        kept = counts["groups/train"] + counts["examples/test"]
        assert kept + counts["duplicates_removed"] == counts["sources_read"]
    else:
        removed = counts["duplicates_removed"] + counts["leaks_dropped"]
        assert counts["examples/train"] + counts["examples/test"] + removed == 20_000
