"""`.safetensors` files: header, tensor, hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gristmill.reasoning.format import id_files


def test_a_file_is_its_header_and_its_tensor(tmp_path: Path) -> None:
    found = id_files.write(tmp_path / "x", (1, 2), [b"\1\0\0\0", b"\2\0\0\0"])
    text = b'{"input_ids":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]}}'
    text += b" " * (-len(text) % 8)
    octets = len(text).to_bytes(8, "little") + text + b"\1\0\0\0\2\0\0\0"
    assert (tmp_path / "x").read_bytes() == octets
    assert (found.sha256, found.bytes) == (hashlib.sha256(octets).hexdigest(), len(octets))


def test_rows_that_do_not_fill_the_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="4 bytes of rows"):
        id_files.write(tmp_path / "x", (1, 2), [b"1234"])
