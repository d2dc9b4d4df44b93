"""The registry of families: laws that apply, options that merge, catalogs that are complete."""

from typing import Any, get_args, get_type_hints

import pytest

from definitions import build_defs
from gristmill import families
from gristmill.contract import Violation
from gristmill.families import Catalog, Kind, Law, Misuse, Option, Request, Subject
from gristmill.run.progress import Progress, Report


def _law(name: str, **options: Any) -> Law:
    return Law(name, lambda subject: [Violation(name, str(subject.folder), "broken")], **options)


def _use(monkeypatch: pytest.MonkeyPatch, *catalogs: Catalog) -> None:
    monkeypatch.setattr(families, "catalogs", lambda: iter(catalogs))


def test_laws_are_asked_in_their_order_and_only_of_their_asset(monkeypatch, tmp_path):
    kinds = [Kind("a/one", [_law("first"), _law("second")]), Kind("a/two", [_law("third")])]
    _use(monkeypatch, Catalog(kinds, lambda _: None))
    assert [v.law for v in families.check("a/one", Subject(tmp_path))] == ["first", "second"]
    assert [v.law for v in families.check("a/two", Subject(tmp_path))] == ["third"]
    assert list(families.check("a/three", Subject(tmp_path))) == []


def test_each_law_counts_in_the_progress_of_the_work(monkeypatch, tmp_path):
    _use(
        monkeypatch,
        Catalog([Kind("a", [_law("x"), _law("y"), _law("z", needs_inputs=True)])], lambda _: None),
    )
    reports: list[Report] = []
    with Progress(reports.append, every=0.0).current():
        list(families.check("a", Subject(tmp_path)))
    list(families.check("a", Subject(tmp_path)))
    assert reports == [Report("laws", done, 2, "laws") for done in (0, 1, 2)]


def test_a_law_is_left_out_where_its_inputs_or_records_are_not_there_or_it_is_excused(tmp_path):
    law = _law("x", needs_inputs=True)
    assert law.left_out(Subject(tmp_path)) == "what it was made from is not known"
    assert law.left_out(Subject(tmp_path, inputs=[tmp_path])) is None
    gone = tmp_path / "gone"
    assert law.left_out(Subject(tmp_path, inputs=[tmp_path, gone])) == f"{gone} is gone"
    law = _law("x", excused_by=("games", "warn"))
    assert law.left_out(Subject(tmp_path, config={"games": "warn"})) == 'games = "warn"'
    assert law.left_out(Subject(tmp_path, config={"games": "refuse"})) is None
    assert law.left_out(Subject(tmp_path)) is None
    law = _law("x", needs_record=True)
    assert law.left_out(Subject(tmp_path)) is None
    assert law.left_out(Subject(tmp_path, has_record=False)) == "the folder has no record"


def test_a_law_or_its_rules_are_left_to_the_readers_by_the_config_that_says_so(monkeypatch):
    laws = [
        _law("whole", excused_by=("games", "warn"), rules_excused_by={"one": ("unique", "off")}),
        _law("parts", rules_excused_by={"two": ("unique", "off"), "three": ("n", 3)}),
    ]
    _use(monkeypatch, Catalog([Kind("a", laws)], lambda _: None))
    assert families.excused("a", {"games": "refuse", "unique": "refuse"}) == []
    assert families.excused("a", {"games": "warn", "unique": "off", "n": 3}) == [
        'whole: games = "warn"',
        'two: unique = "off"',
        "three: n = 3",
    ]
    assert families.excused("a", {"unique": "off"}) == [
        'one: unique = "off"',
        'two: unique = "off"',
    ]
    assert families.excused("unknown", {"unique": "off"}) == []


@pytest.mark.parametrize(
    ("asset", "config", "lines"),
    [
        ("macroxue/pack", {"game_laws": "warn"}, ['games: game_laws = "warn"']),
        ("macroxue/pool", {"game_laws": "warn"}, ['games: game_laws = "warn"']),
        ("puzzles/sudoku", {"unique": "off"}, ['not_unique: unique = "off"']),
        (
            "chess/valid_games",
            {"compat": "reference"},
            ['moves_legal: compat = "reference"', 'event_lines: compat = "reference"'],
        ),
    ],
)
def test_settings_that_leave_a_law_to_the_readers_are_values_of_their_configs(asset, config, lines):
    assert families.excused(asset, config) == lines
    tables = families.tables()
    table = tables["chess/month" if asset.startswith("chess/") else asset]
    for name, value in config.items():
        assert value in get_args(get_type_hints(table.config)[name])


def test_a_file_that_only_gristmill_writes_is_missed_with_a_record_alone(tmp_path):
    (tmp_path / "there").touch()
    rules = {"there": "names", "gone": "order", "lost": "sums"}
    subject = Subject(tmp_path)
    assert (subject.missing(rules), subject.left_out) == ([], [])
    subject = Subject(tmp_path, has_record=False)
    assert subject.missing(rules) == ["gone", "lost"]
    assert subject.left_out == ["order: there is no gone", "sums: there is no lost"]


