"""Damaged and hostile archives, and the limits."""

import errno
import io
import os
import random
import re
import zipfile
from pathlib import Path

import pytest

from gristmill.chess import (
    ArchiveConfig,
    take_drop,
)
from gristmill.chess.raw.archive_config import Limits
from gristmill.chess.raw.unpack import unpack_zip
from gristmill.contract import BadInput
from tests.chess.raw.archives import GAME, MONTH, zipped


def test_a_damaged_member_fails_its_crc(tmp_path: Path, pgn: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.pgn", pgn)  # stored, so that only the CRC can tell
    data = bytearray(buffer.getvalue())
    data[2000] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(BadInput, match="CRC"):
        unpack_zip(tmp_path / "a.zip", tmp_path / "a.pgn")


METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}


@pytest.mark.parametrize("kind", [*METHODS, "zst"])
def test_damaged_archives_are_bad_input_or_whole(tmp_path: Path, pgn: bytes, kind: str) -> None:
    import zstandard

    text = pgn[:6000]
    if kind == "zst":
        data, drop = zstandard.ZstdCompressor(write_checksum=True).compress(text), "a.pgn.zst"
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", METHODS[kind]) as archive:
            archive.writestr("partie_é.pgn", text)
        data, drop = buffer.getvalue(), "a.zip"
    dice, refused = random.Random(f"mutants of {kind}"), 0
    for number in range(150):
        mutant = bytearray(data)
        # Half of them in the directory or the frame's head, which are small.
        edge = 60 if kind == "zst" else 140
        for _ in range(dice.randint(1, 4)):
            near = dice.random() < 0.5
            at = dice.randrange(edge) if near else dice.randrange(len(data))
            at = at if kind == "zst" or not near else len(data) - 1 - at
            mutant[at] = dice.choice([0, 0xFF, dice.randrange(256), mutant[at] ^ 1])
        if dice.random() < 0.1:
            del mutant[dice.randrange(len(mutant)) :]
        (tmp_path / drop).write_bytes(mutant)
        out = tmp_path / str(number)
        try:
            take_drop(tmp_path / drop, out, MONTH)
        except BadInput as error:
            assert str(tmp_path / drop) in str(error)
            refused += 1
        else:
            assert (out / "lichess_elite_2024-01.pgn").read_bytes() == text
    assert refused > 50


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_not_blamed_on_the_archive(
    tmp_path: Path, pgn: bytes, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", pgn)))

    def full(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("gristmill.chess.raw.unpack._write", full)
    with pytest.raises(OSError, match=re.escape(os.strerror(code))) as caught:
        unpack_zip(tmp_path / "a.zip", tmp_path / "x")
    assert caught.value.errno == code


def test_limits_hold_whatever_the_directory_says(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", GAME * 1000)))
    with pytest.raises(BadInput, match="over the limit"):
        unpack_zip(tmp_path / "a.zip", tmp_path / "x", Limits(pgn_bytes=1000))
    (tmp_path / "a.pgn").write_bytes(GAME * 1000)
    with pytest.raises(BadInput, match="more than 1000 bytes"):
        take_drop(
            tmp_path / "a.pgn",
            tmp_path / "out",
            MONTH,
            ArchiveConfig(limits=Limits(pgn_bytes=1000)),
        )
