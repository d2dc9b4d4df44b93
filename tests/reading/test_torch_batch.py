"""Batches that torch's default collate takes at once."""

from typing import Any

import numpy as np
import pytest

from gristmill.reading.torch_batch import ColumnBatch, Row, SampleBatch
from tests.later import later

torch = later("torch")
torch_data = later("torch.utils.data", "torch")


def columns(numbers: Any) -> dict[str, Any]:
    return {"n": torch.tensor(numbers), "square": torch.tensor(numbers) ** 2}


class Squares:
    """Squares of the numbers below 10, which cannot be read one by one."""

    def __len__(self) -> int:
        return 10

    def __getitems__(self, numbers: list[int]) -> ColumnBatch:
        return ColumnBatch(columns(numbers))


def test_a_batch_is_collated_without_its_samples_which_a_function_of_the_user_gets():
    batches = list(torch_data.DataLoader(Squares(), batch_size=4))
    assert [batch["square"].tolist() for batch in batches] == [
        [0, 1, 4, 9],
        [16, 25, 36, 49],
        [64, 81],
    ]
    batch = next(iter(torch_data.DataLoader(Squares(), batch_size=3, collate_fn=list)))
    assert [dict(row) for row in batch] == [
        {"n": n, "square": n * n} for n in map(torch.tensor, range(3))
    ]
    assert len(ColumnBatch(columns([1, 2]))) == 2


def test_rows_without_their_batch_are_collated_by_column():
    rows = [ColumnBatch(columns([n]))[0] for n in (3, 5)]
    assert all(type(row) is Row for row in rows)
    assert torch_data.default_collate(rows)["square"].tolist() == [9, 25]

    class OneByOne(Squares):
        def __getitem__(self, number: int) -> Row:
            return self.__getitems__([number])[0]

    joined = torch_data.DataLoader(
        torch_data.ConcatDataset([OneByOne(), OneByOne()]), batch_size=20
    )
    assert next(iter(joined))["n"].tolist() == [*range(10), *range(10)]


class Word:
    """A sample that torch does not know."""


def test_samples_of_another_type_need_their_batch():
    words = [Word(), Word()]
    batch = SampleBatch(words, [1, 0], Word, lambda numbers: {"first": np.int64(numbers[0])})
    assert torch_data.default_collate(batch) == {"first": 1}
    assert list(batch) == words[::-1]
    with pytest.raises(TypeError, match="samples of type Word have no default form"):
        torch_data.default_collate(words)
