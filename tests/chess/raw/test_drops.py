"""The account of a chess drop, by its first bytes or its directory."""

import bz2
import gzip
import io
import re
import struct
from pathlib import Path

import pytest
import zstandard

from gristmill.chess import take_drop
from gristmill.chess.raw.drops import account, available
from gristmill.contract import BadInput
from gristmill.data_root import DataRoot
from gristmill.inbox.account import Account
from gristmill.publish.publish import publish
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.chess.raw.archives import GAME, MONTH, zipped
from tests.publish.tiny import tiny_build

APPLE = b"\x00\x05\x16\x07Mac OS X"


@pytest.fixture(autouse=True)
def _month(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most names here say no month; `tests/assets/chess/test_inbox.py` has names that do."""
    monkeypatch.setattr("gristmill.chess.raw.drops.month_in", lambda _: MONTH)


def refusal(drop: Path, links: LinkRule = REFUSE_LINKS) -> str | None:
    """Why a drop is refused, or None."""
    try:
        account(drop, links)
    except BadInput as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pgn", GAME),
        ("A.PGN", GAME),
        ("a.ZIP", zipped(("A.PGN", GAME))),
        ("a.pgn.zst", zstandard.ZstdCompressor().compress(GAME)),
        ("a.pgn.ZST", zstandard.ZstdCompressor().compress(GAME)),
    ],
)
def test_a_drop_is_read_whatever_the_case_of_its_ending(
    tmp_path: Path, name: str, data: bytes
) -> None:
    drop = tmp_path / name
    drop.write_bytes(data)
    assert account(drop) == Account({"": [name]})
    take_drop(drop, tmp_path / "out", MONTH)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == GAME


def test_members_beside_the_pgn_are_left_out_by_name(tmp_path: Path) -> None:
    drop = tmp_path / "a.zip"
    members = [("in/x.pgn", GAME), ("in/._x.pgn", APPLE), ("__MACOSX/in/._x.pgn", APPLE)]
    drop.write_bytes(zipped(("readme.txt", b"r"), *members, ("b/__MACOSX/y.pgn", APPLE)))
    apple = "what macOS keeps beside a file"
    assert account(drop).left_out == {
        "a.zip/readme.txt": "no PGN",
        "a.zip/in/._x.pgn": apple,
        "a.zip/__MACOSX/in/._x.pgn": apple,
        "a.zip/b/__MACOSX/y.pgn": apple,
    }
    take_drop(drop, tmp_path / "out", MONTH)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == GAME


def _deflate64() -> bytes:
    data = bytearray(zipped(("a.pgn", GAME)))
    directory = data.index(b"PK\x01\x02")
    data[8:10] = data[directory + 10 : directory + 12] = struct.pack("<H", 9)
    return bytes(data)


HTML = b"<!DOCTYPE html><html>Not found</html>"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
REFUSED = [
    ("a.pgn.gz", gzip.compress(GAME, mtime=0), "unpack it with `gunzip`, and bring the .pgn"),
    ("a.pgn.bz2", bz2.compress(GAME), "unpack it with `bunzip2`, and bring the .pgn"),
    ("a.7z", b"7z\xbc\xaf\x27\x1c", "unpack it with `7z x`, and bring the .pgn"),
    ("a.txt", GAME, "is neither .zip nor .pgn nor .pgn.zst"),
    ("a.pgn", b"", "holds an empty PGN; download it again"),
    ("a.pgn", HTML, "likely HTML/error page: '<!DOCTYPE html>.*download it again"),
    ("a.zip", HTML, "not a ZIP .*likely HTML/error page.*download it again"),
    ("a.pgn.zst", HTML, "not zstd .*likely HTML/error page.*download it again"),
    ("a.pgn", LFS, "a pointer of Git LFS; get the file itself with `git lfs pull`"),
    ("a.zip", LFS, "a pointer of Git LFS; get the file itself with `git lfs pull`"),
    ("a.pgn", b"id,moves\n1,e4 e5 Nf3\n2.5,d4\n", "no tag and no move.*export the games as PGN"),
    ("a.pgn", b'{"moves": ["e4"]}\n[1, 2]\n', "no tag and no move is in it"),
    ("a.pgn", b"\n \t\n\n", "no tag and no move is in it"),
    ("a.pgn", GAME[:9] + b"\0" + GAME, "has a NUL at byte 9, as a damaged copy or UTF-16 has"),
    (
        "a.pgn",
        GAME.decode().encode("utf-16-be"),
        "has a NUL at byte 0, as a damaged copy or UTF-16",
    ),
    ("a.pgn", GAME[9:12] + b"\0x", "no tag and no move is in it"),
    ("a.pgn", zipped(("a.pgn", GAME)), "PGN text: it is ZIP; give it the ending .zip"),
    ("a.pgn", gzip.compress(GAME, mtime=0), "PGN text: it is gzip; unpack it, and bring the .pgn"),
    ("a.pgn", "\ufeff[Event]".encode("utf-16"), "in UTF-16; save it as UTF-8"),
    ("a.zip", gzip.compress(GAME, mtime=0), "it is gzip; unpack it, and bring the .pgn"),
    ("a.pgn.zst", zipped(("a.pgn", GAME)), "it is ZIP; give it the ending .zip"),
    ("a.zip", GAME, "give it the ending of its kind"),
    (
        "a.zip",
        zipped(("readme.txt", b"r")),
        "has 0 PGN files but 'readme.txt', expected exactly one",
    ),
    ("a.zip", zipped(("a.pgn", GAME), ("b.pgn", GAME)), r"has 2 PGN files \('a.pgn', 'b.pgn'\)"),
    ("a.zip", _deflate64(), "by Deflate64, which is not read; pack it again with Deflate"),
    ("a.zip", zipped(("a.pgn", GAME))[:-9], "is a broken ZIP"),
    ("a.zip", zipped(("a.pgn", b"\n \n" * 50_000)), "no tag and no move is in it"),
    ("a.zip", zipped(("a.pgn", b"")), "holds an empty PGN"),
    ("a.pgn.zst", zstandard.ZstdCompressor().compress(b"\r\n\t"), "no tag and no move is in it"),
    ("a.pgn.zst", zstandard.ZstdCompressor().compress(b""), "holds an empty PGN"),
    ("a.zip", zipped(("a.pgn", b"<html>no</html>")), "does not hold PGN"),
    (
        "a.zip",
        zipped(("x/elite_2024-02.pgn", GAME)),
        "is the archive of 2024-01, and holds 'x/elite_2024-02.pgn', the PGN of 2024-02: give it",
    ),
]


MISSING = [
    *(b"", HTML, zipped(("a.pgn", GAME))[:-9], zipped(("a.pgn", b""))),
    zstandard.ZstdCompressor().compress(b""),
    zipped(("a.pgn", b"<html>no</html>")),
]


@pytest.mark.parametrize(("name", "data", "rule"), REFUSED)
def test_what_is_no_pgn_is_refused_with_the_cure(
    tmp_path: Path, name: str, data: bytes, rule: str
) -> None:
    """The look says what the build would say."""
    drop = tmp_path / name
    drop.write_bytes(data)
    with pytest.raises(BadInput, match=f"{re.escape(str(drop))}: .*{rule}"):
        account(drop)
    assert re.search(rule, str(refusal(drop)))
    with pytest.raises(BadInput, match=rule):
        take_drop(drop, tmp_path / "out", MONTH)


def test_what_can_be_pgn_is_not_refused(tmp_path: Path) -> None:
    words = b"A header of a mail\n" * 40_000
    for number, text in enumerate(
        (words + GAME, b"1. e4 e5 *\n", b"e4 e5 *\n", b';c\n\xef\xbb\xbf [A "b"]\n', b"1.\ne4\n")
    ):
        drop = tmp_path / f"{number}.pgn"
        drop.write_bytes(text)
        assert refusal(drop) is None
        take_drop(drop, tmp_path / str(number), MONTH)


def test_a_link_is_refused_or_followed_as_the_rule_says(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "x").write_bytes(GAME)
    (tmp_path / "a.pgn").symlink_to(tmp_path / "store" / "x")
    assert "is a link" in str(refusal(tmp_path / "a.pgn"))
    links = LinkRule(follow=True, roots=(str(tmp_path / "store"),))
    assert refusal(tmp_path / "a.pgn", links) is None


@pytest.mark.parametrize("window", [27, 28, 31])
def test_a_long_window_is_read(tmp_path: Path, window: int) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=window, enable_ldm=True, write_content_size=False
    )
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = io.BytesIO()
    packed.write(packer.compress(GAME * 100) + packer.flush())
    (tmp_path / "a.pgn.zst").write_bytes(packed.getvalue())
    found = zstandard.get_frame_parameters(packed.getvalue()).window_size
    assert found == 1 << window
    take_drop(tmp_path / "a.pgn.zst", tmp_path / "out", MONTH)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == GAME * 100


def test_a_window_beyond_what_zstd_makes_is_refused_with_the_cure(tmp_path: Path) -> None:
    """A frame that asks for 4 GiB."""
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(32 - 10) << 3]) + b"\x01\x00\x00"
    (tmp_path / "a.pgn.zst").write_bytes(frame)
    with pytest.raises(BadInput, match=r"longer window.*pack it again without --long, or bring"):
        take_drop(tmp_path / "a.pgn.zst", tmp_path / "out", MONTH)


def test_only_missing_bytes_are_to_be_downloaded_again(tmp_path: Path) -> None:
    for name, data, _ in REFUSED:
        (tmp_path / name).write_bytes(data)
        again = "download it again" in str(refusal(tmp_path / name))
        assert again == (data in MISSING), name


@pytest.mark.parametrize("ending", ["zip", "pgn.zst"])
def test_a_look_reads_the_beginning_alone(tmp_path: Path, ending: str) -> None:
    """The end of the text is damaged: a look does not unpack it."""
    text = GAME + b"".join(b"%d. e4 e5\n" % n for n in range(400_000))
    drop, data = tmp_path / f"a.{ending}", zstandard.ZstdCompressor(write_checksum=True)
    packed = bytearray(zipped(("a.pgn", text)) if ending == "zip" else data.compress(text))
    packed[-200] ^= 1 if ending == "zip" else 255
    if ending == "zip":
        packed[len(packed) // 2] ^= 255
    drop.write_bytes(packed)
    assert refusal(drop) is None
    with pytest.raises(BadInput, match=r"broken (ZIP|zstd).*download it again"):
        take_drop(drop, tmp_path / "out", MONTH)


def test_a_month_whose_drop_is_refused_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    inbox = tmp_path / "drops/chess"
    inbox.mkdir(parents=True)
    (inbox / "lichess_elite_2024-01.pgn").write_bytes(GAME)
    (inbox / "lichess_elite_2024-03.pgn").symlink_to("/etc/passwd")
    (inbox / "lichess_elite_2024-04.pgn").write_bytes(GAME)
    (inbox / "lichess_elite_2024-04.zip").write_bytes(GAME)
    (inbox / "lichess_elite_2019-04.pgn").write_bytes(GAME)
    for place in ("chess/raw/elite/2024-05", "chess/dataset/2024-06_game"):
        publish(tiny_build(tmp_path, place))
    assert available(DataRoot(tmp_path)) == ["2024-01", "2024-05"]
