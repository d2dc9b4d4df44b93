"""Files of a drop with equal bytes are found by size, ends and contents, within a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.untrusted.equal_files import refuse_equal
from gristmill.untrusted.files import LinkRule

END = 1 << 16


def sizes(drop: Path, **files: bytes) -> dict[str, int]:
    """Write files; returns their sizes, the last one first."""
    drop.mkdir(exist_ok=True)
    for name, octets in files.items():
        (drop / name).write_bytes(octets)
    return {name: len(files[name]) for name in reversed(files)}


@pytest.mark.parametrize("length", [1, END, 2 * END, 2 * END + 1, 5 * END])
def test_equal_files_are_refused_at_any_length(tmp_path: Path, length: int) -> None:
    found = sizes(tmp_path, a=b"x" * length, b=b"y" * length, c=b"x" * length, d=b"z")
    with pytest.raises(BadInput) as raised:
        refuse_equal(tmp_path, found)
    assert str(raised.value) == (
        f"{tmp_path}/c: has the bytes of a: its records would count twice: take one of them out"
    )


@pytest.mark.parametrize("place", [0, END - 1, END, 2 * END, 4 * END - 1])
def test_one_byte_anywhere_makes_files_unequal(tmp_path: Path, place: int) -> None:
    octets = bytearray(4 * END)
    other = octets.copy()
    other[place] = 1
    refuse_equal(tmp_path, sizes(tmp_path, a=bytes(octets), b=bytes(other)))


def test_empty_files_and_files_that_are_gone_are_equal_to_none(tmp_path: Path) -> None:
    refuse_equal(tmp_path, sizes(tmp_path, a=b"", b=b""))
    refuse_equal(tmp_path, {**sizes(tmp_path, a=b"x"), "gone": 1, "absent": 1})


def test_what_takes_too_long_to_compare_is_left_to_whoever_knows_the_sums(tmp_path: Path) -> None:
    long = sizes(tmp_path, a=b"x" * 3 * END, b=b"x" * 3 * END)
    ends, whole = 4 * END, 6 * END
    refuse_equal(tmp_path, long, most=ends - 1)
    refuse_equal(tmp_path, long, most=ends + whole - 1)
    with pytest.raises(BadInput, match="b: has the bytes of a"):
        refuse_equal(tmp_path, long, most=ends + whole)


def test_links_are_read_as_they_are_allowed(tmp_path: Path) -> None:
    found = sizes(tmp_path / "drop", a=b"x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_bytes(b"x")
    (tmp_path / "drop/b").symlink_to(outside / "b")
    with pytest.raises(BadInput, match="b: is a link"):
        refuse_equal(tmp_path / "drop", {**found, "b": 1})
    with pytest.raises(BadInput, match="b: has the bytes of a"):
        refuse_equal(tmp_path / "drop", {**found, "b": 1}, LinkRule(True, (str(outside),)))


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gristmill.untrusted.equal_files.open_file", refuse)
    with pytest.raises(BadInput, match="a: cannot be read: Permission denied"):
        refuse_equal(tmp_path, sizes(tmp_path, a=b"x", b=b"x"))
