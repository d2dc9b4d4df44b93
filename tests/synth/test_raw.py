"""What arrives: the files of a drop, what becomes of each, `[render]` of a recipe, and fetching."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gristmill.contract import BadInput, GristmillError
from gristmill.inbox.hub import HubError, Source
from gristmill.inbox.listing import Account
from gristmill.synth import raw
from gristmill.synth.builders.harmony_shard import shard_name
from gristmill.synth.builders.manifests import MANIFEST, METADATA
from gristmill.synth.raw import (
    COLUMNS,
    DONE,
    FILES,
    NUMBERS,
    READY,
    READY_FILES,
    READY_SHARDS,
    TEXTS,
    Render,
    complete_files,
    files,
    is_complete,
    raw_account,
    read_render,
    ready_account,
)
from gristmill.synth.samples import write_drop, write_samples
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.walk import Entry
from tests.hub_server import COMMIT, Hub, server


def test_a_drop_is_complete_at_its_count_or_with_done(tmp_path):
    paths = write_drop(tmp_path, files=3, rows=1, done=False)
    (tmp_path / "a.parquet").mkdir()
    (tmp_path / "notes.txt").touch()
    assert [is_complete(tmp_path, expected) for expected in (2, 3, 4)] == [False, True, False]
    with pytest.raises(GristmillError, match="3 Parquet files of 500"):
        complete_files(tmp_path)
    (tmp_path / DONE).touch()
    assert files(tmp_path) == complete_files(tmp_path) == complete_files(tmp_path, 3) == paths
    for path in paths:
        path.rename(tmp_path / "a.parquet" / path.name)
    assert not is_complete(tmp_path)
    with pytest.raises(GristmillError, match=r"0 Parquet files of 500: .* its subfolders are not"):
        complete_files(tmp_path)


def test_only_regular_files_are_raw_files(tmp_path):
    drop, outside = tmp_path / "drop", tmp_path / "outside"
    for folder in (drop / "a folder.parquet", outside):
        folder.mkdir(parents=True)
    (outside / "x.parquet").touch()
    (drop / "a.parquet").touch()
    assert files(drop) == [drop / "a.parquet"]
    (drop / "b.parquet").symlink_to(outside / "x.parquet")
    with pytest.raises(BadInput, match=r"b\.parquet: is a link: a drop may hold"):
        files(drop)
    with pytest.raises(BadInput, match=r"b\.parquet: is a link"):
        complete_files(drop, 2)
    rule = LinkRule(True, (str(outside),))
    assert complete_files(drop, 2, rule) == [drop / "a.parquet", drop / "b.parquet"]
    (drop / "b.parquet").unlink()
    os.mkfifo(drop / "b.parquet")
    with pytest.raises(BadInput, match=r"b\.parquet: is a pipe"):
        files(drop)


def test_a_drop_that_is_gone_or_cannot_be_read_has_no_files(tmp_path, monkeypatch):
    assert files(tmp_path / "absent") == []

    def refuse(*_: object, **__: object) -> Iterator[Entry]:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    monkeypatch.setattr("gristmill.synth.raw.list_files", refuse)
    with pytest.raises(BadInput, match="cannot be read: Permission denied"):
        files(tmp_path)
    gone = Entry("x.parquet", os.stat_result((0,) * 10), None, 0)
    monkeypatch.setattr("gristmill.synth.raw.list_files", lambda *_, **__: iter([gone]))
    assert files(tmp_path) == []


RAW_NAMES = [f"synth_{number:03d}.parquet" for number in range(1, 6)]
RAW_TAKEN = {"00": RAW_NAMES[:2], "01": RAW_NAMES[2:3], "02": RAW_NAMES[3:4], "03": RAW_NAMES[4:]}
READY_TAKEN = {
    **{number: [shard_name(number)] for number in NUMBERS},
    "manifest": [MANIFEST, METADATA],
}


def drop(place: Path, *names: str) -> Path:
    """Write files, each with its name as contents."""
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    return place


def account(place: Path, links: LinkRule = REFUSE_LINKS, expected: int = FILES) -> Account:
    if place.parent.name == READY:
        return ready_account(place, links)
    return raw_account(place, links, expected)


def test_every_file_of_a_raw_drop_has_an_account(tmp_path):
    others = ["README.md", "data/notes.txt", "synth.csv"]
    hidden = [
        ".done",
        ".parquet",
        "._00.parquet",
        ".cache/huggingface/a.parquet",
        ".source.json",
        "gristmill.toml",
    ]
    found = account(drop(tmp_path / "synth/a", *RAW_NAMES, *others, *hidden))
    assert found.taken == RAW_TAKEN
    assert found.left_out == dict.fromkeys(others, "no Parquet file")
    assert found.lines == [
        "00: 2 files taken",
        "01: 1 file taken",
        "02: 1 file taken",
        "03: 1 file taken",
        "3 left out: README.md, data/notes.txt, synth.csv (no Parquet file)",
    ]


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (RAW_NAMES[:3], "a: 3 files: 4 shards need a file each"),
        ([*RAW_NAMES, "b/1.parquet"], "a/b/1.parquet: is in a subfolder, which is not read beside"),
        (["b/1.parquet"], "a: 0 Parquet files of 500: put files whose names end in .parquet into"),
        ([*RAW_NAMES, "1.PARQUET"], "a/1.PARQUET: rename it so that it ends in .parquet in lower"),
    ],
)
def test_files_that_are_not_clear_refuse_a_raw_drop(tmp_path, names, rule):
    with pytest.raises(BadInput) as raised:
        account(drop(tmp_path / "a", *names, ".done"))
    assert str(raised.value).startswith(f"{tmp_path}/{rule}")


def test_a_list_of_just_its_files_says_that_a_raw_drop_is_complete(tmp_path):
    place = drop(tmp_path / "a", *RAW_NAMES, "README.md")
    sums = place / "SHA256SUMS"

    def write(*names: str) -> None:
        sums.write_text("".join(f"{'0' * 64}  {name}\n" for name in names))

    with pytest.raises(BadInput) as raised:
        account(place)
    assert str(raised.value) == (
        f"{place}: 5 Parquet files of 500: add the others, or, if these are all, a file .done, or "
        "a SHA256SUMS that lists them"
    )
    write("README.md", *RAW_NAMES)
    assert account(place).taken == RAW_TAKEN
    assert account(place).left_out == {"README.md": "no Parquet file"}
    for names in (RAW_NAMES[:4], [*RAW_NAMES, "synth_006.parquet"], ["README.md"]):
        write(*names)
        with pytest.raises(BadInput, match="5 Parquet files of 500"):
            account(place)
        assert account(place, expected=5).taken == RAW_TAKEN
    sums.write_text("no sum\n")
    with pytest.raises(BadInput, match="SHA256SUMS: line 1: must be 64 hex digits"):
        account(place)


def test_a_finished_conversion_has_its_six_files_and_no_others(tmp_path):
    assert (*(shard_name(number) for number in NUMBERS), MANIFEST, METADATA) == READY_FILES
    place = drop(tmp_path / "synth_harmony/a", *READY_FILES, "x.parquet", "old/manifest.json")
    found = account(place)
    assert found.taken == READY_TAKEN
    assert found.left_out == dict.fromkeys(
        ["old/manifest.json", "x.parquet"], "no file of a conversion"
    )
    drop(place, "synth_harmony_shard_4.parquet")
    with pytest.raises(BadInput, match=r"a: shard 4 is none of 00, 01, 02, 03$"):
        account(place)


@pytest.mark.parametrize("gone", READY_FILES)
def test_a_finished_conversion_without_one_of_its_files_is_refused(tmp_path, gone):
    place = drop(tmp_path / "synth_harmony/a", *(set(READY_FILES) - {gone}))
    with pytest.raises(BadInput, match=f"a: there is no {gone}$"):
        account(place)


@pytest.mark.parametrize(("inbox", "names"), [("synth", RAW_NAMES), ("synth_harmony", READY_FILES)])
def test_two_files_with_equal_bytes_and_links_refuse_a_drop(tmp_path, inbox, names):
    place = drop(tmp_path / inbox / "a", *names, ".done")
    account(place)
    (place / names[3]).write_text(names[1])
    with pytest.raises(BadInput) as raised:
        account(place)
    assert str(raised.value) == (
        f"{place / names[3]}: has the bytes of {names[1]}: its records would count twice: take one "
        "of them out"
    )
    (place / names[3]).unlink()
    (tmp_path / "x").write_text("x")
    (place / names[3]).symlink_to(tmp_path / "x")
    with pytest.raises(BadInput, match=f"{names[3]}: is a link"):
        account(place)
    assert account(place, LinkRule(True, (str(tmp_path),))).taken == (
        RAW_TAKEN if inbox == "synth" else READY_TAKEN
    )


def test_equal_files_without_records_are_taken_and_conversations_are_harmony_by_default(tmp_path):
    place = drop(tmp_path / "synth_harmony/a", *READY_FILES)
    for name in (MANIFEST, METADATA):
        (place / name).write_text("{}")
    assert account(place).taken == READY_TAKEN
    assert READY_FILES[:4] == READY_SHARDS
    (tmp_path / "corpus.toml").write_text('name = "mine"\n')
    assert read_render(tmp_path) == Render()
    assert Render().template == "harmony"


def render(folder: Path, text: str) -> Render:
    """How a recipe with this table renders."""
    (folder / "corpus.toml").write_text(f'name = "mine"\n[render]\n{text}')
    return read_render(folder)


def test_a_template_is_read_by_its_bytes_and_refused_if_gone_or_a_link(tmp_path):
    file = tmp_path / "t.jinja"
    file.write_text("é")
    text = 'template = "drop:t.jinja"\nkwargs = { b = 1, a = true }\ndate = 2026-02-03\n'
    found = render(tmp_path, text + 'expand = "turns"\nthinking = "field"\ntokenizer = "mine"')
    assert (found.path, found.source, found.kwargs) == (file, "é", '{"a": true, "b": 1}')
    assert (found.date, found.expand, found.thinking) == ("2026-02-03", "turns", "field")
    assert found.tokenizer == "mine"
    file.write_text("e")
    other = render(tmp_path, text)
    assert other.recorded != render(tmp_path, text.replace("02-03", "02-04")).recorded
    file.write_text("f")
    assert other.recorded != render(tmp_path, text).recorded
    assert str(tmp_path) not in other.recorded
    text, file = 'template = "drop:a.jinja"', tmp_path / "a.jinja"
    with pytest.raises(BadInput, match="there is no such file beside the recipe"):
        render(tmp_path, text)
    file.write_bytes(b"\xff")
    with pytest.raises(BadInput, match="is not UTF-8"):
        render(tmp_path, text)
    file.write_bytes(b"x" * ((256 << 10) + 1))
    with pytest.raises(BadInput, match="has more than"):
        render(tmp_path, text)
    file.unlink()
    file.symlink_to(tmp_path / "corpus.toml")
    with pytest.raises(BadInput, match="link"):
        render(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('templat = "chatml"', "unknown key .templat.: did you mean template"),
        ('template = "chatlm"', "did you mean chatml.*or drop: and the name of a file"),
        ('template = "drop:../x.jinja"', "must name a file beside the recipe"),
        ('template = "drop:.x.jinja"', "must name a file beside the recipe"),
        ('template = "drop:template.txt"', "name the file with the ending .jinja"),
        ("template = 1", "must be a text"),
        ('template = "chatml"\nexpand = "turn"', "expand = .turn.: must be turns"),
        ('expand = "turns"', "Harmony keeps all thoughts: leave it out"),
        ('template = "chatml"\nkwargs = { a = 1 }', "only a template of your own sees it"),
        ('template = "drop:a.jinja"\nkwargs = "x"', "kwargs"),
        ('template = "drop:a.jinja"\nkwargs = { a = nan }', "kwargs: holds a value"),
        ('template = "drop:a.jinja"\ndate = "tomorrow"', "render: "),
        ('tokenizer = "qwen"', "harmony has the control tokens of o200k_harmony"),
        ('template = "chatgpt_plain"\ntokenizer = "qwen"', "take another template"),
    ],
)
def test_a_wrong_table_is_refused_with_key_and_cure(tmp_path, text, rule):
    with pytest.raises(BadInput, match=rule) as raised:
        render(tmp_path, text)
    assert raised.value.file == str(tmp_path / "corpus.toml")


__all__ = ["REPO", "parquets", "server", "source"]  # fixtures, also of the tests of the command

REPO = "example/SYNTH"


@pytest.fixture
def parquets(server: Hub) -> dict[str, bytes]:
    """The files of the repository, in no order."""
    made = {f"synth_{n:03d}.parquet": bytes([n]) * (1000 * n) for n in (2, 1, 3)}
    server.repositories[REPO] = {**made, "README.md": b"read me"}
    return server.repositories[REPO]


@pytest.fixture
def source(server: Hub) -> Source:
    return Source(REPO, COMMIT, server.address)


def test_the_first_parquet_files_by_name_are_fetched(parquets, source, tmp_path):
    names = [f"synth_00{n}.parquet" for n in (1, 2, 3)]
    assert list(raw.reached(source).files) == names
    assert raw.drop_name(source) == "SYNTH-01234567"
    raw.fetch(tmp_path, raw.reached(source, 2))
    assert raw.complete_files(tmp_path) == [tmp_path / name for name in names[:2]]
    assert [(tmp_path / name).read_bytes() == parquets[name] for name in names[:2]] == [True] * 2


def test_a_drop_is_incomplete_until_all_files_are_right(server, parquets, source, tmp_path):
    raw.fetch(tmp_path, raw.reached(source, 1))
    for count, broken in ((3, "synth_002.parquet"), (1, "synth_001.parquet")):
        assert raw.is_complete(tmp_path)
        (tmp_path / "synth_001.parquet").write_bytes(b"changed")
        server.broken = {broken}
        with pytest.raises(HubError, match=broken):
            raw.fetch(tmp_path, raw.reached(source, count))
        assert not raw.is_complete(tmp_path)
        server.broken = set()
        assert len(raw.fetch(tmp_path, raw.reached(source, count))) == count
    assert raw.is_complete(tmp_path)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"small.parquet": b"x"}, r"small\.parquet: the hub lists no sha256"),
        # In the drop each of them would replace the other.
        (
            {"other/synth_001.parquet": b"x" * 1000},
            r"other/synth_001\.parquet and synth_001\.parquet: one folder cannot hold both",
        ),
    ],
)
def test_files_that_cannot_be_checked_or_kept_are_refused(parquets, source, more, reason):
    parquets.update(more)
    with pytest.raises(HubError, match=reason):
        raw.reached(source)
    parquets.clear()
    with pytest.raises(HubError, match=f"{REPO} at {COMMIT}: no Parquet files to fetch"):
        raw.reached(source)


def test_samples_have_equal_files_for_equal_arguments_and_their_settings(tmp_path):
    first, second = (write_drop(tmp_path / name, files=2) for name in "ab")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    other = write_drop(tmp_path / "c", files=2, seed=2)
    assert other[0].read_bytes() != first[0].read_bytes()
    table = pq.read_table(first[0])
    assert tuple(table.schema.names) == COLUMNS
    texts = " ".join(
        t or "" for name in TEXTS for p in first for t in pq.read_table(p)[name].to_pylist()
    )
    assert "<|end|>" in texts
    assert (tmp_path / "a" / DONE).exists()
    write_samples(tmp_path)
    files = sorted(tmp_path.glob("*.parquet"))
    assert [path.name for path in files] == [f"synth_00{number}.parquet" for number in range(1, 9)]
    assert {pq.read_metadata(path).num_rows for path in files} == {60}
    settings = (tmp_path / "gristmill.toml").read_text()
    assert settings == "[synth.kd_shards]\nvalid_fraction = 0.1\n"
    assert (tmp_path / DONE).exists()
