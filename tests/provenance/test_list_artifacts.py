"""What `gristmill ls` lists: every artifact with a record, and whether it is current."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from gristmill.cli import main
from gristmill.code.digest import Code
from gristmill.contract import FileNote, Summary
from gristmill.families import Kind
from gristmill.provenance import Input, read_record
from gristmill.provenance.find_artifacts import artifacts
from gristmill.provenance.inventory import Entry
from gristmill.provenance.list_artifacts import Listed, lines, list_artifacts
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.publish import storage
from gristmill.publish.build import Attempt
from gristmill.publish.publish import publish
from gristmill.publish.remove import remove_artifact
from tests.publish.tiny import made_from as as_input
from tests.publish.tiny import raw_file, tiny_build


@dataclass(frozen=True)
class Counted(Summary):
    rows: int = 0


def make(attempt: Attempt) -> Counted:
    attempt.out.mkdir()
    (attempt.out / "words.txt").write_text("one\ntwo\n")
    return Counted(files={"words.txt": FileNote(rows=2)}, rows=2)


def build(root: Path, asset: str, partition: str, inputs: list[Input]) -> Path:
    """Publish an artifact of one file at `<asset>/<partition>`."""
    artifact = f"{asset}/{partition}"
    made = tiny_build(root, artifact, partition=partition, inputs=inputs, make=make, asset=asset)
    return publish(made).folder


def raw(root: Path, key: str) -> list[Input]:
    """One raw file as input, written where it is not there."""
    file = raw_file(root, f"drops/words/{key}/words.txt", b"words")
    return raw_inputs(root, [file], "words/raw_drop", key, {})


def made_from(root: Path, asset: str, partition: str) -> list[Input]:
    """A published artifact as input."""
    return [as_input(read_record(root / asset / partition / "provenance.json"))]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A chain of two: a drop, an artifact from it, and one from that."""
    root = tmp_path / "data"
    build(root, "words/pack", "one", raw(root, "one"))
    build(root, "words/pool", "all", made_from(root, "words/pack", "one"))
    return root


def states(root: Path) -> dict[str, str]:
    return {str(item.asset): item.state for item in list_artifacts(root)}


def test_a_current_artifact_is_listed_with_what_its_record_says(root):
    pack, pool = list_artifacts(root)
    record = read_record(root / "words/pack/one/provenance.json")
    assert pack == Listed(
        folder=str(root / "words/pack/one"),
        asset="words/pack",
        partition="one",
        rows=2,
        bytes=8,
        built=record.created.isoformat(timespec="seconds"),
        code_version="1",
        sources=("words/raw_drop one",),
        state="current",
        why="",
        drops=("drops/words/one",),
    )
    assert pool.drops == ()
    assert (pool.asset, pool.sources, pool.state) == ("words/pool", ("words/pack one",), "current")


@pytest.mark.parametrize("below", ["words", "words/pack/one"])
def test_a_folder_in_a_data_root_is_listed_against_that_root(root, below):
    assert {item.state for item in list_artifacts(root / below)} == {"current"}


PACK, POOL = "words/pack/one", "words/pool/all"
RAW, OWN = "drops/words/one/words.txt", f"{PACK}/words.txt"
CURRENT, LESS = ("current", ""), ("files changed", "words.txt")


def _recorded(root: Path, artifact: str, **fields: object) -> None:
    path = root / artifact / "provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _delete_with_entry(root: Path) -> None:
    shutil.rmtree(root / PACK)
    Entry(PACK).file(root).unlink()


def _delete_by_pool(root: Path) -> None:
    _recorded(root, POOL, deleted_inputs=[PACK])
    remove_artifact(root / PACK)


