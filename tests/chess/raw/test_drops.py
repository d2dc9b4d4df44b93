"""Drops of chess and collections: what is taken, what is refused, and the PGNs out of them."""

import bz2
import errno
import gzip
import hashlib
import io
import json
import os
import random
import re
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from gristmill.chess import ArchiveConfig, take_drop
from gristmill.chess.config import CollectionConfig, Limits
from gristmill.chess.laws.games import archive_laws
from gristmill.chess.raw import drops
from gristmill.chess.raw.drops import (
    account,
    available,
    folder_of,
    pgn_of,
    raw_offset,
    take_collection,
    unpack_pgn,
)
from gristmill.chess.raw.pgn_text import month_in
from gristmill.contract import BadInput
from gristmill.data_root import DataRoot
from gristmill.families import Subject
from gristmill.inbox.listing import Account
from gristmill.publish.publish import publish
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from tests.chess.raw.archives import GAME, MONTH, said_within_a_gigabyte, zipped
from tests.publish.tiny import tiny_build
from tests.refusal import refusal

ZST = zstandard.ZstdCompressor()
APPLE = b"\x00\x05\x16\x07Mac OS X"


@pytest.fixture(autouse=True)
def _month(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most names here say no month; `tests/assets/chess/test_inbox.py` has names that do."""
    monkeypatch.setattr(drops, "month_in", lambda name: month_in(name) or MONTH)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.pgn", GAME),
        ("A.PGN", GAME),
        ("a.ZIP", zipped(("A.PGN", GAME))),
        ("a.pgn.zst", ZST.compress(GAME)),
        ("a.pgn.ZST", ZST.compress(GAME)),
    ],
)
def test_a_drop_is_read_whatever_the_case_of_its_ending(tmp_path, name, data):
    drop = tmp_path / name
    drop.write_bytes(data)
    assert account(drop) == Account({"": [name]})
    take_drop(drop, tmp_path / "out", MONTH)
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == GAME


def test_members_beside_the_pgn_are_left_out_by_name(tmp_path):
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


def _packed_too_large() -> bytes:
    """The limit on the ratio is measured by the packed bytes that the directory names."""
    bomb = bytearray(zipped(("a.pgn", b"\n" * 2_000_000)))
    directory = bomb.rfind(b"PK\x01\x02")
    bomb[directory + 20 : directory + 24] = struct.pack("<I", 20_000_000)
    return bytes(bomb)


HTML = b"<!DOCTYPE html><html>Not found</html>"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
LONG_WINDOW = "longer window.*pack it again without --long, or bring"
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
    ("a.zip", _packed_too_large(), "names 20000000 packed bytes, and has"),
    ("a.zip", _deflate64(), "by Deflate64, which is not read; pack it again with Deflate"),
    ("a.zip", zipped(("a.pgn", GAME))[:-9], "is a broken ZIP"),
    ("a.zip", zipped(("a.pgn", b"\n \n" * 50_000)), "no tag and no move is in it"),
    ("a.zip", zipped(("a.pgn", b"")), "holds an empty PGN"),
    ("a.pgn.zst", ZST.compress(b"\r\n\t"), "no tag and no move is in it"),
    ("a.pgn.zst", ZST.compress(b""), "holds an empty PGN"),
    ("a.zip", zipped(("a.pgn", b"<html>no</html>")), "does not hold PGN"),
    ("a.zip", zipped(("../evil.pgn", GAME)), "outside"),
    ("a.zip", zipped(("/evil.pgn", GAME)), "outside"),
    ("a.zip", zipped(("a.pgn", GAME), ("..\\b.txt", b"")), "outside"),
    ("a.zip", zipped(("C:/b.pgn", GAME)), "outside"),
    ("a.zip", zipped(("a.pgn", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "symbolic link"),
    ("a.zip", zipped(("a.pgn", GAME), ("b/c.PGN", GAME)), "2 PGN files"),
    ("a.zip", zipped(("", GAME)), "0 PGN files but ''"),
    ("a.zip", zipped(*((f"{i}.txt", b"") for i in range(1001))), "members"),
    ("a.zip", zipped(("a.pgn", b"1. e4 e5 " * 4_000_000)), "bomb"),
    ("a.zip", zipped(("a.pgn", b"\0\1\2")), "does not hold PGN"),
    ("a.zip", zipped(("a.pgn", GAME * 9)).replace(b"PK\x05\x06", b"PK\x05\x07"), "broken ZIP"),
    ("a.zip", b"PK\x03\x04 and then nothing", "broken ZIP"),
    ("a.zip", b"", "not a ZIP"),
    ("a.pgn.zst", b"PK\x03\x04", "not zstd"),
    ("a.pgn.zst", b"\x28\xb5\x2f\xfd\0\xb0\x01\0\0", LONG_WINDOW),  # asks for 4 GiB
    (
        "a.zip",
        zipped(("x/elite_2024-02.pgn", GAME)),
        "is the archive of 2024-01, and holds 'x/elite_2024-02.pgn', the PGN of 2024-02: give it",
    ),
]


MISSING = [
    *(b"", HTML, zipped(("a.pgn", GAME))[:-9], zipped(("a.pgn", b""))),
    *(data for _, data, rule in REFUSED if rule == "broken ZIP"),
    ZST.compress(b""),
    zipped(("a.pgn", b"<html>no</html>")),
]


@pytest.mark.parametrize(("name", "data", "rule"), REFUSED)
def test_what_is_no_pgn_is_refused_with_the_cure(tmp_path, name, data, rule):
    """The look says what the build would say."""
    drop = tmp_path / name
    drop.write_bytes(data)
    with pytest.raises(BadInput, match=f"{re.escape(str(drop))}: .*{rule}"):
        account(drop)
    assert re.search(rule, str(refusal(account, drop)))
    with pytest.raises(BadInput, match=rule):
        take_drop(drop, tmp_path / "out", MONTH)
    assert not (tmp_path / "evil.pgn").exists()


def test_what_can_be_pgn_is_read_and_only_missing_bytes_downloaded_again(tmp_path):
    words = b"A header of a mail\n" * 40_000
    for number, text in enumerate(
        (words + GAME, b"1. e4 e5 *\n", b"e4 e5 *\n", b';c\n\xef\xbb\xbf [A "b"]\n', b"1.\ne4\n")
    ):
        drop = tmp_path / f"{number}.pgn"
        drop.write_bytes(text)
        assert refusal(account, drop) is None
        take_drop(drop, tmp_path / str(number), MONTH)
    for name, data, rule in REFUSED:
        (tmp_path / name).write_bytes(data)
        again = "download it again" in str(refusal(account, tmp_path / name))
        assert again == (data in MISSING and rule != "not a ZIP"), name


@pytest.mark.parametrize("window", [27, 28, 31])
def test_a_long_window_is_read(tmp_path, window):
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


@pytest.mark.parametrize("ending", ["zip", "pgn.zst"])
def test_a_look_reads_the_beginning_alone(tmp_path, ending):
    """The end of the text is damaged: a look does not unpack it."""
    text = GAME + b"".join(b"%d. e4 e5\n" % n for n in range(400_000))
    drop, data = tmp_path / f"a.{ending}", zstandard.ZstdCompressor(write_checksum=True)
    packed = bytearray(zipped(("a.pgn", text)) if ending == "zip" else data.compress(text))
    packed[-200] ^= 1 if ending == "zip" else 255
    if ending == "zip":
        packed[len(packed) // 2] ^= 255
    drop.write_bytes(packed)
    assert refusal(account, drop) is None
    with pytest.raises(BadInput, match=r"broken (ZIP|zstd).*download it again"):
        take_drop(drop, tmp_path / "out", MONTH)


def test_a_month_whose_drop_is_refused_is_not_built(tmp_path, monkeypatch):
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


NAMED = '[White "Müller"]\n\n1. e4 *\n'


def collection(root: Path, files: dict[str, bytes], name: str = "mine") -> Path:
    drop = root / name
    for path, data in files.items():
        (drop / path).parent.mkdir(parents=True, exist_ok=True)
        (drop / path).write_bytes(data)
    return drop


def test_every_packing_is_read_and_every_other_file_is_named(tmp_path):
    files = {
        "a.PGN": GAME + b"1",
        "b.pgn.gz": gzip.compress(GAME) + gzip.compress(b"2"),
        "c/d.pgn.bz2": bz2.compress(GAME + b"3"),
        "e.pgn.zst": ZST.compress(GAME + b"4"),
        "f.zip": zipped(("anything.pgn", GAME + b"5"), ("readme.txt", b"r")),
        "readme.md": b"about",
        "__MACOSX/a.pgn": b"mac",
        ".hidden.pgn": b"h",
        "gristmill.toml": b"",
        "SHA256SUMS": b"",
    }
    drop = collection(tmp_path, files)
    found = account(drop)
    assert found.taken == {"": ["a.PGN", "b.pgn.gz", "c/d.pgn.bz2", "e.pgn.zst", "f.zip"]}
    assert found.left_out == {"readme.md": "no PGN", "__MACOSX/a.pgn": "no PGN"}
    assert found.notes == []
    summary = take_collection(drop, tmp_path / "out", CollectionConfig())
    texts = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.pgn")}
    names = ("a", "b", "c__d", "e", "f")
    assert texts == {f"{name}.pgn": GAME + b"%d" % n for n, name in enumerate(names, 1)}
    assert (summary.pgns, summary.pgn_bytes) == (5, 5 * len(GAME) + 5)
    assert summary.archive_bytes == sum(len(files[name]) for name in found.taken[""])
    recorded = json.loads((tmp_path / "out/source.json").read_bytes())
    assert recorded["collection"] == "mine" and recorded["encoding"] == "utf-8"
    assert [each["origin"] for each in recorded["files"]] == found.taken[""]
    assert list(archive_laws(Subject(tmp_path / "out"))) == []
    (tmp_path / "out/b.pgn").write_bytes(GAME)
    assert [each.law for each in archive_laws(Subject(tmp_path / "out"))] == ["pgn_as_recorded"]
    (tmp_path / "out/b.pgn").unlink()
    assert [each.law for each in archive_laws(Subject(tmp_path / "out"))] == ["one_pgn"]


COLLECTIONS_REFUSED = {
    "no file": ({"notes.txt": b"n"}, r"mine: has no file that ends in .pgn, .pgn.gz, "),
    "a blank PGN": ({"a.pgn": b" \n\n", "b.pgn": GAME}, r"a.pgn: .*no tag and no move is in it"),
    "a packed blank PGN": ({"a.pgn.gz": gzip.compress(b"\n")}, r"a.pgn.gz: .*no tag and no move"),
    "an empty PGN": ({"a.pgn.bz2": bz2.compress(b"")}, r"a.pgn.bz2: holds an empty PGN"),
    "another kind": ({"a.pgn.gz": GAME}, r"a.pgn.gz: is broken gzip, or none"),
    "a cut file": ({"a.pgn.gz": gzip.compress(GAME)[:-9]}, r"a.pgn.gz: ends in the middle"),
    "a tar": ({"a.pgn": GAME, "b.tar.gz": b"\x1f\x8b"}, r"b.tar.gz: is packed .* `tar -xf`"),
    "7z": ({"a.pgn": GAME, "b.7z": b"7z"}, r"b.7z: is packed in a form .* `7z x`"),
    "two members": (
        {"a.zip": zipped(("a.pgn", GAME), ("b.pgn", GAME))},
        r"a.zip: has 2 PGN files .*pack one PGN",
    ),
    "one name twice": (
        {"a/b.pgn": GAME, "a__B.zip": zipped(("x.pgn", GAME))},
        r"a__B.zip: is a__B.pgn when it is unpacked, as a/b.pgn is: remove it if its games are",
    ),
    "a long name": ({f"{'x' * 100}/{'y' * 100}.pgn": GAME}, r"name that is too long"),
    "a name with an escape": ({"a\x1b[1m.pgn": GAME}, r"not printable: rename"),
    "a bomb": ({"a.pgn.gz": gzip.compress(b"1. e4\n" + b" " * (2 << 20))}, r"more than 1048576"),
}


@pytest.mark.parametrize("what", COLLECTIONS_REFUSED)
def test_a_refusal_names_the_file_and_the_cure(tmp_path, what):
    files, rule = COLLECTIONS_REFUSED[what]
    drop = collection(tmp_path, files)
    with pytest.raises(BadInput, match=rule):
        account(drop)
        take_collection(drop, tmp_path / "out", CollectionConfig())


@pytest.mark.parametrize("name", ["2024-01", "elite_2024-01"])
def test_a_folder_with_the_name_of_a_month_is_no_collection(tmp_path, name):
    with pytest.raises(BadInput, match="is the name of a month: name the folder after its games"):
        account(collection(tmp_path, {"a.pgn": GAME}, name))
    assert account(collection(tmp_path, {"a.pgn": GAME}, f"{name}_more")).taken


def test_links_are_refused_or_followed_as_the_rule_says(tmp_path):
    drop = collection(tmp_path, {"a.pgn": GAME})
    (tmp_path / "x").write_bytes(GAME)
    (drop / "b.pgn").symlink_to(tmp_path / "x")
    with pytest.raises(BadInput, match="is a link"):
        account(drop)
    links = LinkRule(follow=True, roots=(str(tmp_path),))
    assert account(drop, links).taken == {"": ["a.pgn", "b.pgn"]}
    take_collection(drop, tmp_path / "out", CollectionConfig(), links=links)
    assert (tmp_path / "out/b.pgn").read_bytes() == GAME


@pytest.mark.parametrize(
    ("encoding", "letters", "size"),
    [("latin-1", "ü", 10), ("latin-1", "\x8aü", 200_000), ("cp1252", "Š€\ufffd", 200_000)],
)
def test_latin_1_is_rewritten_where_it_is_said_else_noted(tmp_path, encoding, letters, size):
    text = NAMED + "".join(f"\n{{{letters} {n}}}" for n in range(size))
    # A byte without a letter in cp1252.
    octets = b"\x81".join(part.encode(encoding) for part in text.split("\ufffd"))
    drop = collection(tmp_path, {"a.pgn.gz": gzip.compress(octets, 1)})
    assert 'encoding = "latin-1"' in account(drop).notes[0]
    take_collection(drop, tmp_path / "out", CollectionConfig(encoding=encoding))
    pgn = tmp_path / "out/a.pgn"
    assert pgn.read_text("utf-8") == text
    for place in (0, 11, 12, len(text) // 2, len(text)):
        assert raw_offset(pgn, len(text[:place].encode())) == place
    take_collection(drop, tmp_path / "raw", CollectionConfig())
    assert (tmp_path / "raw/a.pgn").read_bytes() == octets
    utf8 = collection(tmp_path, {"a.pgn": ("ä" * (1 << 15) + NAMED).encode()}, "utf8")
    assert account(utf8).notes == []


def test_tags_that_are_not_read_are_noted_of_a_collection_and_of_a_month(tmp_path):
    game = b"[White Ann]\n\n1. e4 *\n"
    said = "has tags that are not read, such as '[White Ann]': write each on a line of its own"
    found = account(collection(tmp_path, {"a.pgn": GAME, "b.pgn": game}))
    assert [note.startswith(f"b.pgn {said}") for note in found.notes] == [True]
    month = tmp_path / "elite_2024-01.pgn"
    month.write_bytes(game)
    assert account(month).notes[0].startswith(f"{month.name} {said}")


def test_names_of_files_are_known_and_games_left_out_are_short_lines_of_blanks():
    assert (folder_of("2024-01"), folder_of("twic")) == ("elite_2024-01", "twic")
    assert (pgn_of("a.PGN.zst"), pgn_of("a/b.zip")) == ("a.pgn", "a__b.pgn")
    text, cuts = b"1. e4 *\n" * 30_000, [(8, 80_000), (80_000, 80_008), (160_000, 240_000)]
    made = {
        b"".join(drops._blanked(text[at : at + size], at, cuts) for at in range(0, len(text), size))
        for size in (4096, 1 << 16, 99_999, len(text))
    }
    (blanked,) = made
    assert len(blanked) == len(text)
    assert blanked[:8] + blanked[80_008:160_000] == text[:8] + text[80_008:160_000]
    for low, high in cuts:
        assert not blanked[low:high].strip() and blanked[high - 1 : high] == b"\n"
        assert max(map(len, blanked[low:high].splitlines())) < 1 << 16


METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}


@pytest.mark.parametrize("kind", [*METHODS, "zst"])
def test_damaged_archives_are_bad_input_or_whole(tmp_path, pgn, kind):
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
def test_a_full_disk_is_not_blamed_on_the_archive(tmp_path, pgn, monkeypatch, code):
    (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", pgn)))

    def full(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("gristmill.chess.raw.drops._write", full)
    with pytest.raises(OSError, match=re.escape(os.strerror(code))) as caught:
        unpack_pgn(tmp_path / "a.zip", tmp_path / "x")
    assert caught.value.errno == code


@pytest.mark.parametrize("name", ["a.zip", "a.pgn", "a.pgn.zst"])
def test_a_link_pipe_or_device_is_refused_by_name(tmp_path, name):
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


def test_a_link_is_followed_where_a_person_allows_it(tmp_path, pgn):
    (tmp_path / "store").mkdir()
    (tmp_path / "inbox").mkdir()
    (tmp_path / "store" / "blob").write_bytes(zipped(("a.pgn", pgn)))
    drop = tmp_path / "inbox" / "a.zip"
    drop.symlink_to(tmp_path / "store" / "blob")
    assert "is a link" in str(refusal(account, drop))
    links = LinkRule(follow=True, roots=(str(tmp_path / "store"),))
    assert refusal(account, drop, links) is None
    summary = take_drop(drop, tmp_path / "out", MONTH, links=links)
    packed = (tmp_path / "store" / "blob").read_bytes()
    assert summary.archive_bytes == len(packed)
    assert summary.archive_sha256 == hashlib.sha256(packed).hexdigest()
    assert (tmp_path / "out" / "lichess_elite_2024-01.pgn").read_bytes() == pgn


def test_a_long_line_is_refused_in_every_kind_of_drop_and_a_small_text_may_have_any_ratio(tmp_path):
    text = GAME + b"{" + os.urandom(600_000).hex().encode() + b"}\n"
    drops = {"a.zip": zipped(("a.pgn", text)), "a.pgn": text, "a.pgn.zst": ZST.compress(text)}
    for name, data in drops.items():
        (tmp_path / name).write_bytes(data)
        rule = rf"{name}: the line at byte {len(GAME)} has more than 1048576 bytes"
        with pytest.raises(BadInput, match=rule):
            take_drop(tmp_path / name, tmp_path / f"{name}_out", MONTH)
    for size, refused in ((1 << 20, False), ((1 << 20) + 1, True)):
        (tmp_path / "a.zip").write_bytes(zipped(("a.pgn", GAME.ljust(size, b"\n"))))
        if refused:
            with pytest.raises(BadInput, match="looks like a ZIP bomb"):
                unpack_pgn(tmp_path / "a.zip", tmp_path / "no")
        else:
            assert unpack_pgn(tmp_path / "a.zip", tmp_path / "x").bytes == size


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
    return ZST.compress(b"") * 100_001


BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "directory": ("a.zip", _directory_bomb, "directory of more than"),
    "bzip2": ("a.zip", lambda: _packed(zipfile.ZIP_BZIP2), "ZIP bomb"),
    "deflated": ("a.zip", lambda: _packed(zipfile.ZIP_DEFLATED), "ZIP bomb"),
    "dictionary": ("a.zip", _lzma_dictionary, "memory"),
    "frames": ("a.pgn.zst", _zstd_frames, "more than 100000 frames"),
    "line": ("a.pgn", lambda: GAME + b"x" * 15_000_000, "line at byte"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_less_than_a_gigabyte(tmp_path, name):
    drop, data, rule = BOMBS[name]
    (tmp_path / drop).write_bytes(data())
    call = "take_drop(file, file.parent / 'out', '2024-01')"
    said = said_within_a_gigabyte(call, tmp_path / drop)
    assert f"{drop}: " in said and rule in said


def test_limits_hold_whatever_the_directory_says(tmp_path):
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


@pytest.mark.parametrize("ending", ["pgn", "zip", "pgn.zst"])
def test_the_tags_of_the_first_games_are_kept_in_headers(tmp_path, ending):
    text = b'[Event "A"]\n[Mood "so"]\n\n1. e4 *\n\n[Event "B"]\n[Odd "\xff"]\n\n1. d4 *\n'
    drop = tmp_path / f"2024-01.{ending}"
    packed = {"pgn": lambda: text, "zip": lambda: zipped(("a.pgn", text))}
    drop.write_bytes(packed.get(ending, lambda: ZST.compress(text))())
    found = drops.column_states(drop, REFUSE_LINKS, Account({"": [drop.name]}), {})
    assert [(each.name, each.state, each.what) for each in found] == [
        (name, "read", "headers") for name in ("Event", "Mood", "Odd")
    ]


def test_the_tags_of_a_collection_are_those_of_its_first_file(tmp_path):
    (tmp_path / "a.pgn").write_bytes(GAME)
    account = Account({"": ["a.pgn", "gone.pgn"]})
    assert drops.column_states(tmp_path, REFUSE_LINKS, account, {})
    assert drops.column_states(tmp_path, REFUSE_LINKS, Account(), {}) == []
