"""What checks show in Dagster, in runs and without one, and what of it Dagster does not export."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy.exc import IntegrityError

from assets import choices, versions
from assets.checking import evaluations, rules, verdicts
from assets.checking.arrivals import arrivals_check, changed_evaluation
from assets.checking.evaluations import PROBLEMS, TABLE, THIS_RUN, Known, found_by_run, state_of
from assets.checking.rules import CHECKED, Looked, Rule
from assets.checking.verdicts import Verdict, opened
from assets.family import disk_checks
from assets.inbox import Inbox
from assets.publishing import BATCH, publish_asset
from gristmill import families
from gristmill.contract import GristmillError, NothingToBuild, Violation
from gristmill.data_root.states import BUILT, FILE, Report, comparer, reports
from gristmill.layout import WORK
from gristmill.printable import unbroken
from gristmill.provenance import Notes, Record, read_record
from gristmill.provenance.list_artifacts import lines, list_artifacts
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from resources import Lake
from tests.architecture.graph import imports
from tests.assets.checking.findings import findings_in
from tests.assets.checking.test_verdicts import locked
from tests.assets.helpers import words_build
from tests.paths import CHECKOUT

ASSET = "test/tiny"
RULE = Rule(BUILT, "", None, lambda *_: "")


def state_after(root: Path, verdicts: list[Verdict]) -> dg.AssetCheckResult:
    with opened(root) as kept:
        kept.keep(ASSET, BUILT, verdicts)
        return state_of(RULE, ASSET, kept, Known(None, ()))


def table_of(root: Path, verdicts: list[Verdict]) -> dg.TableMetadataValue:
    state = state_after(root, verdicts)
    assert state.metadata[PROBLEMS] == len(verdicts)
    found = state.metadata[TABLE]
    assert isinstance(found, dg.TableMetadataValue)
    return found


def test_the_table_has_partition_problem_and_cure_and_an_asset_without_partitions_a_row(tmp_path):
    found = table_of(tmp_path, [Verdict("a", "", "no game", "mend it")])
    assert [column.name for column in found.schema.columns] == ["partition", "problem", "cure"]
    assert [row.data for row in found.records] == [
        {"partition": "a", "problem": "no game", "cure": "mend it"}
    ]
    (tmp_path := tmp_path / "next").mkdir()
    found = table_of(tmp_path, [Verdict("", "", "no game", "mend it")])
    assert found.records[0].data["partition"] == "(the asset)"
    evaluation = dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey("a"), check_name="c", passed=False, metadata={TABLE: found}
    )
    assert findings_in(evaluation) == {"": ("no game", "mend it")}


@pytest.mark.parametrize(("each", "rows"), [(10, 200), (700, 57), (39_990, 1), (50_000, 0)])
def test_the_table_is_bounded_in_rows_and_characters(tmp_path, each, rows):
    found = table_of(tmp_path, [Verdict(f"{n:04}", "", "x" * (each - 4)) for n in range(300)])
    assert len(found.records) == rows
    assert sum(len(unbroken(text)) for row in found.records for text in row.data.values()) <= 40_000


def test_a_long_name_in_a_problem_can_be_broken_and_a_key_and_a_command_cannot(tmp_path):
    file = "drops/macroxue/broken/depth06_worker00_seed0000000090_game000000.jsonl.gz"
    key = "a_key_of_a_partition_that_is_long"
    cure = f"gristmill retire {key}"
    found = table_of(tmp_path, [Verdict(key, "", f"{file}: no game", cure)])
    (row,) = found.records
    assert max(map(len, re.split("[ \N{ZERO WIDTH SPACE}]", row.data["problem"]))) <= 24
    assert (row.data["partition"], row.data["cure"]) == (key, cure)
    evaluation = dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey("a"), check_name="c", passed=False, metadata={TABLE: found}
    )
    assert findings_in(evaluation) == {key: (f"{file}: no game", cure)}


@pytest.mark.parametrize(("length", "breaks"), [(80, 0), (81, 1), (240, 2)])
def test_the_description_keeps_a_path_whole_that_fits_one_line(tmp_path, length, breaks):
    state = state_after(tmp_path, [Verdict("", "", "x" * length)])
    assert state.description.count("\N{ZERO WIDTH SPACE}") == breaks


def test_only_two_numbers_are_plotted_and_a_run_has_one_row(tmp_path):
    state = state_after(tmp_path, [Verdict("", "", None)])
    assert state.metadata == {PROBLEMS: 0, "partitions": 1}
    looked = Looked({"a": "v", "b": "v"}, [("b", Violation("law", "b", "is odd"))])
    shown = found_by_run(looked, ["a", "b"])
    assert shown[THIS_RUN] == "partitions of it: a, b; 2 looked at, findings: 1"
    assert set(shown) == {THIS_RUN, "listed"}
    assert found_by_run(Looked({"a": "v"}), None) == {
        THIS_RUN: "everything published; 1 looked at, nothing found"
    }
    assert found_by_run(None, ["a"]) == {THIS_RUN: "partitions of it: a"}


partitions = dg.DynamicPartitionsDefinition(name="corpus")


@dataclass
class Drops:
    """What the builders of the tests find: texts, and what is wrong with them by partition."""

    texts: dict[str, str] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    meanwhile: Callable[[], object] | None = None


DROPS = Drops()


def build(lake: Lake, asset: str, key: str | None) -> Build:
    def text() -> str:
        meanwhile, DROPS.meanwhile = DROPS.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return DROPS.texts.get(str(key), f"{key}\n")

    if asset == "words" and key in DROPS.errors:
        raise DROPS.errors[key]
    made = words_build(lake.root, f"{asset}/{key}", asset, key, text)
    return replace(made, notes=notes) if asset == "words" else made


@dg.asset(partitions_def=partitions, code_version="1", backfill_policy=BATCH, output_required=False)
def words(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Any]:
    yield from publish_asset(context, lambda key: build(lake, "words", key))


@dg.asset(
    partitions_def=partitions,
    deps=[words],
    code_version="1",
    backfill_policy=BATCH,
    output_required=False,
)
def counted(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Any]:
    yield from publish_asset(context, lambda key: build(lake, "counted", key))


def notes(folder: Path) -> Iterator[Violation]:
    if "odd" in (folder / "words.txt").read_text():
        yield Violation("usual words", str(folder / "words.txt"), "odd")


def counted_notes(record: Record, _: Path) -> Iterator[Violation]:
    if DROPS.texts.get(record.partition or "") == "wrong\n":
        raise ValueError("notes that are wrong")
    yield from ()


CHECKS = [
    *disk_checks(words, "words", notes=notes, blocking=True, counted=counted_notes),
    *disk_checks(counted, "counted"),
]
WORDS, COUNTED = words.key, counted.key


class Instance:
    """A Dagster instance with the two assets, and what its pages show."""

    def __init__(self, dagster: dg.DagsterInstance, root: Path) -> None:
        self.dagster, self.root, self.lake = dagster, root, Lake(data_root=str(root))
        everything = dg.AssetSelection.all()
        checks = dg.AssetSelection.all_asset_checks()
        self._defs = dg.Definitions(
            [words, counted],
            asset_checks=CHECKS,
            jobs=[
                dg.define_asset_job("all", everything | checks),
                dg.define_asset_job("first", dg.AssetSelection.assets(words)),
                dg.define_asset_job("checks", checks),
            ],
            resources={"lake": self.lake},
        )

    def run(self, *keys: str, job: str = "all") -> dg.ExecuteInProcessResult:
        known = self.dagster.get_dynamic_partitions("corpus")
        self.dagster.add_dynamic_partitions("corpus", [key for key in keys if key not in known])
        return self._defs.resolve_job_def(job).execute_in_process(
            instance=self.dagster,
            partition_key=keys[0] if len(keys) == 1 else None,
            tags=versions.run_tags(keys or [None]),
            raise_on_error=False,
        )

    def execute_all(self) -> None:
        self.run(job="checks")

    def record(self, name: str, asset: dg.AssetKey = WORDS) -> Any:
        key = dg.AssetCheckKey(asset, name)
        storage = self.dagster.event_log_storage
        return storage.get_latest_asset_check_execution_by_key([key])[key]

    def shows(self, name: str, asset: dg.AssetKey = WORDS) -> tuple[str, list[str]]:
        """The state of a check, and the partitions in its table."""
        record = self.record(name, asset)
        if record.status.value == "PLANNED":
            return "not executed", []
        evaluation = record.evaluation
        state = "passed" if evaluation.passed else evaluation.severity.value.lower()
        short = list(findings_in(evaluation))
        assert evaluation.metadata[PROBLEMS].value == len(short)
        return state, short

    def all_shown(self) -> dict[str, tuple[str, list[str]]]:
        return {
            f"{asset.to_user_string()} {name}": self.shows(name, asset)
            for asset in (WORDS, COUNTED)
            for name in CHECKED[asset].rules
        }


@pytest.fixture
def ui(tmp_path: Path) -> Iterator[Instance]:
    DROPS.texts.clear()
    DROPS.errors.clear()
    with dg.DagsterInstance.ephemeral() as dagster:
        yield Instance(dagster, tmp_path)


PASSED: tuple[str, list[str]] = ("passed", [])
CLEAN = {
    "words built": PASSED,
    "words intact": PASSED,
    "words lawful": PASSED,
    "words noteworthy": PASSED,
    "counted built": PASSED,
    "counted intact": PASSED,
    "counted lawful": PASSED,
}


def odd_good_and_failed(ui: Instance) -> dict[str, tuple[str, list[str]]]:
    """Run the partition a, which is odd, then b, and c, which fails; what is shown then."""
    DROPS.texts["a"] = "odd\n"
    DROPS.errors["c"] = GristmillError("no game")
    for key in "abc":
        ui.run(key)
    return ui.all_shown()


def test_a_warning_stays_when_another_drop_is_built(ui):
    DROPS.texts["a"] = "odd\n"
    ui.run("a")
    assert ui.shows("noteworthy") == ("warn", ["a"])
    ui.run("b")
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["a"])}
    shown = ui.record("noteworthy").evaluation
    assert shown.metadata["partitions"].value == 2
    assert shown.metadata[THIS_RUN].value == "partitions of it: b; 1 looked at, nothing found"
    assert "1 of 2 partitions (a): " in shown.description
    problem, cure = findings_in(shown)["a"]
    assert "usual words: odd" in problem
    assert "nothing must be done" in cure


def test_a_bad_drop_turns_red_what_failed_and_nothing_else(ui):
    DROPS.texts["a"] = "odd\n"
    ui.run("a")
    DROPS.errors["c"] = GristmillError("drops/c/1.txt:3: a board has 16 ranks")
    assert not ui.run("c").success
    assert ui.all_shown() == CLEAN | {
        "words noteworthy": ("warn", ["a"]),
        "words built": ("error", ["c"]),
    }
    shown = ui.record("built").evaluation
    problem, cure = findings_in(shown)["c"]
    assert problem == "drops/c/1.txt:3: a board has 16 ranks"
    assert "gristmill materialize words --partition c" in cure
    ui.run("b")
    assert ui.shows("built") == ("error", ["c"])
    del DROPS.errors["c"]
    ui.run("c")
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["a"])}


def test_the_first_drop_of_all_may_be_bad(ui):
    DROPS.errors["c"] = ValueError("out of range")
    ui.run("c")
    assert ui.all_shown() == CLEAN | {"words built": ("error", ["c"])}
    assert findings_in(ui.record("built").evaluation)["c"][0] == "ValueError: out of range"


def refuse_a_value(ui: Instance, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(choices, "refused_values", lambda _: ["words: rows = -1: is too low"])
    return "not started, change it in the launchpad:\nwords: rows = -1: is too low"


def refuse_a_table(ui: Instance, monkeypatch: pytest.MonkeyPatch) -> str:
    (ui.root / "gristmill.toml").write_text("[mirror]\nparallel = 0\n")
    return "gristmill.toml: [mirror] parallel = 0: must be a whole number from 1 to 64"


@pytest.mark.parametrize("refuse", [refuse_a_value, refuse_a_table])
def test_a_refused_run_fails_its_partitions_and_no_other_check(ui, refuse, monkeypatch):
    DROPS.texts["a"] = "odd\n"
    ui.run("a", "b")
    with monkeypatch.context() as patch:
        reason = refuse(ui, patch)
        for keys in (["a"], ["a", "b"]):
            result = ui.run(*keys)
            assert not result.success
            assert ui.all_shown() == CLEAN | {
                "words built": ("error", keys),
                "words noteworthy": ("warn", ["a"]),
            }
            assert reason in findings_in(ui.record("built").evaluation)[keys[-1]][0]
            seen = [e.asset_observation_data for e in result.get_asset_observation_events()]
            assert [item.asset_observation.partition for item in seen] == keys
            failed = result.get_step_failure_events()[0].step_failure_data.user_failure_data
            assert reason in failed.description
    (ui.root / "gristmill.toml").unlink(missing_ok=True)
    ui.run("a", "b")
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["a"])}


def test_a_batch_with_a_failed_partition_checks_the_others(ui):
    DROPS.texts["k1"] = "odd\n"
    DROPS.errors["k2"] = GristmillError("no game")
    result = ui.run("k0", "k1", "k2", "k3")
    assert not result.success
    assert ui.shows("built") == ("error", ["k2"])
    assert ui.shows("noteworthy") == ("warn", ["k1"])
    for name in ("intact", "lawful"):
        assert ui.shows(name) == PASSED
        metadata = ui.record(name).evaluation.metadata
        assert metadata["partitions"].value == 3
        assert "not checked" not in metadata
    assert ui.shows("lawful", COUNTED) == PASSED  # nothing of it was built


@pytest.mark.slow
def test_executed_by_itself_it_agrees_with_what_stands(ui):
    before = odd_good_and_failed(ui)
    ui.execute_all()
    assert ui.all_shown() == before
    (ui.root / "words/b/words.txt").write_text("x\n")
    ui.execute_all()
    assert ui.all_shown() == before | {"words intact": ("error", ["b"])}
    ui.run("a")
    assert ui.shows("intact") == ("error", ["b"])
    cure = findings_in(ui.record("intact").evaluation)["b"][1]
    assert "gristmill materialize words --partition b --rebuild" in cure
    ui.run("b")  # damaged files are built again
    assert ui.shows("intact") == PASSED


def unlawful(key: str) -> Any:
    def check(asset: str, subject: families.Subject) -> Iterator[Violation]:
        if asset == "words" and subject.folder.name == key:
            yield Violation("words rhyme", "words.txt", "they do not")

    return check


def test_a_blocking_check_blocks_what_failed_and_not_what_stood(ui, monkeypatch):
    ui.run("a", job="first")
    monkeypatch.setattr(families, "check", unlawful("a"))
    assert not ui.run("a").success
    assert not (ui.root / "counted/a").exists()
    assert ui.shows("lawful") == ("error", ["a"])
    assert ui.shows("lawful", COUNTED) == PASSED
    result = ui.run("b")
    assert result.success
    assert (ui.root / "counted/b").exists()
    assert ui.shows("lawful") == ("error", ["a"])
    own = [
        item
        for item in result.get_asset_check_evaluations()
        if item.check_name == "lawful" and item.asset_key == WORDS
    ]
    assert [(item.passed, item.severity) for item in own] == [(False, dg.AssetCheckSeverity.WARN)]


def test_a_partition_without_anything_to_build_hides_no_finding(ui):
    DROPS.texts["a"] = "odd\n"
    ui.run("a")
    DROPS.errors["b"] = NothingToBuild("b was merged")
    assert ui.run("b").success
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["a"])}
    ui.run("a", "b")
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["a"])}


def test_a_retired_partition_and_a_removed_artifact_have_no_findings(ui):
    DROPS.texts |= {"a": "odd\n", "b": "odd\n"}
    DROPS.errors["c"] = GristmillError("no game")
    for key in "abcd":
        ui.run(key)
    assert ui.shows("noteworthy") == ("warn", ["a", "b"])
    for key in "ac":
        ui.dagster.delete_dynamic_partition("corpus", key)
    for file in (ui.root / "words/b").iterdir():
        file.unlink()
    (ui.root / "words/b").rmdir()
    settled = evaluations.settle(ui.dagster, ui.lake, [CHECKED[WORDS]])
    assert {key.name for key in settled} >= {"built", "noteworthy"}
    assert ui.all_shown() == CLEAN


def broken(ui: Instance) -> None:
    path = ui.root / WORK / FILE
    octets = path.read_bytes()
    path.write_bytes(octets[:4096] + b"\xff" * (len(octets) - 4096))


def gone(ui: Instance) -> None:
    (ui.root / WORK / FILE).unlink()


@pytest.mark.parametrize("lose", [broken, gone])
def test_of_lost_verdicts_what_nobody_looks_at_is_not_checked_and_no_failure_is_lost(ui, lose):
    before = odd_good_and_failed(ui)
    lose(ui)
    assert ui.run("b").success
    unknown: tuple[str, list[str]] = ("warn", [])
    assert ui.all_shown() == {
        name: shown if name.endswith(" built") else unknown for name, shown in before.items()
    }
    shown = ui.record("intact").evaluation
    assert shown.metadata["not checked"].value == 1
    assert "1 of 2 not checked since they were built" in shown.description
    ui.execute_all()
    assert ui.all_shown() == before
    assert "not checked" not in ui.record("intact").evaluation.metadata


def test_a_build_comes_through_and_nothing_is_green_though_no_verdict_can_be_kept(ui, monkeypatch):
    monkeypatch.setattr(verdicts, "_WAIT_SECONDS", 0)
    ui.run("b")
    DROPS.texts["k1"] = "odd\n"
    DROPS.errors |= {"a": GristmillError("no game"), "k2": GristmillError("no game")}
    ui.run("a")
    monkeypatch.setattr(verdicts.VerdictFile, "_remove", lambda _: None)
    with locked(ui.root):
        ui.run("k0", "k1", "k2")
        assert ui.shows("built") == ("error", ["a", "k2"])
        assert ui.shows("noteworthy") == ("warn", ["k1"])
        assert ui.shows("intact") == ("warn", [])  # b is not checked
    monkeypatch.undo()
    DROPS.errors.clear()
    for keys in (["a"], ["k0", "k1", "k2"], ["b"]):
        assert ui.run(*keys).success
    ui.execute_all()
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["k1"])}


def test_failed_builds_beyond_the_cut_of_the_table_are_taken_from_events(ui, monkeypatch):
    monkeypatch.setattr(evaluations, "_MOST_ROWS", 1)
    keys = ["k0", "k1", "k2", "k3"]
    DROPS.errors |= {key: GristmillError(f"no game in {key}") for key in keys[1:]}
    ui.run(*keys)
    del DROPS.errors["k3"]
    ui.run("k3")
    before = ui.record("built").evaluation
    assert before.metadata[PROBLEMS].value == 2
    (ui.root / WORK / FILE).unlink()
    ui.run("k0")
    after = ui.record("built").evaluation
    assert after.metadata[PROBLEMS].value == 2
    assert (
        findings_in(after)
        == findings_in(before)
        == {"k1": ("no game in k1", findings_in(before)["k1"][1])}
    )


def test_what_is_built_while_everything_is_looked_at_keeps_its_finding(ui, monkeypatch):
    ui.run("a")
    ui.run("b")
    check, once = families.check, []

    def slow(asset: str, subject: families.Subject) -> Iterator[Violation]:
        if asset == "words" and not once:
            once.append(True)
            DROPS.texts["c"] = "odd\n"
            ui.run("c")
        yield from check(asset, subject)

    monkeypatch.setattr(families, "check", slow)
    ui.execute_all()
    assert once
    assert ui.shows("noteworthy") == ("warn", ["c"])
    assert ui.record("noteworthy").evaluation.metadata["partitions"].value == 3


def test_what_was_built_without_dagster_is_known_when_everything_is_looked_at(ui):
    ui.run("a")
    ui.dagster.add_dynamic_partitions("corpus", ["b"])
    publish(build(ui.lake, "words", "b"))
    ui.execute_all()
    assert ui.record("intact").evaluation.metadata["partitions"].value == 2
    DROPS.texts["b"] = "odd\n"
    publish(build(ui.lake, "words", "b"), rebuild=True, replace_differing=True)
    ui.run("a")
    shown = ui.record("noteworthy").evaluation
    assert (shown.passed, shown.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert shown.metadata["not checked"].value == 1


def test_what_was_reported_is_read_without_dagster_and_an_edit_is_found(ui):
    """Of the file of reports, or of a record: `ls` says which does not say what the other does."""
    before = odd_good_and_failed(ui)
    assert before["words built"] == ("error", ["c"])
    run = ui.dagster.get_runs(limit=3)[-1].run_id  # of a
    record = read_record(ui.root / "words/a/provenance.json")
    assert record.notes == Notes.of([Violation("usual words", "words.txt", "odd")], ui.root)
    found = reports(ui.root).by_key
    assert found["words", "a"] == Report(record.data_version, run)
    failed = found["words", "c"]
    assert (failed.data_version, failed.red) == ("", ())
    datetime.strptime(failed.failed_since, "%Y-%m-%d %H:%M")

    def said_of() -> dict[str, str]:
        return {
            f"{one.asset} {one.partition}": one.dagster
            for one in list_artifacts(ui.root, said_of=comparer())
        }

    assert set(said_of().values()) == {""}
    listed = list_artifacts(ui.root, said_of=comparer())
    assert [one.run for one in listed if one.partition == "a"][-1] == run
    assert f" {run[:8]}  " in "\n".join(lines(listed))
    (ui.root / "words/b/words.txt").write_text("damaged\n")
    ui.execute_all()
    DROPS.errors["b"] = GristmillError("no game")
    ui.run("b")
    with closing(sqlite3.connect(ui.root / WORK / FILE)) as file, file:
        file.execute("update reported set data_version = 'x' where subject = 'a'")
    publish(build(ui.lake, "counted", "d"))
    said, new = said_of(), "not reported to Dagster: materialize it"
    since = reports(ui.root).by_key["words", "b"].failed_since
    assert said == {
        "counted a": new,
        "counted b": "",
        "counted d": new,
        "words a": new,
        "words b": f"its build fails since {since} UTC; the check intact found an error",
    }
    listed = list_artifacts(ui.root, said_of=comparer())
    assert [bool(one.run) for one in listed] == [not one.dagster.startswith(new) for one in listed]
    assert f"; {new}" in "\n".join(lines(list_artifacts(ui.root, said_of=comparer())))
    record = ui.root / "words/b/provenance.json"
    record.write_text(record.read_text().replace(read_record(record).data_version, "0" * 64))
    assert said_of()["words b"].startswith(new)
    gone(ui)
    assert set(said_of().values()) == {""}  # no Dagster knows of the data root


def test_a_partition_at_which_a_check_cannot_look_is_its_finding_alone(ui, monkeypatch):
    kinds = {"words": families.Kind("words", counted=counted_notes)}
    monkeypatch.setattr(families, "kind_of_asset", kinds.get)
    DROPS.texts |= {"k0": "odd\n", "k1": "wrong\n"}
    for keys in (["k1"], ["k0", "k1", "k2"]):
        assert ui.run(*keys).success
        found = findings_in(ui.record("noteworthy").evaluation)
        assert list(found) == [key for key in keys if key != "k2"]
        assert "cannot be looked at: ValueError: notes that are wrong" in found["k1"][0]
    ui.execute_all()
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["k0", "k1"])}


def test_a_run_that_fails_says_its_own_reason_though_its_checks_cannot_speak(ui, monkeypatch):
    ui.run("a")

    def fail(*_: object) -> None:
        raise RuntimeError("no events")

    monkeypatch.setattr(evaluations, "settle_planned", fail)
    DROPS.errors["c"] = GristmillError("no game")
    result = ui.run("a", "c")
    (failed,) = result.get_step_failure_events()
    assert "no game" in failed.step_failure_data.user_failure_data.description
    DROPS.errors["c"] = NothingToBuild("c was merged")
    assert ui.run("a", "c").success


def test_of_two_runs_at_once_the_last_word_has_the_findings_of_both(ui):
    """The rows of the run that was planned first are older, though it ends last."""
    DROPS.texts |= {"a": "odd\n", "b": "odd\n"}
    DROPS.meanwhile = lambda: ui.run("b")
    ui.run("a")
    assert ui.all_shown() == CLEAN | {"words noteworthy": ("warn", ["a", "b"])}


def test_a_finding_that_another_process_keeps_meanwhile_is_in_the_last_word(ui, monkeypatch):
    """It comes after the check that it belongs to, and before the run's last check."""
    for key in "ab":
        ui.run(key)
    check = families.check

    def meanwhile(asset: str, subject: families.Subject) -> Iterator[Violation]:
        with opened(ui.root) as other:
            other.keep("words", "intact", [Verdict("b", "", "damaged", "mend it")])
        yield from check(asset, subject)

    monkeypatch.setattr(families, "check", meanwhile)
    assert ui.shows("intact") == PASSED
    ui.run("a")
    assert ui.shows("intact") == ("error", ["b"])


