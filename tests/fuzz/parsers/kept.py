"""The parsers of what Gristmill notes for itself, which a crash or a hand may have changed."""

from tests.fuzz.parser import JSON, Parsers, file

PARSERS = Parsers()


@PARSERS.add("stamps", "gristmill.provenance.raw_inputs", words=JSON)
def stamps(data: bytes) -> None:
    """The stamps of a shared folder's files; notes that cannot be read are none."""
    from gristmill.publish import stamps as notes

    path = notes._file(file("stamped/folder/x", b"").parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for one in notes.read(path.parents[2] / "folder").values():
        assert len(one) == 5 and all(type(number) is int for number in one)


@PARSERS.add(
    "cursor",
    "gristmill.inbox.readiness",
    words=(*JSON, b'"waiting":{', b'"settled":{', b'"refused":{', b'"asked":{', b'"built":'),
)
def cursor(data: bytes) -> None:
    """The cursor of a sensor, which a person may type: it is read, or counts as none."""
    from gristmill.inbox.readiness import State

    written = State.read(data.decode("utf-8", "replace")).write()
    assert State.read(written).write() == written
