"""Row layouts: dtypes, exact header bytes, conversion, board packing."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.macroxue.format import rows

PEER_STEPS = (
    "{'descr': [('run_id', '<u4'), ('step_index', '<u4'), ('board', '<u8'), "
    "('board_eval', '<i4'), ('tile_65536_mask', '<u2'), ('move_dir', '<u1'), "
    "('valuation_type', '<u1'), ('ev_legal', '<u1'), ('max_rank', '<u1'), "
    "('seed', '<u4'), ('branch_evs', '<f4', (4,)), ], 'fortran_order': False, 'shape': ("
)


def test_dtypes_have_the_documented_sizes_and_offsets() -> None:
    assert rows.STEP_ROW_DTYPE.itemsize == 48
    assert rows.STEP_ROW_DTYPE.isalignedstruct
    assert rows.PACKED46.itemsize == 46
    assert rows.VALUE_ROW_DTYPE.itemsize == 24
    assert [rows.STEP_ROW_DTYPE.fields[n][1] for n in ("max_rank", "seed", "branch_evs")] == [
        25,
        28,
        32,
    ]
    assert [rows.PACKED46.fields[n][1] for n in ("max_rank", "seed", "branch_evs")] == [25, 26, 30]


@pytest.mark.parametrize("count", [0, 7, 58306, 10**18])
def test_packed_header_is_the_peers(count: int) -> None:
    header = rows.STEP_FORMATS["packed46"].header(count)
    assert len(header) == 384
    assert header[:10] == b"\x93NUMPY\x01\x00\x76\x01"
    text = header[10:].decode()
    assert text.rstrip(" \n") == f"{PEER_STEPS}{count},), }}"
    assert text.endswith(" \n")
    values = rows.VALUE_FORMAT.header(count)
    assert len(values) == 256
    assert values[8:10] == (246).to_bytes(2, "little")


@pytest.mark.parametrize("count", [0, 3, 1000])
def test_aligned_header_is_what_np_save_writes(count: int) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(count, rows.STEP_ROW_DTYPE))
    saved = buffer.getvalue()
    assert saved[: len(saved) - 48 * count] == rows.STEP_FORMATS["aligned48"].header(count)


def test_layouts_convert_both_ways_field_by_field() -> None:
    random = np.random.default_rng(5)
    packed = random.integers(0, 256, 46 * 1000, dtype=np.uint8).view(rows.PACKED46)
    aligned = rows.to_aligned(packed)
    for name in rows.PACKED46.names:
        assert aligned[name].tobytes() == packed[name].tobytes()
    assert not rows.as_bytes(aligned)[:, 26:28].any()
    assert rows.to_packed(aligned).tobytes() == packed.tobytes()
    assert rows.to_packed(aligned[::3]).tobytes() == packed[::3].tobytes()


@pytest.mark.parametrize(
    ("ranks", "board", "mask"),
    [
        (list(range(16)), 0x0123456789ABCDEF, 0),
        ([1, 2, 3] + [0] * 13, 0x1230000000000000, 0),
        ([17, 16, 15] + [0] * 12 + [16], 0xFFF000000000000F, 0x8003),
    ],
)
def test_board_vectors(ranks: list[int], board: int, mask: int) -> None:
    packed, bits = rows.pack_boards(np.array([ranks]))
    assert (int(packed[0]), int(bits[0])) == (board, mask)


def test_a_whole_packed_row_is_byte_exact() -> None:
    row = np.zeros(1, rows.STEP_ROW_DTYPE)
    board, mask = rows.pack_boards(np.array([[17, 16, 15] + [0] * 12 + [16]]))
    row["board"], row["tile_65536_mask"], row["board_eval"] = board, mask, -10092544
    row["move_dir"], row["ev_legal"], row["max_rank"], row["seed"] = 2, 0b1110, 3, 7
    row["branch_evs"] = [[0, -1.5, 0.5, 0.25]]
    expected = (
        "00000000 00000000 0f0000000000f0ff 000066ff 0380 02 00 0e 03 07000000"
        " 00000000 0000c0bf 0000003f 0000803e"
    )
    assert rows.to_packed(row).tobytes() == bytes.fromhex(expected)


@given(st.lists(st.lists(st.integers(0, 31), min_size=16, max_size=16), min_size=1, max_size=5))
def test_boards_decode_to_ranks_capped_at_16(boards: list[list[int]]) -> None:
    ranks = np.array(boards)
    assert (rows.decode_boards(*rows.pack_boards(ranks)) == np.minimum(ranks, 16)).all()
