"""`gristmill adopt`: what it reports to an instance that does not know the artifacts."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

import definitions
from commands import checkout
from commands.adopt import adopt
from gristmill import provenance
from tests.commands.drop_world import new_world, opened
from tests.commands.drops import DROPS, PACKS, Command, land, printed

PACK = dg.AssetKey(["macroxue", "pack"])
VALUES = dg.AssetKey(["macroxue", "values"])


def adopted(*words: str) -> Result:
    """`gristmill adopt ...`; the entry point may not be installed yet."""
    return CliRunner().invoke(adopt, words)


def events(asset: dg.AssetKey, key: str) -> list[dg.AssetMaterialization]:
    """The materializations of a partition, the latest first."""
    with checkout.open_instance() as instance:
        wanted = dg.AssetRecordsFilter(asset, asset_partitions=[key])
        records = instance.fetch_materializations(wanted, limit=10).records
        return [made for record in records if (made := record.asset_materialization)]


def stale(asset: dg.AssetKey) -> dict[str, bool]:
    """Whether Dagster's pages call a partition stale."""
    graph = definitions.build_defs().resolve_asset_graph()
    with checkout.open_instance() as instance:
        state = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        keys = instance.get_materialized_partitions(asset)
        return {key: state.get_status(asset, key) is not StaleStatus.FRESH for key in keys}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data root of two packs and their values, and its instance."""
    folder = tmp_path_factory.mktemp("made")
    new_world(folder)
    (folder / "data/gristmill.toml").unlink()
    land(folder / "data", "one"), land(folder / "data", "two", seed=5)
    with opened(folder) as world:
        printed(world.run("materialize", "macroxue/pack", "macroxue/values"))
    return folder


@pytest.fixture
def built(run: Command, data: Path, tmp_path: Path, made: Path) -> Path:
    """A copy of that data root; the copy of its instance is beside it."""
    shutil.copytree(made / "data", data, dirs_exist_ok=True)
    shutil.copytree(made / ".dagster", tmp_path / ".dagster", dirs_exist_ok=True)
    return data


def forget(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / ".dagster")


def test_after_the_instance_was_deleted_nothing_needs_doing(run, built, tmp_path):
    before = {key: events(VALUES, key)[0] for key in ("one", "two")}
    forget(tmp_path)
    assert "4 artifacts adopted, 0 known already" in printed(adopted("--all"))
    for key, old in before.items():
        (new,) = events(VALUES, key)
        pointers = {tag for tag in old.tags if tag.startswith("dagster/input_event_pointer/")}
        assert pointers
        wanted = {tag: value for tag, value in old.tags.items() if tag not in pointers}
        assert wanted.items() <= new.tags.items()
        assert new.metadata["rows"] == old.metadata["rows"]
        assert new.metadata["bytes"] == old.metadata["bytes"]
    again = run("materialize", "macroxue/pack", "macroxue/values")
    assert "nothing needed doing (4 artifacts" in again.output, again.output
    with checkout.open_instance() as instance:
        assert instance.get_runs_count() == 0


def test_a_second_call_reports_nothing(built, tmp_path):
    forget(tmp_path)
    assert adopted("--all").exit_code == 0
    done = adopted("--all")
    assert "0 artifacts adopted, 4 known already" in done.output
    assert len(events(PACK, "one")) == 1


def test_some_assets_alone_and_a_dry_run(built, tmp_path):
    forget(tmp_path)
    assert "4 artifacts would be adopted" in adopted("--all", "--dry-run").output
    assert events(PACK, "one") == []
    assert "2 artifacts adopted" in adopted("macroxue/pack").output
    assert len(events(PACK, "one")) == 1
    assert events(VALUES, "one") == []


def test_a_drop_without_artifacts_is_named_and_a_gone_one_leaves_its_partition(built, tmp_path):
    pools = tmp_path / "data/drops/pools"
    pools.mkdir()
    (pools / "some.toml").write_text('members = ["one", "three"]')
    lines = adopted("--all").output.splitlines()
    assert any(line.startswith("ready pools/some: ") for line in lines), lines
    forget(tmp_path)
    shutil.rmtree(built / DROPS / "two")
    assert "4 artifacts adopted" in adopted("--all").output
    with checkout.open_instance() as instance:
        assert instance.get_materialized_partitions(PACK) == {"one", "two"}
        assert set(instance.get_dynamic_partitions("macroxue_drops")) == {"one", "two"}


def test_what_is_damaged_moved_or_unreadable_is_left_with_the_reason(built, tmp_path):
    forget(tmp_path)
    packs = built / PACKS
    record = provenance.read_record(packs / "one/provenance.json")
    (packs / "one" / record.outputs[0].path).unlink()
    shutil.copytree(packs / "two", packs / "three")
    (built / "macroxue/values/one/provenance.json").write_text("{")
    said = printed(adopted("--all"))
    assert "2 artifacts adopted" in said
    assert f"{record.outputs[0].path}, which its record lists, is not there" in said
    assert "it was moved or copied" in said
    assert "values/one/provenance.json" in said
    with checkout.open_instance() as instance:
        assert instance.get_materialized_partitions(PACK) == {"two"}


def test_an_asset_of_another_version_and_a_lost_record_are_left_with_the_reason(built, tmp_path):
    forget(tmp_path)
    values = built / "macroxue/values"
    file = values / "two/provenance.json"
    file.write_text(file.read_text().replace('"asset": "macroxue/values"', '"asset": "a/b"'))
    (values / "one/provenance.json").unlink()
    said = printed(adopted("--all"))
    assert "2 artifacts adopted" in said
    assert "its asset a/b is none of this version" in said
    assert "values/one" in said


@pytest.mark.slow
def test_the_versions_of_inputs_are_those_of_the_record(run, built, tmp_path):
    """Values that were built from an older pack show as stale, as they are."""
    old = provenance.read_record(built / PACKS / "one/provenance.json").data_version
    shutil.rmtree(built / DROPS / "one")
    land(built, "one", seed=9)
    assert run("materialize", "macroxue/pack").exit_code == 0
    forget(tmp_path)
    assert adopted("--all").exit_code == 0
    (made,) = events(VALUES, "one")
    assert made.tags["dagster/input_data_version/macroxue/pack"] == old
    assert stale(VALUES) == {"one": True, "two": False} and not any(stale(PACK).values())
    done = run("materialize", "macroxue/values")
    assert "1 built in" in done.output, done.output


def test_names_or_all_must_be_given(run):
    assert adopted().exit_code == 2
    assert adopted("macroxue/pack", "--all").exit_code == 2
    assert "macroxue/pac is not an asset" in adopted("macroxue/pac").output


_INPUTS = ("dagster/input_data_version/", "dagster/input_event_pointer/")
"""Tags of inputs. Dagster names several partitions of an input by one number of its own, and
events have other numbers in another instance; what they decide is compared, `stale`."""


@contextmanager
def opened_at(home: Path) -> Iterator[dg.DagsterInstance]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(home))
        with dg.DagsterInstance.get() as instance:
            yield instance


def known(home: Path) -> dict[tuple[str, str | None], tuple[Any, Any]]:
    """What a page says of each partition: tags and metadata of the latest event, and staleness."""
    graph = definitions.build_defs().resolve_asset_graph()
    found: dict[tuple[str, str | None], tuple[Any, Any]] = {}
    with opened_at(home) as instance:
        state = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        for asset in sorted(instance.all_asset_keys()):
            for record in instance.fetch_materializations(asset, limit=5000).records:
                made = record.asset_materialization
                assert made is not None
                tags = {
                    tag: value
                    for tag, value in (made.tags or {}).items()
                    if not tag.startswith(_INPUTS)
                }
                facts = {name: made.metadata.get(name) for name in ("dagster/row_count", "bytes")}
                facts["stale"] = [
                    (str(cause.category), str(cause.dependency))
                    for cause in state.get_stale_causes(asset, made.partition)
                ]
                found.setdefault((asset.to_user_string(), made.partition), (tags, facts))
    return found


def dynamic(home: Path) -> dict[str, set[str]]:
    """The dynamic partitions of all published assets, by the name of their definition."""
    graph = definitions.build_defs().resolve_asset_graph()
    names = {
        node.partitions_def.name
        for key in graph.materializable_asset_keys
        if isinstance((node := graph.get(key)).partitions_def, dg.DynamicPartitionsDefinition)
    }
    assert len(names) > 5
    with opened_at(home) as instance:
        return {str(name): set(instance.get_dynamic_partitions(str(name))) for name in names}


@pytest.mark.slow
def test_every_family_is_adopted(sample_root, tmp_path):
    root = sample_root.copy(tmp_path / "root")
    before, partitions = known(root.home), dynamic(root.home)
    shutil.rmtree(root.home)
    root.home.mkdir()
    (root.home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    said = root.command("adopt", "--all")
    assert "left" not in said, said
    after = known(root.home)
    assert len(before) > 90 and before.keys() == after.keys()
    for key, (tags, facts) in before.items():
        assert tags.items() <= after[key][0].items(), key
        assert facts == after[key][1], key
    assert dynamic(root.home) == partitions
    assert "nothing needed doing" in root.command("materialize", "--all")
    assert "0 artifacts adopted" in root.command("adopt", "--all")
