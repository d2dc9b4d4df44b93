"""The index of a blend is made apart and appears whole; its samples are Megatron's."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from tests.later import later
from tests.synth.read.test_dataset import config, process_group

builders = later("megatron.core.datasets.blended_megatron_dataset_builder")
synth = later("gristmill.synth", "torch", "megatron.core")
blends = later("gristmill.synth.read.blend", "torch", "megatron.core")
__all__ = ["process_group"]
# Megatron warns about the pad token -1, and numpy warns about Megatron.
pytestmark = pytest.mark.filterwarnings("ignore")


def blend(root: Path, cache: Path | None, builder: Any = None) -> Any:
    """Forty samples of both splits of a shard."""
    prefixes = [str(root / f"{split}/shard_00_tokens") for split in ("train", "valid")]
    settings = config(cache, blend_per_split=[(prefixes, [0.7, 0.3]), None, None])
    chosen = builder or synth.SynthKDBlendBuilder
    (made, _, _) = chosen(synth.SynthKDDataset, [40, 0, 0], lambda: True, settings).build()
    return made


def samples(made: Any) -> list[tuple[int, list[int]]]:
    return [(int(made[n]["dataset_id"]), made[n]["tokens"].tolist()) for n in range(40)]


def named(cache: Path) -> list[str]:
    found = sorted(path.name for path in cache.iterdir() if "Blended" in path.name)
    return [name.partition("-")[2] for name in found]


def expected() -> list[str]:
    return sorted(f"BlendedSynthKDDataset-train-{name}" for name in blends.FILES)


@pytest.mark.usefixtures("process_group")
def test_with_torch_distributed_a_blend_has_the_samples_of_megatrons_own(
    kd_root: Path, tmp_path: Path
) -> None:
    own = samples(blend(kd_root, tmp_path / "own", builders.BlendedMegatronDatasetBuilder))
    made = blend(kd_root, tmp_path / "ours")
    assert made.config.path_to_cache == str(tmp_path / "ours")
    assert samples(made) == own
    assert named(tmp_path / "ours") == expected()
    assert samples(blend(kd_root, tmp_path / "ours")) == own


def test_a_process_alone_keeps_the_index_and_reads_it_again(kd_root: Path, tmp_path: Path) -> None:
    first = samples(blend(kd_root, tmp_path))
    assert {number for number, _ in first} == {0, 1}
    assert named(tmp_path) == expected()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = blend(kd_root, tmp_path)
    assert isinstance(again.dataset_index, np.memmap)
    assert samples(again) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times
    assert samples(blend(kd_root, None)) == first


def test_a_second_opener_waits_for_an_index_that_is_half_written(
    kd_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half, go, save = Event(), Event(), np.save

    def slow(path: Any, array: Any, **options: Any) -> None:
        if "dataset_sample_index" not in str(path) or half.is_set():
            save(path, array, **options)
            return
        octets = io.BytesIO()
        save(octets, array, **options)
        with Path(path).open("wb") as file:
            file.write(octets.getvalue()[:40])
            file.flush()
            half.set()
            assert go.wait(60)
            file.write(octets.getvalue()[40:])

    alone = samples(blend(kd_root, None))
    monkeypatch.setattr(np, "save", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(blend, kd_root, tmp_path)
        assert half.wait(60)
        seen = named(tmp_path)
        second = pool.submit(blend, kd_root, tmp_path)
        go.set()
        assert not set(seen) & set(expected())
        assert samples(first.result(60)) == samples(second.result(60)) == alone
    assert named(tmp_path) == expected()
