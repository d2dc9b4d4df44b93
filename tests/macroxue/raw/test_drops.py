"""Finding runs, their order, and gzip files (docs/formats/macroxue.md#raw-drop)."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.format.jsonl import read_lines
from gristmill.macroxue.raw import drops
from gristmill.untrusted.files import LinkRule
from tests.macroxue.lines import step, write_run

ORDER = ["B/x", "a/X", "a/x-1", "a/x", "a/x1", "a/x10", "a/y", "a-b/x", "a.d/x", "z/x", "é/x"]


def names(drop: drops.Drop) -> list[str]:
    return [run.meta_name.removesuffix(".gz").removesuffix(".meta.json") for run in drop.runs]


def test_order_is_by_component_as_bytes(tmp_path: Path) -> None:
    for i, name in enumerate(reversed(ORDER)):
        place = tmp_path / name
        write_run(place.parent, place.name, [step()], zipped_meta=i % 3 == 0)
    assert names(drops.find_runs(tmp_path)) == ORDER
    assert sorted(ORDER) != ORDER


def test_partners_and_names(tmp_path: Path) -> None:
    root = tmp_path / "drop"
    write_run(root, "kept", [step()])
    write_run(root, "alone", [step()])
    (root / "alone.jsonl.gz").rename(root / "alone.jsonl")
    write_run(root, "Upper", [step()])
    (root / "Upper.meta.json").rename(root / "Upper.META.json")
    (root / "orphan.jsonl.gz").write_bytes(b"never looked at")
    (root / "folder.meta.json").mkdir()
    for raw in (b"/bad\xff.meta.json", b"/also\xff.txt", b"/in\xff/x.meta.json"):
        path = Path(os.fsdecode(os.fsencode(root) + raw))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
    drop = drops.find_runs(root)
    assert names(drop) == ["kept"]
    assert list(drop.notes) == [
        {"drop": "drop", "kind": "unpaired_meta", "path": "alone.meta.json"},
        {"drop": "drop", "kind": "name_not_utf8", "path": "bad\\xff.meta.json"},
        {"drop": "drop", "kind": "name_not_utf8", "path": "in\\xff"},
    ]


@pytest.mark.parametrize("name", ["far.meta.json", "far.jsonl.gz", "folder", "notes.txt"])
def test_a_link_in_a_drop_is_refused_and_named(tmp_path: Path, name: str) -> None:
    root, other = tmp_path / "drop", tmp_path / "elsewhere"
    write_run(root, "kept", [step()])
    write_run(other, "far", [step()])
    (other / "folder").mkdir()
    (root / name).symlink_to(other / name)
    with pytest.raises(BadInput, match="is a link") as raised:
        drops.find_runs(root)
    assert raised.value.file == str(root / name)
    with pytest.raises(BadInput, match="is a link"):
        pack(root, tmp_path / "out", PackConfig())
    assert str(root / name) in str(drops.refusal(root))


def test_a_drop_of_links_into_a_stated_root_gives_the_rows_of_the_files(tmp_path: Path) -> None:
    root, store = tmp_path / "drop", tmp_path / "store" / "drop"
    write_run(store, "g", [step(), step()])
    root.mkdir()
    for file in store.iterdir():
        (root / file.name).symlink_to(file)
    links = LinkRule(True, (str(tmp_path / "store"),))
    assert len(drops.raw_files(root, links)) == 2
    assert drops.refusal(root, links) is None
    assert pack(root, tmp_path / "linked", PackConfig(), links=links).rows == 2
    pack(store, tmp_path / "copied", PackConfig())
    shards = [tmp_path / side / "steps.npy" for side in ("linked", "copied")]
    first, second = (sorted(shard.parent.glob("*.npy")) for shard in shards)
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert first


def test_a_file_that_becomes_a_link_after_the_listing_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "drop", "g", [step()])
    (run,) = drops.find_runs(tmp_path / "drop").runs
    run.steps.rename(tmp_path / "away.gz")
    run.steps.symlink_to(tmp_path / "away.gz")
    with pytest.raises(BadInput, match="is a link"):
        list(drops.gunzip(run.steps, drops.RawDigest(), 100, run.folder, run.links))
    run.meta.unlink()
    run.meta.symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="is a link"):
        drops.read_meta(run.meta, drops.RawDigest(), run.folder, run.links)


def test_much_more_text_than_the_size_explains_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    size = 0
    with pytest.raises(BadInput, match=r"unpacks to more than 200 times its size"):
        for text in drops.gunzip(path, drops.RawDigest(), 1 << 19):
            size += len(text)
    assert size == 16 << 20
    path.write_bytes(gzip.compress(bytes(16 << 20)))
    assert len(unzipped(path)[0]) == 16 << 20


def test_both_spellings_of_a_meta_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path, "g", [step()])
    write_run(tmp_path, "g", [step()], zipped_meta=True)
    with pytest.raises(BadInput, match=r"g\.meta\.json\.gz: this game also has"):
        drops.find_runs(tmp_path)


def test_several_roots_keep_their_order_and_must_not_nest(tmp_path: Path) -> None:
    write_run(tmp_path / "b", "g", [step()])
    write_run(tmp_path / "a", "g", [step()])
    drop = drops.find_runs([tmp_path / "b", tmp_path / "a"])
    assert drop.names == ("b", "a")
    assert [run.drop for run in drop.runs] == ["b", "a"]
    for roots in ([tmp_path, tmp_path / "a"], [tmp_path / "a", tmp_path / "a"]):
        with pytest.raises(BadInput, match="twice"):
            drops.find_runs(roots)
    with pytest.raises(BadInput, match="no such folder"):
        drops.find_runs(tmp_path / "absent")


def test_the_name_of_a_root_may_be_any_bytes(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    write_run(root, "g", [step()])
    write_run(root, "alone", [step()])
    (root / "alone.jsonl.gz").unlink()
    for given, out in ((root, tmp_path / "p"), (str(root), str(tmp_path / "q"))):
        assert pack(given, out, PackConfig()).rows == 1  # type: ignore[arg-type]
        (line,) = read_lines(Path(out) / "trace.jsonl")
        assert line["drop"] == "d\\xff"


def unzipped(path: Path, most: int = 1 << 18) -> tuple[bytes, drops.RawDigest]:
    digest = drops.RawDigest()
    pieces = list(drops.gunzip(path, digest, most))
    assert all(0 < len(piece) <= most for piece in pieces)
    return b"".join(pieces), digest


@pytest.mark.parametrize("read_bytes", [1, 7, 1 << 18])
def test_every_member_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(drops, "_READ_BYTES", read_bytes)
    monkeypatch.setattr(drops, "_HEADER_BYTES", 1)
    path = tmp_path / "x.jsonl.gz"
    text = [os.urandom(100), b"", b"\n" * 5000]
    path.write_bytes(b"".join(map(gzip.compress, text)))
    whole, digest = unzipped(path, 700)
    assert whole == b"".join(text)
    assert digest.size == path.stat().st_size


def member(text: bytes, fields: bool) -> bytes:
    """A gzip member; with `fields` its header has all that RFC 1952 allows."""
    head = b"\x1f\x8b\x08" + bytes([0b11110 if fields else 0]) + bytes(5) + b"\xff"
    if fields:
        head += (6).to_bytes(2, "little") + b"BC\x02\x00ab" + b"name\0" + b"comment\0"
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
    tail = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    return head + squeeze.compress(text) + squeeze.flush() + tail


@pytest.mark.parametrize("before", range(1, 34, 4))
def test_a_header_may_come_in_two_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    first, second = member(b"one\n" * 9, False), member(b"two\n" * 9, True)
    monkeypatch.setattr(drops, "_READ_BYTES", len(first) + before)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(first + second)
    assert gzip.decompress(path.read_bytes()) == b"one\n" * 9 + b"two\n" * 9
    assert unzipped(path)[0] == b"one\n" * 9 + b"two\n" * 9


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda data: b"", "0 bytes"),
        (lambda data: data[:-1], "cut short"),
        (lambda data: data[:-8], "cut short"),
        (lambda data: data[:5], "cut short"),
        (lambda data: data + data[:12], "cut short"),
        (lambda data: data[:-8] + b"\0" * 4 + data[-4:], "checksum"),
        (lambda data: data[:-4] + b"\0" * 4, "checksum"),
        (lambda data: data + b"garbage", "behind gzip member 1"),
        (lambda data: data + b"\0" * 64, "behind gzip member 1"),
        (lambda data: b'{"seed":1}', "gzip"),
    ],
)
def test_broken_gzip_is_named(tmp_path: Path, change, rule: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(change(gzip.compress(b"line\n" * 1000)))
    with pytest.raises(BadInput, match=rule) as caught:
        unzipped(path)
    assert caught.value.file == str(path)


def test_meta_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.meta.json.gz"
    path.write_bytes(gzip.compress(b" " * (2 << 20)))
    with pytest.raises(BadInput, match="more than 1048576 bytes"):
        drops.read_meta(path, drops.RawDigest())


def test_a_meta_object_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.meta.json"
    path.write_bytes(b" " * (1 << 20))
    assert len(drops.read_meta(path, drops.RawDigest())) == 1 << 20
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(BadInput, match="more than 1048576 bytes"):
        drops.read_meta(path, drops.RawDigest())
