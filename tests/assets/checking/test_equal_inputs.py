"""Equal raw files of one record: which count, and how they are named."""

from assets.checking.equal_inputs import equal_inputs, named, raw_hashes
from gristmill.provenance import Input


def _input(path: str | None, sha256: str | None, size: int = 5, **more: str) -> Input:
    return Input(path=path, sha256=sha256, bytes=size, **more)


def test_only_raw_files_that_hold_something_are_compared() -> None:
    inputs = [
        _input("drops/f/d/b", "1"),
        _input("drops/f/d/c", "2"),
        _input("drops/f/d/a", "1"),
        _input("drops/f/d/empty", "0", 0),
        _input("drops/f/d/empty2", "0", 0),
        _input("drops/macroxue/d/1.meta.json", "3"),
        _input("drops/macroxue/d/2.meta.json", "3"),
        _input("synth_harmony/manifest.json", "4"),
        _input("synth_harmony/other.json", "4"),
        Input(path="drops/x", asset="a", data_version="v"),
        Input(path="drops/y", asset="a", data_version="v"),
        Input(asset="a", data_version="v"),
    ]
    assert equal_inputs(inputs) == [["drops/f/d/a", "drops/f/d/b"]]
    assert raw_hashes(inputs) == {"drops/f/d/b": "1", "drops/f/d/c": "2", "drops/f/d/a": "1"}
    assert equal_inputs(inputs[:2]) == []


def test_some_are_named_and_all_are_counted() -> None:
    assert named([["a", "b"], ["c\x1b", "d", "e"]]) == "3: a = b; c\ufffd = d = e"
    long = [[f"{number}{name}" for name in "abcdefg"] for number in range(7)]
    shown = "; ".join(" = ".join(group[:5]) + " and 2 more" for group in long[:5])
    assert named(long) == f"42: {shown}; and 2 more"