def test_a_planned_check_of_a_run_that_is_gone_shows_what_stood(ui):
    DROPS.texts["a"] = "odd\n"
    ui.run("a")
    before = ui.all_shown()
    run = ui.dagster.create_run_for_job(
        ui._defs.resolve_job_def("all"), tags={"dagster/partition": "a"}
    )
    assert ui.shows("noteworthy")[0] == "not executed"
    assert evaluations.settle_planned(ui.dagster, ui.lake, "another") == []
    ui.dagster.report_run_failed(run)
    assert len(evaluations.settle_planned(ui.dagster, ui.lake, run.run_id)) == len(before)
    assert ui.all_shown() == before


def test_a_run_of_one_partition_walks_over_no_others(ui, monkeypatch):
    for key in "abc":
        ui.run(key)

    def walk(*_: object) -> Iterator[Any]:
        raise AssertionError("a run of one partition looks for all")

    monkeypatch.setattr(rules, "walk", walk)
    assert ui.run("b").success
    assert ui.all_shown() == CLEAN


PLACE = "dagster._core.definitions.asset_checks.asset_check_evaluation"
MODULES = {"assets.checking.evaluations", "commands.dagster_private"}

PARTITIONS = dg.DynamicPartitionsDefinition(name="toy_drops")
RAW = dg.AssetSpec(["toy", "raw_drop"], partitions_def=PARTITIONS)
INBOX = Inbox("toy", RAW.key, PARTITIONS, [], lambda _: None)


