"""Parsers that every family uses: records, settings, keys, inboxes, Markdown."""

import dataclasses
import json
from functools import cache
from typing import Any

from tests.fuzz.parser import JSON, Parsers, file, folder, scratch, split

PARSERS = Parsers()
_PROVENANCE = "gristmill.provenance"
_TOML = (
    *(b"[macroxue.pack]\n", b"[macroxue.pool]\n", b"[synth.harmony]\n", b"[chess.month]\n"),
    *(b"[inbox]\n", b"workers = ", b"inf", b"'''", b"{a=1}", b"1979-05-27", b"\\u0000", b"0x"),
)


def _record_words() -> tuple[bytes, ...]:
    from gristmill.provenance.record import Input, Output, Record

    names = {*Record.model_fields, *Input.model_fields, *Output.model_fields}
    return tuple(json.dumps(name).encode() for name in sorted(names))


@PARSERS.add("record", f"{_PROVENANCE}.record", words=(*JSON, *_record_words()))
def record(data: bytes) -> None:
    """A provenance record."""
    from gristmill.provenance.record import read_record

    read = read_record(file("provenance.json", data))
    read.computed_digest()
    again = read_record(file("provenance.json", read.to_bytes()))
    assert again.to_bytes() == read.to_bytes()


@PARSERS.add(
    "record_inputs",
    f"{_PROVENANCE}.record",
    f"{_PROVENANCE}.raw_inputs",
    words=(*JSON, *_record_words(), b"\xff\xfe"),
)
def record_inputs(data: bytes) -> None:
    """A record with its list of inputs: what a build asks it about raw files."""
    from gristmill.provenance.raw_inputs import known_hashes

    text, inputs = split(data, 2)
    file("listed/inputs.jsonl", inputs)
    known_hashes(file("listed/provenance.json", text))


@PARSERS.add(
    "verification",
    f"{_PROVENANCE}.record",
    f"{_PROVENANCE}.verification",
    f"{_PROVENANCE}.find_artifacts",
    words=(*JSON, *_record_words(), b"\xff\xfe", b"macroxue/pack", b"rows.bin"),
)
def verification(data: bytes) -> None:
    """A folder with any record: verification ends with what it found."""
    from gristmill.provenance.verification import verify

    text, inputs = split(data, 2)
    root = scratch() / "root"
    file("root/x/y/provenance.json", text)
    file("root/x/y/inputs.jsonl", inputs)
    file("root/x/y/rows.bin", b"rows")
    verify(root)


@PARSERS.add(
    "settings",
    "resources",
    "assets.choices",
    "gristmill.settings.tables",
    "gristmill.settings.fields",
    "gristmill.untrusted.toml",
    "tomllib._parser",
    words=_TOML,
)
def settings(data: bytes) -> None:
    """gristmill.toml: the tables that it names, and the configs that they make."""
    from gristmill.families import tables
    from gristmill.settings.tables import resolve

    file("lake/gristmill.toml", data)
    lake = _lake(str(scratch() / "lake"))
    for name, table in tables().items():
        if name.rpartition("/")[2].encode() in data:
            read = lake.settings(name)
            if dataclasses.is_dataclass(table.config):
                resolve(table.config, read, {})


@cache
def _lake(root: str) -> Any:
    from resources import Lake

    return Lake(data_root=root)


@PARSERS.add("keys", "gristmill.keys", words=(b"..", b"/", b"-", b"\xc3\xa9"))
def keys(data: bytes) -> None:
    """A key that someone typed."""
    from gristmill.keys import BadKey, checked

    text = data.decode("utf-8", "replace")
    try:
        checked(text)
    except BadKey:
        return
    assert "/" not in text and ".." not in text and text.isascii() and text


@PARSERS.add(
    "inbox_names",
    "gristmill.inbox.readiness",
    "gristmill.inbox.listing",
    most_bytes=300,
    words=(b".toml", b".partial", b"\n", b"\xff", b".zip"),
)
def inbox_names(data: bytes) -> None:
    """The names of entries in an inbox, one a line."""
    from gristmill.inbox import FOLDER, TOML, State, look, present_drops
    from tests.toy_inbox import asked

    with folder("inbox") as place:
        for line in data.split(b"\n")[:8]:
            name = line.replace(b"\0", b"").replace(b"/", b"")[:200]
            if name in (b"", b".", b".."):
                continue
            import os

            target = bytes(place) + b"/" + name
            if len(name) % 2 and not os.path.exists(target):  # noqa: PTH110
                os.mkdir(target)  # noqa: PTH102
            elif not os.path.exists(target):  # noqa: PTH110
                with open(target, "wb"):  # noqa: PTH123 - a name need not be UTF-8
                    pass
        for shape in (FOLDER, TOML):
            state = State()
            look(place, state, asked(), 3, 5.0, shape)
            look(place, State.read(state.write()), asked(), 3, 5.0, shape)
            present_drops(place, asked(), shape)


@PARSERS.add("part_ledger", "gristmill.run.parts", words=(*JSON, b'"sha256":', b'"summary":'))
def part_ledger(data: bytes) -> None:
    """The ledger entry of a finished part."""
    from gristmill.run.parts import PartStore

    file("parts/x.json", data)
    file("parts/x.part", b"part")
    PartStore(scratch() / "parts").finished("x")


@PARSERS.add(
    "lock_holder", "gristmill.run.locks", words=(*JSON, b'"process":', b'"host":', b'"since":')
)
def lock_holder(data: bytes) -> None:
    """What a process that holds a lock wrote into the lock file."""
    import fcntl
    import os

    from gristmill.run.locks import is_locked

    path = file("lock", data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert is_locked(path)
    finally:
        os.close(descriptor)


@PARSERS.add(
    "markdown",
    "gristmill.markdown",
    "gristmill.printable",
    words=(b"](", b"<a", b"`", b"\\", b"|", b"www.", b"://", b"\xe2\x80\xae", b"@", b"\n"),
)
def markdown(data: bytes) -> None:
    """Untrusted text: it stays on its line and makes neither HTML, link nor image."""
    from gristmill.markdown import bullets, code, escape
    from gristmill.printable import printable

    text = data.decode("utf-8", "surrogateescape")
    for made in (escape(text), code(text), escape(text, 20)):
        assert "\n" not in made and "\r" not in made
        made.encode()
        inside = made[1:-1] if made.startswith("`") else made
        if not made.startswith("`"):
            assert "<" not in inside and "](" not in inside.replace("\\]", "")
    assert "\n" not in bullets([text])
    printable(text).encode()
