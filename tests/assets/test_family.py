"""Groups in the UI: each asset says what it is about, and no two look alike."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import definitions
from assets import family, publishing, versions
from assets.checking.evaluations import THIS_RUN
from assets.family import GROUPS, PAGE, disk_checks, with_subjects
from assets.publishing import BATCH, publish_asset
from definitions import build_defs
from gristmill import families, markdown
from gristmill.contract import Violation
from gristmill.hashing import sha256_file
from gristmill.printable import unbroken
from gristmill.provenance import verification
from gristmill.publish.build import Build
from resources import Lake
from tests.assets.helpers import words_build
from tests.paths import CHECKOUT


@pytest.fixture(scope="module")
def specs() -> list[dg.AssetSpec]:
    return list(build_defs().resolve_all_asset_specs())


def test_every_group_has_assets_and_a_page_and_an_asset_says_where_to_read_more(specs):
    assert {spec.group_name for spec in specs} == set(GROUPS)
    for group in GROUPS.values():
        assert (CHECKOUT / "docs" / group.page).is_file()
    assert GROUPS["macroxue"].subject == "2048 self-play"
    assert len({group.subject for group in GROUPS.values()}) == len(GROUPS)
    for spec in specs:
        assert spec.owners == [f"team:{str(spec.group_name).split('/')[0]}"]
        group = GROUPS[str(spec.group_name)]
        assert str(spec.description).startswith(f"{group.subject}: ")
        page = spec.metadata[PAGE]
        assert page == dg.MetadataValue.url(f"/docs/{group.page}")
        assert f"[docs/{group.page}](/docs/{group.page})" in str(spec.description)
        assert "[what the rows mean](/docs/numbers.md)" in str(spec.description)


def test_assets_of_one_name_differ_in_what_the_graph_shows_and_in_the_name_of_their_box(specs):
    """A node shows the last part of the key, the first words and the kinds."""
    named = defaultdict(list)
    for spec in specs:
        named[spec.key.path[-1]].append((str(spec.description)[:14], *sorted(spec.kinds)))
    assert any(len(shown) > 1 for shown in named.values())
    for name, shown in named.items():
        assert len({words for words, *_ in shown}) == len(shown), name
        assert len(set(shown)) == len(shown), name
    # From afar a node shows the last part of its key, and its box the last part of the group.
    drawn = defaultdict(list)
    for spec in specs:
        drawn[spec.key.path[-1]].append(str(spec.group_name).split("/")[-1])
    for name, boxes in drawn.items():
        assert len(set(boxes)) == len(boxes), name


def test_assets_keep_everything_else_and_those_of_a_group_that_is_not_listed_stay():
    before = dg.AssetSpec(
        "x", group_name="puzzles", description="Text.", kinds={"csv"}, metadata={"own": 1}
    )
    (after,) = with_subjects([before])
    assert isinstance(after, dg.AssetSpec)
    assert str(after.description).startswith("Puzzles: Text.\n\n")
    assert (after.key, after.kinds, after.metadata["own"]) == (before.key, {"csv"}, 1)
    strange = dg.AssetSpec("x", group_name="strange", description="Text.")
    assert with_subjects([strange]) == [strange]


KEYS = [f"k{number}" for number in range(5)]
partitions = dg.DynamicPartitionsDefinition(name="toy")


@dg.asset(partitions_def=partitions, code_version="1", backfill_policy=BATCH, output_required=False)
def text(context: dg.AssetExecutionContext, lake: Lake) -> Iterator[Any]:
    yield from publish_asset(
        context,
        lambda key: words_build(lake.root, f"toy/text/{key}", "text", key, lambda: f"{key}\n"),
    )


CHECKS = disk_checks(text, "toy/text")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("toy", KEYS)
        yield made


@pytest.fixture
def evaluate(instance: dg.DagsterInstance, tmp_path: Path) -> Any:
    """Run the asset and its checks, or the checks alone; the evaluations by name."""

    def run(*keys: str) -> dict[str, dg.AssetCheckEvaluation]:
        lake = Lake(data_root=str(tmp_path))
        checks = dg.AssetSelection.checks_for_assets(text)
        jobs = [
            dg.define_asset_job("all", dg.AssetSelection.assets(text) | checks),
            dg.define_asset_job("only_checks", checks),
        ]
        defs = dg.Definitions([text], asset_checks=CHECKS, jobs=jobs, resources={"lake": lake})
        result = defs.resolve_job_def("all" if keys else "only_checks").execute_in_process(
            instance=instance,
            partition_key=keys[0] if len(keys) == 1 else None,
            tags=versions.run_tags(keys or [None]),
        )
        return {item.check_name: item for item in result.get_asset_check_evaluations()}

    return run


def numbers(evaluation: dg.AssetCheckEvaluation) -> tuple[bool, int, int]:
    said = str(evaluation.metadata[THIS_RUN].value)
    looked_at = re.search(r"; ([0-9]+) looked at, ", said)
    findings = re.search(r"findings: ([0-9]+)$", said)
    assert looked_at is not None
    return evaluation.passed, int(looked_at[1]), int(findings[1]) if findings else 0


def spoil(root: Path, key: str) -> Path:
    """Other bytes of the same length, so that only a hash can tell."""
    file = root / "toy/text" / key / "words.txt"
    file.write_text(f"{key[::-1]}\n")
    return file


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (KEYS[1:2], "k1; 1 looked at, nothing found"),
        (KEYS[:4], "k0, k1, k2 and 1 more; 4 looked at, nothing found"),
    ],
)
def test_a_run_of_some_partitions_is_checked_for_these(evaluate, tmp_path, keys, said):
    evaluate(*KEYS)
    spoil(tmp_path, "k4")
    found = evaluate(*keys)["intact"]
    assert numbers(found) == (True, len(keys), 0)
    assert found.metadata[THIS_RUN].value == f"partitions of it: {said}"


def test_a_run_does_not_read_again_what_it_built(evaluate, tmp_path, monkeypatch):
    read: list[Path] = []
    lawful: list[Path] = []

    def hashed(path: Path, advance: Any = None) -> str:
        read.append(path)
        return sha256_file(path, advance)

    def check(asset: str, subject: families.Subject) -> Iterator[Violation]:
        lawful.append(subject.folder)
        yield from ()

    monkeypatch.setattr(verification, "sha256_file", hashed)
    monkeypatch.setattr(families, "check", check)
    assert numbers(evaluate("k1")["lawful"]) == (True, 1, 0)
    assert (read, lawful) == ([], [])
    assert numbers(evaluate("k1")["intact"]) == (True, 1, 0)  # unchanged: built by another run
    assert [path.name for path in read] == ["words.txt"]
    assert lawful == [tmp_path / "toy/text/k1"]
    evaluate()
    assert len(read) == len(lawful) == 2


def test_a_run_reads_a_file_that_changed_since_its_commit(evaluate, tmp_path, monkeypatch):
    publish_it = publishing.publish

    def spoiled_afterwards(build: Build, **options: Any) -> Any:
        published = publish_it(build, **options)
        spoil(tmp_path, "k1")
        return published

    monkeypatch.setattr(publishing, "publish", spoiled_afterwards)
    found = evaluate("k1")
    assert numbers(found["intact"]) == (False, 1, 1)


def test_alone_the_checks_look_at_all_and_name_the_bad_file(evaluate, tmp_path):
    evaluate(*KEYS)
    file = spoil(tmp_path, "k3")
    found = evaluate()
    assert numbers(found["intact"]) == (False, 5, 1)
    assert str(found["intact"].metadata[THIS_RUN].value).startswith("everything published; ")
    assert f"{file}: output: sha256" in str(found["intact"].metadata["listed"].value)
    assert markdown.escape(str(file)) in unbroken(str(found["intact"].description))
    assert numbers(found["lawful"]) == (True, 5, 0)


@pytest.mark.slow
def test_a_long_list_of_violations_is_cut(evaluate, instance, tmp_path):
    many = [f"m{number:02}" for number in range(60)]
    instance.add_dynamic_partitions("toy", many)
    evaluate(*many)
    for key in many:
        spoil(tmp_path, key)
    found = evaluate()["intact"]
    assert numbers(found) == (False, 60, 60)
    assert str(found.metadata["listed"].value).count("\n* ") == 50  # and how many more


def test_the_shipped_samples_give_a_first_graph_without_a_warning(sample_root, tmp_path):
    checked, short = set(), {}
    with sample_root.copy(tmp_path).graph():
        keys = definitions.build_defs().resolve_asset_graph().asset_check_keys
        instance = dg.DagsterInstance.get()
        latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(keys))
        for key, record in latest.items():
            checked.add(key.asset_key.path[0])
            if record.evaluation is None or not record.evaluation.passed:
                said = record.evaluation.description if record.evaluation else record.status.value
                short[key.to_user_string()] = said
            elif left := record.evaluation.metadata.get("not checked"):
                short[key.to_user_string()] = f"{left.value} not checked"
    assert checked >= {"macroxue", "chess", "synth", "reasoning", "puzzles"}
    # The sample months repeat games on purpose, and splits of a corpus questions.
    assert "questions: asks what" in short.pop("reasoning/normalized:noteworthy")
    repeated = short.pop("chess/valid_games:noteworthy")
    assert "2 of 2 partitions (2024-01, 2024-02)" in repeated
    assert "15 games are in the PGN once more" in repeated
    assert short == {}


@pytest.mark.parametrize(("key", "shown"), [("d6_v1", "d6_v1"), ("-x", "-- -x")])
def test_a_drop_that_is_gone_is_retired_by_a_command_that_takes_any_key(key, shown):
    found = [Violation("input", "a", f"is gone: gristmill retire {shown}")]
    cure = family._mend("toy/mill", key, found)
    assert cure == f"bring the drop back, or run: gristmill retire {shown}"
