"""The record: its bytes, digests, and what changes which of them."""

import dataclasses
import itertools
import json
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill import provenance
from gristmill.contract import FileNote, GristmillError, Violation
from gristmill.inbox.listing import ColumnState
from gristmill.provenance import Input, Notes, Output, Record, Tokenizer, record
from gristmill.provenance.record import Accounted
from gristmill.publish import atomic_fs
from gristmill.publish.publish import publish
from gristmill.settings.fields import NO_EFFECT
from tests.publish.tiny import TinyConfig, many_inputs, tiny_build

SHA = "ab" * 32


def _output(path: str, **changes: object) -> Output:
    values = {"path": path, "bytes": 3, "sha256": SHA, "mtime_ns": 1} | changes
    return Output.model_validate(values)


def _record(**changes: object) -> Record:
    values = {
        "artifact": "family/tiny",
        "asset": "test/tiny",
        "partition": "p1",
        "code_version": "1",
        "git_sha": None,
        "config": {"seed": 1, "ratio": 0.1, "ünï": None},
        "config_sha256": SHA,
        "fingerprint": SHA,
        "data_version": SHA,
        "inputs": [Input(path="drops/a", bytes=1, sha256=SHA, mtime_ns=1)],
        "outputs": [_output("a"), _output("b", rows=3, payload=False, content_sha256=SHA)],
        "counts": {"rows": 3, "share": 0.25, "whole": 2.0},
        "libraries": {"numpy": "2.4.6"},
        "seconds": 1.25,
        "peak_memory_bytes": 1 << 40,
        "created": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    }
    return Record.model_validate(values | changes).sealed()


def test_a_record_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "provenance.json"
    record = _record(tokenizer=Tokenizer(name="gpt2", path="tokenizer/gpt2", sha256=SHA))
    path.write_bytes(record.to_bytes())
    found = provenance.read_record(path)
    assert found == record
    assert found.to_bytes() == path.read_bytes()
    assert found.computed_digest() == found.digest != ""
    assert [type(number) for number in found.counts.values()] == [int, float, float]


def test_notes_and_the_account_of_a_drop_come_back_cut_and_counted():
    out = Path("/data/.gristmill/slots/p1/staging")
    found = [Violation("odd", f"{out}/rows {k}", f"in {out}/a") for k in range(25)]
    notes = Notes.of([*found, Violation("late", "b", "x")], out)
    assert notes.counts == {"odd": 25, "late": 1}
    assert notes.named == [Violation("odd", f"rows {k}", "in a") for k in range(20)]
    listed = [str(note) for note in notes.listed()]
    assert listed[20:] == ["further: odd: 5 more notes", "further: late: 1 more notes"]
    record = _record(notes=notes)
    assert Record.model_validate_json(record.to_bytes()) == record
    assert record.computed_digest() != _record().computed_digest()
    states = [
        ColumnState("q", "read", "question"),
        ColumnState("\x1b[1m\udcff", "unread", "as " + "x" * 999, 3, "0 (1), 1 (2)", "keep = []"),
    ]
    account = Accounted.of(["train: 1 file taken", "\x1b"], states)
    record = _record(account=account)
    assert Record.model_validate_json(record.to_bytes()) == record
    assert account.files == ["train: 1 file taken", "\ufffd"]
    assert account.lines[:3] == [*account.files, "read: q (question)"]
    assert account.lines[3].startswith("not read: \ufffd[1m\ufffd (as xxx")
    assert account.lines[4].endswith("if it says which rows are right, keep = []")
    assert len(account.lines[3]) < 1000 and account.columns[1].rows == 3


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_record_of_an_earlier_schema_version_keeps_its_digest(version, tmp_path):
    """The digest of a record that was written before the new fields were there."""
    fields = _record(schema_version=version).model_dump(mode="json")
    earlier = {
        name: value
        for name, value in fields.items()
        if name not in ("code_digest", "platform", "replaced", "notes", "account")
    }
    own = earlier.pop("digest")
    assert provenance.digest(earlier) == own
    (tmp_path / "provenance.json").write_text(json.dumps({**earlier, "digest": own}))
    found = provenance.read_record(tmp_path / "provenance.json")
    assert found.computed_digest() == own and found.account is None


@given(
    counts=st.dictionaries(
        st.text(), st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    ),
    seconds=st.floats(0, 1e9),
    created=st.datetimes(timezones=st.just(UTC)),
    config=st.dictionaries(st.text(), st.none() | st.booleans() | st.text() | st.integers()),
)
def test_any_record_keeps_its_bytes_and_digest(counts, seconds, created, config):
    record = _record(counts=counts, seconds=seconds, created=created, config=config)
    again = Record.model_validate(json.loads(record.to_bytes()))
    assert again.to_bytes() == record.to_bytes()
    assert again.computed_digest() == record.digest