def test_laws_that_are_left_out_are_named_with_the_reason(monkeypatch, tmp_path):
    _use(
        monkeypatch, Catalog([Kind("a", [_law("x"), _law("y", needs_inputs=True)])], lambda _: None)
    )
    subject = Subject(tmp_path)
    assert [broken.law for broken in families.check("a", subject)] == ["x"]
    assert subject.left_out == ["y: what it was made from is not known"]


def test_options_of_one_name_become_one_with_the_choices_of_both(monkeypatch):
    one = Option("split", str, "One.", choices=("train", "val"))
    other = Option("split", str, "Other.", choices=("train", "valid"))
    _use(
        monkeypatch,
        Catalog([], lambda _: None, [one]),
        Catalog([], lambda _: None, [other, Option("shard", str, "S.", "00")]),
    )
    split, shard = families.options("show")
    assert split == Option("split", str, "One. Other.", choices=("train", "val", "valid"))
    assert shard.default == "00"


def test_options_of_one_name_have_one_type_and_equal_help_texts_are_given_once(monkeypatch):
    options = [Option("n", int, ""), Option("n", str, "")]
    _use(monkeypatch, Catalog([], lambda _: None, options))
    with pytest.raises(ValueError, match="--n"):
        families.options("show")
    options = [Option("split", str, "The split."), Option("split", str, "The split.")]
    _use(monkeypatch, Catalog([], lambda _: None, options))
    (split,) = families.options("show")
    assert split.help == "The split."


def test_commands_name_the_module_of_their_family(monkeypatch):
    made = {
        "synth": Catalog(
            [], lambda _: None, commands={"a": ("Look", "Do a."), "b": ("Check", "Do b.")}
        ),
        "chess": Catalog([], lambda _: None, commands={"c": ("Look", "Do c.")}),
    }
    monkeypatch.setattr(families, "FAMILIES", tuple(made))
    monkeypatch.setattr(families, "catalog", made.__getitem__)
    assert families.commands() == {
        "a": ("gristmill.synth.commands", "Look", "Do a."),
        "b": ("gristmill.synth.commands", "Check", "Do b."),
        "c": ("gristmill.chess.commands", "Look", "Do c."),
    }


@pytest.mark.parametrize("text", ["", "-1", "1.0", "x", "²", "9" * 20])
def test_what_is_no_sample_number_is_misuse(text, tmp_path):
    with pytest.raises(Misuse, match="not a sample number"):
        _ = Request(tmp_path, text).number
    assert Request(tmp_path, "9" * 19).number == int("9" * 19)


def test_every_asset_that_publishes_rows_has_laws_and_known_partitions():
    graph = build_defs().resolve_asset_graph()
    built = {key.to_user_string() for key in graph.materializable_asset_keys}
    known = {kind.asset for each in families.catalogs() for kind in each.kinds if kind.laws}
    assert built == known
    for key in graph.materializable_asset_keys:
        has = graph.get(key).partitions_def is not None
        assert families.has_partitions(key.to_user_string()) is has, key


def test_samples_have_unequal_places_and_rows_are_the_sum_of_the_named_counts():
    places = [place for each in families.catalogs() for place in each.samples]
    assert len(places) == len(set(places)) >= 6
    counts = {"rows": 7, "games/train": 3, "games/val": 2, "share": 0.5}
    assert Kind("a/one").rows_of(counts) == 7
    assert Kind("a/two", rows=("games/train", "games/val")).rows_of(counts) == 5
    assert Kind("a/three", rows=("games/test",)).rows_of(counts) is None
    assert Kind("a/four").rows_of({"rows": 0}) == 0


def test_a_module_without_a_catalog_is_named(monkeypatch):
    import gristmill.chess.family

    families.catalog.cache_clear()
    monkeypatch.setattr(gristmill.chess.family, "CATALOG", {})
    try:
        with pytest.raises(TypeError, match=r"gristmill/chess/family\.py: CATALOG"):
            families.catalog("chess")
    finally:
        families.catalog.cache_clear()


def test_an_option_belongs_to_its_commands_and_its_family(monkeypatch):
    ply = Option("ply", int, "P.", commands=("show",))
    _use(
        monkeypatch,
        Catalog([Kind("a/one")], lambda _: None, [ply]),
        Catalog([Kind("b/one")], lambda _: None, [Option("shard", str, "S.")]),
    )
    assert [option.name for option in families.options("show")] == ["ply", "shard"]
    assert [option.name for option in families.options("trace")] == ["shard"]
    assert families.options_of("a/one", "show") == {"ply": ply}
    assert families.options_of("a/one", "trace") == {}
    assert list(families.options_of("b/one", "trace")) == ["shard"]
