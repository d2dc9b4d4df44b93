"""Collections: which files are read, how they are packed and written, and what is refused."""

import bz2
import gzip
import json
from pathlib import Path
from typing import Literal

import pytest
import zstandard

from gristmill.chess.laws.archive import archive_laws
from gristmill.chess.raw.archive_config import CollectionConfig
from gristmill.chess.raw.collections import folder_of, pgn_of, raw_offset, take_collection
from gristmill.chess.raw.drops import account
from gristmill.contract import BadInput
from gristmill.families import Subject
from gristmill.untrusted.files import LinkRule
from tests.chess.raw.archives import GAME, zipped

ZST = zstandard.ZstdCompressor()
NAMED = '[White "Müller"]\n\n1. e4 *\n'


def collection(root: Path, files: dict[str, bytes], name: str = "mine") -> Path:
    """A drop with these files."""
    drop = root / name
    for path, data in files.items():
        (drop / path).parent.mkdir(parents=True, exist_ok=True)
        (drop / path).write_bytes(data)
    return drop


def test_every_packing_is_read_and_every_other_file_is_named(tmp_path: Path) -> None:
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


REFUSED = {
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


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_names_the_file_and_the_cure(tmp_path: Path, what: str) -> None:
    files, rule = REFUSED[what]
    drop = collection(tmp_path, files)
    with pytest.raises(BadInput, match=rule):
        account(drop)
        take_collection(drop, tmp_path / "out", CollectionConfig())


@pytest.mark.parametrize("name", ["2024-01", "elite_2024-01"])
def test_a_folder_with_the_name_of_a_month_is_no_collection(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="is the name of a month: name the folder after its games"):
        account(collection(tmp_path, {"a.pgn": GAME}, name))
    assert account(collection(tmp_path, {"a.pgn": GAME}, f"{name}_more")).taken


def test_links_are_refused_or_followed_as_the_rule_says(tmp_path: Path) -> None:
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
def test_latin_1_is_rewritten_where_it_is_said_and_noted_where_it_is_not(
    tmp_path: Path, encoding: Literal["latin-1", "cp1252"], letters: str, size: int
) -> None:
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


def test_tags_that_are_not_read_are_noted_of_a_collection_and_of_a_month(tmp_path: Path) -> None:
    game = b"[White Ann]\n\n1. e4 *\n"
    said = "has tags that are not read, such as '[White Ann]': write each on a line of its own"
    found = account(collection(tmp_path, {"a.pgn": GAME, "b.pgn": game}))
    assert [note.startswith(f"b.pgn {said}") for note in found.notes] == [True]
    month = tmp_path / "elite_2024-01.pgn"
    month.write_bytes(game)
    assert account(month).notes[0].startswith(f"{month.name} {said}")


def test_names_of_folders_and_files() -> None:
    assert (folder_of("2024-01"), folder_of("twic")) == ("elite_2024-01", "twic")
    assert (pgn_of("a.PGN.zst"), pgn_of("a/b.zip")) == ("a.pgn", "a__b.pgn")
