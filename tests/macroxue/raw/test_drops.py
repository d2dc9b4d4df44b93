"""Finding runs, their order, and gzip files (docs/formats/macroxue.md#raw-drop)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.format.files import read_lines
from gristmill.macroxue.raw import drops
from gristmill.untrusted.files import LinkRule
from tests.macroxue.lines import step, write_run
from tests.refusal import refusal

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
    (root / "orphan.jsonl.gz").write_bytes(b"never unpacked")
    (root / ".hidden.jsonl.gz").write_bytes(b"no part of the drop")
    (root / "folder.meta.json").mkdir()
    for raw in (b"/bad\xff.meta.json", b"/also\xff.txt", b"/in\xff/x.meta.json"):
        path = Path(os.fsdecode(os.fsencode(root) + raw))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
    drop = drops.find_runs(root)
    assert names(drop) == ["kept"]
    assert list(drop.notes) == [
        {"drop": "drop", "kind": "unpaired_log", "path": "Upper.jsonl.gz"},
        {"drop": "drop", "kind": "unpaired_meta", "path": "alone.meta.json"},
        {"drop": "drop", "kind": "name_not_utf8", "path": "bad\\xff.meta.json"},
        {"drop": "drop", "kind": "name_not_utf8", "path": "in\\xff"},
        {"drop": "drop", "kind": "unpaired_log", "path": "orphan.jsonl.gz"},
    ]
    assert drop.others == ("Upper.META.json", "alone.jsonl", "also\\xff.txt")
    assert [path.name for path in drops.raw_files(root)] == [
        *("kept.meta.json", "kept.jsonl.gz"),
        *("Upper.jsonl.gz", "alone.meta.json", "orphan.jsonl.gz"),
    ]


def test_the_account_names_every_file_of_a_drop(tmp_path: Path) -> None:
    root = tmp_path / "drop"
    write_run(root, "a", [step()])
    write_run(root / "below", "b", [step()], zipped_meta=True)
    write_run(root, "c", [step()])
    (root / "c.jsonl.gz").rename(root / "c.jsonl")
    write_run(root, "killed", [step()])
    (root / "killed.meta.json").unlink()
    write_run(root, "lost", [step()])
    (root / "lost.jsonl.gz").unlink()
    for name in ("b.META.json", "a.JSONL.gz"):
        (root / name).write_bytes(b"{}")
    for name in ("a.jsonl", "README", "a", "below/steps.npy", "games.tar.gz", ".jsonl"):
        (root / name).write_bytes(b"x")
    for name in (".done", "SHA256SUMS", ".incomplete", "gristmill.toml", ".x/y.npy"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"")
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff.meta.json")).write_bytes(b"{}")
    found = drops.account(root)
    assert found.taken == {
        "": ["a.meta.json", "a.jsonl.gz", "below/b.meta.json.gz", "below/b.jsonl.gz"]
    }
    assert found.left_out == {
        "bad\\xff.meta.json": "a name that is not UTF-8",
        "c.meta.json": "a log that is not zipped",
        "c.jsonl": "a log that is not zipped",
        "killed.jsonl.gz": "a log without its .meta.json",
        "lost.meta.json": "a meta without its .jsonl.gz",
        **dict.fromkeys(("b.META.json", "a.JSONL.gz"), "an ending in capitals: rename it"),
        **dict.fromkeys(("README", "a", "a.jsonl", "below/steps.npy"), "no file of a game"),
        "games.tar.gz": "packed in a form that is not read: unpack it, and `gzip` each log",
    }


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ([], "next to it"),
        (["a.meta.json", "a.jsonl"], "a.jsonl is not zipped: `gzip` it (1 such files)"),
        (["a.jsonl.gz"], "a.jsonl.gz: a log without its .meta.json"),
        (["p/steps.npy"], "steps*.npy in the drop itself, and steps.toml"),
        (["moves.csv"], "named columns in steps*.npy in the drop itself, and steps.toml"),
        (["a.txt"], "a.txt: no file of a game"),
        (["a.jsonl.zst"], "that is not read: unpack it, and `gzip` each log"),
    ],
)
def test_a_drop_without_a_game_is_refused_with_what_to_do(
    tmp_path: Path, names: list[str], rule: str
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(BadInput, match=r"no game in it: it needs a `\.meta\.json`") as raised:
        drops.account(tmp_path)
    assert raised.value.rule.endswith(rule)
    assert refusal(drops.account, tmp_path) == str(raised.value)


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
    assert str(root / name) in str(refusal(drops.account, root))


def test_a_drop_of_links_into_a_stated_root_gives_the_rows_of_the_files(tmp_path: Path) -> None:
    root, store = tmp_path / "drop", tmp_path / "store" / "drop"
    write_run(store, "g", [step(), step()])
    root.mkdir()
    for file in store.iterdir():
        (root / file.name).symlink_to(file)
    links = LinkRule(True, (str(tmp_path / "store"),))
    assert len(drops.raw_files(root, links)) == 2
    assert refusal(drops.account, root, links) is None
    assert pack(root, tmp_path / "linked", PackConfig(), links=links).rows == 2
    pack(store, tmp_path / "copied", PackConfig())
    shards = [tmp_path / side / "steps.npy" for side in ("linked", "copied")]
    first, second = (sorted(shard.parent.glob("*.npy")) for shard in shards)
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert first


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
