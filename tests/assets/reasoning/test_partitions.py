"""Partitions of corpora: those of the seven, those of a drop's own corpus, and a version before."""

import json
import shutil
from pathlib import Path

import dagster as dg
import pytest

from assets.reasoning import FAMILY
from assets.versions import latest
from commands import selection
from commands.graph import Graph, register
from gristmill import provenance
from gristmill.browse.opening import open_table, tables_of
from gristmill.browse.shown import show
from gristmill.contract import BadInput
from gristmill.corpora.corpus import PARTITIONS
from gristmill.corpora.raw import drops
from gristmill.families import Request
from gristmill.reasoning.builds import today
from gristmill.reasoning.format import align, names, reports
from gristmill.reasoning.format.published import splits_in
from gristmill.reasoning.read.trace import traced
from resources import Lake
from tests.assets.helpers import metadata, not_built
from tests.assets.reasoning.test_assets import (
    alignment,
    build_all,
    builder,
    failed_checks,
    gpt2_shards,
    normalized,
    place_vocabulary,
    qc_report,
)
from tests.sensors.ticks import Ticks, partitions_of

INBOX, *_ = FAMILY.inboxes
KEY, BOOKS, OTHER = "my_math__heldout", "books__train", "gsm8k__dev"
OWN = """schema = 1
name = "my_math"
licence = { id = "MIT" }
files = { heldout = "test_gen*", train = ["*train*"] }
leave = ["old/*"]
extras = ["subject"]
keep = [{ column = "lang", in = ["en"] }]
steps = { "H:" = "Hypothesis", "C:" = "Constraint" }
question = "problem"
answer = { column = "solution", after_line = "Answer:" }
cot = { column = "solution", before_line = "Answer:" }
subject = "type"
"""
PLAIN = 'schema = 1\nname = "books"\nlicence = { train = false }\ntexts = "{text}"\n'
REPLACED = """schema = 1
name = "gsm8k"
licence = { id = "CC0-1.0", train = true }
files = { dev = "*.jsonl" }
extras = ["subject"]
question = "q"
answer = "a"
subject = "subject"
"""


