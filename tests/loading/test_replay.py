"""Steps of a run, read again from a copy that a mirror gave: the same bytes for any ranks."""

import itertools
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gristmill.loading import Loader
from gristmill.loading.mix_file import read_mix
from gristmill.mirror import pull, push
from tests.loading.test_mix_file import SOURCES, written

pytestmark = pytest.mark.slow
BATCH, STEPS = 8, 3
Arrays = dict[str, npt.NDArray[Any]]


def _given(loader: Loader) -> list[Arrays]:
    """The arrays of the first steps, of one process that reads or of workers."""
    return [
        {name: column for name, column in batch.items() if isinstance(column, np.ndarray)}
        for batch in itertools.islice(loader, STEPS)
    ]


def _is_part(part: Arrays, whole: Arrays, rank: int, world: int) -> bool:
    """Whether a rank's batch is its rows of the whole one, whose rows may be filled up further."""
    rows = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
    for name, column in part.items():
        wanted = whole[name][rows]
        inside = tuple(slice(size) for size in column.shape)
        filled = np.full_like(wanted, -100 if name == "labels" else 0)
        filled[inside] = column
        if column.dtype != wanted.dtype or filled.tobytes() != wanted.tobytes():
            return False
    return part.keys() == whole.keys()


@pytest.mark.parametrize("path", SOURCES)
def test_a_replay_from_a_mirror_has_the_same_bytes_at_any_number_of_ranks(
    sample_root, tmp_path, path
):
    mix = f'seed = 3\nmax_epochs = 99\n[source.one]\npath = "{path}"\nepochs = 99\n'
    mix += SOURCES[path]
    here = Loader(read_mix(written(tmp_path, mix), sample_root.data), BATCH, form="numpy")
    given = _given(here)
    state = json.loads(json.dumps(here.state_dict()))

    names = {each.artifact for _, each in sample_root.records() if each.artifact == path}
    mirror, copy = str(tmp_path / "mirror"), tmp_path / "copy"
    assert not any(each.error for each in push(sample_root.data, mirror, sorted(names)))
    assert not any(each.error for each in pull(copy, mirror))

    plan = read_mix(written(tmp_path, mix), copy)
    for world in (1, 2, 4):
        for rank in range(world):
            loader = Loader(plan, BATCH, form="numpy", rank=rank, world=world)
            loader.load_state_dict(state)
            for step, whole in enumerate(given):
                part = {n: c for n, c in loader[step].items() if isinstance(c, np.ndarray)}
                assert _is_part(part, whole, rank, world), (world, rank, step)


def test_workers_read_the_same_bytes(sample_root, tmp_path):
    path = "macroxue/pools/samples"
    mix = f'[source.one]\npath = "{path}"\nepochs = 1\n'
    plan = read_mix(written(tmp_path, mix), sample_root.data)
    alone, ahead = (
        _given(Loader(plan, BATCH, form="numpy", workers=workers)) for workers in (0, 2)
    )
    assert all(_is_part(part, whole, 0, 1) for part, whole in zip(ahead, alone, strict=True))
