"""`gristmill build`: one partition without a Dagster run, whole or rank by rank."""

import os
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import definitions
from commands.build import build
from gristmill import families, provenance
from gristmill.asset import Wanted
from gristmill.contract import GristmillError
from gristmill.mirror import push
from gristmill.publish.build import Slot
from gristmill.publish.publish import publish
from gristmill.reasoning.builders import shard_part
from gristmill.reasoning.format import names
from gristmill.reasoning.samples import write_drop
from gristmill.run import locks
from gristmill.vocabularies.pinned import GPT2, find
from resources import Lake
from tests.commands.drops import DROPS, Command, land, printed
from tests.publish.held import release_when_awaited
from tests.reasoning.normalized_files import numbered
from tests.reasoning.published_root import PARTITION, publish_records

ASSET = "reasoning/gpt2_shards"


@pytest.fixture
def run(run: Command) -> Command:
    """The command itself, in the surroundings of the others."""
    return lambda *words: CliRunner().invoke(build, words[1:])


@pytest.fixture
def shards(data: Path, vocabulary_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The record of the shards, which three ranks share; they are not built yet."""
    monkeypatch.setattr(shard_part, "_GROUP_BYTES", 400)
    publish_records(data, find(GPT2, vocabulary_root), numbered(30))
    known = definitions.declared()
    asset, sizes = known[ASSET], {"seq_len": 8, "tokens_per_shard": 24, "world_size": 3}

    def sized(wanted: Wanted) -> Wanted:
        return replace(wanted, chosen={**sizes, **wanted.chosen})

    declared = {
        "reasoning/normalized": replace(known["reasoning/normalized"], available=lambda root: []),
        ASSET: replace(
            asset,
            build=lambda wanted: asset.build(sized(wanted)),
            available=lambda root: [PARTITION],
            ranks=lambda wanted: asset.ranks(sized(wanted)),
        ),
    }
    for module in ("definitions", "commands.build"):
        monkeypatch.setattr(f"{module}.declared", lambda: declared)
    return provenance.record_path(data / names.TOKENIZED, PARTITION, shared=True)


def test_a_partition_is_published_and_then_unchanged(run, shards, monkeypatch):
    excused = {PARTITION: ['texts: read = "later"', "ids: n = 3"]}
    monkeypatch.setattr(families, "excused", lambda *_: excused.pop(PARTITION, []))
    first = printed(run("build", ASSET, PARTITION))
    assert ": published, data version " in first
    assert 'not checked: texts: read = "later", ids: n = 3' in first.splitlines()
    version = provenance.read_record(shards).data_version
    again = run("build", ASSET, PARTITION)
    assert f": unchanged, data version {version[:12]}" in again.output
    assert "not checked" not in again.output


@pytest.mark.parametrize("rank", [(), ("--rank", "0", "--world-size", "3")])
def test_a_build_waits_for_another_one_unless_it_may_not(run, data, shards, monkeypatch, rank):
    slot = Slot.of(definitions.build_of(ASSET, Lake(), PARTITION))
    held = ExitStack()
    held.enter_context(locks.locked(slot.lock, "it"))
    stopped = run("build", ASSET, PARTITION, "--no-wait", *rank)
    assert stopped.exit_code == 1
    assert "is already being built by process" in str(stopped.exception)
    release_when_awaited(held, monkeypatch)
    waited = run("build", ASSET, PARTITION, *rank)
    assert waited.exit_code == 0, waited.output
    assert f"waits for process {os.getpid()} on host" in waited.stderr


def test_what_is_published_is_pushed_to_the_mirror_of_the_data_root(run, data, shards):
    (data / "gristmill.toml").write_text('[mirror]\npush = "../mirror"\n')
    mirror, name = data.parent / "mirror", f"{names.TOKENIZED}@{PARTITION}"
    mirror.write_text("a file is no folder")
    missed = run("build", ASSET, PARTITION)
    assert missed.exit_code == 1
    assert f"failed {names.TOKENIZED} [{PARTITION}]: " in missed.output
    said, cure = str(missed.exception).split("\n")
    assert said == f"published, but not in the mirror: {name}"
    assert cure.startswith(f"What to do: `gristmill push {mirror} {name}`; ")
    assert shards.exists()
    mirror.unlink()
    pushed = push(data, str(mirror), [name])
    assert [each.created for each in pushed] == [True]
    again = printed(run("build", ASSET, PARTITION))
    assert f"unchanged {names.TOKENIZED} [{PARTITION}]: data version " in again


def test_the_rank_that_publishes_pushes(run, data, shards):
    (data / "gristmill.toml").write_text('[mirror]\npush = "../mirror"\n')
    for rank, pushes in ((0, False), (1, False), (2, True)):
        result = run("build", ASSET, PARTITION, "--rank", str(rank), "--world-size", "3")
        assert ("pushed " in result.output) == pushes, result.output


def test_ranks_publish_once_all_are_done(run, shards):
    def rank(number: int) -> str:
        return printed(run("build", ASSET, PARTITION, "--rank", str(number), "--world-size", "3"))

    first = rank(2)
    assert "not published yet: parts are missing of rank 0, 1" in first
    assert "parts made (" in first and "done" not in first
    assert "not published yet: parts are missing of rank 1" in rank(0)
    assert not shards.exists()
    assert "rank 0: 0 parts made" in rank(0)
    assert ": published, data version " in rank(1)
    assert shards.exists()
    assert ": unchanged, data version " in rank(1)


def test_the_world_size_of_the_command_comes_first_and_a_note_says_so(run, data, shards):
    for rank in (0, 1):
        said = printed(run("build", ASSET, "--rank", str(rank), "--world-size", "2"))
        assert "note: the default gives world_size = 3, with which the next" in said
        table = f"[reasoning.gpt2_shards] in {data / 'gristmill.toml'}\n"
        assert f"write world_size = 2 under {table}" in said
    assert ": published, data version " in said
    assert provenance.read_record(shards).config["world_size"] == 2


def test_given_settings_are_those_of_the_build_and_a_note_says_how_they_stay(run, data, shards):
    (data / "gristmill.toml").write_text(
        "[reasoning.gpt2_shards]\nseq_len = 8\ntokens_per_shard = 16\nworld_size = 3\n"
    )
    words = (ASSET, PARTITION, "--set", "seq_len=4", "--set", "tokens_per_shard=16")
    said = printed(run("build", *words))
    config = provenance.read_record(shards).config
    assert (config["seq_len"], config["tokens_per_shard"], config["world_size"]) == (4, 16, 3)
    assert said.count("note: ") == 1
    file = data / "gristmill.toml"
    assert (
        f"note: built with seq_len = 4, and {file} gives 8, which the next build takes. To keep 4, "
        f"write `seq_len = 4` under [reasoning.gpt2_shards] in {file}" in said
    )
    assert ": unchanged, data version " in run("build", *words).output
    chosen = (*words[:2], "--set", "seq_len=2", "--set", "engine=tiktoken")
    for rank in ("0", "1", "2"):
        part = printed(run("build", *chosen, "--rank", rank, "--world-size", "3"))
        made = [path.name for path in data.rglob("tiktoken_rank_*")]
        assert bool(made) == (rank != "2"), made  # what is published needs no parts
    assert ": published, data version " in part
    assert provenance.read_record(shards).config["seq_len"] == 2


def test_a_wrong_file_of_the_data_root_is_refused_before_any_work(run, data, shards):
    (data / "gristmill.toml").write_text("[reasoning.gpt2_shards]\ntokens_per_shard = 100\n")
    result = run("build", ASSET, PARTITION)
    assert result.exit_code == 1
    rule = "[reasoning.gpt2_shards] tokens_per_shard: 100 is no multiple of seq_len"
    assert rule in str(result.exception)
    assert not shards.exists()


def test_what_has_no_inputs_is_an_error_and_what_is_built_on_request_says_so(run, shards):
    result = run("build", "reasoning/normalized")
    assert isinstance(result.exception, GristmillError)
    assert "reasoning/normalized: no partition can be built" in str(result.exception)
    known = definitions.declared()
    known[ASSET] = replace(known[ASSET], is_asked=lambda *_: False)
    result = run("build", ASSET)
    rule = f"name one of {PARTITION}, or give [reasoning.gpt2_shards] a key in gristmill.toml"
    assert str(result.exception).endswith(f"can be built: it is built on request: {rule}")
    assert run("build", ASSET, PARTITION).exit_code == 0


def test_what_must_be_there_before_a_build_is_named(run, data):
    done = run("build", "macroxue/values")
    assert str(done.exception).endswith(f": copy a drop into {data / DROPS}")
    land(data, "one")
    done = run("build", "macroxue/values")
    assert str(done.exception).endswith(": build its inputs first: macroxue/pack")
    done = run("build", "tokenizers/gpt2")  # no drop needs it, but a person named it
    assert "run `gristmill tokenizers" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reasoning/gpt2_shard", PARTITION], "is no asset: did you mean reasoning/gpt2_shards?"),
        (["x/y", PARTITION], "'x/y' is none of reasoning/gpt2_shards, reasoning/normalized"),
        ([ASSET, ""], f"{ASSET}: the partition is empty: name one, or leave it out"),
        (
            [ASSET, "gsm8k_dev"],
            "'gsm8k_dev' is no <corpus>__<split>: the built-in ones are gsm8k__train",
        ),
        ([ASSET, PARTITION, "--rank", "1"], "--rank and --world-size belong together"),
        ([ASSET, PARTITION, "--world-size", "3"], "--rank and --world-size belong together"),
        ([ASSET, PARTITION, "--rank", "3", "--world-size", "3"], "must be below --world-size 3"),
        (
            [ASSET, "--rank", "0", "--world-size", "3", "--set", "world_size=3"],
            "--set world_size: leave it out, --world-size gives it",
        ),
        ([ASSET, PARTITION, "--set", "seq-len=4"], "seq-len: unknown key: did you mean seq_len?"),
        ([ASSET, PARTITION, "--set", "seq_len=a"], 'seq_len = "a": must be a whole number'),
        (
            ["reasoning/normalized", PARTITION, "--rank", "0", "--world-size", "1"],
            "reasoning/normalized has no ranks",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(run, shards, words, message):
    assert message in " ".join(printed(run("build", *words), 2).split())
    assert not shards.exists()


def test_the_command_builds_splits_of_the_family_by_rank(run, data, vocabulary_root):
    (data / "gristmill.toml").write_text(
        "[reasoning.gpt2_shards]\nworld_size = 2\nseq_len = 64\ntokens_per_shard = 128\n"
    )
    for corpus in ("gsm8k", "reveal"):
        write_drop(data / "drops" / "reasoning" / corpus, corpus)
    (data / "drops" / "tokenizers").mkdir()
    shutil.copy(find(GPT2, vocabulary_root), data / "drops" / "tokenizers" / GPT2.file)
    publish(definitions.build_of(f"tokenizers/{GPT2.name}", Lake(), None))
    assert run("build", "reasoning/normalized").exit_code == 0
    for rank, words in ((1, "not published yet"), (0, ": published, data version ")):
        said = printed(run("build", ASSET, "--rank", str(rank), "--world-size", "2"))
        assert words in said
        assert "reveal__train: not built: the terms of reveal" in said
        assert "note: " not in said
    for asset in ("reasoning/raw_manifest", "reasoning/manifest"):
        result = run("build", asset)
        assert ": published, data version " in result.output
        assert ": unchanged, " in run("build", asset).output
    result = run("build", "reasoning/alignment", "gsm8k__train")
    assert ": published, data version " in result.output
    # One note for all splits, as `materialize` would build all of them again.
    result = run("build", ASSET, "--rank", "3", "--world-size", "4")
    assert result.output.count("not published yet") > 1, result.output
    note = f"note: {data / 'gristmill.toml'} gives world_size = 2, with which the next"
    assert result.output.count("note: ") == result.output.count(note) == 1
    record = provenance.read_record(
        provenance.record_path(data / names.TOKENIZED, "gsm8k__train", shared=True)
    )
    assert record.config["world_size"] == 2
    assert record.counts["shards"] >= 2


def test_a_recipe_that_is_unknown_yet_fails_with_the_state_of_its_file(run, data):
    recipes = data / "drops/puzzles/recipes"
    recipes.mkdir(parents=True)
    (recipes / "mine.toml").write_text('kind = "sudoku"\nsources = ["bank"]\n')
    (recipes / "late.toml").write_text('kind = "domino"\n')
    (recipes / "late.toml.incomplete").touch()
    for asset, name, reason in (
        ("sudoku", "mine", "the recipe mine waits for drops/puzzles/bank: bring it"),
        ("domino", "late", "late.toml: late.toml.incomplete says that it is not complete"),
        ("domino", "none", "none.toml: the drop is gone: bring it back"),
    ):
        done = run("build", f"puzzles/{asset}", name)
        assert done.exit_code == 1
        assert reason in str(done.exception)
