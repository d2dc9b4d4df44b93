"""The file of a part gives back what was written, in half of the bytes of the datasets."""

from pathlib import Path

import numpy as np
import pytest

from gristmill.hashing import HashedFile
from gristmill.synth.builders import kd_part_file
from gristmill.synth.render.documents import Documents

NONE = np.zeros(0, dtype=np.int32)


def documents(tokens: list[int], span: list[int], lengths: list[int]) -> Documents:
    ids = np.array(tokens, dtype=np.int32)
    spans = np.array(span, dtype=np.uint8)
    return Documents(ids, spans, np.array(lengths, dtype=np.int32), NONE, NONE)


EMPTY = documents([], [], [])
EDGES = documents([0, 1, 65_535, 65_536, 199_999, 201_087, (1 << 24) - 1], [0] * 7, [3, 4])


@pytest.mark.parametrize(
    "train",
    [
        EMPTY,
        EDGES,
        documents([7], [2], [1]),
        documents([5, 6, 7, 8], [0, 1, 2, 0], [4]),
        documents([5, 6, 7, 8], [1, 1, 0, 0], [2, 2]),
        documents([5, 6, 7, 8], [0, 0, 0, 1], [4]),
    ],
)
def test_batches_come_back(tmp_path: Path, train: Documents) -> None:
    path = tmp_path / "part"
    batches = [
        kd_part_file.Batch({"train": train, "valid": EDGES}, b"trace", b"refused"),
        kd_part_file.Batch({"train": EMPTY, "valid": train}, b"", b""),
    ]
    with HashedFile(path) as file:
        for batch in batches:
            kd_part_file.write(file, batch)
    for written, read in zip(batches, kd_part_file.read(path), strict=True):
        assert (read.trace, read.refused) == (written.trace, written.refused)
        for split, made in written.documents.items():
            for name in ("tokens", "span", "lengths"):
                expected, found = getattr(made, name), getattr(read.documents[split], name)
                assert found.dtype == expected.dtype
                assert found.tolist() == expected.tolist()


def test_a_part_takes_half_of_the_bytes_of_the_datasets(tmp_path: Path) -> None:
    count = 100_000
    span = np.repeat([0, 1, 2, 0], count // 4).tolist()
    batch = kd_part_file.Batch(
        {"train": documents([200_000] * count, span, [count]), "valid": EMPTY}, b"", b""
    )
    with HashedFile(tmp_path / "part") as file:
        kd_part_file.write(file, batch)
    assert file.bytes < 3.01 * count  # the datasets have 4 + 1 + 1 bytes a token
