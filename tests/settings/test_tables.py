"""Files of settings: which tables and keys there may be, in the data root and in drops."""

import dataclasses
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from gristmill import families
from gristmill.chess.config import MonthConfig
from gristmill.contract import BadInput
from gristmill.macroxue.config import MergeConfig
from gristmill.settings import tables
from gristmill.settings.fields import Positive, Workers
from gristmill.settings.tables import (
    FILE,
    AlertSettings,
    InboxSettings,
    MirrorSettings,
    Settings,
    Table,
    drop_refusal,
    given_values,
    read_drop,
    read_root,
    resolve,
)
from tests.settings.page import on_the_page, rendered


@dataclass(frozen=True)
class Mill:
    stones: Positive = 2
    grains: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True)
class Source:
    drop: str | None = None


MILL = Table("corn/mill", Mill, ["corn"], root=Source, not_set={"place": "the asset knows it"})
BREAD = Table("corn/bread", Mill)
TABLES = {
    table.name: table for table in (MILL, BREAD, Table("oats/mill", Mill), Table("all", Mill))
}


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / FILE
    file.write_text(text)
    return file


def test_tables_of_the_root_are_read_and_a_mistake_stops_one_family(tmp_path):
    file = written(tmp_path, '[corn.mill]\nstones = 3\ngrains = ["rye"]\ndrop = "corn/a"\n')
    expected = {"stones": 3, "grains": ("rye",), "drop": "corn/a"}
    assert read_root(file, MILL, TABLES) == expected
    assert read_root(file, BREAD, TABLES) == {}
    assert read_root(written(tmp_path, "[all]\nstones = 1\n"), TABLES["all"], TABLES) == {
        "stones": 1
    }
    file = written(tmp_path, "[corn.mil]\n[corn.mill]\nstones = 'x'\n[oats.mill]\nstones = 4\n")
    assert read_root(file, TABLES["oats/mill"], TABLES) == {"stones": 4}
    file = written(tmp_path, "[corn.mill]\nstones = 'x'\n[corn.bread]\nstones = 4\n")
    assert read_root(file, BREAD, TABLES) == {"stones": 4}
    file = written(tmp_path, "corn = 1\n[oats.mill]\nstones = 4\n")
    assert read_root(file, TABLES["oats/mill"], TABLES) == {"stones": 4}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[corn", "not TOML"),
        ("x = " + "[" * 5000, "nested deeper than 32 levels"),
        ("corn = 3", r"\[corn\] must hold tables, not 3"),
        ("corn.mill = 3", r"\[corn.mill\] must be a table, not 3"),
        ("[[corn.mill]]\nstones = 3", r"\[corn.mill\] must be a table, not \["),
        ("stones = 3", "outside of a table is the unknown key stones; the tables are"),
        ("corn.stones = 3", r"\[corn\] has the unknown key stones"),
        ("[corn.mil]", r"\[corn.mil\] is an unknown table: did you mean \[corn.mill\]\?"),
        ("[korn.mill]\nstones = 3", r"\[korn\] is an unknown table|\[korn.mill\] is an unknown"),
        ("[xyz.uvw.rst]\na = 1", r"\[xyz.uvw\] is an unknown table; the tables are \[corn.mill\]"),
        ('["corn/mill"]\nstones = 3', r"\[corn/mill\] is an unknown table: did you mean"),
        ("[corn.mill]\nstone = 3", r"\[corn.mill\] stone: unknown key: did you mean stones\?"),
        ("[CORN.MILL]\nstones = 3", r"\[CORN.MILL\] is .*: did you mean \[corn.mill\]\?;"),
        ("[corn.mill]\nSTONES = 3", r"STONES: unknown key: did you mean stones\?"),
        ("[bread]\nstones = 3", r"\[bread\] is .*: did you mean \[corn.bread\]\?;"),
        ("[Mil]", r"\[Mil\] is .*: did you mean \[corn.mill\]\?;"),
        ('[""]', r'\[""\] is an unknown table; the tables'),
        ('[" "."".x]', r'\[" ".""\] is an unknown table; the tables'),
        ('"" = 1', r'the unknown key ""; the tables'),
        ('[corn]\n"" = 1', r'\[corn\] has the unknown key ""; the tables'),
        ('[corn.mill]\n"" = 3', r'\[corn.mill\] "": unknown key; the keys'),
        ("[corn.mill]\nxyz = 3", r"\[corn.mill\] xyz: unknown key; the keys are stones, grains"),
        ("[corn.mill]\nplace = 'x'", r"\[corn.mill\] place: is not allowed: the asset knows it"),
        ("[corn.mill]\nstones = 0", r"\[corn.mill\] stones = 0: must be a whole number, 1 or more"),
        ("[corn.mill]\nstones = 2.0", r"\[corn.mill\] stones = 2.0: must be a whole number"),
        ("[corn.mill]\nstones = 2024-01-01", r"stones = 2024-01-01: must be"),
        ("[corn.mill]\ngrains = 'rye'", r"grains = \"rye\": must be a list"),
        ("[corn.mill.stones]\na = 1", r"stones = a table of 1 keys: must be a whole number"),
    ],
)
def test_a_wrong_file_is_refused_by_file_table_and_key(tmp_path, text, rule):
    file = written(tmp_path, text)
    with pytest.raises(BadInput, match=rule) as caught:
        read_root(file, MILL, TABLES)
    assert caught.value.file == str(file)


