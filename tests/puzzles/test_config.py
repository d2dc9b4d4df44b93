"""Built-in recipes: each is one that a file could say."""

import json
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gristmill import families
from gristmill.contract import BadInput
from gristmill.data_root import DataRoot, NotReady
from gristmill.families import Subject
from gristmill.hashing import sha256_file
from gristmill.inbox import ARRIVING, READY, REFUSED, UNREAD, WAITS
from gristmill.keys import BadKey
from gristmill.puzzles import builds as known
from gristmill.puzzles.config import (
    BUILT_IN,
    CONFIGS,
    KINDS,
    ArcConfig,
    Recipe,
    is_part,
    read_recipe_file,
)
from gristmill.puzzles.raw.samples import (
    GRIDS,
    MAZES,
)
from gristmill.untrusted.files import LinkRule
from tests.puzzles.kinds import built


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')


@pytest.mark.parametrize("recipe", BUILT_IN.values(), ids=lambda recipe: str(recipe.name))
def test_a_built_in_recipe_is_one_that_a_file_of_its_name_could_say(recipe, tmp_path):
    lines = [f'kind = "{recipe.kind}"', f"sources = {shown(list(recipe.sources))}", "[settings]"]
    lines += [f"{name} = {shown(value)}" for name, value in recipe.settings.items()]
    path = tmp_path / f"{recipe.name}.toml"
    path.write_text("\n".join(lines))
    assert read_recipe_file(path) == recipe


def test_every_kind_has_a_config_and_a_recipe():
    assert set(KINDS) == set(CONFIGS) == {recipe.kind for recipe in BUILT_IN.values()}


def test_the_recipes_of_the_original_have_its_settings():
    assert BUILT_IN["arc-aug-1000"].settings == {"num_aug": 1000, "dtype": "uint8"}
    assert BUILT_IN["arc-aug-1000"].sources == ("arc_agi", "concept_arc/corpus")
    assert BUILT_IN["arc-1-aug-1000"].settings == BUILT_IN["arc-aug-1000"].settings
    assert BUILT_IN["arc-1-aug-1000"].sources == ("arc_agi",)
    assert BUILT_IN["arc-2-aug-1000"].settings == BUILT_IN["arc-aug-1000"].settings
    assert BUILT_IN["arc-2-aug-1000"].sources == ("arc_agi_2",)
    for name in ("arc", "arc-1", "arc-2"):
        first = BUILT_IN[f"{name}-aug-20"]
        assert not first.is_large and BUILT_IN[f"{name}-aug-1000"].is_large
        assert first.sources == BUILT_IN[f"{name}-aug-1000"].sources
        assert ArcConfig(**first.settings) == ArcConfig(num_aug=20)  # int32, as the original says
    assert BUILT_IN["domino-optimal-play"].settings == {}
    assert BUILT_IN["maze-30x30-hard-1k"].settings == {}


def test_of_built_in_recipes_arc_alone_is_part_of_another_one():
    pairs = {
        (one.name, two.name)
        for one in BUILT_IN.values()
        for two in BUILT_IN.values()
        if is_part(one, two)
    }
    assert pairs == {(f"arc-1-aug-{count}", f"arc-aug-{count}") for count in (20, 1000)}
    whole = BUILT_IN["arc-aug-1000"]
    assert not is_part(Recipe("arc-1-aug-1000", "arc", ("arc_agi",)), whole), "a person's own"


