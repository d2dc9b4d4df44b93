"""The definitions of a family, made from the declarations in its catalog; its groups in the UI."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import quote

import dagster as dg

from assets import choices
from assets.checks import disk_checks
from assets.inbox import Inbox
from assets.publishing import Event, publish_asset
from gristmill import families
from gristmill.asset import Asset, Wanted, declared
from gristmill.browse.web.asked import PREFIX
from gristmill.data_root import DataRoot
from gristmill.families import Source
from gristmill.publish.build import Build
from resources import Lake

DOCS: Final = "/docs/"
"""Where `gristmill ui` serves the pages of `docs/`."""
PAGE: Final = "docs"
"""The name of the metadata entry with the address of the page."""
SAMPLES: Final = "browse"
"""The name of the metadata entry with the address of the published artifacts' rows."""
NUMBERS: Final = "numbers.md"
"""The page that says what each row of an event means: a heading an asset."""


@dataclass(frozen=True)
class Group:
    """What the assets of a group are about."""

    subject: str
    page: str


GROUPS: Final = {
    "tokenizers": Group("Vocabularies", "formats/vocabularies.md"),
    "macroxue": Group("2048 self-play", "macroxue.md"),
    "synth/harmony": Group("SYNTH conversations", "synth.md"),
    "synth/full": Group("SYNTH for training", "synth.md"),
    "synth/smoke": Group("SYNTH, small for tests", "synth.md"),
    "chess/monthly": Group("Chess, month by month", "chess.md"),
    "reasoning/texts": Group("Reasoning texts", "reasoning.md"),
    "reasoning/tokens": Group("Reasoning tokens", "reasoning.md"),
    "reasoning/quality": Group("Reasoning steps and reports", "reasoning.md"),
    "chat": Group("Conversations of your own", "chat.md"),
    "puzzles": Group("Puzzles", "puzzles.md"),
}
"""The groups by name. A `/` nests a group in another one. Others are shown without a subject."""


def with_subjects(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
) -> Sequence[dg.AssetsDefinition | dg.AssetSpec]:
    """Returns assets with their family as owner, their group's subject and its page.

    Those whose group is not in `GROUPS` are left as they are.
    """
    return dg.map_asset_specs(_with_subject, assets)


def _with_subject(spec: dg.AssetSpec) -> dg.AssetSpec:
    group = GROUPS.get(spec.group_name or "")
    if group is None:
        return spec
    place, numbers = f"{DOCS}{group.page}", f"{DOCS}{NUMBERS}"
    return spec.replace_attributes(
        owners=[f"team:{str(spec.group_name).partition('/')[0]}"],
        description=(
            f"{group.subject}: {spec.description}\n\n"
            f"More: [docs/{group.page}]({place}), and [what the rows mean]({numbers}); "
            "`gristmill ui` serves both."
        ),
        metadata={
            **spec.metadata,
            PAGE: dg.MetadataValue.url(place),
            SAMPLES: dg.MetadataValue.url(f"{PREFIX}?asset={quote(spec.key.to_user_string())}"),
        },
    )


@dataclass(frozen=True)
class Family:
    """Everything that one family adds to the definitions.

    assets: external and built assets. `gristmill materialize` builds them in this order where
        their dependencies leave the order open. The sensor `followers` evaluates those that have
        an automation condition.
    checks: the checks of those assets; default none.
    jobs: results of `dg.define_asset_job`; default none.
    inboxes: the folders below `drops/` that the family watches; default none.
    schedules: default none.
    resources: resources in addition to `lake`, by resource key; default none.
    available: returns the partition keys that `materialize --all` builds; an empty collection
        also leaves out the assets without partitions. Default None: every known key.
    """

    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    checks: Sequence[dg.AssetChecksDefinition] = ()
    jobs: Sequence[Any] = ()
    inboxes: Sequence[Inbox] = ()
    schedules: Sequence[dg.ScheduleDefinition] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    available: Callable[[Lake], Collection[str]] | None = None


Partitions = Mapping[str, dg.PartitionsDefinition[str]]
Definitions = Mapping[str, dg.AssetsDefinition]

_KEY: Final = dg.AssetKey.from_user_string
_MAPPING: Final = dg.AllPartitionMapping()
_FOLLOWS: Final = {
    "all": dg.AutomationCondition.eager(),
    # A manifest describes what is published: it does not wait for the other partitions.
    "any": dg.AutomationCondition.eager().without(~dg.AutomationCondition.any_deps_missing()),
}