@pytest.mark.parametrize("name", [name for name in Record.model_fields if name != "digest"])
def test_the_digest_covers_every_field(name):
    changed = {
        "inputs": [],
        "outputs": [_output("c")],
        "config": {"seed": 2},
        "counts": {"rows": 4},
        "libraries": {},
        "deleted_inputs": ["a"],
        "inputs_file": {"path": "inputs.jsonl", "count": 1, "bytes": 1, "sha256": SHA},
        "tokenizer": {"name": "gpt2", "path": "a", "sha256": SHA},
        "created": datetime(2027, 1, 1, tzinfo=UTC),
        "seconds": 2.0,
        "schema_version": 1,
        "notes": {"counts": {"usual": 1}, "named": []},
        "account": {"files": ["1 file taken"], "columns": [{"name": "a", "state": "unread"}]},
        "replaced": {"data_version": SHA, "digest": SHA, "why": "w"},
        "peak_memory_bytes": 7,
    }.get(name, "other")
    assert _record(**{name: changed}).digest != _record().digest


def test_the_data_version_is_of_the_payload_and_many_inputs_have_a_file():
    version = provenance.data_version([_output("a"), _output("b")])
    note = _output("manifest.json", payload=False)
    assert provenance.data_version([_output("b"), note, _output("a", mtime_ns=9)]) == version
    database = _output("b", content_sha256="cd" * 32)
    versions = {
        version,
        provenance.data_version([_output("a")]),
        provenance.data_version([_output("a"), _output("c")]),
        provenance.data_version([_output("a"), _output("b", sha256="cd" * 31 + "00")]),
        provenance.data_version([_output("a"), database]),
    }
    assert len(versions) == 5
    same_content = database.model_copy(update={"sha256": "ef" * 32})
    assert provenance.data_version([same_content]) == provenance.data_version([database])
    few = [Input(path=f"drops/{number}") for number in range(100)]
    assert provenance.split_inputs(few) is None
    listed = provenance.split_inputs([*few, Input(path="drops/100")])
    assert listed is not None
    assert listed.splitlines()[100] == b'{"path":"drops/100"}'
    assert provenance.split_inputs([Input(path="x" * 99_988)]) is None
    assert provenance.split_inputs([Input(path="x" * 99_989)]) is not None


def test_a_list_of_inputs_that_cannot_be_read(tmp_path):
    build = tiny_build(tmp_path, inputs=many_inputs(tmp_path))
    record = publish(build).record
    listed = build.folder / "inputs.jsonl"
    first, _, rest = listed.read_bytes().partition(b"\n")
    listed.write_bytes(first + b"\n" + b"[" * 999 + rest)
    with pytest.raises(GristmillError, match=r"inputs\.jsonl: line 2 describes no input"):
        provenance.read_inputs(record, build.record_path)
    listed.unlink()
    with pytest.raises(GristmillError, match=r"inputs\.jsonl: no list of inputs can be read"):
        provenance.read_inputs(record, build.record_path)


@pytest.mark.parametrize("shared", [False, True])
def test_inputs_beside_the_record(tmp_path, shared):
    inputs = many_inputs(tmp_path)
    build = tiny_build(tmp_path, inputs=inputs, shared=shared)
    record = publish(build).record
    assert record.inputs == []
    assert record.inputs_file is not None
    assert record.inputs_file.count == 101
    name = "provenance/p1.inputs.jsonl" if shared else "inputs.jsonl"
    assert record.inputs_file.path == name
    assert (build.folder / name).stat().st_size == record.inputs_file.bytes
    assert provenance.read_inputs(record, build.record_path) == inputs
    assert provenance.verify(tmp_path) == []
    assert publish(build).rebuilt is False
    for damage in (lambda path: os.truncate(path, 100), Path.unlink):
        damage(build.folder / name)
        assert publish(build).rebuilt is True
        assert provenance.verify(tmp_path) == []
    fewer = tiny_build(tmp_path, inputs=inputs[:2], shared=shared)
    assert publish(fewer).record.inputs == inputs[:2]
    assert not (build.folder / name).exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a provenance record"),
        (b"[]", "schema version None"),
        (b'{"schema_version": 99}', "schema version 99 .* another version of Gristmill"),
        (b'{"schema_version": 1}', "not a provenance record"),
        (b"\xff\xfe", "not a provenance record"),
        (b'{"schema_version": 1, "seconds": NaN}', "not a provenance record"),
        (b'{"schema_version": 1, "seconds": 1e999}', "not a provenance record.*float values"),
    ],
)
def test_what_is_not_a_record(tmp_path, data, message):
    path = tmp_path / "provenance.json"
    path.write_bytes(data)
    with pytest.raises(GristmillError, match=rf"provenance\.json: {message}"):
        provenance.read_record(path)
    with pytest.raises(GristmillError, match="no provenance record can be read"):
        provenance.read_record(tmp_path / "none.json")


