"""The file that says how a partition is built, as `ls` and `verify` see it beside the artifact."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gristmill.contract import FileNote, GristmillError, Summary
from gristmill.data_root.states import DropStates, account_of, of_artifacts
from gristmill.inbox.listing import Account, ColumnState
from gristmill.macroxue.config import MergeConfig
from gristmill.provenance.list_artifacts import Listed, list_artifacts
from gristmill.provenance.raw_inputs import raw_inputs
from gristmill.publish.build import Attempt, Build
from gristmill.publish.publish import publish
from gristmill.puzzles.config import ArcConfig, DominoConfig
from resources import Lake
from tests.assets.puzzles.drops import put_recipe, put_tasks

POOL, DOTS, TASKS = (
    "drops/pools/both.toml",
    *(f"drops/puzzles/recipes/{name}.toml" for name in ("dots", "tasks")),
)


def _make(attempt: Attempt) -> Summary:
    attempt.out.mkdir()
    (attempt.out / "rows.txt").write_text("1\n")
    return Summary(files={"rows.txt": FileNote(rows=1)})


def _publish(root: Path, artifact: str, asset: str, config: Any, **more: Any) -> None:
    key = artifact.rpartition("/")[2]
    more.setdefault("inputs", [])
    publish(Build(root, artifact, asset, key, "1", config=config, make=_make, **more))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A pool of two packs, and two datasets: one of a recipe with sources, one without."""
    lake = Lake(data_root=str(tmp_path / "data"))
    for name in ("one", "two", "three"):
        _publish(lake.root, f"macroxue/packs/{name}", "macroxue/pack", MergeConfig())
    packs = [
        lake.published(f"macroxue/packs/{name}", "macroxue/pack", name) for name in ("one", "two")
    ]
    pool = MergeConfig(names=("one", "two"), shard_rows=9, workers=3)
    _publish(lake.root, "macroxue/pools/both", "macroxue/pool", pool, inputs=packs)
    (lake.root / POOL).parent.mkdir(parents=True)
    (lake.root / POOL).write_text(_pool('"one", "two"', "shard_rows = 9"))
    put_recipe(lake, "dots", "domino", num_aug=3)
    _publish(lake.root, "puzzles/dots", "puzzles/domino", DominoConfig(num_aug=3))
    folders = [put_tasks(lake, "second"), put_tasks(lake, "first/deep")]
    files = [path for folder in folders for path in sorted(folder.rglob("*.json"))]
    raw = raw_inputs(lake.root, files, "puzzles/raw", "first", {})
    put_recipe(lake, "tasks", "arc", ["second", "first/deep"])
    _publish(lake.root, "puzzles/tasks", "puzzles/arc", ArcConfig(), inputs=raw)
    return lake.root


def _pool(members: str, settings: str = "") -> str:
    return f"members = [{members}]\n[macroxue.pool]\n{settings}\n"


def _listed(root: Path, name: str) -> Listed:
    (found,) = (
        item
        for item in list_artifacts(root, state_of=lambda above: DropStates(above).of)
        if Path(item.folder).name == name
    )
    return found


def test_a_file_that_did_not_change_is_a_drop_of_its_artifact(root):
    for name, file in (("both", POOL), ("dots", DOTS), ("tasks", TASKS)):
        found = _listed(root, name)
        assert (found.state, found.why) == ("current", "")
        assert found.drops[-1] == file
        assert DropStates(root).is_taken(root / file)
    assert of_artifacts(root) == ([], [])


@pytest.mark.parametrize(
    ("name", "file", "text", "change"),
    [
        ("both", POOL, _pool('"two", "one"', "shard_rows = 9"), "the members are now two, one"),
        ("both", POOL, _pool('"one", "two"'), "shard_rows is now 0, was 9"),
        (
            "both",
            POOL,
            _pool('"one", "two", "three"', 'layout = "packed46"\nshard_rows = 9'),
            'the members are now one, two, three; layout is now "packed46", was "aligned48"',
        ),
        ("dots", DOTS, 'kind = "domino"\n', "num_aug is now 0, was 3"),
        ("tasks", TASKS, 'kind = "arc"\nsources = ["second"]\n', "the sources are now second"),
        (
            "tasks",
            TASKS,
            'kind = "arc"\nsources = ["first/deep", "second"]\n',
            "the sources are now first/deep, second",
        ),
        (
            "tasks",
            TASKS,
            'kind = "arc"\nsources = ["second"]\n[settings]\nseed = 8\n',
            "the sources are now second; seed is now 8, was 42",
        ),
    ],
)
def test_a_file_of_another_build_changes_an_input(root, name, file, text, change):
    (root / file).write_text(text)
    found = _listed(root, name)
    assert (found.state, found.why) == ("input changed", f"{file}: {change}")
    violations, notes = of_artifacts(root)
    assert (violations, notes[-1]) == ([], f"{file}: {change}")
    assert all(": no recipe reads it: " in note for note in notes[:-1])
    assert not DropStates(root).is_taken(root / file)


def test_fields_that_change_no_output_and_equal_values_are_no_change(root):
    (root / POOL).write_text(_pool('"one", "two"', "shard_rows = 9\nworkers = 1"))
    (root / DOTS).write_text('kind = "domino"\n')
    (root / "gristmill.toml").write_text("[puzzles.domino]\nnum_aug = 3\n")
    assert [_listed(root, name).state for name in ("both", "dots")] == ["current"] * 2
    assert of_artifacts(root) == ([], [])


def test_settings_of_the_data_root_that_are_refused_are_named(root):
    (root / "gristmill.toml").write_text("[macroxue.pool]\nshard_rows = -1\n")
    found = _listed(root, "both")
    assert found.state == "input changed"
    assert "gristmill.toml: [macroxue.pool] shard_rows = -1: must be" in found.why
    assert _listed(root, "dots").state == "current"


