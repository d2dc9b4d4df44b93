"""Damaged and hostile archives, and the limits."""

import errno
import hashlib
import io
import os
import random
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gristmill.chess import (
    ArchiveConfig,
    take_drop,
)
from gristmill.chess.raw.archive_config import Limits
from gristmill.chess.raw.unpack import unpack_pgn
from gristmill.contract import BadInput
from gristmill.untrusted.files import LinkRule
from tests.chess.raw.archives import GAME, MONTH, zipped
from tests.paths import CHECKOUT


def test_a_damaged_member_fails_its_crc(tmp_path: Path, pgn: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.pgn", pgn)  # stored, so that only the CRC can tell
    data = bytearray(buffer.getvalue())
    data[2000] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(BadInput, match="CRC"):
        unpack_pgn(tmp_path / "a.zip", tmp_path / "a.pgn")


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
        unpack_pgn(tmp_path / "a.zip", tmp_path / "x")
    assert caught.value.errno == code


@pytest.mark.parametrize("name", ["a.zip", "a.pgn", "a.pgn.zst"])
def test_a_link_pipe_or_device_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(zipped(("a.pgn", GAME)))
    drop = tmp_path / name
    makers = [
        lambda: drop.symlink_to(tmp_path / "secret"),
        lambda: drop.symlink_to("/dev/zero"),
        lambda: os.mkfifo(drop),
        drop.mkdir,
    ]
    for number, (make, kind) in enumerate(
        zip(makers, ("a link", "a link", "a pipe", "a folder"), strict=True)
    ):
        make()
        with pytest.raises(BadInput, match=rf"{re.escape(str(drop))}: is {kind}"):
            take_drop(drop, tmp_path / str(number), MONTH)
        drop.rmdir() if kind == "a folder" else drop.unlink()


def test_a_link_is_followed_where_a_person_allows_it(tmp_path: Path, pgn: bytes) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "inbox").mkdir()
    (tmp_path / "store" / "blob").write_bytes(zipped(("a.pgn", pgn)))
    drop = tmp_path / "inbox" / "a.zip"
    drop.symlink_to(tmp_path / "store" / "blob")
    links = LinkRule(follow=True, roots=(str(tmp_path / "store"),))
    summary = take_drop(drop, tmp_path / "out", MONTH, links=links)
    packed = (tmp_path / "store" / "blob").read_bytes()
    assert summary.archive_bytes == len(packed)
    assert summary.archive_sha256 == hashlib.sha256(packed).hexdigest()
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


def test_a_long_line_is_refused_in_every_kind_of_drop(tmp_path: Path) -> None:
    import zstandard

    text = GAME + b"{" + os.urandom(600_000).hex().encode() + b"}\n"
    drops = {
        "a.zip": zipped(("a.pgn", text)),
        "a.pgn": text,
        "a.pgn.zst": zstandard.ZstdCompressor().compress(text),
    }
    for name, data in drops.items():
        (tmp_path / name).write_bytes(data)
        rule = rf"{name}: the line at byte {len(GAME)} has more than 1048576 bytes"
        with pytest.raises(BadInput, match=rule):
            take_drop(tmp_path / name, tmp_path / f"{name}_out", MONTH)


def test_a_zip_may_not_name_more_packed_bytes_than_it_has(tmp_path: Path) -> None:
    """The limit on the ratio is measured by them."""
    bomb = bytearray(zipped(("a.pgn", b"\n" * 2_000_000)))
    directory = bomb.rfind(b"PK\x01\x02")
    bomb[directory + 20 : directory + 24] = struct.pack("<I", 20_000_000)
    (tmp_path / "a.zip").write_bytes(bomb)
    with pytest.raises(BadInput, match="names 20000000 packed bytes, and has"):
        unpack_pgn(tmp_path / "a.zip", tmp_path / "x")


def test_a_small_text_may_have_any_ratio_and_a_larger_one_not(tmp_path: Path) -> None:
    for size, refused in ((1 << 20, False), ((1 << 20) + 1, True)):
        (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", GAME.ljust(size, b"\n"))))
        if refused:
            with pytest.raises(BadInput, match="looks like a ZIP bomb"):
                unpack_pgn(tmp_path / "a.zip", tmp_path / "x")
        else:
            assert unpack_pgn(tmp_path / "a.zip", tmp_path / "x") == size


def _directory_bomb() -> bytes:
    """A ZIP with 600,000 members of one byte in their names."""
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *[0] * 9, 1, *[0] * 6) + b"a"
    directory = entry * 600_000
    first = b"PK\x03\x04" + bytes(26)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), len(first), 0)
    return first + directory + end


def _packed(method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("a.pgn", b"\n" * 20_000_000)
    return buffer.getvalue()


def _lzma_dictionary() -> bytes:
    """A ZIP whose LZMA data asks for a dictionary of 4 GiB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.pgn", GAME)
    data = bytearray(buffer.getvalue())
    properties = data.index(b"a.pgn") + len("a.pgn") + 4
    data[properties + 1 : properties + 5] = b"\xff\xff\xff\xff"
    return bytes(data)


def _zstd_frames() -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(b"") * 100_001


def _zstd_window() -> bytes:
    """A frame that asks for a window of 2 GiB."""
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00"


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "directory": ("a.zip", _directory_bomb, "directory of more than"),
    "bzip2": ("a.zip", lambda: _packed(zipfile.ZIP_BZIP2), "ZIP bomb"),
    "deflated": ("a.zip", lambda: _packed(zipfile.ZIP_DEFLATED), "ZIP bomb"),
    "dictionary": ("a.zip", _lzma_dictionary, "memory"),
    "frames": ("a.pgn.zst", _zstd_frames, "more than 100000 frames"),
    "window": ("a.pgn.zst", _zstd_window, "longer window"),
    "line": ("a.pgn", lambda: GAME + b"x" * 15_000_000, "line at byte"),
}
CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from pathlib import Path
from gristmill.chess import take_drop
from gristmill.contract import BadInput
from gristmill.untrusted.files import LinkRule
try:
    take_drop(Path(sys.argv[1]), Path(sys.argv[2]), "2024-01")
except BadInput as error:
    print(error)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_less_than_a_gigabyte(tmp_path: Path, name: str) -> None:
    drop, data, rule = BOMBS[name]
    (tmp_path / drop).write_bytes(data())
    command = [sys.executable, "-c", CHILD, str(tmp_path / drop), str(tmp_path / "out")]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{drop}: " in done.stdout
    assert rule in done.stdout


def test_limits_hold_whatever_the_directory_says(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", GAME * 1000)))
    with pytest.raises(BadInput, match="over the limit"):
        unpack_pgn(tmp_path / "a.zip", tmp_path / "x", Limits(pgn_bytes=1000))
    (tmp_path / "a.pgn").write_bytes(GAME * 1000)
    with pytest.raises(BadInput, match="more than 1000 bytes"):
        take_drop(
            tmp_path / "a.pgn",
            tmp_path / "out",
            MONTH,
            ArchiveConfig(limits=Limits(pgn_bytes=1000)),
        )
