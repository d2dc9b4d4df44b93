"""`gristmill fetch`, against a local server."""

import shutil

import pytest

from gristmill.corpora.corpus import CORPORA
from gristmill.synth import raw
from tests.commands.drops import printed
from tests.hub_server import COMMIT, server
from tests.synth.test_raw import REPO, parquets

__all__ = ["parquets", "server"]  # fixtures


@pytest.mark.usefixtures("parquets")
def test_the_command_fetches_and_goes_on(run, data, server):
    words = ["fetch", "synth", "--repo", REPO, "--revision", COMMIT, "--endpoint", server.address]
    server.broken.add("synth_003.parquet")
    said = printed(run(*words, "--files", "3"), 1)
    assert "SYNTH-01234567: not fetched: synth_003.parquet: its sha256 is not" in said
    drop = data / "drops/synth/SYNTH-01234567"
    assert not raw.is_complete(drop)
    server.broken.clear()
    server.requests.clear()
    assert "3 files downloaded (6,000 bytes), 0 kept" in printed(run(*words, "--files", "3"))
    assert raw.is_complete(drop)
    # What a stopped fetch has whole is not asked for again.
    assert server.requests == [("synth_003.parquet", None)]
    assert "0 files downloaded (0 bytes), 3 kept" in printed(run(*words, "--files", "3"))


def test_the_command_refuses_a_branch(run):
    assert "40 hex digits" in printed(run("fetch", "synth", "--revision", "main"), 2)


def test_every_path_of_the_corpora_is_checked(run, server):
    words = ["fetch", "reasoning", "--check", "--endpoint", server.address]
    lines = printed(run(*words, "gsm8k", "wiqa"), 1).splitlines()
    assert lines[0] == ("gsm8k  public  openai/gsm8k  reached at 01234567, 2 files (3,333 bytes)")
    assert lines[2].startswith("wiqa  public  allenai/wiqa  not reached: allenai/wiqa at main: ")
    assert lines[-1] == "no path of wiqa can be reached"
    assert run(*words, "gsm8k").exit_code == 0


def test_a_corpus_is_fetched_from_its_mirror(run, data, server):
    mirror = f'[reasoning.sources]\nwiqa = "{server.address}/openai/gsm8k"\n'
    (data / "gristmill.toml").write_text(mirror)
    assert "wiqa: openai/gsm8k at 01234567" in printed(run("fetch", "reasoning", "wiqa"))
    fetched = sorted(path.name for path in (data / "drops/reasoning/wiqa").iterdir())
    assert fetched == [
        ".source.json",
        "main-test.jsonl",
        "main-train.jsonl",
        "socratic-train.jsonl",
    ]
    (data / "drops/reasoning/wiqa/forgotten.jsonl").write_text("")
    assert "take it out" not in printed(run("fetch", "reasoning", "wiqa"))
    assert (data / "drops/reasoning/wiqa/forgotten.jsonl").exists()


def test_a_corpus_of_a_drop_is_fetched_from_the_repository_that_its_file_names(run, data, server):
    drop = data / "drops/reasoning/my_math"
    drop.mkdir(parents=True)
    words = ["fetch", "reasoning", "my_math", "--endpoint", server.address]
    recipe = 'schema = 1\nname = "my_math"\nquestion = "question"\nanswer = "answer"\n'
    (drop / "corpus.toml").write_text(recipe)
    said = printed(run(*words), 2)
    assert 'my_math: write source = { repo = "owner/name" } into its corpus.toml' in said
    source = f'repo = "openai/gsm8k", revision = "{COMMIT}", paths = ["*/t*"]'
    files = 'files = { train = "main/train*", heldout = "main/test*" }\nleave = ["socratic/*"]\n'
    (drop / "corpus.toml").write_text(f"{recipe}source = {{ {source} }}\n{files}")
    assert run(*words, "--check").output.startswith("my_math  public  openai/gsm8k  reached at")
    assert "1 left out: socratic/train.jsonl (`leave` names it)" in printed(run(*words))
    found = sorted(path.relative_to(drop).as_posix() for path in drop.rglob("*.jsonl"))
    assert found == ["main/test.jsonl", "main/train.jsonl"]
    assert "2 kept" in run(*words).output