def written(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as error:
        read_recipe_file(path)
    assert error.value.file == str(path)
    return error.value.rule


def test_a_recipe_has_a_kind_sources_and_settings(tmp_path):
    path = written(
        tmp_path,
        'kind = "arc"\nsources = ["arc_agi", "concept_arc/corpus", "concept_arc/more"]\n'
        '[settings]\nnum_aug = 5\ndtype = "uint8"\n',
    )
    recipe = read_recipe_file(path)
    assert recipe == Recipe(
        "mine",
        "arc",
        ("arc_agi", "concept_arc/corpus", "concept_arc/more"),
        {"num_aug": 5, "dtype": "uint8"},
    )
    assert recipe.drops == ("arc_agi", "concept_arc")
    assert recipe.asset == "puzzles/arc"


def test_domino_needs_no_source(tmp_path):
    assert read_recipe_file(written(tmp_path, 'kind = "domino"')) == Recipe("mine", "domino")


def test_a_file_takes_the_place_of_a_built_in_recipe_of_the_same_kind(tmp_path):
    path = written(tmp_path, 'kind = "domino"\nsettings.num_games = 3', "domino-sample")
    assert read_recipe_file(path).settings == {"num_games": 3}


ARC = 'kind = "arc"\nsources = ["a"]\n'


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "`kind` is missing: it must be one of arc, sudoku, maze, domino"),
        ('kind = "chess"', 'kind = "chess": must be one of arc, sudoku, maze, domino'),
        ("kind = 3", "kind = 3: must be one of arc"),
        ('kind = ["arc"]', 'kind = ["arc"]: must be one of arc'),
        ('kind = "arc"', "`sources` must name from 1 to 100 folders, each once"),
        ('kind = "arc"\nsources = []', "`sources` must name from 1 to 100"),
        ('kind = "arc"\nsources = ["a", "a"]', "each once"),
        (f'kind = "arc"\nsources = {[str(n) for n in range(101)]}', "from 1 to 100"),
        ('kind = "arc"\nsources = "a"', "`sources` must be a list of folders"),
        ('kind = "arc"\nsources = [1]', "`sources` must be a list of folders"),
        ('kind = "arc"\nsources = ["../x"]', "`sources`: \"../x\": the name '..' may hold only"),
        ('kind = "arc"\nsources = ["/etc"]', "`sources`: \"/etc\": the name '' may hold only"),
        ('kind = "arc"\nsources = ["a//b"]', "may hold only"),
        ('kind = "arc"\nsources = ["a/.hidden"]', "may hold only"),
        (f'kind = "arc"\nsources = ["{"/".join("a" * 17)}"]', "has more than 16 folders"),
        ('kind = "arc"\nsources = ["recipes/x"]', "recipes holds recipe files"),
        ('kind = "domino"\nsources = ["a"]', "domino makes its puzzles itself"),
        (ARC + "settings = 3", "[settings] must be a table, not 3"),
        (ARC + "[settings]\nnum_aug = -1", "[settings] num_aug = -1: must be a whole number"),
        (ARC + "[settings]\nnum_agu = 1", "num_agu: unknown key: did you mean num_aug?"),
        (ARC + "[settings]\naug = true", "[settings] aug: unknown key"),
        (ARC + "num_aug = 1", "num_aug is a setting: write it below a line [settings]"),
        (ARC + "source = 1", 'unknown key "source": did you mean sources?'),
        ("[[", "not TOML"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_field_and_rule(tmp_path, text, rule):
    assert rule in refusal(written(tmp_path, text))


def test_a_name_of_a_built_in_recipe_of_another_kind_is_refused(tmp_path):
    path = written(tmp_path, 'kind = "sudoku"\nsources = ["a"]', "arc-aug-1000")
    assert refusal(path) == (
        'kind = "sudoku": the built-in recipe arc-aug-1000 has the kind arc, and a name has one '
        "kind: rename the file"
    )


def test_a_name_that_is_no_partition_key_is_refused(tmp_path):
    assert "may hold only" in refusal(written(tmp_path, ARC, "two words"))


def test_a_file_that_is_gone_says_how_to_forget_it(tmp_path):
    rule = refusal(tmp_path / "mine.toml")
    assert "is gone: bring it back, or retire its partition with `gristmill retire mine`" in rule
    assert "`gristmill retire -- -a.b`" in refusal(tmp_path / "-a.b.toml")


def test_a_link_is_refused_unless_links_are_followed(tmp_path):
    real = written(tmp_path, 'kind = "domino"', "real")
    (tmp_path / "inbox").mkdir()
    link = tmp_path / "inbox" / "mine.toml"
    link.symlink_to(real)
    assert "is a link" in refusal(link)
    assert read_recipe_file(link, LinkRule(True, (str(tmp_path),))).kind == "domino"


TWO_SOURCES = 'kind = "arc"\nsources = ["tasks", "more/corpus"]\n'


@pytest.fixture
def lake(tmp_path: Path) -> DataRoot:
    return DataRoot(tmp_path)


def put(lake: DataRoot, name: str, text: str) -> Path:
    path = lake.inbox("puzzles/recipes") / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_adds_a_recipe_or_takes_the_place_of_a_built_in_one(lake):
    assert known.recipes(lake) == dict(BUILT_IN)
    put(lake, "mine", TWO_SOURCES)
    put(lake, "domino-sample", 'kind = "domino"\nsettings.num_games = 7\n')
    put(lake, "broken", "kind = 3")
    put(lake, "not a key", TWO_SOURCES)
    every = known.recipes(lake)
    assert every["mine"] == Recipe("mine", "arc", ("tasks", "more/corpus"))
    assert every["domino-sample"].settings == {"num_games": 7}
    assert set(every) == {*BUILT_IN, "mine"}


def put_tasks(lake: DataRoot, source: str) -> Path:
    """Write a task of TWO_SOURCES into a source; returns its drop."""
    folder = lake.inbox("puzzles") / source / "training"
    folder.mkdir(parents=True)
    pair = {"input": [[0, 1]], "output": [[1, 0]]}
    (folder / "0.json").write_text(json.dumps({"train": [pair], "test": [pair]}))
    return lake.inbox("puzzles") / source.partition("/")[0]


def test_a_recipe_waits_until_all_its_sources_are_there(lake):
    path = put(lake, "mine", TWO_SOURCES)
    mine = known.recipes(lake)["mine"]
    assert known.missing_sources(lake, mine) == ["tasks", "more/corpus"]
    put_tasks(lake, "tasks")
    (lake.inbox("puzzles") / "more").mkdir()
    assert known.missing_sources(lake, mine) == ["more/corpus"]
    found = lake.judged("puzzles/recipes", path)
    assert found.state == READY
    assert "waits for drops/puzzles/more/corpus: bring it" in found.reason
    with pytest.raises(NotReady, match="mine waits for drops/puzzles/more/corpus") as caught:
        known.ready_sources(lake, mine)
    assert caught.value.state == WAITS
    more = put_tasks(lake, "more/corpus")
    assert lake.judged("puzzles/recipes", path).line == "ready"
    known.ready_sources(lake, mine)
    (more / ".incomplete").touch()
    assert lake.judged("puzzles/recipes", path).line.startswith("ready: ")
    with pytest.raises(NotReady, match="waits for drops/puzzles/more/corpus"):
        known.ready_sources(lake, mine)
    built_in = known.recipes(lake)["arc-aug-1000"]
    (put_tasks(lake, "arc_agi") / ".incomplete").touch()
    put_tasks(lake, "concept_arc/corpus")
    with pytest.raises(NotReady) as caught:
        known.ready_sources(lake, built_in)
    assert caught.value.state == ARRIVING
    assert known.missing_sources(lake, mine, lambda _, name: name == "more") == ["tasks"]


def test_a_drop_that_no_recipe_reads_says_which_one_to_write(lake):
    drop = put_tasks(lake, "tasks")
    found = lake.judged("puzzles", drop)
    assert found.state == UNREAD
    assert f"write {lake.inbox('puzzles/recipes')}/NAME.toml" in found.reason
    assert 'sources = ["tasks"]' in found.reason
    mistaken = put(lake, "mine", TWO_SOURCES.replace("arc", "Arc"))
    found = lake.judged("puzzles", drop)
    assert f"reads it: correct {mistaken}, which is refused, or write " in found.reason
    put(lake, "mine", TWO_SOURCES)
    found = lake.judged("puzzles", drop)
    assert (found.state, "the recipe mine waits for drops/puzzles/more/corpus" in found.reason) == (
        READY,
        True,
    )
    put(lake, "alone", 'kind = "arc"\nsources = ["tasks"]\n')
    assert lake.judged("puzzles", drop).line == "ready"


def test_a_drop_is_read_with_the_settings_of_its_builds(lake):
    drop = put_tasks(lake, "tasks")
    (drop / "training").rename(drop / "Evaluation")
    put(lake, "alone", 'kind = "arc"\nsources = ["tasks"]\n')
    assert "rename it" in lake.judged("puzzles", drop).reason
    settings = lake.root / "gristmill.toml"
    settings.write_text('[puzzles.arc]\nevaluation = ["Evaluation"]\n')
    assert lake.judged("puzzles", drop).line == "ready"
    (drop / "broken").mkdir()
    (drop / "broken/a.json").write_text("{")
    assert lake.judged("puzzles", drop).state == REFUSED
    put(lake, "alone", 'kind = "arc"\nsources = ["tasks"]\nsettings.subsets = ["Evaluation"]\n')
    assert lake.judged("puzzles", drop).line == "ready"
    settings.write_text("[puzzles.arc]\nevaluation = 3\n")
    assert "gristmill.toml" in lake.judged("puzzles", drop).reason


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        ("sudoku", ["a.txt", "sub/b.txt"]),
        ("arc", ["sub/a.json", "x_training_challenges.json", "sub/training/b.json"]),
    ],
)
def test_a_source_in_another_one_is_no_change_of_the_sources(lake, kind, read):
    path = put(lake, "mine", f'kind = "{kind}"\nsources = ["own", "own/sub"]\n')
    raw = [f"drops/puzzles/own/{name}" for name in read]
    assert known.recipe_change(path, lake.root, {}, raw) == ""
    assert known.recipe_change(path, lake.root, {}, raw[:-1]) == "the sources are now own, own/sub"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_folder_near_the_root_of_the_disk_is_no_drop_of_a_data_root(depth):
    folder = Path("/", *(f"no-such-{number}" for number in range(depth)))
    with pytest.raises(FileNotFoundError):
        known.drop_account(folder)


