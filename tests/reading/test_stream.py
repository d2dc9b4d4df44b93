"""Eight digits tell one random stream from another, whichever draws differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gristmill.contract import GristmillError
from gristmill.reading.reader import refuse_other_stream, stream_of


def pcg64(*seed: int) -> Any:
    return np.random.Generator(np.random.PCG64(seed))


def philox(seed: int) -> Any:
    return np.random.Generator(np.random.Philox(seed=seed))


class Changed:
    """A generator of a NumPy that shuffles or draws otherwise in one place."""

    def __init__(self, method: str, place: int) -> None:
        self._real, self._method, self._place = pcg64(7, 0, 0), method, place

    def __getattr__(self, name: str) -> Any:
        def draw(*arguments: Any, **keywords: Any) -> Any:
            drawn = getattr(self._real, name)(*arguments, **keywords)
            if name == self._method:
                drawn[self._place] ^= 1
            return drawn

        return draw


def test_the_digits_are_those_of_the_pinned_numpy() -> None:
    """Where another NumPy draws otherwise, states of this one are refused."""
    assert stream_of(pcg64(7, 0, 0)) == {"stream": "0555ac74", "numpy": np.__version__}
    assert stream_of(philox(7)) == {"stream": "3535c881", "numpy": np.__version__}
    assert len({stream_of(pcg64(seed, 0, 0))["stream"] for seed in range(50)}) == 50


@pytest.mark.parametrize(
    ("method", "place"),
    [("permutation", 0), ("permutation", -1), ("integers", 5), ("integers", -1)],
)
def test_a_stream_that_differs_in_any_draw_is_refused_with_the_cure(
    method: str, place: int
) -> None:
    state = stream_of(pcg64(7, 0, 0))
    refuse_other_stream(state, pcg64(7, 0, 0))
    with pytest.raises(GristmillError) as caught:
        refuse_other_stream(state | {"numpy": "1.0"}, Changed(method, place))
    here = stream_of(Changed(method, place))["stream"]
    assert str(caught.value) == (
        f"the state is of another random stream: its digits are '{state['stream']}', drawn by NumPy"
        f" '1.0'; here NumPy '{np.__version__}' draws '{here}': continue with the NumPy that wrote"
        " it, or begin a new pass"
    )


def test_a_state_without_digits_is_taken_and_one_with_others_is_not() -> None:
    refuse_other_stream({}, pcg64(7))
    refuse_other_stream({"numpy": "1.0"} | stream_of(pcg64(7)), pcg64(7))
    for wrong in (None, 5, "", "x" * 1000, stream_of(philox(7))["stream"]):
        with pytest.raises(GristmillError, match="another random stream: its digits are"):
            refuse_other_stream({"stream": wrong}, pcg64(7))
