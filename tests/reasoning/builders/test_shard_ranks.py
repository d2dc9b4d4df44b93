"""Array jobs: each rank makes its parts, the last one publishes, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gristmill.layout import PARTS
from gristmill.publish import locks
from gristmill.publish.build import InputChanged
from gristmill.publish.by_rank import RankBuilt, build_rank
from gristmill.publish.publish import publish
from gristmill.publish.slot import Slot
from gristmill.reasoning.builders import shard_part
from gristmill.reasoning.builders import shard_ranks as module
from gristmill.reasoning.builders.shard_ranks import SplitRanks
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import GPT2
from tests.reasoning import published_root
from tests.reasoning.normalized_files import numbered
from tests.reasoning.published_root import normalized_build, shards_build

RANKS = 3


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with a normalised split, in groups of a few records."""
    monkeypatch.setattr(shard_part, "_GROUP_BYTES", 400)
    root = tmp_path / "root"
    published_root.write_drop(root, numbered(60))
    publish(normalized_build(root))
    return root


@pytest.fixture
def config(vocabulary_root: Path) -> TokenizeConfig:
    vocabulary = find(GPT2, vocabulary_root)
    return TokenizeConfig(vocabulary, seq_len=8, tokens_per_shard=24, world_size=RANKS)


def ranks_of(root: Path, config: TokenizeConfig) -> SplitRanks:
    return SplitRanks(root / names.NORMALIZED / names.normalized("gsm8k", "train"), config)


def run(root: Path, config: TokenizeConfig, rank: int) -> RankBuilt:
    return build_rank(shards_build(root, config), ranks_of(root, config), rank)


def files(root: Path) -> dict[str, bytes]:
    folder = root / names.TOKENIZED / "gsm8k"
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ranks of the parts that were made, in order."""
    ranks: list[int] = []
    make = shard_part.make_part

    def noted(task: shard_part.Task, path: Path) -> dict[str, Any]:
        ranks.append(task.rank)
        return make(task, path)

    monkeypatch.setattr(module, "make_part", noted)
    monkeypatch.setattr("gristmill.reasoning.builders.shards.make_part", noted)
    return ranks


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_last_rank_publishes_what_one_build_would(
    root: Path, config: TokenizeConfig, made: list[int], order: tuple[int, ...]
) -> None:
    publish(shards_build(root, config))
    expected = files(root)
    assert len(expected) > 20
    __import__("shutil").rmtree(root / "reasoning" / "tokenized")
    made.clear()

    left = set(order)
    for rank in order:
        built = run(root, config, rank)
        left.remove(rank)
        assert list(built.missing) == sorted(left)
        assert built.made > 3
        assert (built.published is None) == bool(left)
    assert made == [rank for rank in order for _ in range(len(made) // RANKS)]
    assert files(root) == expected
    assert not Slot.of(shards_build(root, config)).work.exists()

    again = run(root, config, 1)
    assert again.published is not None and not again.published.rebuilt
    assert again.made == 0


def test_a_rank_that_runs_again_makes_only_what_is_missing(
    root: Path, config: TokenizeConfig, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = module.make_part

    def killed(task: shard_part.Task, path: Path) -> dict[str, Any]:
        if len(made) == 2:
            raise KeyboardInterrupt
        return noted(task, path)

    with monkeypatch.context() as patched:
        patched.setattr(module, "make_part", killed)
        with pytest.raises(KeyboardInterrupt):
            run(root, config, 0)
    first = len(made)
    built = run(root, config, 0)
    assert len(made) == first + built.made
    assert built.made == len(ranks_of(root, config).names(0)) - first
    assert run(root, config, 0).made == 0


def test_a_build_without_ranks_adopts_their_parts(
    root: Path, config: TokenizeConfig, made: list[int]
) -> None:
    run(root, config, 0)
    run(root, config, 2)
    made.clear()
    publish(shards_build(root, config))
    assert set(made) == {1}


def test_a_damaged_part_is_made_again_by_the_publisher(
    root: Path, config: TokenizeConfig, made: list[int]
) -> None:
    publish(shards_build(root, config))
    expected = files(root)
    __import__("shutil").rmtree(root / "reasoning" / "tokenized")
    run(root, config, 0)
    build = shards_build(root, config)
    folder = Slot.of(build).work / PARTS / build.parts_key
    sorted(folder.glob("*.part"))[0].write_bytes(b"damaged")
    run(root, config, 1)
    made.clear()
    assert run(root, config, 2).published is not None
    assert 0 in made
    assert files(root) == expected


def in_threads(works: list[Callable[[], object]]) -> list[object]:
    results: list[object] = [None] * len(works)

    def call(place: int) -> None:
        try:
            results[place] = works[place]()
        except Exception as error:  # noqa: BLE001  the test looks at it
            results[place] = error

    threads = [threading.Thread(target=call, args=(place,)) for place in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_ranks_at_once_do_not_collide(root: Path, config: TokenizeConfig) -> None:
    publish(shards_build(root, config))
    expected = files(root)
    __import__("shutil").rmtree(root / "reasoning" / "tokenized")

    found = in_threads([lambda rank=rank: run(root, config, rank) for rank in range(RANKS)])

    assert all(isinstance(each, RankBuilt) for each in found), found
    published = [each.published for each in found if isinstance(each, RankBuilt)]
    assert sum(each is not None and each.rebuilt for each in published) == 1
    assert files(root) == expected


def test_the_same_rank_and_publishers_wait_for_their_turn(
    root: Path, config: TokenizeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = SplitRanks.make

    def nested(self: SplitRanks, rank: int, *rest: Any) -> None:
        with pytest.raises(locks.Busy, match=r"rank 0 of .* is already being built"):
            run(root, config, 0)
        with pytest.raises(locks.Busy, match="is already being built"):
            publish(shards_build(root, config))
        make(self, rank, *rest)

    monkeypatch.setattr(SplitRanks, "make", nested)
    assert list(run(root, config, 0).missing) == [1, 2]


def test_a_publisher_at_work_keeps_ranks_away(root: Path, config: TokenizeConfig) -> None:
    build = shards_build(root, config)
    with (
        locks.locked(Slot.of(build).lock, build.title),
        pytest.raises(locks.Busy, match="is already being built"),
    ):
        run(root, config, 0)


def test_parts_of_an_input_that_changed_are_forgotten(
    root: Path, config: TokenizeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = SplitRanks.make

    def changed(self: SplitRanks, rank: int, *rest: Any) -> None:
        make(self, rank, *rest)
        path = root / names.NORMALIZED / names.normalized("gsm8k", "train")
        path.write_bytes(path.read_bytes() + b"\n")

    monkeypatch.setattr(SplitRanks, "make", changed)
    build = shards_build(root, config)
    with pytest.raises(InputChanged):
        run(root, config, 0)
    assert not list((Slot.of(build).work / PARTS / build.parts_key).iterdir())


@pytest.mark.parametrize("rank", [-1, RANKS])
def test_a_rank_that_is_not_there_is_refused(root: Path, config: TokenizeConfig, rank: int) -> None:
    with pytest.raises(ValueError, match="must be from 0 to 2"):
        run(root, config, rank)


def test_workers_make_the_same_parts(root: Path, config: TokenizeConfig) -> None:
    names_of = ranks_of(root, config).names(0)
    assert len(set(names_of)) == len(names_of) > 3
    assert names_of == ranks_of(root, replace(config, workers=2)).names(0)
    assert not set(names_of) & set(ranks_of(root, config).names(1))
