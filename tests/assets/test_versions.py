"""The tags of inputs: which event of an upstream asset a partition counts."""

import dagster as dg

from assets import versions

PARTS = dg.StaticPartitionsDefinition(["a", "b"])
RAW = dg.AssetKey(["raw"])
POINTER = "dagster/input_event_pointer/raw"
VERSION = "dagster/input_data_version/raw"


def reported(instance: dg.DagsterInstance) -> dict[str, str]:
    """The numbers of the events of two partitions, reported one after the other."""
    for key in ("a", "b"):
        tags = {versions.DATA_VERSION: f"of {key}"}
        instance.report_runless_asset_event(dg.AssetMaterialization(RAW, partition=key, tags=tags))
    found = versions.latest(instance, RAW, ["a", "b"])
    assert {key: version for key, (version, _) in found.items()} == {"a": "of a", "b": "of b"}
    return {key: str(number) for key, (_, number) in found.items()}


def tags_of(mapping: dg.PartitionMapping | None) -> tuple[dict[str, str], dict[str, str]]:
    """The numbers of the events, and the tags that a step gives its partition "a"."""
    tags: dict[str, str] = {}

    @dg.asset(partitions_def=PARTS, deps=[dg.AssetDep(RAW, partition_mapping=mapping)])
    def made(context: dg.AssetExecutionContext) -> None:
        tags.update(versions.tagger(context, ["a"])("a", "x"))

    with dg.DagsterInstance.ephemeral() as instance:
        numbers = reported(instance)
        raw = dg.AssetSpec(RAW, partitions_def=PARTS)
        assert dg.materialize([raw, made], instance=instance, partition_key="a").success
    return numbers, tags


def test_the_same_partition_of_an_input_counts() -> None:
    numbers, tags = tags_of(None)
    assert (tags[VERSION], tags[POINTER]) == ("of a", numbers["a"])


def test_of_all_partitions_of_an_input_the_latest_event_counts() -> None:
    """An earlier one would call a partition stale as soon as it is built."""
    numbers, tags = tags_of(dg.AllPartitionMapping())
    assert numbers["b"] > numbers["a"]
    assert (tags[VERSION], tags[POINTER]) == ("of b", numbers["b"])


def test_an_observation_counts_until_its_partition_is_built_and_alike_without_partitions(
    instance: dg.DagsterInstance,
) -> None:
    whole = dg.AssetKey("whole")
    for asset, key in ((RAW, "a"), (RAW, "b"), (whole, None)):
        instance.report_runless_asset_event(dg.AssetObservation(asset, partition=key))
    assert set(versions.observed_since(instance, RAW, ["a", "b", "c"])) == {"a", "b"}
    assert set(versions.observed_since(instance, whole, None)) == {None}
    for asset, key in ((RAW, "a"), (whole, None)):
        instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=key))
    assert set(versions.observed_since(instance, RAW, ["a", "b"])) == {"b"}
    assert versions.observed_since(instance, whole, None) == {}
    instance.report_runless_asset_event(dg.AssetObservation(whole, description="again"))
    assert versions.observed_since(instance, whole, None)[None].description == "again"
