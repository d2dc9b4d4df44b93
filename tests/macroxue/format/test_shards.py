"""Files of a pack: shard cuts, patched headers, checks before mapping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.macroxue.format import rows, shards
from gristmill.macroxue.format.shards import refuse_foreign_rows


def some_rows(count: int, layout: rows.Layout) -> rows.Rows:
    octets = np.random.default_rng(count).integers(0, 256, 46 * count, dtype=np.uint8)
    return rows.to_layout(octets.view(rows.PACKED46), layout)


@pytest.mark.parametrize("layout", ["aligned48", "packed46"])
@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (0, [("steps.npy", 10)]),
        (4, [("steps-00000.npy", 4), ("steps-00001.npy", 4), ("steps-00002.npy", 2)]),
        (5, [("steps-00000.npy", 5), ("steps-00001.npy", 5)]),
        (99, [("steps-00000.npy", 10)]),
        ([3, 7], [("steps-00000.npy", 3), ("steps-00001.npy", 7)]),
    ],
)
def test_rows_are_cut_exactly(
    tmp_path: Path, layout: rows.Layout, cut: int | list[int], expected: list[tuple[str, int]]
) -> None:
    data = some_rows(10, layout)
    form = rows.STEP_FORMATS[layout]
    with shards.ShardWriter(tmp_path, form, cut) as writer:
        for piece in (data[:1], data[1:8], data[8:]):
            writer.write(piece)
    assert writer.written == expected
    files = shards.step_files(tmp_path)
    assert [file.name for file in files] == [name for name, _ in expected]
    assert b"".join(shards.open_steps(file).tobytes() for file in files) == data.tobytes()
    for file, (_, count) in zip(files, expected, strict=True):
        assert file.read_bytes().startswith(form.header(count))
    if layout == "aligned48" and cut == 0:
        np.save(tmp_path / "again.npy", data)
        assert (tmp_path / "again.npy").read_bytes() == files[0].read_bytes()


def test_planned_shards_must_be_filled(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="1 shards written, 2 were planned"),
        shards.ShardWriter(tmp_path, rows.STEP_FORMATS["packed46"], [2, 3]) as writer,
    ):
        writer.write(some_rows(4, "packed46")[:2])


def test_no_rows_make_an_empty_single_file(tmp_path: Path) -> None:
    with shards.ShardWriter(tmp_path, rows.STEP_FORMATS["packed46"], 0) as writer:
        pass
    assert writer.written == [("steps.npy", 0)]
    assert len(shards.open_steps(tmp_path / "steps.npy")) == 0


def test_both_forms_side_by_side_are_refused(tmp_path: Path) -> None:
    (tmp_path / "steps.npy").touch()
    (tmp_path / "steps-00000.npy").touch()
    with pytest.raises(BadInput, match="both"):
        shards.step_files(tmp_path)
    with pytest.raises(BadInput, match="neither"):
        shards.step_files(tmp_path / "nowhere")


def test_files_are_checked_before_they_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "steps.npy"
    good = rows.STEP_FORMATS["packed46"].header(2) + bytes(92)
    for bad, rule in [
        (good[:-1], "cut short"),
        (good + b"x", "cut short"),
        (b"not npy", "no npy header"),
        (rows.VALUE_FORMAT.header(1) + bytes(24), "not one of the known row layouts"),
        (good.replace(b"(2,)", b"(__import__('os'),)"), "no npy header"),
    ]:
        path.write_bytes(bad)
        with pytest.raises(BadInput, match=rule):
            shards.open_steps(path)
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput, match="not one of the known row layouts"):
        shards.open_steps(path)
    path.write_bytes(good)
    assert len(shards.open_steps(path)) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda head: head.replace(b"(3,)", b"(3,\x02"),
        lambda head: head.replace(b"]", b"["),
        lambda head: head.replace(b"'<u4'", b"'<u4\xe3", 1),
        lambda head: head.replace(b"{", b"(" * 64, 1),
        lambda head: head.replace(b"'descr'", b"'descn'"),
        lambda head: head.replace(b"'<u8'", b"'<Q9'"),
        lambda head: head.replace(b"\x01\x00", b"\x03\x00", 1),
    ],
)
def test_a_broken_header_is_named(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    head = rows.STEP_FORMATS["aligned48"].header(3)
    broken = damage(head)
    assert broken != head
    path = tmp_path / "steps.npy"
    path.write_bytes(broken + bytes(3 * 48))
    refuse_foreign_rows(path)
    with pytest.raises(BadInput, match="no npy header that can be read") as caught:
        shards.open_steps(path)
    assert caught.value.file == str(path)


def test_more_shards_than_sort_by_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "_MAX_SHARDS", 2)
    with shards.ShardWriter(tmp_path, rows.STEP_FORMATS["packed46"], 1) as writer:
        writer.write(some_rows(2, "packed46"))
        with pytest.raises(ValueError, match="more than 2 shards do not sort by name"):
            writer.write(some_rows(1, "packed46"))