def test_a_note_on_a_file_that_was_not_written_is_an_error(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(GristmillError, match=r"names files that were not written: \['b'\]"):
        provenance.outputs_of(tmp_path, {"a": SHA}, {"b": FileNote(payload=False)})


def test_the_record_of_a_build(tmp_path):
    published = publish(tiny_build(tmp_path, config=TinyConfig(label="é")))
    record = published.record
    assert provenance.read_record(tmp_path / "family/tiny/provenance.json") == record
    assert record.counts == {"rows": 6, "computed": 3}
    assert record.config == {"seed": 1, "label": "é", "rows": 2, "workers": 1}
    assert [(output.path, output.rows, output.payload) for output in record.outputs] == [
        ("metadata.db", None, True),
        ("place.json", None, False),
        ("trace.jsonl", None, True),
        ("train/steps.npy", 6, True),
    ]
    assert record.peak_memory_bytes > 1 << 20
    assert record.libraries["numpy"]


@dataclass(frozen=True)
class Config:
    seed: int = 1
    place: Path = Path("a/b")
    workers: Annotated[int, NO_EFFECT] = 1


def test_a_config_is_a_dataclass_of_plain_values():
    class Level(Enum):
        LOW = 1

    @dataclass(frozen=True)
    class Odd:
        value: object = None

    assert provenance.config_fields(Odd(Level.LOW)) == {"value": "Level.LOW"}
    with pytest.raises(TypeError, match="a config holds plain values"):
        provenance.config_fields(Odd(object()))
    for wrong in ({"seed": 1}, Config):
        with pytest.raises(TypeError, match="instance of a dataclass"):
            provenance.config_fields(wrong)
    every = {spec.name for spec in dataclasses.fields(Config)}
    assert provenance.config_fields(Config()).keys() == every
    assert provenance.config_fields(Config(), affecting_output=True).keys() == every - {"workers"}


def test_a_regular_file_is_read_whole_and_a_path_that_no_folder_can_have_has_none(tmp_path):
    (tmp_path / "record").write_bytes(b"x" * 5000)
    assert record.read_bytes(tmp_path / "record") == b"x" * 5000
    assert record.generation(tmp_path / "a\0b") is None


def test_links_pipes_folders_and_huge_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "record"
    path.symlink_to("/dev/zero")
    with pytest.raises(GristmillError, match="record: is a link"):
        record.read_bytes(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GristmillError, match="pipe: is not a regular file"):
        record.read_bytes(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises((GristmillError, OSError)):
        record.read_bytes(tmp_path / "folder")
    monkeypatch.setattr(record, "LIMIT", 3)
    (tmp_path / "huge").write_bytes(b"1234")
    with pytest.raises(GristmillError, match="has 4 bytes, at most 3"):
        record.read_bytes(tmp_path / "huge")
    (tmp_path / "large").write_bytes(b"123")
    assert record.read_bytes(tmp_path / "large") == b"123"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a/b.npy", None),
        ("a/..b", None),
        ("", "is empty"),
        (".", "is empty"),
        ("a\0b", "null byte"),
        ("/etc/passwd", "is absolute"),
        ("a/../../b", "leads out"),
        ("..", "leads out"),
    ],
)
def test_a_path_stays_below_its_folder(path, reason):
    found = record.wrong_path(path)
    assert found is None if reason is None else reason in str(found)


def test_another_folder_at_the_path_is_another_generation(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    before = record.generation(one)
    assert record.generation(one) == before
    atomic_fs.exchange(one, other)
    assert record.generation(one) not in (before, None)
    shutil.rmtree(one)
    assert record.generation(one) is None


def test_a_listing_is_of_one_moment(tmp_path, monkeypatch):
    folder, fresh = tmp_path / "a", tmp_path / "b"
    for made in (folder, fresh):
        (made / "inner").mkdir(parents=True)
        (made / "link").symlink_to(tmp_path)
        (made / "provenance.json").touch()
    real = os.scandir

    def torn(path: Path) -> object:
        monkeypatch.setattr(os, "scandir", real)
        entries = real(path)
        atomic_fs.exchange(folder, fresh)
        (fresh / "provenance.json").unlink()
        return entries

    monkeypatch.setattr(os, "scandir", torn)
    assert record.listing(folder) == (["inner"], ["link", "provenance.json"], ["link"])
    assert record.listing(tmp_path / "none") == ([], [], [])


def test_a_folder_that_never_rests_is_listed_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    stamps = itertools.count()
    monkeypatch.setattr(record, "generation", lambda _: next(stamps))
    assert record.listing(tmp_path) == ([], ["file"], [])
