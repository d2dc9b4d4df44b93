"""Finding runs and their order; files of pools and views; folders of annotations."""

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gristmill.contract import BadInput
from gristmill.data_root import DataRoot, NotBuilt
from gristmill.inbox.listing import Waits
from gristmill.macroxue import PackConfig, pack
from gristmill.macroxue.format.files import read_lines
from gristmill.macroxue.format.rows import MANIFEST, ROWS, STUDENT
from gristmill.macroxue.raw import drops
from gristmill.macroxue.raw.annotations import Annotations, account
from gristmill.macroxue.raw.described import (
    PACK,
    PoolFile,
    ViewFile,
    member,
    read_pool_file,
    read_view_file,
    view_change,
    view_needs,
)
from gristmill.publish.publish import publish
from gristmill.untrusted.files import LinkRule
from tests.macroxue.annotated import BINS, write_annotations
from tests.macroxue.games import play, run_table, step_rows, write_pack
from tests.macroxue.lines import step, write_run
from tests.publish.tiny import tiny_build
from tests.refusal import refusal

ORDER = ["B/x", "a/X", "a/x-1", "a/x", "a/x1", "a/x10", "a/y", "a-b/x", "a.d/x", "z/x", "é/x"]


def names(drop: drops.Drop) -> list[str]:
    return [run.meta_name.removesuffix(".gz").removesuffix(".meta.json") for run in drop.runs]


def test_names_are_ordered_by_bytes_and_two_metas_are_refused(tmp_path):
    for i, name in enumerate(reversed(ORDER)):
        place = tmp_path / name
        write_run(place.parent, place.name, [step()], zipped_meta=i % 3 == 0)
    assert names(drops.find_runs(tmp_path)) == ORDER
    assert sorted(ORDER) != ORDER
    write_run(tmp_path, "g", [step()])
    write_run(tmp_path, "g", [step()], zipped_meta=True)
    with pytest.raises(BadInput, match=r"g\.meta\.json\.gz: this game also has"):
        drops.find_runs(tmp_path)


def test_partners_and_names(tmp_path):
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


def test_the_account_names_every_file_of_a_drop(tmp_path):
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
def test_a_drop_without_a_game_is_refused_with_what_to_do(tmp_path, names, rule):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(BadInput, match=r"no game in it: it needs a `\.meta\.json`") as raised:
        drops.account(tmp_path)
    assert raised.value.rule.endswith(rule)
    assert refusal(drops.account, tmp_path) == str(raised.value)


@pytest.mark.parametrize("name", ["far.meta.json", "far.jsonl.gz", "folder", "notes.txt"])
def test_a_link_in_a_drop_is_refused_and_named(tmp_path, name):
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


def test_a_drop_of_links_into_a_stated_root_gives_the_rows_of_the_files(tmp_path):
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


def test_roots_keep_their_order_and_may_have_any_bytes(tmp_path):
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
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    write_run(root, "g", [step()])
    write_run(root, "alone", [step()])
    (root / "alone.jsonl.gz").unlink()
    for given, out in ((root, tmp_path / "p"), (str(root), str(tmp_path / "q"))):
        assert pack(given, out, PackConfig()).rows == 1  # type: ignore[arg-type]
        (line,) = read_lines(Path(out) / "trace.jsonl")
        assert line["drop"] == "d\\xff"