def test_a_recipe_is_wanted_by_a_drop_a_file_or_a_dataset_and_not_for_being_built_in(lake):
    assert known.wanted(lake) == set()
    (lake.inbox("puzzles") / "arc_agi").mkdir(parents=True)
    known_of = {name: each for name, each in BUILT_IN.items() if "arc_agi" in each.drops}
    wanted = {name for name, each in known_of.items() if not each.is_large}
    assert wanted
    assert known.wanted(lake) == wanted
    put(lake, "mine", TWO_SOURCES)
    record = lake.root / "puzzles/domino-sample/provenance.json"
    record.parent.mkdir(parents=True)
    record.touch()
    assert known.wanted(lake) == {*wanted, "mine", "domino-sample"}


def test_a_partition_of_the_wrong_kind_names_the_right_asset(lake):
    put(lake, "mine", TWO_SOURCES)
    assert known.recipe_of(lake, "arc", "mine").kind == "arc"
    with pytest.raises(BadInput, match="mine is a recipe of the kind arc: build puzzles/arc, not"):
        known.recipe_of(lake, "sudoku", "mine")
    with pytest.raises(NotReady, match=r"never\.toml: the drop is gone: bring it back, or"):
        known.recipe_of(lake, "arc", "never")


def test_a_partition_that_is_no_key_names_no_file(lake):
    with pytest.raises(
        BadKey, match=r"^the name '\.\./\.\./x' may hold only ASCII letters"
    ) as caught:
        known.recipe_of(lake, "arc", "../../x")
    assert "retire" not in str(caught.value)


