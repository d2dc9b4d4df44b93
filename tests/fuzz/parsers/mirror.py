"""The parsers of what lies in a mirror, which others write to."""

from tests.fuzz.parser import JSON, Parsers

PARSERS = Parsers()
_MIRROR = "gristmill.mirror"


@PARSERS.add(
    "mirror_keys",
    f"{_MIRROR}.versions",
    "gristmill.keys",
    most_bytes=600,
    words=(b"artifacts/", b"/@", b"/00000001.json", b"..", b"\n", b"drops", b"\xc3\xa9"),
)
def keys(data: bytes) -> None:
    """The keys of a mirror, one a line: a key that names a version is made from it again."""
    from gristmill.mirror.versions import Version

    for line in data.split(b"\n"):
        key = line.decode("utf-8", "replace")
        if (found := Version.of(key)) is not None:
            assert found.key == key
            assert ".." not in key and not key.startswith("/") and key.isascii()


@PARSERS.add(
    "mirror_record",
    f"{_MIRROR}.versions",
    "gristmill.provenance.record",
    words=(*JSON, b'"outputs":[', b'"bytes":', b'"path":"', b'"sha256":', b"../"),
)
def record(data: bytes) -> None:
    """The record of a version: no path and no object that it names is outside."""
    from gristmill.mirror.versions import Version, files_of, parsed_record, wrong_record
    from gristmill.provenance.inventory import Entry

    entry = Entry("family/tiny")
    read = parsed_record(data, "record").sealed()
    version = Version.after(None, entry, read, data)
    if wrong_record(read, entry) is None:
        for file in files_of(read):
            assert not file.path.startswith("/") and ".." not in file.path.split("/")
            key = version.file(file)
            assert key.startswith(("objects/", "records/")) and ".." not in key and key.isascii()
