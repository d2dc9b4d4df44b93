"""Traps and defects of docs/formats/macroxue.md that the tests of no single module show."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import (
    MergeConfig,
    PackConfig,
    ValueConfig,
    merge,
    pack,
    value_sidecar,
)
from gristmill.macroxue.builders import pool
from gristmill.macroxue.format.files import read_runs
from gristmill.macroxue.read.stream import StepStream
from tests.macroxue.games import play, step_rows, write_pack
from tests.macroxue.lines import contents, step, write_run

GAMES = [play(seed, 100) for seed in range(6)]


def test_trap_3_order_is_by_path_component(tmp_path: Path) -> None:
    names = ["B/x", "a/X", "a/x-1", "a/x", "a/x1", "a/x10", "a/y", "a-b/x", "a.d/x", "z/x", "é/x"]
    for seed, name in enumerate(names):
        folder, stem = name.split("/")
        write_run(tmp_path / "drop" / folder, stem, [step()], meta={"seed": seed})
    pack(tmp_path / "drop", tmp_path / "p", PackConfig())
    assert [run.seed for run in read_runs(tmp_path / "p" / "metadata.db")] == list(
        range(len(names))
    )


def test_trap_4_every_gzip_member_is_read(tmp_path: Path) -> None:
    """The original drops what follows the first member without a message."""
    two = b"".join(gzip.compress(step(step_index=i) + b"\n") for i in range(2))
    write_run(tmp_path / "drop", "a", steps=two, meta={"num_moves": 2})
    assert pack(tmp_path / "drop", tmp_path / "p", PackConfig()).rows == 2
    write_run(tmp_path / "drop", "a", steps=two + b"rubbish", meta={"num_moves": 2})
    with pytest.raises(BadInput, match="behind gzip member"):
        pack(tmp_path / "drop", tmp_path / "q", PackConfig())


@pytest.mark.parametrize(
    "place", ["inside", "around", "equal", "nested inputs", "twice", "link", "dots"]
)
def test_trap_5_merge_refuses_folders_in_one_another(tmp_path: Path, place: str) -> None:
    """The original deletes its own output, or an input before it is read."""
    a = write_pack(tmp_path / "a", GAMES[:1])
    b = write_pack(tmp_path / "b", GAMES[1:2])
    link = tmp_path / "link"
    link.symlink_to(a, target_is_directory=True)
    inner = write_pack(a / "inner", GAMES[2:3])
    packs, out = {
        "inside": ([a, b], a / "pool"),
        "around": ([a, b], tmp_path),
        "equal": ([a, b], a),
        "nested inputs": ([a, inner], tmp_path / "pool"),
        "twice": ([a, b, a], tmp_path / "pool"),
        "link": ([a, b, link], tmp_path / "pool"),
        "dots": ([a, b], b / ".." / "link" / "pool"),
    }[place]
    before = contents(tmp_path)
    with pytest.raises(BadInput, match=r"is the same folder|is inside"):
        merge(packs, out, MergeConfig())
    assert contents(tmp_path) == before


def peak_of(build: object, *arguments: object) -> int:
    tracemalloc.start()
    build(*arguments)  # type: ignore[operator]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_weakness_memory_grows_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merge and values hold batches and runs, not packs."""
    few = [write_pack(tmp_path / f"few{i}", GAMES, shard_rows=5000) for i in range(2)]
    monkeypatch.setattr(StepStream.batches, "__kwdefaults__", {"most": 1 << 14})
    big = step_rows(GAMES * 80)
    assert len(big) > 40_000
    many = [
        write_pack(tmp_path / f"many{i}", GAMES * 80, steps=big, shard_rows=19_999)
        for i in range(2)
    ]
    merge(few, tmp_path / "warm", MergeConfig())
    value_sidecar(few[0], tmp_path / "warmv", ValueConfig())
    with monkeypatch.context() as patch:
        patch.setattr(pool, "BATCH_ROWS", 2_000)
        # Of the 480 runs each pack keeps a few hundred bytes.
        assert peak_of(merge, many, tmp_path / "pool", MergeConfig()) < big.nbytes // 3
    # So many rows at a time, whatever the pack: three times the rows, the same peak.
    one = peak_of(value_sidecar, many[0], tmp_path / "v", ValueConfig())
    both = peak_of(value_sidecar, tmp_path / "pool", tmp_path / "w", ValueConfig())
    assert both < one * 1.15 + 200_000


def test_weakness_what_stands_is_overwritten(tmp_path: Path) -> None:
    """Builders make a new folder or nothing: no mix of generations, no late conflict."""
    a = write_pack(tmp_path / "a", GAMES[:1])
    b = write_pack(tmp_path / "b", GAMES[1:2])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "steps.npy").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        merge([a, b], tmp_path / "out", MergeConfig())
    with pytest.raises(FileExistsError):
        value_sidecar(a, tmp_path / "out", ValueConfig())
    assert contents(tmp_path / "out") == {"steps.npy": b"precious"}