def _file(folder: Path, text: str, inbox: str = "pools") -> Path:
    path = folder / f"drops/{inbox}/p.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_pool_file_has_members_and_settings_and_says_what_to_do_when_it_is_gone(tmp_path):
    members = 'members = ["b", "a"]\n'
    assert read_pool_file(_file(tmp_path, members)) == PoolFile(("b", "a"), False, {})
    path = _file(tmp_path, f"{members}delete_members = true\n[macroxue.pool]\nshard_rows = 5\n")
    assert read_pool_file(path) == PoolFile(("b", "a"), True, {"shard_rows": 5})
    with pytest.raises(BadInput, match=r"gone\.toml: the pool file is gone: .*retire gone"):
        read_pool_file(tmp_path / "gone.toml")
    with pytest.raises(BadInput, match=r"the view file is gone: .*`gristmill retire -- -a\.b`"):
        read_view_file(tmp_path / "-a.b.toml")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("members = [", "not TOML"),
        ("", "`members` must be a list"),
        ('members = "ab"', "`members` must be a list"),
        ('members = ["a", 1]', "`members` must be a list"),
        ('members = ["a"]', "two or more packs"),
        ('members = ["a", "a"]', "two or more packs"),
        ('members = ["a", "b/c"]', "`members`: "),
        ('members = ["a", "b"]\ndelete_members = 1', "delete_members = 1: must be true or false"),
        ('members = ["a", "b"]\nmacroxue = 1', "must hold the table"),
        ('members = ["a", "b"]\n[macroxue]\npool = 1', "a table"),
        ('members = ["a", "b"]\n[macroxue.pool]\nnames = ["x", "y"]', "names: is not allowed"),
        ('members = ["a", "b"]\nshards = 1', 'unknown key "shards"'),
    ],
)
def test_a_pool_file_that_breaks_a_rule_is_refused(tmp_path, text, rule):
    with pytest.raises(BadInput, match=rule) as caught:
        read_pool_file(_file(tmp_path, text))
    assert caught.value.file == str(tmp_path / "drops/pools/p.toml")


POOL = "macroxue/pools/both"


def test_a_member_that_its_pool_deleted_is_as_the_record_has_it_and_another_is_not_built(tmp_path):
    lake = DataRoot(tmp_path)
    for name in ("gone", "kept"):
        publish(tiny_build(tmp_path, f"macroxue/packs/{name}", partition=name, asset=PACK))
    members = [member(lake, POOL, name) for name in ("gone", "kept")]
    pool = tiny_build(tmp_path, POOL, partition="both", inputs=members)
    publish(dataclasses.replace(pool, deletes=["macroxue/packs/gone"]))
    assert not (tmp_path / "macroxue/packs/gone").exists()
    found = [member(lake, POOL, name) for name in ("gone", "kept")]
    assert [item.data_version for item in found] == [item.data_version for item in members]
    assert [item.path for item in found] == ["macroxue/packs/gone", "macroxue/packs/kept"]
    shutil.rmtree(tmp_path / "macroxue/packs/kept")
    with pytest.raises(NotBuilt, match="macroxue/pack kept is not built"):
        member(lake, POOL, "kept")
    assert member(lake, POOL, "gone") == found[0]
    with pytest.raises(NotBuilt, match="macroxue/pack gone is not built"):
        member(lake, "macroxue/pools/other", "gone")


def test_a_view_file_names_its_source_annotations_and_settings(tmp_path):
    path = _file(tmp_path, 'pack = "a"\n', "views")
    assert read_view_file(path) == ViewFile("macroxue/pack", "a", "", {})
    text = 'pool = "b"\nannotations = "s"\n[macroxue.training_view]\nnum_bins = 5\n'
    found = read_view_file(_file(tmp_path, text, "views"))
    assert found == ViewFile("macroxue/pool", "b", "s", {"num_bins": 5})
    assert found.artifact == "macroxue/pools/b"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must name the pack or the pool"),
        ('pack = "a"\npool = "b"', "must name the pack or the pool"),
        ("pack = 1", "`pack` must be a name"),
        ('pool = "a/b"', "`pool`: "),
        ('pack = "a"\nannotations = "../x"', "`annotations`: "),
        ('pack = "a"\nmembers = []', 'unknown key "members"'),
        ('pack = "a"\n[macroxue.pool]\nshard_rows = 1', "only .macroxue.training_view. is read"),
        ('pack = "a"\n[macroxue.training_view]\nnum_bins = -1', "num_bins = -1: must be"),
        ('pack = "a"\n[macroxue.training_view]\ntrain_query = "SELECT 1"', "belong together"),
    ],
)
def test_a_view_file_that_breaks_a_rule_is_refused(tmp_path, text, rule):
    path = _file(tmp_path, text, "views")
    with pytest.raises(BadInput, match=rule) as caught:
        read_view_file(path)
    assert caught.value.file == str(path)


def test_a_view_waits_for_its_source(tmp_path):
    path = _file(tmp_path, 'pack = "a"\n', "views")
    with pytest.raises(Waits, match=r"waits: .*macroxue/pack a is not built"):
        view_needs(path, tmp_path, lambda *_: True)