def test_a_file_is_parsed_once_until_it_is_another(tmp_path, monkeypatch):
    parsed = []
    read_toml = tables.read_toml
    monkeypatch.setattr(
        tables, "read_toml", lambda file, root: parsed.append(file) or read_toml(file, root=root)
    )
    file = written(tmp_path, "[corn.mill]\nstones = 1\n")
    for number in range(2, 5):  # within a tick of its clock it may be another at any time
        assert read_root(file, MILL, TABLES) == {"stones": number - 1}
        file.write_text(f"[corn.mill]\nstones = {number}\n")
    monkeypatch.setattr(tables, "CLOCK_TICK_NS", 0)
    parsed.clear()
    for _ in range(3):
        assert read_root(file, MILL, TABLES) == {"stones": 4}
        assert read_root(file, BREAD, TABLES) == {}
    assert len(parsed) == 1
    file.write_text("[corn.mill]\nstones = 15\n")
    assert read_root(file, MILL, TABLES) == {"stones": 15}


def test_all_tables_of_a_drop_are_checked(tmp_path):
    file = written(tmp_path, "[corn.mill]\nstones = 3\n")
    assert read_drop(file, "corn", TABLES) == {"corn/mill": {"stones": 3}}
    for text, rule in (
        ("[corn.bread]\nstones = 3", r"\[corn.bread\] is not read from a drop in drops/corn/"),
        ("[corn.mill]\ndrop = 'a'", r"drop: is read from the data root's gristmill.toml only"),
        ("[corn.mill]\nstones = 3\n[oats.mil]", r"\[oats.mil\] is an unknown table"),
        ("[corn.xyz]\n", r"the tables are \[corn.mill\]$"),
        ("[bread]\n", r"\[bread\] is an unknown table; the tables are \[corn.mill\]$"),
        ("[corn.bred]\n", r"\[corn.bred\] is an unknown table; the tables are \[corn.mill\]$"),
        ("[mill]\n", r"\[mill\] .*: did you mean \[corn.mill\]\?; the tables are \[corn.mill\]$"),
    ):
        with pytest.raises(BadInput, match=rule):
            read_drop(written(tmp_path, text), "corn", TABLES)
    with pytest.raises(BadInput, match="no table is read here"):
        read_drop(written(tmp_path, "[xyz]"), "oats", TABLES)


def test_settings_of_a_drop_are_refused_by_a_reason_that_is_short(tmp_path):
    drop = tmp_path / "corn" / "first"
    drop.mkdir(parents=True)
    assert drop_refusal(drop, TABLES) is None
    written(drop, "[corn.mill]\nstones = 3\n")
    assert drop_refusal(drop, TABLES) is None
    written(drop, "[corn.mill]\nstones = true\n")
    refused = drop_refusal(drop, TABLES)
    assert refused == f"{drop / FILE}: [corn.mill] stones = true: must be a whole number, 1 or more"
    for text in (
        f"[corn.mill]\n{'k' * 900_000} = 1\n",
        f'[corn.mill]\nstones = "{"v" * 900_000}"\n',
        f"[corn.{'t' * 900_000}]\n",
        f'"{"q" * 900_000}" = 1\n',
        "[corn.mill]\ngrains = [" + "1," * 100_000 + "]\n",
    ):
        with pytest.raises(BadInput) as caught:
            read_root(written(tmp_path, text), MILL, TABLES)
        assert len(str(caught.value)) < 1000