def family_of(
    name: str,
    partitions: Partitions | None = None,
    *,
    inboxes: Callable[[Definitions], Mapping[str, Mapping[str, Any]]] = lambda _: {},
    checks: Callable[[Definitions], Sequence[dg.AssetChecksDefinition]] = lambda _: (),
    **others: Any,
) -> Family:
    """Returns the definitions of a family.

    name: of `gristmill.families.FAMILIES`.
    partitions: by name, those that are not dynamic; default: all are.
    inboxes: takes the definitions by key, and returns further arguments of `Inbox` by the name of
        the inbox; default: none.
    checks: takes the definitions by key, and returns checks beside those of every asset.
    others: further arguments of `Family`.
    """
    catalog, known = families.catalog(name), partitions or {}
    assets = [kind for kind in catalog.kinds if isinstance(kind, Asset)]
    sources = {source.asset: _external(source, known) for source in catalog.sources}
    built = {
        asset.asset: definition(asset, known)
        if asset.partitions in known
        else _defined(asset.asset)
        for asset in assets
    }
    more = inboxes(built)
    return Family(
        assets=[*sources.values(), *built.values()],
        checks=[
            *(check for asset in assets for check in checks_of_asset(asset, built[asset.asset])),
            *checks(built),
        ],
        inboxes=[
            Inbox(
                folder=source.inbox,
                raw_drop=_KEY(source.asset),
                partitions=_partitions(source.partitions, known),
                targets=[built.get(target) or _defined(target) for target in source.targets],
                **more.get(source.inbox, {}),
            )
            for source in catalog.sources
        ],
        **others,
    )


@cache
def _defined(key: str) -> dg.AssetsDefinition:
    """The one definition of an asset of dynamic partitions, which drops of any family may build."""
    return definition(declared()[key])


def definition(asset: Asset, partitions: Partitions | None = None) -> dg.AssetsDefinition:
    """Returns the definition of an asset.

    partitions: by name, those that are not dynamic; default: all are.
    """
    declared: dict[str, Any] = {
        "key": asset.asset.split("/"),
        "deps": [
            *map(_KEY, asset.inputs),
            *(dg.AssetDep(_KEY(key), partition_mapping=_MAPPING) for key in asset.all_of),
        ],
        "partitions_def": _partitions(asset.partitions, partitions or {})
        if asset.partitions
        else None,
        "group_name": asset.group,
        "kinds": set(asset.labels),
        "code_version": asset.code_version,
        "backfill_policy": _backfill(asset.batch),
        "output_required": False,
        "pool": asset.pool or None,
        "automation_condition": _FOLLOWS.get(asset.follows),
        "description": asset.text,
        "metadata": {"launchpad": dg.MetadataValue.md(choices.launchpad_text(asset))}
        if asset.table
        else {},
        "required_resource_keys": {"lake", *([asset.resource] if asset.resource else [])},
    }
    declare: Callable[[Any], dg.AssetsDefinition] = dg.asset(**declared)
    if asset.table is None or asset.resource:

        def plain(context: dg.AssetExecutionContext) -> Iterator[Event]:
            given = getattr(context.resources, asset.resource) if asset.resource else None
            yield from _published(asset, context, given)

        return declare(plain)
    run = launchpad(asset)

    def chosen(context: dg.AssetExecutionContext, config: run) -> Iterator[Event]:  # type: ignore[valid-type]
        yield from _published(asset, context, config)

    return declare(chosen)


def launchpad(asset: Asset) -> type[Any]:
    """Returns the launchpad's config of an asset."""
    table = asset.settings_table
    return choices.launchpad(
        table.config,
        leave_out=asset.filled_in,
        defaults=table.defaults,
        name=f"{asset.asset.title().replace('/', '').replace('_', '')}Run",
    )


def checks_of_asset(asset: Asset, built: dg.AssetsDefinition) -> list[dg.AssetChecksDefinition]:
    """Returns the checks of every asset for one; built: its definition."""
    return disk_checks(
        built,
        asset.place,
        has_laws=bool(asset.laws),
        notes=asset.notes,
        blocking=asset.blocking,
        has_config=asset.table is not None,
        counted=asset.counted,
        across=asset.across,
    )


def _published(asset: Asset, context: dg.AssetExecutionContext, given: Any) -> Iterator[Event]:
    values = {} if given is None else choices.chosen_values(given)
    run = context.run.run_id

    def of(key: str | None) -> Build:
        return asset.build(Wanted(asset, context.resources.lake, key or "", values, run))

    yield from publish_asset(context, of, asset.sample)


def _external(source: Source, partitions: Partitions) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=source.asset.split("/"),
        partitions_def=_partitions(source.partitions, partitions),
        group_name=source.group,
        kinds=set(source.labels),
        description=source.text,
    )


def _partitions(name: str, known: Partitions) -> dg.PartitionsDefinition[str]:
    return known[name] if name in known else dg.DynamicPartitionsDefinition(name=name)


def _backfill(batch: int) -> dg.BackfillPolicy | None:
    return None if batch == 1 else dg.BackfillPolicy.multi_run(max_partitions_per_run=batch)


def available(asset: Asset, lake: DataRoot) -> Sequence[str]:
    """Returns the partitions of an asset that are asked for, and whose inputs are there."""
    if asset.available is not None:
        keys = asset.available(lake)
    elif not asset.partitions:
        keys = [""]
    else:
        first = asset.inputs[0]
        sources = (source for each in families.catalogs() for source in each.sources)
        inbox = next((source.inbox for source in sources if source.asset == first), None)
        made_from = families.kind_of_asset(first)
        if inbox is not None:
            keys = lake.taken(inbox)
        else:
            assert isinstance(made_from, Asset)
            keys = lake.partitions_of(first, made_from.place)
    return [key for key in keys if asset.is_asked(lake, key)]
