"""`gristmill retire`: which partition it forgets, and what it removes."""

import shutil
from pathlib import Path

import dagster as dg
import pytest

from assets.checking.arrivals import taken
from commands.graph import INBOXES, register
from gristmill import provenance
from gristmill.layout import WORK
from gristmill.provenance import Input
from gristmill.publish.publish import publish
from resources import Lake
from tests.commands.drops import PACKS, Command, land, printed
from tests.marked import mark
from tests.publish.tiny import tiny_build


@pytest.fixture
def retired(run: Command, data: Path) -> Path:
    """A pack whose drop was moved away, and one that stays."""
    folder = land(data, "one")
    land(data, "two", seed=5)
    assert run("materialize", "macroxue/pack").exit_code == 0
    shutil.move(folder, data / "archived")
    return data / PACKS / "one"


def known(instance: dg.DagsterInstance) -> set[str]:
    return set(instance.get_dynamic_partitions("macroxue_drops"))


def test_retire_forgets_the_partition_and_keeps_the_pack(run, instance, retired):
    listed = run("retire", "one", "--dry-run")
    assert "macroxue_drops: forget one" in listed.output
    assert f"stays: {retired}" in listed.output
    assert known(instance) == {"one", "two"}
    assert run("retire", "one").exit_code == 0
    assert known(instance) == {"two"}
    assert provenance.verify(retired, check_inputs=False) == []


@pytest.mark.slow
def test_samples_that_are_removed_leave_no_partition(run, data, instance):
    land(data, "mine", seed=5)
    mark(land(data, "invented"))
    assert run("materialize", "macroxue/pack").exit_code == 0
    assert known(instance) == {"mine", "invented"}
    assert "forget invented" in run("samples", str(data), "--remove").output
    assert known(instance) == {"mine"}
    records = [path for path in data.rglob("provenance.json") if WORK not in path.parts]
    assert [path.parent.name for path in records] == ["mine"]
    assert "gone" not in run("materialize", "macroxue/pack").output


def test_retire_removes_the_pack_if_asked_to_and_nothing_else(run, data, instance, retired):
    stranger = data / "other/things/one"
    stranger.mkdir(parents=True)
    listed = run("retire", "one", "--artifacts", "--dry-run")
    assert f"remove: {retired}" in listed.output
    assert str(stranger) not in listed.output
    assert retired.exists()
    assert run("retire", "one", "--artifacts").exit_code == 0
    assert not retired.exists()
    assert stranger.exists()
    assert provenance.verify(data / PACKS / "two") == []
    assert not list((data / PACKS / ".gristmill/slots").iterdir())


def test_retire_refuses_to_remove_a_pack_that_something_was_made_from(run, data, instance, retired):
    done = run("retire", "one", "--with-dependents")
    assert (done.exit_code, "goes with --artifacts" in done.output) == (2, True)
    assert run("materialize", "macroxue/values").exit_code == 0
    values, report = data / "macroxue/values", data / "macroxue/report"
    version = provenance.read_record(retired / provenance.RECORD).data_version
    made_from = Input(
        asset="macroxue/pack", partition="one", data_version=version, path=f"{PACKS}/one"
    )
    publish(tiny_build(data, "macroxue/report", inputs=[made_from], asset="test/report"))
    said = printed(run("retire", "one", "--artifacts"), 1)
    refused = "not removed, since other artifacts were made from it: macroxue/report. Add"
    assert refused in " ".join(said.split())
    assert known(instance) == {"one", "two"}
    words = ["retire", "one", "--artifacts", "--with-dependents"]
    assert "remove: macroxue/report, made from it\n" in run(*words, "--dry-run").output
    assert (retired.exists(), report.exists()) == (True, True)
    assert run(*words).exit_code == 0
    assert (retired.exists(), report.exists()) == (False, False)
    assert not list(values.glob("one*"))
    assert known(instance) == {"two"}


def test_retire_refuses_while_the_drop_is_there_and_refuses_an_unknown_key(run, data, instance):
    folder = land(data, "one")
    run("materialize", "macroxue/pack")
    said = printed(run("retire", "one", "--artifacts"), 2)
    assert f"{folder} is still there" in "".join(said.split("\n"))
    assert known(instance) == {"one"}
    assert (data / PACKS / "one").exists()
    assert "no drop or pool has the partition 'never'" in printed(run("retire", "never"), 2)


@pytest.mark.usefixtures("retired")
def test_retire_of_a_key_that_no_drop_can_have_touches_no_file(run, data, instance):
    for key in ("*", "..", "t*", "[a-z]*", "one/..", ".gristmill"):
        # The instance takes anything as a key, from the UI's dialog too.
        instance.add_dynamic_partitions("macroxue_drops", [key])
        before = sorted(data.rglob("*"))
        printed(run("retire", key, "--artifacts"))
        assert known(instance) == {"one", "two"}
        assert sorted(data.rglob("*")) == before


def test_retire_forgets_a_month_whose_file_is_gone(run, data, instance):
    (inbox,) = (each for each in INBOXES if each.folder == "chess")
    file = Lake().inbox("chess") / "lichess_elite_2024-01.pgn"
    file.parent.mkdir()
    file.write_text('[Event "a"]\n\n1. e4 *\n')
    assert list(register(instance, Lake(), inbox)) == []
    assert f"{file} is still there" in "".join(printed(run("retire", "2024-01"), 2).split("\n"))
    file.unlink()
    assert "name each folder to `gristmill remove`" in " ".join(
        run("retire", "2024-01", "--artifacts").output.split()
    )
    listed = run("retire", "2024-01", "--dry-run")
    assert (listed.exit_code, listed.output) == (0, "chess: forget 2024-01\n")
    assert taken(instance, inbox) == {"2024-01": ["2024-01"]}
    assert run("retire", "2024-01").exit_code == 0
    assert taken(instance, inbox) == {}
    again = run("retire", "2024-01")
    assert again.output == "chess_collections: keep 2024-01, which is there without a drop\n"
    assert instance.has_dynamic_partition("chess_collections", "2024-01")


def test_splits_of_a_corpus_that_is_gone_go_and_those_of_the_seven_stay(run, data, instance):
    (inbox,) = (each for each in INBOXES if each.folder == "reasoning")
    for name, recipe in (("mine", 'schema = 1\nname = "mine"\nquestion = "q"\n'), ("gsm8k", "")):
        folder = data / "drops/reasoning" / name
        folder.mkdir(parents=True)
        (folder / "train.jsonl").write_text("{}\n")
        if recipe:
            (folder / "corpus.toml").write_text(recipe)
    register(instance, Lake(), inbox)
    assert {"mine__train", "gsm8k__train"} <= {*instance.get_dynamic_partitions("reasoning_splits")}
    for name in ("mine", "gsm8k"):
        assert "still there" in run("retire", name).output
        shutil.rmtree(data / "drops/reasoning" / name)
    assert "reasoning_splits: forget mine__train" in run("retire", "mine", "--dry-run").output
    assert instance.has_dynamic_partition("reasoning_splits", "mine__train")
    assert run("retire", "mine").exit_code == run("retire", "gsm8k").exit_code == 0
    assert not instance.has_dynamic_partition("reasoning_splits", "mine__train")
    assert instance.has_dynamic_partition("reasoning_splits", "gsm8k__train")
    assert taken(instance, inbox) == {}