def test_a_name_that_a_dataset_of_another_kind_has_is_refused(lake, monkeypatch):
    path = put(lake, "mine", TWO_SOURCES)
    record = lake.root / "puzzles/mine/provenance.json"
    record.parent.mkdir(parents=True)
    record.touch()
    published = SimpleNamespace(asset="puzzles/maze")
    monkeypatch.setattr(known.provenance, "read_record", lambda _: published)
    found = lake.judged("puzzles/recipes", path)
    assert found.state == REFUSED
    assert "puzzles/maze has published a dataset of the name mine" in found.reason
    assert "mine" not in known.recipes(lake)
    with pytest.raises(BadInput, match="has published a dataset of the name mine"):
        known.recipe_of(lake, "arc", "mine")
    published.asset = "puzzles/arc"
    assert lake.judged("puzzles/recipes", path).line.startswith("ready: ")


def test_a_drop_without_a_recipe_gets_the_lines_that_fit_it(lake):
    board = "1" * 81
    for name, text, made in (
        ("mine/sudoku.csv", f"quizzes,solutions\n{board},{board}\n", '`kind = "sudoku"`'),
        ("own/a.jsonl", '{"input": [[1]], "output": [[2]]}\n', "`[settings]`, `values = 3`"),
    ):
        drop = lake.inbox("puzzles") / name.partition("/")[0]
        drop.mkdir(parents=True)
        (drop.parent / name).write_text(text)
        found = lake.judged("puzzles", drop)
        assert found.state == UNREAD
        assert made in found.reason and f'`sources = ["{drop.name}"]`' in found.reason


SAMPLES = [
    ("arc", "cc42ac7bdf5aea3a", 270),
    ("sudoku", "23b437ad0ea73d72", 48 * 4),
    ("maze", "94686729c150de5f", MAZES["train"] * 8),
    ("grid", "8369020d4bc1950b", GRIDS["train"] * 8),
]
"""The bytes of samples decide fingerprints: another version of Python must write the same."""


@pytest.mark.parametrize(("kind", "digest", "examples"), SAMPLES)
def test_a_sample_is_the_same_everywhere_and_breaks_no_law(tmp_path, kind, digest, examples):
    out, drop = built(kind, tmp_path), tmp_path / "drop"
    files = "".join(
        f"{path.relative_to(drop)} {sha256_file(path)}\n" for path in sorted(drop.rglob("*.*"))
    )
    assert sha256(files.encode()).hexdigest()[:16] == digest
    assert len(np.load(out / "train/all__inputs.npy")) == examples, "no puzzle is there twice"
    assert list(families.check(f"puzzles/{kind}", Subject(out))) == []