def test_the_file_of_the_root_may_be_a_link_and_that_of_a_drop_may_not(tmp_path):
    target = tmp_path / "elsewhere.toml"
    target.write_text("[corn.mill]\nstones = 3\n")
    (tmp_path / FILE).symlink_to(target)
    assert read_root(tmp_path / FILE, MILL, TABLES) == {"stones": 3}
    drop = tmp_path / "corn" / "first"
    drop.mkdir(parents=True)
    (drop / FILE).symlink_to(target)
    assert "is a link" in str(drop_refusal(drop, TABLES))
    (drop / FILE).unlink()
    (drop / FILE).symlink_to("nowhere")
    assert "is a link" in str(drop_refusal(drop, TABLES))
    (drop / FILE).unlink()
    os.mkfifo(drop / FILE)
    assert "is a pipe" in str(drop_refusal(drop, TABLES))


def test_changes_are_of_recorded_keys_and_values_that_do_not_fit_name_their_file():
    class Ground(Mill):
        workers: Workers = 1

    table = Table("rye/mill", Ground)
    recorded = {"stones": 3, "grains": [], "place": "hill", "workers": 8}
    assert list(table.changes({"stones": 3, "place": "hill", "workers": 1}, recorded)) == []
    assert list(table.changes({"grains": ("rye",)}, recorded)) == [
        "stones is now 2, was 3",
        'grains is now ["rye"], was []',
        'place is now "", was "hill"',
    ]
    assert list(table.changes({"stones": 4}, {})) == []
    settings = Settings({"train_ratio": 0.95}, Path("/root/gristmill.toml"))
    rule = r"sum to 0 .. 1 \(given: train_ratio = 0.95\)"
    with pytest.raises(BadInput, match=rf"^/root/gristmill.toml: .*{rule}"):
        resolve(MonthConfig, settings, {})
    with pytest.raises(BadInput, match=r"^configuration: .*train_ratio = 0.95, seed = 5"):
        resolve(MonthConfig, settings, {"seed": 5})
    with pytest.raises(BadInput, match=r"^configuration: seed = -1: must be"):
        resolve(MonthConfig, Settings({}, Path("x.toml")), {"seed": -1})


def test_all_tables_are_listed_with_a_sentence_for_each_key_and_a_unit_for_each_number():
    for family in families.FAMILIES:
        of_kinds = [kind.table for kind in families.catalog(family).kinds]
        assert any(of_kinds), f"{family} has no table"
    assert families.tables()["macroxue/pack"].header == "[macroxue.pack]"
    renew = "run `python -m tests.settings.page`"
    assert on_the_page() == rendered(), f"docs/configuration.md is out of date: {renew}"
    rules = [
        (f"{table.header} {name}", rule)
        for table in families.tables().values()
        for name, rule in table.rules().items()
    ]
    assert [where for where, rule in rules if not rule.help.endswith(".")] == []
    numbers = [(where, rule) for where, rule in rules if rule.kind in (int, float)]
    assert [where for where, rule in numbers if not rule.unit] == []


def test_values_come_from_the_run_then_the_file_then_the_asset_which_may_fill_one_in_alone():
    run = {"min_context": 11}
    settings = Settings({"min_context": 9, "seed": 3, "time_controls": ["blitz"]}, Path("x.toml"))
    config = resolve(MonthConfig, settings, run, defaults={"seed": 1, "min_plies": 4})
    assert (config.min_context, config.seed, config.min_plies) == (11, 3, 4)
    assert config.time_controls == ("blitz",)
    settings = Settings({"names": ("x", "y"), "drop": "d"}, Path("x.toml"))
    filled = {"names": ("a", "b")}
    assert resolve(MergeConfig, settings, {}, filled_in=filled).names == ("a", "b")


@dataclass(frozen=True)
class Oven:
    loaves: Positive = 2
    heat: float = 200.5
    steam: bool = False
    bread: Literal["rye", "oat-8"] = "rye"
    day: str | None = None
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listed:
    mill: str = ""


