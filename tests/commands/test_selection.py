"""A file of training text whose rows are questions of a test: what a newcomer's commands say."""

import json

import dagster as dg
import pytest

from assets.checking.evaluations import look_again
from assets.checking.rules import CHECKED
from assets.leaks import RULE
from gristmill.corpora.corpus import CORPORA
from gristmill.reasoning.samples import write_drop, write_questions
from gristmill.vocabularies.pinned import GPT2, find
from resources import Lake
from tests.commands.drops import printed
from tests.json_lines import jsonl
from tests.leaks import plants
from tests.reasoning.published_root import put_vocabulary

TEST = plants.prose(1, 40)
CLEAN = dg.AssetCheckKey(dg.AssetKey(["reasoning", "normalized"]), "clean")
STAND = "40 of 40 rows are questions of gsm8k__test, e.g. "


def _backward(question: str) -> dict[str, str]:
    """A row as of the file of MetaMath: the question with an unknown, and the question itself."""
    words = question.split()
    asked = f"{' '.join([*words[:2], 'x', *words[3:]])}\nIf the answer is 7, what is x?"
    return {"question": asked, "answer": words[2], "original_question": question}


@pytest.fixture
def backward(data, run, tmp_path):
    """GSM8K's splits, which are built, and a folder with the file."""
    for split, questions in (("test", TEST), ("train", plants.prose(2, 40))):
        rows = [{"question": each, "answer": "#### 7"} for each in questions]
        jsonl(data / f"drops/reasoning/gsm8k/{split}.jsonl", rows)
    done = run("materialize", "reasoning/normalized")
    assert done.exit_code == 0 and "questions of" not in done.output
    jsonl(tmp_path / "meta/GSM8K_Backward.jsonl", map(_backward, TEST))
    return tmp_path / "meta"


def _check(instance):
    (record,) = instance.event_log_storage.get_latest_asset_check_execution_by_key([CLEAN]).values()
    return record.event.dagster_event.asset_check_evaluation_data


def test_each_command_says_it_before_and_after_the_build(backward, data, run, instance):
    assert _check(instance).passed
    said = printed(run("look", str(backward)))
    assert "row 1 original_question is reasoning/normalized gsm8k__test" in said and STAND in said
    assert "--family evals" not in said and "--family reasoning" in said
    with (backward / "corpus.toml").open("w") as file:
        file.write('schema = 1\nname = "meta"\nquestion = "question"\nanswer = "answer"\n')
        file.write('licence = { id = "MIT", train = true }\n')
    assert STAND in printed(run("drop", "--family", "reasoning", str(backward)))
    done = run("materialize", "reasoning/normalized", "audits/leaks")
    said = printed(done)
    assert done.exit_code == 0
    assert f"note reasoning/normalized meta__train: {STAND}" in said
    assert "`gristmill leaks meta__train` shows them with both texts" in said
    found = _check(instance)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    (row,) = found.metadata["findings"].records
    assert row.data["partition"] == "meta__train" and STAND in str(row.data["problem"])
    audit = data / "audits/leaks/gsm8k__test"
    first = json.loads((audit / "leaks.jsonl").read_text().partition("\n")[0])
    assert (first["place"], first["file"]) == (
        "reasoning/normalized meta__train",
        "meta/train.jsonl",
    )
    assert "nothing needed doing" in run("materialize", "audits/leaks").output
    done = run("leaks", "meta__train")
    assert done.exit_code == 1 and "40 of 40 rows are questions of gsm8k__test" in done.output


def test_a_new_set_is_built_alone_and_the_check_looks_again(backward, data, run, instance):
    assert "1 built" in run("materialize", "audits/leaks").output
    checked = CHECKED[CLEAN.asset_key]
    assert _check(instance).passed and not look_again(instance, Lake(), checked, RULE)
    jsonl(data / "drops/evals/more/a.jsonl", [plants.prose(2, 1)[0]])
    done = run("materialize", "reasoning/normalized", "audits/leaks")
    assert done.exit_code == 0 and "1 built in" in done.output and "3 unchanged" in done.output
    assert look_again(instance, Lake(), checked, RULE) == [CLEAN]
    found = _check(instance)
    assert not found.passed and "1 of 40 rows are questions of more" in found.description


def test_what_is_made_from_such_a_text_waits(backward, data, run, instance, vocabulary_root):
    (data / "gristmill.toml").write_text("[leaks]\nblock = true\n")
    jsonl(data / "drops/evals/more/a.jsonl", [plants.prose(2, 1)[0]])
    named = ("reasoning/normalized", "reasoning/gpt2_shards", "--partition")
    put_vocabulary(data, find(GPT2, vocabulary_root))
    done = run("materialize", *named, "gsm8k__train", "--rebuild")
    said = printed(done, 1)
    assert "failed reasoning/normalized gsm8k__train: check clean: " in said
    assert "not built reasoning/gpt2_shards gsm8k__train: waits for reasoning/normalized" in said
    found = _check(instance)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert not (data / "reasoning/tokenized").exists()
    printed(run("materialize", *named, "gsm8k__test", "--rebuild"))
    # A set that comes once its text stands holds what follows, before a check looked again.
    jsonl(data / "drops/evals/later/a.jsonl", [TEST[0]])
    printed(run("materialize", "audits/leaks"))
    said = printed(run("materialize", *named[1:], "gsm8k__test", "--rebuild"), 1)
    stand = "reasoning/normalized gsm8k__test: clean: 1 of 40 rows are questions of later"
    assert f"failed reasoning/gpt2_shards gsm8k__test: {stand}" in said
    assert "`gristmill leaks gsm8k__test` shows them with both texts" in said
    assert "unchanged" in printed(run("materialize", *named[1:], "gsm8k__test"))
    (data / "gristmill.toml").write_text("[leaks]\nblock = false\n")
    done = run("materialize", *named, "gsm8k__train")
    assert done.exit_code == 0 and "1 of 40 rows are questions of more" in printed(done)
    assert (data / "reasoning/tokenized/gpt2/gsm8k/train").exists()


def test_the_sample_set_asks_what_no_sample_holds(data, run):
    write_questions(data / "drops/evals/sample-questions")
    for corpus in CORPORA:
        write_drop(data / f"drops/reasoning/{corpus}", corpus)
    done = run("leaks", "drops/reasoning", "--data-root", str(data))
    assert done.exit_code == 0 and "no question of sample-questions was found" in done.output