GONE = "current (inputs gone)"
CHANGES: dict[str, tuple[Callable[[Path], object], list[tuple[str, str]]]] = {
    "raw file": (
        lambda root: (root / RAW).write_text("other words"),
        [("input changed", RAW), CURRENT],
    ),
    "drop gone": (lambda root: shutil.rmtree((root / RAW).parent), [(GONE, RAW), CURRENT]),
    "size": (lambda root: (root / OWN).write_text("less"), [LESS, CURRENT]),
    "time": (lambda root: os.utime(root / OWN, (0, 0)), [LESS, CURRENT]),
    "file gone": (lambda root: (root / OWN).unlink(), [LESS, CURRENT]),
    "input built again": (
        lambda root: _recorded(root, PACK, data_version="0" * 64),
        [CURRENT, ("input changed", "words/pack one")],
    ),
    "input deleted with its entry": (
        _delete_with_entry,
        [(GONE, "words/pack one, which the inventory does not name, either")],
    ),
    "input deleted by its pool": (_delete_by_pool, [CURRENT]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_named(root, what):
    change, expected = CHANGES[what]
    change(root)
    assert [(item.state, item.why) for item in list_artifacts(root)] == expected


def test_an_input_that_is_gone_is_named_and_is_missing(root):
    shutil.rmtree(root / PACK)
    missing, pool = list_artifacts(root)
    assert missing.state == "missing"
    assert (pool.asset, pool.state, pool.why) == ("words/pool", GONE, "words/pack one")


def test_other_code_is_named_where_all_else_is_current(root, monkeypatch):
    packs = Kind("words/pack", code=Code(("gristmill.keys.checked",)))
    of = {"words/pack": packs, "words/pool": Kind("words/pool")}.get
    monkeypatch.setattr("gristmill.provenance.list_artifacts.kind_of_asset", of)
    pack, pool = list_artifacts(root)
    assert (pack.state, pack.why) == ("other code", "the next build makes it again")
    assert pool.state == "current"
    config = SimpleNamespace(CODE_VERSION=7)
    of = {"words/pack": replace(packs, table=SimpleNamespace(config=config))}.get
    monkeypatch.setattr("gristmill.provenance.list_artifacts.kind_of_asset", of)
    assert list_artifacts(root)[0].why == f"code version {pack.code_version} -> 7"
    shutil.rmtree(root / "drops/words/one")
    assert states(root)["words/pack"] == "current (inputs gone)"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"schema_version": 99}', "\x00\xff"])
def test_a_damaged_record_is_a_line_and_hides_no_other(root, damage):
    (root / "words/pack/one/provenance.json").write_text(damage)
    damaged, pool = list_artifacts(root)
    assert damaged.state == "record damaged"
    assert damaged.folder == str(root / "words/pack/one")
    assert "words/pack/one/provenance.json" in damaged.why
    assert (damaged.asset, damaged.sources) == (None, ())
    assert (pool.asset, pool.state) == ("words/pool", "input changed")


def test_a_damaged_list_of_inputs_damages_the_record(tmp_path):
    for number in range(101):
        raw(tmp_path, f"drop{number:03}")
    files = sorted(tmp_path.glob("drops/words/*/words.txt"))
    folder = build(
        tmp_path, "words/pack", "many", raw_inputs(tmp_path, files, "words/raw_drop", "many", {})
    )
    assert states(tmp_path) == {"words/pack": "current"}
    (folder / "inputs.jsonl").write_text("{")
    (item,) = list_artifacts(tmp_path)
    assert item.state == "record damaged"


def test_partitions_that_share_a_folder_are_listed_by_their_own_records(root):
    shutil.rmtree(root / ".gristmill")
    folder = root / "words/pool/all"
    (folder / "provenance").mkdir()
    (folder / "provenance.json").rename(folder / "provenance/all.json")
    assert states(root) == {"words/pack": "current", "words/pool": "current"}
    assert [item.folder for item in list_artifacts(root)][1] == str(folder)


def test_records_in_drops_are_not_listed_and_a_file_of_several_names_counts_once(root):
    for copy in ("drops/words/copy", ".gristmill/copy", "words/.gristmill/slots/copy"):
        shutil.copytree(root / "words/pack/one", root / copy)
    assert len(list_artifacts(root)) == 2
    # As of an artifact with one file under two names, and of two artifacts with one file.
    one, pool = (item for item in artifacts(root))
    files = [item.folder / read_record(item.record_path).outputs[0].path for item in (one, pool)]
    files[1].unlink()
    files[1].hardlink_to(files[0])
    assert [line.split()[2] for line in ls(root)[2:5:2]] == ["8", "8"]
    assert ls(root)[5] == "2 artifacts, 1 current, 8 bytes on disk"
    files[1].unlink()
    assert "1 current, 8 bytes on disk" in ls(root)[-1]


# --- the command -------------------------------------------------------------


def ls(*words: str | Path) -> list[str]:
    """Lines that the command prints."""
    done = CliRunner().invoke(main, ["ls", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_no_line_is_wider_than_a_terminal_and_each_artifact_has_one(root):
    (one, *_) = list_artifacts(root)
    reason = "input changed", "drops/words/" + "far/" * 10
    wide = replace(one, partition="p" * 30, state=reason[0], why=reason[1], run="a" * 36)
    *_, line, more, _ = lines([one, wide])
    assert len(line) <= 100 and line.split()[0] == "p" * 30
    assert more.strip() == ": ".join(reason)
    titles, packs, pack, pools, pool, sums = ls(root)
    assert titles.split()[:2] == ["rows", "bytes"]
    assert (packs, pools) == ("words/pack", "words/pool")
    assert pack.split()[:3] == ["one", "2", "8"]
    assert pack.endswith("  current") and pool.endswith("  current")
    assert sums == "2 artifacts, 2 current, 16 bytes on disk"
    shutil.rmtree(root / "drops/words/one")
    assert ls(root)[2].endswith("current (inputs gone): drops/words/one/words.txt")


def test_a_listing_is_given_again_until_something_changes(root, monkeypatch):
    table, found = ls(root), json.loads("\n".join(ls(root, "--json")))
    with monkeypatch.context() as patch:
        patch.setattr("gristmill.provenance.list_artifacts.list_artifacts", lambda *_: 1 / 0)
        assert (ls(root), json.loads("\n".join(ls(root, "--json")))) == (table, found)
        for words in ([root, "--asset", "words/pool"], [root / "words"]):
            assert CliRunner().invoke(main, ["ls", *map(str, words)]).exit_code == 1
    os.utime(root / "drops/words/one/words.txt")
    assert ls(root) == table  # hashed, and the same bytes
    next(root.glob("words/pool/all/[!p]*")).write_text("other")
    changed = ls(root)
    assert "1 current" in changed[-1]
    with monkeypatch.context() as patch:
        patch.setattr("gristmill.provenance.list_artifacts.list_artifacts", lambda *_: 1 / 0)
        assert CliRunner().invoke(main, ["ls", str(root)]).exit_code == 1  # not all is current


def test_the_data_root_is_taken_from_the_environment(root, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(root))
    assert len(ls()) == 6


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("macroxue/pak", "did you mean macroxue/pack?"),
        ("qqq", "choose one of "),
        ("tokenizers/gpt", "did you mean tokenizers/gpt2?"),
    ],
)
def test_an_asset_that_is_none_cannot_be_listed(root, wrong, hint):
    done = CliRunner().invoke(main, ["ls", str(root), "--asset", wrong])
    assert done.exit_code == 2
    assert f"--asset {wrong}: there is no such asset: {hint}" in " ".join(done.output.split())


@pytest.mark.parametrize("form", ["exchange", "link"])
def test_artifacts_behind_links_are_listed(tmp_path, monkeypatch, form):
    """In the link form, or moved to another disk; other links are not followed."""
    monkeypatch.setenv(storage.VARIABLE, form)
    data = tmp_path / "data"
    folder = build(data, "words/pack", "one", raw(data, "one"))
    if form == "exchange":
        folder.rename(tmp_path / "disk")
        folder.symlink_to(tmp_path / "disk")
    (data / "words/elsewhere").symlink_to(tmp_path)
    (data / "words/nowhere").symlink_to("none")
    assert folder.is_symlink()
    assert [(item.folder, item.state) for item in list_artifacts(data)] == [
        (str(folder), "current")
    ]


def test_json_has_the_same_artifacts_or_those_of_one_asset(root):
    first, second = json.loads("\n".join(ls(root, "--json")))
    assert (first["asset"], first["rows"], first["state"]) == ("words/pack", 2, "current")
    assert second["sources"] == ["words/pack one"]
    _, pool, _, sums = ls(root, "--asset", "words/pool")
    assert (pool, sums) == ("words/pool", "1 artifact, 1 current, 8 bytes on disk")
    pack = "macroxue/pack"
    assert ls(root, "--asset", pack) == [f"{root}: no artifact of {pack} with a record"]


def test_an_empty_root_is_said_to_be_empty_and_one_that_is_not_there_is_a_usage_error(tmp_path):
    assert ls(tmp_path) == [f"{tmp_path}: no artifact with a record"]
    assert json.loads("\n".join(ls(tmp_path, "--json"))) == []
    assert CliRunner().invoke(main, ["ls", str(tmp_path / "none")]).exit_code == 2


def test_a_thousand_artifacts_are_listed_and_each_record_is_read_once(tmp_path, monkeypatch):
    first = build(tmp_path, "words/pack", "p0000", raw(tmp_path, "one"))
    record = json.loads((first / "provenance.json").read_text())
    for number in range(1, 1000):
        name = f"p{number:04}"
        shutil.copytree(first, first.with_name(name))
        changed = record | {"artifact": f"words/pack/{name}", "partition": name}
        first.with_name(name).joinpath("provenance.json").write_text(json.dumps(changed))
    reads: list[Path] = []

    def counted(path: Path) -> object:
        reads.append(path)
        return read_record(path)

    monkeypatch.setattr("gristmill.provenance.record.read_record", counted)
    listed = list_artifacts(tmp_path)
    assert [item.partition for item in listed] == [f"p{number:04}" for number in range(1000)]
    assert {item.state for item in listed} == {"current"}
    assert len(reads) == 1000