OVEN = Table("corn/oven", Oven, root=Listed, not_set={"steam": "the asset knows it"})
FREE = dataclasses.replace(OVEN, not_set={})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["loaves=1_000", "heat=7"], {"loaves": 1000, "heat": 7.0}),
        (["steam=true", "bread=oat-8"], {"steam": True, "bread": "oat-8"}),
        ([" bread = 'rye' "], {"bread": "rye"}),
        (["day=2026-11-22"], {"day": "2026-11-22"}),
        (["day=07:30:00"], {"day": "07:30:00"}),
        (["day=a=b/c.d"], {"day": "a=b/c.d"}),
        (["day="], {"day": ""}),
        (['day="a b # c"  # a comment'], {"day": "a b # c"}),
        (['seeds=["a",\n "b"]'], {"seeds": ("a", "b")}),
    ],
)
def test_a_value_is_one_of_toml_or_a_word(words, expected):
    found = given_values(FREE, words)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(each) for each in expected.values()]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["loaves"], '"loaves": write it as field=value'),
        (["=3"], '"=3": write it as field=value'),
        (["loaves=1", "heat=1", "loaves=1"], "loaves is given twice: give it once"),
        (
            ["loafs=1"],
            "[corn.oven] loafs: unknown key: did you mean loaves?; the keys are loaves, heat, "
            "bread, day, seeds",
        ),
        (["loaves=0"], "[corn.oven] loaves = 0: must be a whole number, 1 or more"),
        (["loaves=many"], '[corn.oven] loaves = "many": must be a whole number, 1 or more'),
        (["loaves=007"], '[corn.oven] loaves = "007": must be a whole number, 1 or more'),
        (["heat=nan"], "[corn.oven] heat = nan: must be a finite number"),
        (["bread=oat"], '[corn.oven] bread = "oat": must be one of "rye", "oat-8"'),
        (["seeds=a"], '[corn.oven] seeds = "a": must be a list; each item must be a text'),
        (["steam=true"], "[corn.oven] steam: is not allowed: the asset knows it"),
        (["mill=a"], "[corn.oven] mill: is read from the data root's gristmill.toml only"),
        (["loaves=1,000"], 'loaves: "1,000" is no value of TOML: write a number, true, false'),
        (["loaves=1\nheat=2"], "is no value of TOML"),
        (["seeds=[a, b]"], """between ' and ' a text "a b" or a list ["a", "b"]"""),
        (["day=a b"], 'day: "a b" is no value of TOML'),
        (["loaves=" + "9" * 5000], "must be a whole number, 1 or more"),
        (["seeds=" + "[" * 5000], "is no value of TOML"),
    ],
)
def test_what_is_refused_names_the_field_the_rule_and_the_cure(words, reason):
    with pytest.raises(BadInput, match=re.escape(reason)) as caught:
        given_values(OVEN, words)
    assert str(caught.value).startswith("--set: ")
    assert len(str(caught.value)) < 400


HOOK = "https://hooks.example/secret"


def test_the_address_is_in_the_file_or_in_the_variable_that_the_file_names():
    assert AlertSettings(webhook=HOOK).address({}) == HOOK
    assert AlertSettings(webhook_env="HOOK").address({"HOOK": f" {HOOK}\n"}) == HOOK


@pytest.mark.parametrize("given", [{}, {"webhook": HOOK, "webhook_env": "HOOK"}])
def test_neither_and_both_are_refused(given):
    with pytest.raises(ValueError, match=r"^needs either webhook or webhook_env$"):
        AlertSettings(**given).address({"HOOK": HOOK})


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "is not set"),
        ({"HOOK": " "}, "is not set"),
        ({"HOOK": "ftp://secret"}, "must be an address as https://HOST/PATH"),
        ({"HOOK": "https://a b/secret"}, "in printable ASCII and without spaces"),
        ({"HOOK": "https://me:secret@host/"}, "without a user and a password"),
        ({"HOOK": "https://host:secret/"}, "must be an address"),
    ],
)
def test_a_variable_without_an_address_is_named_and_its_value_is_not_shown(environment, why):
    with pytest.raises(ValueError, match=f"the variable HOOK .*{why}") as caught:
        AlertSettings(webhook_env="HOOK").address(environment)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("roots", [("",), ("/mnt/runs", " ")])
def test_an_empty_root_is_refused(roots):
    with pytest.raises(ValueError, match="roots has an empty text"):
        InboxSettings(follow_links=True, roots=roots)
    assert InboxSettings(follow_links=True, roots=(".",)).roots == (".",)


@pytest.mark.parametrize(
    ("push", "assets", "pushed"),
    [
        ("s3://barn/grain", (), {"macroxue/pack": True, "synth/harmony": True}),
        ("s3://barn/grain", ("macroxue/pack",), {"macroxue/pack": True, "synth/harmony": False}),
        ("", (), {"macroxue/pack": False}),
        ("", ("macroxue/pack",), {"macroxue/pack": False}),
    ],
)
def test_a_build_is_pushed_where_a_mirror_is_named_and_all_or_its_asset_are(push, assets, pushed):
    settings = MirrorSettings(push=push, assets=assets)
    assert {asset: settings.takes(asset) for asset in pushed} == pushed
