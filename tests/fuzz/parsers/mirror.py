"""The parsers of what lies in a mirror, which others write to, and in the cache of a reader."""

from __future__ import annotations

from tests.fuzz.parser import JSON, Parser, file

_MIRROR = "gristmill.mirror"
_PLACE = ("family/tiny", "a")


def keys(data: bytes) -> None:
    """The keys of a mirror, one a line: a key that names a version is made from it again."""
    from gristmill.mirror.layout import Place

    for line in data.split(b"\n"):
        key = line.decode("utf-8", "replace")
        if (found := Place.of(key)) is not None:
            place, number = found
            assert place.version(number) == key
            assert ".." not in key and not key.startswith("/") and key.isascii()


def version(data: bytes) -> None:
    """The file of a version, of a partition and of a whole artifact."""
    from gristmill.mirror.layout import Place, parsed_version
    from gristmill.provenance.inventory import Entry

    whole = data[:1] == b"1"
    place = Place(Entry(_PLACE[0], None if whole else _PLACE[1]))
    read = parsed_version(data[1:], place, 1)
    assert parsed_version(read.to_bytes(), place, 1) == read


def manifest(data: bytes) -> None:
    """The manifest of a version: no path and no object that it names is outside."""
    from gristmill.mirror.layout import Place, Version, parsed_manifest, sha256_of
    from gristmill.provenance.inventory import Entry

    named = {"artifact": _PLACE[0], "asset": "family/tiny", "partition": None, "record": ""}
    made = {"data_version": "", "fingerprint": "", "writer": "", "pushed": "", "outer": None}
    sizes = {"number": 1, "total_bytes": 0, "files": 0}
    pointer = Version(manifest=sha256_of(data), **named, **made, **sizes)  # type: ignore[arg-type]
    read = parsed_manifest(data, pointer, Place(Entry(_PLACE[0])))
    for listed in read.files:
        assert not listed.path.startswith("/") and ".." not in listed.path.split("/")
        for start, size, sha256 in listed.sizes(read.part_bytes):
            assert start >= 0 and 0 < size <= read.part_bytes
            assert len(sha256) == 64 and set(sha256) <= set("0123456789abcdef")


def noted(data: bytes) -> None:
    """The note of a cache, which says what an address means: it is read, or is none."""
    from gristmill.mirror.cache import _noted

    for entry, number in _noted(file("note.json", data)) or ():
        assert number > 0 and entry.title


PARSERS = (
    Parser(
        "mirror_keys",
        keys,
        (f"{_MIRROR}.layout", "gristmill.keys"),
        words=(b"artifacts/", b"/@", b"/00000001.json", b"..", b"\n", b"drops", b"\xc3\xa9"),
        most_bytes=300,
    ),
    Parser(
        "mirror_version",
        version,
        (f"{_MIRROR}.layout",),
        words=(*JSON, b'"format":1', b'"outer":', b'"partition":"a"', b'"number":1'),
    ),
    Parser(
        "mirror_manifest",
        manifest,
        (f"{_MIRROR}.layout", "gristmill.provenance.record_file"),
        words=(*JSON, b'"parts":[', b'"bytes":', b'"path":"', b'"part_bytes":', b"../"),
    ),
    Parser("mirror_note", noted, (f"{_MIRROR}.cache",), words=(*JSON, b"1]")),
)