@pytest.mark.parametrize(
    ("name", "file", "spoil", "state", "reason"),
    [
        ("both", POOL, lambda path: path.write_text("members = 3\n"), "refused", "must be a list"),
        ("dots", DOTS, lambda path: path.write_text('kind = "tarot"'), "refused", "tarot"),
        ("dots", DOTS, lambda path: path.write_text('kind = "maze"\n'), "refused", "from 1 to 100"),
        ("both", POOL, Path.unlink, "gone", "`gristmill retire both`"),
        ("dots", DOTS, Path.unlink, "gone", "`gristmill retire dots`"),
        (
            "both",
            POOL,
            lambda path: path.write_text(_pool('"one", "four"')),
            "waits",
            "waits for macroxue/pack four",
        ),
        (
            "tasks",
            TASKS,
            lambda path: path.with_name("tasks.toml.incomplete").touch(),
            "arriving",
            "tasks.toml.incomplete says",
        ),
    ],
)
def test_the_state_of_the_file_is_that_of_its_artifact(root, name, file, spoil, state, reason):
    spoil(root / file)
    found = _listed(root, name)
    shown = {"gone": "current (inputs gone)", "waits": "waits"}.get(state, f"drop {state}")
    assert found.state == shown and reason in found.why
    violations, notes = of_artifacts(root)
    if state == "refused":
        (broken,) = violations
        assert (broken.law, broken.where) == ("drop", str(root / file))
        assert broken.found == f"is refused: {found.why}" and notes == []
    else:
        (note,) = notes
        of_drop = "ready" if state == "waits" else state
        assert note.startswith(f"{file}: {of_drop}: ") and reason in note and violations == []


def test_a_built_in_recipe_needs_no_file_and_is_compared_with_one_that_replaces_it(root):
    config = DominoConfig(num_games=9)
    _publish(root, "puzzles/domino-optimal-play", "puzzles/domino", config)
    assert _listed(root, "domino-optimal-play").state == "current"
    assert of_artifacts(root) == ([], [])
    lake = Lake(data_root=str(root))
    file = put_recipe(lake, "domino-optimal-play", "domino", num_games=9)
    assert _listed(root, "domino-optimal-play").state == "current"
    put_recipe(lake, "domino-optimal-play", "domino", num_games=10)
    why = f"{file.relative_to(root)}: num_games is now 10, was 9"
    assert _listed(root, "domino-optimal-play").why == why


def test_a_partition_that_is_no_key_names_no_file(root):
    """A record may say anything: `..` must not lead out of the inbox."""
    from gristmill.families import Kind, PartitionFile

    kind = Kind("macroxue/pool", file=PartitionFile("pools", lambda *_: ""))
    assert kind.file_of(root, "both") == root / POOL
    for partition in (None, "", "../pools/both", "a/b"):
        assert kind.file_of(root, partition) is None
    assert replace(kind, file=None).file_of(root, "both") is None


RECIPE = 'schema = 1\nname = "mine"\nquestion = "q"\nanswer = "a"\n'


def test_the_account_of_a_drop_is_of_its_first_rows_and_once_built_of_its_records(tmp_path):
    drop = tmp_path / "drops/reasoning/mine"
    drop.mkdir(parents=True)
    (drop / "corpus.toml").write_text(RECIPE)
    (drop / "train.jsonl").write_text('{"q": "1?", "a": "1", "why": "so"}\n')
    (drop / "notes.txt").write_text("no data")
    said = [*account_of(tmp_path, "reasoning/mine")]
    assert said[:3] == [
        "drops/reasoning/mine, by its first rows",
        "  train: 1 file taken",
        "  1 left out: notes.txt (no data file)",
    ]
    assert said[-2:] == ["  read: q (question), a (answer)", '  not read: why (as "so")']
    assert [*account_of(tmp_path, str(drop))] == said

    inputs = raw_inputs(tmp_path, [drop / "train.jsonl"], "reasoning/raw", "mine__train", {})
    account = Account({"": ["train.jsonl"]}, {}, ["a note"])
    more = {"inputs": inputs, "account": account}
    given: list[Any] = []

    def columns(counts: Any) -> list[ColumnState]:
        given.append(counts)
        return [ColumnState("late", "unread", rows=3)]

    _publish(tmp_path, "reasoning/x", "reasoning/normalized", ArcConfig(), **more, columns=columns)
    assert [*account_of(tmp_path, "reasoning/mine")] == [
        "reasoning/normalized x",
        "  1 file taken",
        "  a note",
        "  not read: late (in 3 rows)",
    ]
    assert given == [{}]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("reasoning/mne", 'has no drop "reasoning/mne": did you mean reasoning/mine?'),
        ("nothing", "name one as reasoning/gsm8k"),
        ("reasoning", "has no drop"),
        ("reasoning/mine/train.jsonl", "has no drop"),
        ("../elsewhere", "has no drop"),
        ("reasoning/bad", "bad: refused: "),
    ],
)
def test_what_is_no_drop_or_refused_has_no_account(tmp_path, name, rule):
    for key in ("mine", "bad"):
        drop = tmp_path / "drops/reasoning" / key
        drop.mkdir(parents=True)
        (drop / "corpus.toml").write_text(RECIPE)
        (drop / "train.jsonl").write_text('{"q": "1?", "a": "1"}\n')
    (tmp_path / "drops/elsewhere").mkdir()
    with pytest.raises(GristmillError) as raised:
        list(account_of(tmp_path, name))
    assert rule in str(raised.value)
