"""Parsers of what no family owns: records, settings, keys, inboxes, Markdown, notes, mirrors."""

import dataclasses
import json
import os
import warnings
from functools import cache
from typing import Any
from urllib.parse import urlencode

from gristmill.contract import GristmillError
from tests.fuzz.parser import (
    HUNDRED_THOUSAND,
    JSON,
    TEN_THOUSAND,
    Parsers,
    file,
    folder,
    put_names,
    scratch,
    split,
)

PARSERS = Parsers()
_MIRROR = "gristmill.mirror"
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
        put_names(place, data.split(b"\n")[:8], folders=True)
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


_LOADER_STEPS = 12


def _loader() -> Any:
    from gristmill.loading import Loader, Mixture, Plan
    from tests.loading.numbered import Numbered

    sources = tuple(Numbered(f"s{n}", [0, 10], "1") for n in range(2))
    return Loader(Plan(Mixture(sources, (30, 30)), seed=7), 4, form="numpy")


@cache
def _loader_run() -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The state before each step of a run, and the samples of the step."""
    loader, states, given = _loader(), [], []
    states.append(loader.state_dict())
    for batch, _ in zip(loader, range(_LOADER_STEPS), strict=False):
        given.append(batch["value"].tolist())
        states.append(loader.state_dict())
    return states, given


@PARSERS.add(
    "loader_state",
    "gristmill.loading.state",
    covers=("gristmill.loading.plan",),
    inputs=HUNDRED_THOUSAND,
    words=(*JSON, b'"sha256": ', b'"segments": [[0, [30, 30]]]', b'"batches": [[0, 0, 4]]'),
)
def loader_state(data: bytes) -> None:
    """A state with a digest is refused, or is one that the run wrote, and gives its samples."""
    try:
        read = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise GristmillError(str(error)) from error
    states, given = _loader_run()
    loader = _loader()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader.load_state_dict(read)
    if isinstance(read, dict) and "sha256" in read:
        at = states.index(read)
        assert next(iter(loader))["value"].tolist() == given[at]


_ASKED = ("q", "column", "rule", "value", "sort", "token", "start", "n", "tokens", "table")
_BROWSED = [
    {"game_id": "a", "n": 1, "moves": "e2e4", "x": None},
    {"game_id": "ſß\u0301(", "n": 1.5, "moves": "", "x": [1]},
    {"game_id": "\\d+", "n": -(1 << 62), "moves": "é" * 40, "x": {"y": "z"}},
]


@cache
def _pages() -> Any:
    from gristmill.browse.web.app import _Pages
    from gristmill.browse.web.shelf import Shelf

    text = "\n".join(json.dumps(row, ensure_ascii=at > 1) for at, row in enumerate(_BROWSED))
    return _Pages(Shelf(file("browse/valid_games.jsonl", text.encode()).parent), has_dagster=False)


@PARSERS.add(
    "browse_asked",
    "gristmill.browse.web.asked",
    "gristmill.browse.table",
    "gristmill.browse.source",
    covers=("gristmill.browse.lines",),
    inputs=TEN_THOUSAND,
    most_bytes=4000,
    words=(
        *(b"\xff\xfe", b"game_id", b"contains", b"moves", b"from", b"to", b"is", b"("),
        *(b"1e999",),
    ),
)
def asked(data: bytes) -> None:
    """An address gets a page or a sentence, whatever its parameters are."""
    from starlette.requests import Request

    pages = _pages()
    texts = [part.decode("utf-8", "replace") for part in split(data, len(_ASKED))]
    given = [(name, text) for name, text in zip(_ASKED, texts, strict=True) if text]
    if {"column", "rule", "value"} & {name for name, _ in given}:
        given = [*dict.fromkeys([*given, *((n, "") for n in _ASKED[1:4] if n not in dict(given))])]
    scope = {"type": "http", "query_string": urlencode(given).encode(), "path_params": {"path": ""}}
    for page in (pages.rows, pages.row):
        answer = pages.answer(page, Request(scope))
        assert answer.status_code in (200, 400, 404) and b"<" in answer.body


@PARSERS.add(
    "mirror_keys",
    f"{_MIRROR}.versions",
    "gristmill.keys",
    most_bytes=600,
    words=(b"artifacts/", b"/@", b"/00000001.json", b"..", b"\n", b"drops", b"\xc3\xa9"),
)
def mirror_keys(data: bytes) -> None:
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
def mirror_record(data: bytes) -> None:
    """The record of a version: no path and no object that it names is outside."""
    from gristmill.mirror.versions import Version, files_of, parsed_record, wrong_record
    from gristmill.provenance.inventory import Entry

    entry = Entry("family/tiny")
    read = parsed_record(data, "record").sealed()
    version = Version.after(None, entry, read, data)
    if wrong_record(read, entry) is None:
        for each in files_of(read):
            assert not each.path.startswith("/") and ".." not in each.path.split("/")
            key = version.file(each)
            assert key.startswith(("objects/", "records/")) and ".." not in key and key.isascii()