def test_a_corpus_that_cannot_be_fetched_does_not_keep_the_others_away(run, data, server):
    server.gated.add("google/reveal")
    raw = server.repositories["openai/gsm8k"]
    server.repositories["allenai/wiqa"] = {"train.jsonl": raw["main/train.jsonl"]}
    said = printed(run("fetch", "reasoning", "--endpoint", server.address), 1)
    assert "reveal: not fetched: google/reveal at main: 403" in said
    fetched = sorted(str(path.parent.name) for path in data.glob("drops/reasoning/*/*train.jsonl"))
    assert fetched == ["gsm8k", "wiqa"]
    left_out = "gsm8k: 2 files taken; 1 left out: socratic/train.jsonl (another configuration than"
    assert left_out in said
    last = said.splitlines()[-1]
    assert last == "not fetched: " + ", ".join(name for name in CORPORA if name not in fetched)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["reasoning", "gsm9k"], "'gsm9k' is no known corpus"),
        (["reasoning", "gsm8k", "--files", "3"], "--files is not for reasoning"),
        (["reasoning", "--repo", "a/b"], "--repo and --revision are for one corpus"),
        (["reasoning", "gsm8k", "--from", "mirror"], "gsm8k has no mirror"),
        (["reasoning", "gsm8k", "--revision", "main"], "name it by --repo, too"),
        (["synth", "gsm8k"], "the name of a corpus is not for synth"),
        (["synth", "--check"], "--check is not for synth"),
        (["puzzles", "arc_agi"], "'arc_agi' cannot be fetched: choose of sudoku-extreme"),
        (["puzzles", "--from", "seed"], "--from is not for puzzles"),
        (["puzzles", "--files", "1"], "--files is not for puzzles"),
        (["puzzles", "--repo", "a/b"], "--repo and --revision are for one corpus"),
    ],
)
def test_options_of_the_other_family_are_refused(run, words, reason):
    assert reason in printed(run("fetch", *words), 2)


def test_the_tables_of_puzzles_are_fetched_into_the_drops_of_their_recipes(run, data, server):
    rows = b"source,question,answer,rating\n"
    tables = {"train.csv": rows * 100, "test.csv": rows}
    server.repositories["sapientinc/sudoku-extreme"] = tables
    words = ["fetch", "puzzles", "--endpoint", server.address]
    said = printed(run(*words, "sudoku-extreme", "--check"))
    assert "sudoku-extreme: sapientinc/sudoku-extreme at 01234567, 2 files" in said
    assert not (data / "drops/puzzles").exists()
    said = printed(run(*words), 1)
    assert "maze-30x30-hard-1k: not fetched: " in said
    assert said.splitlines()[-1] == "not fetched: maze-30x30-hard-1k"
    assert (data / "drops/puzzles/sudoku-extreme/train.csv").read_bytes() == rows * 100
    printed(run(*words, "maze-30x30-hard-1k", "--repo", "sapientinc/sudoku-extreme"))


@pytest.mark.usefixtures("data", "parquets")
def test_a_fetch_begins_a_data_root(run, server, tmp_path):
    words = ["fetch", "synth", "--repo", REPO, "--revision", COMMIT, "--endpoint", server.address]
    printed(run(*words, "--files", "1", "--data-root", "begun"))
    assert raw.is_complete(tmp_path / "begun/drops/synth/SYNTH-01234567")


def test_the_token_of_the_environment_is_sent_to_no_mirror(run, data, server, monkeypatch):
    words, drop = ["fetch", "reasoning", "gsm8k"], data / "drops/reasoning/gsm8k"
    mirror = f'[reasoning.sources]\ngsm8k = "{server.address}/openai/gsm8k"\n'
    for token, settings, sent in (
        ("secret", "", "Bearer secret"),
        ("", "", None),
        ("secret", mirror, None),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        (data / "gristmill.toml").write_text(settings)
        server.tokens.clear()
        assert "2 files downloaded" in printed(run(*words, "--endpoint", server.address))
        assert set(server.tokens) == {sent}
        shutil.rmtree(drop)
