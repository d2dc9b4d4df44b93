"""Built-in recipes: each is one that a file could say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.contract import BadInput
from gristmill.puzzles.raw.recipes import (
    BUILT_IN,
    CONFIGS,
    KINDS,
    Recipe,
    is_part,
    read_recipe_file,
)
from gristmill.untrusted.files import LinkRule


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')


@pytest.mark.parametrize("recipe", BUILT_IN.values(), ids=lambda recipe: str(recipe.name))
def test_a_built_in_recipe_is_one_that_a_file_of_its_name_could_say(
    recipe: Recipe, tmp_path: Path
) -> None:
    lines = [f'kind = "{recipe.kind}"', f"sources = {shown(list(recipe.sources))}", "[settings]"]
    lines += [f"{name} = {shown(value)}" for name, value in recipe.settings.items()]
    path = tmp_path / f"{recipe.name}.toml"
    path.write_text("\n".join(lines))
    assert read_recipe_file(path) == recipe


def test_every_kind_has_a_config_and_a_recipe() -> None:
    assert set(KINDS) == set(CONFIGS) == {recipe.kind for recipe in BUILT_IN.values()}


def test_the_recipes_of_the_original_have_its_settings() -> None:
    assert BUILT_IN["arc-aug-1000"].settings == {"num_aug": 1000, "dtype": "uint8"}
    assert BUILT_IN["arc-aug-1000"].sources == ("arc_agi", "concept_arc/corpus")
    assert BUILT_IN["arc-1-aug-1000"].settings == BUILT_IN["arc-aug-1000"].settings
    assert BUILT_IN["arc-1-aug-1000"].sources == ("arc_agi",)
    assert BUILT_IN["arc-2-aug-1000"].settings == BUILT_IN["arc-aug-1000"].settings
    assert BUILT_IN["arc-2-aug-1000"].sources == ("arc_agi_2",)
    assert BUILT_IN["domino-optimal-play"].settings == {}
    assert BUILT_IN["maze-30x30-hard-1k"].settings == {}


def test_of_built_in_recipes_arc_alone_is_part_of_another_one() -> None:
    pairs = {
        (one.name, two.name)
        for one in BUILT_IN.values()
        for two in BUILT_IN.values()
        if is_part(one, two)
    }
    assert pairs == {("arc-1-aug-1000", "arc-aug-1000")}
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


def test_a_recipe_has_a_kind_sources_and_settings(tmp_path: Path) -> None:
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


def test_domino_needs_no_source(tmp_path: Path) -> None:
    assert read_recipe_file(written(tmp_path, 'kind = "domino"')) == Recipe("mine", "domino")


def test_a_file_takes_the_place_of_a_built_in_recipe_of_the_same_kind(tmp_path: Path) -> None:
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
def test_a_file_that_breaks_a_rule_is_refused_by_field_and_rule(
    tmp_path: Path, text: str, rule: str
) -> None:
    assert rule in refusal(written(tmp_path, text))


def test_a_name_of_a_built_in_recipe_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'kind = "sudoku"\nsources = ["a"]', "arc-aug-1000")
    assert refusal(path) == (
        'kind = "sudoku": the built-in recipe arc-aug-1000 has the kind arc, and a name has one '
        "kind: rename the file"
    )


def test_a_name_that_is_no_partition_key_is_refused(tmp_path: Path) -> None:
    assert "may hold only" in refusal(written(tmp_path, ARC, "two words"))


def test_a_file_that_is_gone_says_how_to_forget_it(tmp_path: Path) -> None:
    rule = refusal(tmp_path / "mine.toml")
    assert "is gone: bring it back, or retire its partition with `gristmill retire mine`" in rule
    assert "`gristmill retire -- -a.b`" in refusal(tmp_path / "-a.b.toml")


def test_a_link_is_refused_unless_links_are_followed(tmp_path: Path) -> None:
    real = written(tmp_path, 'kind = "domino"', "real")
    (tmp_path / "inbox").mkdir()
    link = tmp_path / "inbox" / "mine.toml"
    link.symlink_to(real)
    assert "is a link" in refusal(link)
    assert read_recipe_file(link, LinkRule(True, (str(tmp_path),))).kind == "domino"
