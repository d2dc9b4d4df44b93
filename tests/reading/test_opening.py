"""Folders are opened together in one generation each, or again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.reading import StaleDataset
from gristmill.reading.folder import Opening, opened
from tests.paths import open_below
from tests.reading.tiny import Tiny, tiny

__all__ = ["tiny"]


def test_an_artifact_that_is_replaced_meanwhile_is_opened_again(tiny: Tiny) -> None:
    seen = []

    def read(opening: Opening) -> tuple[bytes, bytes]:
        folder = opening.folder(tiny.folder)
        first = folder.file("a.bin").read_bytes()
        seen.append(first)
        if len(seen) == 1:
            tiny.publish(1)
        return first, folder.file("b.json").read_bytes()

    descriptors = open_below(tiny.root)
    result, generations = opened(read, "sizes")
    assert seen == [b"0000", b"1111"]
    assert result == (b"1111", b"[1]")
    assert open_below(tiny.root) == descriptors
    assert opened(read, "sizes", generations)[0] == result
    tiny.publish(0)
    with pytest.raises(StaleDataset, match="now there is data version"):
        opened(read, "sizes", generations)


def test_an_artifact_that_is_always_replaced_is_given_up(tiny: Tiny) -> None:
    calls = []

    def read(opening: Opening) -> None:
        opening.folder(tiny.folder)
        calls.append(0)
        tiny.folder.rename(tiny.root / f"old{len(calls)}")
        tiny.folder.mkdir()

    with pytest.raises(StaleDataset, match=r"tiny/p.* was replaced 20 times while it was opened"):
        opened(read, "none")
    assert len(calls) == 20


def test_errors_name_the_real_files_and_are_of_gristmill(tiny: Tiny) -> None:
    def read(error: type[Exception]) -> None:
        def failing(opening: Opening) -> None:
            path = opening.folder(tiny.folder).file("a.bin")
            raise error(f"{path}: broken")

        opened(failing, "sizes")

    for kind in (ValueError, KeyError, AssertionError, OverflowError):
        with pytest.raises(BadInput) as caught:
            read(kind)
        assert str(caught.value).startswith(f"{tiny.folder / 'a.bin'}: cannot be read")
        assert "/proc/" not in str(caught.value)
        assert caught.value.file == str(tiny.folder / "a.bin")
    with pytest.raises(KeyboardInterrupt):
        read(KeyboardInterrupt)  # type: ignore[arg-type]


def test_a_first_opening_knows_that_it_is_first(tiny: Tiny) -> None:
    def read(opening: Opening) -> bool:
        opening.folder(tiny.folder)
        assert opening.folder(tiny.folder) is opening.folder(Path(tiny.folder))
        return opening.first

    first, generations = opened(read, "sizes")
    again, _ = opened(read, "sizes", generations)
    assert (first, again) == (True, False)