def own(lake: Lake, rows: int = 6, recipe: str = OWN) -> Path:
    """Write a drop with a corpus of its own, whose last row is in another language."""
    lines = [
        {
            "problem": f"What is {n} and {n}?",
            "solution": f"H: it is even.\nso they say\nC: below {n + 99}.\nAnswer: {2 * n}",
            "type": "sums",
            "lang": "en" if n < rows - 1 else "fr",
        }
        for n in range(rows)
    ]
    folder = lake.inbox("reasoning") / "my_math"
    (folder / "old").mkdir(parents=True, exist_ok=True)
    (folder / "test_gen-00000.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    (folder / "old/train.jsonl").write_text("not read")
    (folder / "corpus.toml").write_text(recipe)
    return folder


def books(lake: Lake) -> Path:
    folder = lake.inbox("reasoning") / "books"
    folder.mkdir(parents=True)
    (folder / "corpus.toml").write_text(PLAIN)
    (folder / "part.jsonl").write_text('{"text": "Once upon a time."}\n{"text": "The end."}\n')
    return folder


def replaced(lake: Lake) -> Path:
    """Write a drop with the name of a built-in corpus and a file of its own."""
    folder = lake.inbox("reasoning") / "gsm8k"
    folder.mkdir(parents=True)
    (folder / "corpus.toml").write_text(REPLACED)
    (folder / "dev.jsonl").write_text('{"q": "One?", "a": "1", "subject": "sums"}\n')
    return folder


@pytest.fixture(scope="module")
def built_root(tmp_path_factory: pytest.TempPathFactory, vocabulary_root: Path) -> Path:
    """Three corpora of their own, built by every asset: one of plain text, one named gsm8k."""
    root = tmp_path_factory.mktemp("own") / "data"
    root.mkdir()
    lake = Lake(data_root=str(root))
    own(lake)
    books(lake)
    replaced(lake)
    (lake.root / "gristmill.toml").write_text('[reasoning.gpt2_shards]\nallow = ["books"]\n')
    with dg.DagsterInstance.ephemeral() as instance:
        assert register(instance, lake, INBOX) == []
        build = builder(lake, instance)
        place_vocabulary(build, lake, vocabulary_root)
        for asset in (normalized, gpt2_shards):
            assert failed_checks(build(asset, BOOKS)) == {}
        assert not_built(build(alignment, BOOKS)) == "books is plain text, without steps"
        build_all(build, KEY, OTHER)
        # Plain text has no steps, and nobody is warned of it.
        assert failed_checks(build(qc_report, today().isoformat())) == {}
    return lake.root


def test_a_corpus_of_its_own_goes_through_every_asset(built_root):
    assert provenance.verify(built_root) == []
    lines = (built_root / names.NORMALIZED / "my_math/heldout.jsonl").read_text().splitlines()
    assert len(lines) == 5
    assert json.loads(lines[1]) == {
        "question": "What is 1 and 1?",
        "answer": "2",
        "cot": "H: it is even.\nso they say\nC: below 100.",
        "source_dataset": "my_math",
        "subject": "sums",
    }
    (first, *_) = align.rows(built_root / names.ALIGNMENT / names.alignment("my_math", "heldout"))
    assert first.step_labels == ["Hypothesis", "Constraint", "Answer"]
    assert first.text_offset_ranges[0] == [18, 44] and first.rule == "explicit:marks"
    entries = json.loads((built_root / names.NORMALIZED / names.MANIFEST).read_bytes())
    assert list(entries) == ["gsm8k", "books", "my_math"]
    assert entries["my_math"]["splits"] == ["heldout", "train"]
    assert entries["my_math"]["licence"]["training_allowed"] is None
    assert entries["my_math"]["files"]["heldout"]["rejected"] == 1
    (index, *_) = (built_root / names.TOKENIZED / "my_math/heldout/index.jsonl").open()
    assert json.loads(index)["extras"] == {"subject": "sums"}


def test_unknown_terms_are_warned_of_and_a_file_of_a_drop_wins_over_a_built_in(built_root):
    report = reports.read(reports.path(built_root / names.REPORTS, today().isoformat()))
    assert list(report["splits"]) == [BOOKS, OTHER, KEY]
    assert [report["splits"][key]["licence"] for key in (BOOKS, OTHER, KEY)] == [
        *("unknown", "CC0-1.0", "MIT")
    ]
    warned = {text.partition(":")[0] for text in report["warnings"] if "terms" in text}
    assert warned == {BOOKS, KEY}
    assert json.loads((built_root / names.NORMALIZED / "gsm8k/dev.jsonl").read_bytes()) == {
        **{"question": "One?", "answer": "1", "cot": None, "source_dataset": "gsm8k"},
        "subject": "sums",
    }
    entry = json.loads((built_root / names.NORMALIZED / names.MANIFEST).read_bytes())["gsm8k"]
    assert (entry["question_column"], entry["splits"]) == ("q", ["dev"])
    index = (built_root / names.TOKENIZED / "gsm8k/dev/index.jsonl").read_bytes()
    assert json.loads(index)["extras"] == {"subject": "sums"}


def test_the_event_says_which_file_was_read_and_that_terms_are_unknown(lake, instance):
    folder = replaced(lake)
    own(lake)
    register(instance, lake, INBOX)
    build = builder(lake, instance)
    event = metadata(build(normalized, OTHER))
    said = event["account"]
    assert event["columns"] == "read: q (question), a (answer), subject (subject)"
    assert said == "1 file taken; corpus.toml is read in place of the built-in corpus gsm8k; 1 row"
    unknown = "the terms are unknown, nobody has said that training is allowed: write licence = "
    assert unknown in metadata(build(normalized, KEY))["account"]
    (folder / "corpus.toml").unlink()
    with pytest.raises(BadInput, match="the split validation; gsm8k has train"):
        drops.account(folder)


def test_examples_of_an_own_corpus_are_shown_and_traced_to_the_row(built_root):
    options = {"corpus": "my_math", "split": "heldout"}
    shown = show(Request(built_root / names.NORMALIZED, "3", options))
    assert any("What is 3 and 3?" in str(each) for each in shown)
    request = Request(built_root / names.TOKENIZED, "my_math_heldout_000003", {})
    traces = traced("reasoning/gpt2_shards", request)
    last = list(traces)[-1].facts()
    assert last["raw_row"] == 4 and str(last["raw_file"]).endswith("my_math/test_gen-00000.jsonl")
    assert splits_in(built_root / names.TOKENIZED, "{split}/index.jsonl") == [BOOKS, OTHER, KEY]


@pytest.mark.parametrize("folder", [names.NORMALIZED, names.TOKENIZED, names.ALIGNMENT])
def test_rows_of_an_own_corpus_are_browsed_with_their_origin(built_root, folder):
    (name,) = tables_of(built_root / folder, partition=KEY)
    table = open_table(built_root / folder, name=name)
    (row,) = table.rows(2, 1)
    assert table.count == 5 and "my_math/test_gen-00000.jsonl" in str(row.origin())


def test_terms_of_an_own_corpus_that_forbid_training_need_consent(lake, instance):
    books(lake)
    register(instance, lake, INBOX)
    build = builder(lake, instance)
    assert build(normalized, BOOKS).success
    assert 'set allow = ["books"]' in not_built(build(gpt2_shards, BOOKS))


def test_a_recipe_that_changes_builds_again_and_another_drop_does_not(lake, instance):
    folder = own(lake)
    register(instance, lake, INBOX)
    build = builder(lake, instance)
    assert metadata(build(normalized, KEY))["records"] == 5
    books(lake)
    assert metadata(build(normalized, KEY))["status"] == "unchanged"
    (folder / "corpus.toml").write_text(OWN.replace('["en"]', '["fr"]'))
    assert metadata(build(normalized, KEY))["records"] == 1


def test_the_splits_of_an_own_corpus_are_partitions_beside_those_of_the_seven(lake, instance):
    own(lake)
    assert register(instance, lake, INBOX) == []
    assert instance.get_dynamic_partitions("reasoning_splits") == [KEY]
    assert set(latest(instance, INBOX.raw_drop, [KEY, PARTITIONS[0]])) == {KEY}
    shutil.rmtree(lake.inbox("reasoning") / "my_math")
    (gone,) = register(instance, lake, INBOX)
    assert (gone.key, gone.state) == ("my_math", "gone")
    assert INBOX.added([KEY, PARTITIONS[0]]) == {"reasoning_splits": [KEY]}


def test_nobody_asks_for_an_alignment_of_plain_text(lake, instance):
    own(lake)
    books(lake)
    tick = Ticks(INBOX, instance, lake, adds=True)
    tick()  # the drops settle
    wanted = {
        key: {asset.to_user_string() for asset in request.asset_selection or ()}
        for request in tick().run_requests or ()
        for key in partitions_of(request)
    }
    targets = {asset.key.to_user_string() for asset in INBOX.targets}
    assert wanted == {KEY: targets, BOOKS: targets - {"reasoning/alignment"}}
    graph = Graph(instance, lake)
    assert graph.keys(normalized.key, ()) == [BOOKS, KEY]
    assert graph.keys(alignment.key, ()) == [KEY]
    assert graph.keys(alignment.key, [BOOKS]) == [BOOKS]
    built = selection._Build(instance, lake, sorted(targets), (), ())
    assert built.without_drop() == []


BEFORE = dg.StaticPartitionsDefinition(list(PARTITIONS))


@dg.asset(key=["reasoning", "normalized"], partitions_def=BEFORE)
def normalized_before() -> None:
    """The asset with the partitions of the version before."""


def test_partitions_of_the_version_before_stay_materialized(lake, instance):
    for key in PARTITIONS:
        dg.materialize([normalized_before], instance=instance, partition_key=key)
    before = latest(instance, normalized.key, PARTITIONS)
    assert len(before) == 15
    own(lake)
    register(instance, lake, INBOX)
    assert instance.get_materialized_partitions(normalized.key) == set(PARTITIONS)
    assert latest(instance, normalized.key, PARTITIONS) == before
    assert instance.get_dynamic_partitions("reasoning_splits") == [*PARTITIONS, KEY]
    asked = Ticks(INBOX, instance, lake)().run_requests or []
    assert not {request.partition_key for request in asked} & set(PARTITIONS)
