"""The sensor that starts work when a raw drop has landed, made once for every family."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from assets.versions import DATA_VERSION
from resources import Lake
from sensors.settling import FOLDER, Arrival, Look, Shape, State, look

Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation

MOST_REQUESTS = 20
LOOK_SECONDS = 20.0
INTERVAL_SECONDS = 15


@dataclass(frozen=True)
class Inbox:
    """Where the raw drops of a family arrive, and what they start.

    raw_drop: the external asset that stands for the drops; an arrival is
        reported as its materialization, a refused folder as its observation.
    partitions: dynamic ones, where a drop becomes the partition of its name; or
        fixed ones, all of which a drop feeds.
    targets: the assets that a drop's runs build, a run a partition.
    followers: assets without partitions that are made from those, and whose own
        automation starts them.
    refuse: why a settled drop cannot be built, or None.
    """

    family: str
    raw_drop: dg.AssetKey
    partitions: dg.PartitionsDefinition[str]
    targets: Sequence[dg.AssetsDefinition]
    refuse: Callable[[Path], str | None]
    shape: Shape = FOLDER
    followers: Sequence[dg.AssetsDefinition] = ()

    @property
    def dynamic(self) -> dg.DynamicPartitionsDefinition | None:
        """The partitions definition that drops are added to, None where it is fixed."""
        known = self.partitions
        return known if isinstance(known, dg.DynamicPartitionsDefinition) else None

    @property
    def partitions_name(self) -> str | None:
        """Name of the dynamic partitions, None where they are fixed."""
        return self.dynamic.name if self.dynamic else None

    def fed_by(self, drop: str) -> Collection[str]:
        """The partitions that the drop of this name feeds."""
        return [drop] if self.dynamic else self.partitions.get_partition_keys()


def raw_drop_sensor(inbox: Inbox) -> dg.SensorDefinition:
    """A sensor over `drops/<family>/`: a drop that has settled starts the runs it feeds."""
    family = inbox.family

    @dg.sensor(
        name=f"{family}_drops",
        target=list(inbox.targets),
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Watches drops/{family}/. A folder whose files keep their names, sizes and times "
            "for two looks in a row is taken, and its runs start. A drop that is replaced is "
            "built again. Folders that cannot be drops are reported with the reason."
        ),
    )
    def watch(context: dg.SensorEvaluationContext, lake: Lake) -> dg.SensorResult:
        state = State.read(context.cursor)
        found = look(
            lake.inbox(family),
            state,
            inbox.refuse,
            most=MOST_REQUESTS,
            seconds=LOOK_SECONDS,
            shape=inbox.shape,
        )
        for refusal in found.refusals:
            context.log.warning(f"{refusal.key}: refused: {refusal.reason}")
        requests = []
        if inbox.dynamic and inbox.dynamic.name:
            known = set(context.instance.get_dynamic_partitions(inbox.dynamic.name))
            new = [arrival.key for arrival in found.arrivals if arrival.key not in known]
            requests = [inbox.dynamic.build_add_request(new)] if new else []
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(run_key=_run_key(arrival, key), partition_key=key)
                for arrival in found.arrivals
                for key in inbox.fed_by(arrival.key)
            ],
            dynamic_partitions_requests=requests,
            asset_events=_events(inbox, found),
            cursor=state.write(),
            skip_reason=None if found.arrivals else _nothing(found),
        )

    return watch


def _run_key(arrival: Arrival, partition: str) -> str:
    return arrival.run_key if partition == arrival.key else f"{arrival.run_key}:{partition}"


def arrival_events(
    inbox: Inbox, arrival: Arrival
) -> list[dg.AssetMaterialization | dg.AssetObservation]:
    """What the instance is told of a drop that has landed, for each partition it feeds.

    Of an external asset Dagster takes the partition's health from its
    materializations, but from its observations whether what was built from it
    is stale; so it gets both, the observation first.
    """
    metadata = {
        "path": dg.MetadataValue.path(arrival.path),
        "files": arrival.files,
        "bytes": arrival.bytes,
    }
    tags = {DATA_VERSION: arrival.signature}
    return [
        kind(asset_key=inbox.raw_drop, partition=key, metadata=metadata, tags=tags)
        for key in inbox.fed_by(arrival.key)
        for kind in (dg.AssetObservation, dg.AssetMaterialization)
    ]


def _events(inbox: Inbox, found: Look) -> list[Event]:
    landed = [event for arrival in found.arrivals for event in arrival_events(inbox, arrival)]
    refused = [
        dg.AssetObservation(
            asset_key=inbox.raw_drop,
            description=f"refused: {refusal.reason}",
            metadata={"refused": refusal.key, "reason": refusal.reason},
        )
        for refusal in found.refusals
        if refusal.is_new
    ]
    return [*landed, *refused]


def _nothing(found: Look) -> dg.SkipReason:
    said = [f"{refusal.key} is refused: {refusal.reason}" for refusal in found.refusals]
    if found.arriving:
        said.append(f"still arriving: {', '.join(found.arriving[:10])}")
    return dg.SkipReason("; ".join(said) or "no new drop")
