"""A build of shards that is killed leaves nothing or all of it, and continues with its parts."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gristmill.layout import PARTS
from gristmill.publish.build import Slot
from gristmill.publish.by_rank import build_rank
from gristmill.publish.publish import publish
from gristmill.reasoning.builders import shard_part
from gristmill.reasoning.builders.shards import SplitRanks
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.vocabularies.encode import encoder
from gristmill.vocabularies.engine import TIKTOKEN
from gristmill.vocabularies.pinned import GPT2, find
from tests import budget
from tests.publish.tiny import garbage, snapshot
from tests.reasoning.normalized_files import numbered
from tests.reasoning.published_root import publish_records, shards_build

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate"}
"""Audit events of calls that can change the disk; a rename includes `replace`."""
_QUICK = 8


@pytest.fixture(scope="module")
def config(vocabulary_root: Path) -> TokenizeConfig:
    vocabulary = find(GPT2, vocabulary_root)
    encoder(GPT2, vocabulary, TIKTOKEN).encode(["loaded before the forks"])
    sizes = {"seq_len": 8, "tokens_per_shard": 48, "world_size": 2}
    return TokenizeConfig(vocabulary, engine=TIKTOKEN, safetensors=True, **sizes)


@pytest.fixture
def root(tmp_path: Path, config: TokenizeConfig, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with a normalised split of a few groups."""
    monkeypatch.setattr(shard_part, "_GROUP_BYTES", 500)
    publish_records(tmp_path / "root", config.vocabulary, numbered(24))
    return tmp_path / "root"


def build(root: Path, config: TokenizeConfig, rank: int | None) -> None:
    if rank is None:
        publish(shards_build(root, config))
        return
    jsonl = root / names.NORMALIZED / names.normalized("gsm8k", "train")
    for each in range(config.world_size):
        build_rank(shards_build(root, config), SplitRanks(jsonl, config), each)


def killed_at(root: Path, config: TokenizeConfig, step: int, rank: int | None) -> bool:
    """Build in a child that dies before its step of that number; False where it has fewer."""
    child = os.fork()
    if child == 0:
        _arm(step)
        try:
            build(root, config, rank)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _arm(step: int) -> None:
    left = step

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _watch(count)


def _watch(called: Callable[[str], object]) -> None:
    """Call a function before each step of this process, for the rest of its life."""
    sys.dont_write_bytecode = True  # modules are compiled by the first build alone

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in STEPS and (event != "open" or _writes(arguments)):
            called(event)

    sys.addaudithook(hook)


def _writes(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2] if len(arguments) > 2 else 0
    return bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def files(root: Path) -> dict[str, bytes]:
    return snapshot(root / names.TOKENIZED / "gsm8k")


def steps(root: Path, config: TokenizeConfig, scratch: Path, rank: int | None) -> int:
    """How many steps a whole build has."""
    shutil.copytree(root, scratch / "trial")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        seen: list[str] = []
        _watch(seen.append)
        try:
            build(scratch / "trial", config, rank)
        finally:
            os.write(write, str(len(seen)).encode())
            os._exit(0)
    os.waitpid(child, 0)
    count = int(os.read(read, 100))
    os.close(read)
    os.close(write)
    return count


def finished(root: Path, config: TokenizeConfig) -> set[str]:
    made = shards_build(root, config)
    folder = Slot.of(made).work / PARTS / made.parts_key
    # A kill while the parts are cleared after the commit can leave an entry without its part.
    entries = folder.glob("*.json") if folder.exists() else ()
    return {path.stem for path in entries if path.with_suffix(".part").exists()}


def check(
    root: Path,
    config: TokenizeConfig,
    scratch: Path,
    kills: Iterable[int],
    expected: dict[str, bytes],
    rank: int | None,
) -> Iterator[str]:
    """Kill a build at each step, and build again; what stood between the two."""
    for step in kills:
        copy = scratch / "killed"
        shutil.copytree(root, copy)
        assert killed_at(copy, config, step, rank), step
        found = files(copy)
        assert found in ({}, expected), f"step {step}: a mix: {sorted(found)}"
        parts = finished(copy, config)
        times = _times(copy, config, parts)
        if rank is not None and not found:
            build_rank_again(copy, config, times)
        build(copy, config, None)
        assert files(copy) == expected, f"step {step}: the next build gives other bytes"
        assert garbage(copy) == [], f"step {step}"
        yield "new" if found else f"{len(parts)} parts"
        shutil.rmtree(copy)


def build_rank_again(root: Path, config: TokenizeConfig, times: dict[str, int]) -> None:
    """A rank that starts again makes no part that is finished."""
    jsonl = root / names.NORMALIZED / names.normalized("gsm8k", "train")
    built = build_rank(shards_build(root, config), SplitRanks(jsonl, config), 0)
    if built.published is None:
        assert {name: times[name] for name in times} == _times(root, config, set(times))


def _times(root: Path, config: TokenizeConfig, parts: set[str]) -> dict[str, int]:
    made = shards_build(root, config)
    folder = Slot.of(made).work / PARTS / made.parts_key
    return {name: (folder / f"{name}.part").stat().st_mtime_ns for name in parts}


@pytest.mark.parametrize(
    "rank", [None, pytest.param(0, marks=pytest.mark.slow)], ids=["whole", "by rank"]
)
def test_a_kill_leaves_nothing_or_all_and_the_next_build_is_as_a_fresh_one(
    root: Path, config: TokenizeConfig, tmp_path: Path, rank: int | None
) -> None:
    count = steps(root, config, tmp_path, rank)
    assert count > 60
    found = _all(root, config, tmp_path, range(count // 10, count + 1, count // _QUICK), rank)
    assert len(found) > 2, f"kills at other places are needed: {found}"


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 0], ids=["whole", "by rank"])
@pytest.mark.parametrize("world_size", [1, 3])
def test_a_kill_at_every_step(
    root: Path, config: TokenizeConfig, tmp_path: Path, world_size: int, rank: int | None
) -> None:
    config = replace(config, world_size=world_size)
    kills = list(range(1, steps(root, config, tmp_path, rank) + 1))
    sampled = budget.some(kills, each=0.5, share=0.25)
    found = _all(root, config, tmp_path, sampled, rank)
    assert len(found) > 2 or (found and not budget.is_whole())


def _all(
    root: Path, config: TokenizeConfig, scratch: Path, kills: Iterable[int], rank: int | None
) -> set[str]:
    """What stood after the kills, each of which is checked."""
    fresh = scratch / "fresh"
    shutil.copytree(root, fresh)
    build(fresh, config, None)
    expected = files(fresh)
    assert sum(name.endswith(".pt") for name in expected) > 3
    return set(check(root, config, scratch, kills, expected, rank))