@pytest.fixture
def without_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of Dagster that has moved the class."""
    monkeypatch.setattr(evaluations, "HAS_TARGET", False)


def test_dagster_does_not_keep_a_second_evaluation_of_a_partition_without_a_run(instance):
    """If this fails: Dagster's own partitioned checks may carry now. Try them in the UI: the
    badge, the lineage and a partition without a verdict, and the time of 12,000 pairs.
    """
    again = dg.AssetCheckEvaluation(
        asset_key=RAW.key, check_name="c", passed=True, metadata={}, partition="p"
    )
    instance.report_runless_asset_event(again)
    with pytest.raises(IntegrityError):
        instance.report_runless_asset_event(again)


def test_this_release_of_dagster_has_targets_of_evaluations(instance):
    """If this fails: find where the class went, and import it from there."""
    assert evaluations.HAS_TARGET
    assert evaluations.newest_target(instance, RAW.key) is None
    for key in ("d1", "d2"):
        instance.report_runless_asset_event(dg.AssetMaterialization(RAW.key, partition=key))
    (newest,) = instance.fetch_materializations(RAW.key, limit=1).records
    target = evaluations.newest_target(instance, RAW.key)
    assert target is not None
    assert (target.storage_id, target.run_id, target.timestamp) == (
        newest.storage_id,
        newest.run_id,
        newest.timestamp,
    )


@pytest.mark.usefixtures("without_target")
def test_without_targets_a_check_is_reported_without_one_and_once(instance):
    assert not evaluations.HAS_TARGET
    instance.report_runless_asset_event(dg.AssetMaterialization(RAW.key, partition="d1"))
    assert evaluations.newest_target(instance, RAW.key) is None
    evaluation = changed_evaluation(instance, INBOX, [])
    assert evaluation is not None and evaluation.target_materialization_data is None
    instance.report_runless_asset_event(evaluation)
    assert changed_evaluation(instance, INBOX, []) is None
    assert arrivals_check(INBOX).check_keys


@pytest.mark.slow
def test_without_targets_the_code_location_is_loaded():
    program = (
        f"import dagster, {PLACE} as place\n"
        "del place.AssetCheckEvaluationTargetMaterializationData\n"
        "import definitions\n"
        "definitions.build_defs().get_repository_def()\n"
        "from assets.checking.evaluations import HAS_TARGET\n"
        "assert not HAS_TARGET\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_dagster_does_not_export_is_imported_by_two_modules_alone():
    found = {
        name
        for name, forms in imports(CHECKOUT).items()
        for candidates in forms
        if any(part.startswith("_") for part in candidates[-1].split("."))
        and candidates[-1].startswith("dagster")
    }
    assert found == MODULES