def test_other_settings_and_annotations_are_a_change(tmp_path):
    path = _file(tmp_path, 'pack = "a"\nannotations = "s"\n', "views")
    recorded = {"num_bins": 32, "gaps": "mark"}
    used = ["drops/annotations/s/annotations-000000.npy"]
    assert view_change(path, tmp_path, recorded, used) == ""
    assert view_change(path, tmp_path, recorded, []) == "the annotations are now s"
    assert (
        view_change(path, tmp_path, {**recorded, "num_bins": 5}, used)
        == "num_bins is now 32, was 5"
    )


GAMES = [play(seed, 20) for seed in range(4)]
STEPS, RUNS = step_rows(GAMES), run_table(GAMES)
FIRST = "annotations-000000.npy"


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    return write_annotations(tmp_path / "drop", write_pack(tmp_path / "p", GAMES), files=3)


def _changed(drop: Path, change: Callable[[np.ndarray], object], name: str = FIRST) -> None:
    rows = np.load(drop / name)
    change(rows)
    np.save(drop / name, rows)


def test_rows_are_found_by_game_and_steps_without_annotation_have_no_place(drop, tmp_path):
    found = Annotations(drop)
    assert (found.rows, found.maps[STUDENT][0].dtype["bins"].shape) == (len(STEPS), (4, BINS))
    own = STEPS[STEPS["run_id"] == 2]
    places = found.places(replace(RUNS[2], id=77), own)
    assert places.tolist() == np.flatnonzero(STEPS["run_id"] == 2).tolist()
    assert np.array_equal(found.take(ROWS, places)["teacher_move"], own["move_dir"])
    assert (found.places(replace(RUNS[2], max_score=1), own) == -1).all()
    part = write_annotations(tmp_path / "part", tmp_path / "p", keep=slice(5, None))
    places = Annotations(part).places(RUNS[0], STEPS[STEPS["run_id"] == 0])
    assert places.tolist() == [-1] * 5 + list(range(len(places) - 5))


def test_an_account_takes_the_files_of_the_annotator_and_an_unknown_teacher_move(drop):
    (drop / "notes.txt").write_text("x")
    found = account(drop)
    assert len(found.taken[""]) == 3 * 4 + 3
    assert found.left_out == {"notes.txt": "no file of annotations"}
    _changed(drop, lambda rows: rows["teacher_move"].put(3, 255))
    assert json.loads((drop / MANIFEST).read_text())["kinds"]
    assert (Annotations(drop).places(RUNS[0], STEPS[STEPS["run_id"] == 0]) >= 0).all()


def _manifest(text: str) -> Callable[[Path], object]:
    return lambda drop: (drop / MANIFEST).write_text(text)


def _cut(drop: Path) -> None:
    path = drop / FIRST
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (lambda drop: [file.unlink() for file in drop.glob("annotations-0*")], "no folder of"),
        (lambda drop: (drop / FIRST).write_bytes(b"x"), "no npy header that can be read"),
        (lambda drop: np.save(drop / FIRST, np.zeros(3)), "is not what annotations-"),
        (lambda drop: np.save(drop / "annotations-student-000000.npy", STEPS), "is not what"),
        (_cut, "copy it again"),
        (lambda drop: (drop / "annotations-value-000002.npy").unlink(), "not as many rows as"),
        (lambda drop: (drop / MANIFEST).unlink(), "is missing"),
        (_manifest("[]"), "is not an object"),
        (_manifest("{"), MANIFEST),
        (lambda drop: (drop / "metadata.db").unlink(), "metadata.db"),
        (lambda drop: _changed(drop, lambda rows: rows["run_id"].put(1, 3)), "sort them by run"),
    ],
)
def test_a_damaged_folder_is_refused(drop, damage, rule):
    damage(drop)
    with pytest.raises(BadInput, match=rule):
        account(drop)


@pytest.mark.parametrize(
    ("column", "row", "value", "rule"),
    [
        ("step_index", 3, 900, "step_index falls"),
        ("step_index", 19, 900, "step 900 is not in the game"),
        ("teacher_move", 3, 9, "step 3: teacher_move is 9, the game's move is"),
    ],
)
def test_annotations_of_another_game_are_refused(drop, column, row, value, rule):
    _changed(drop, lambda rows: rows[column].put(row, value))
    with pytest.raises(BadInput, match=rule):
        Annotations(drop).places(RUNS[0], STEPS[STEPS["run_id"] == 0])
