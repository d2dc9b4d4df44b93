"""The definitions of a family, made from the declarations in its catalog; its groups in the UI.

An asset has one check for all partitions, whose state is that of all of them. A run of some
partitions looks at those only, so that its cost depends on the run and not on the data root; what
was found in the others before stays. What the same run built was hashed and checked before its
commit: unless size or time of a file changed, it is not read again. Executed by itself, a check
reads every published artifact of the asset.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import dagster as dg

from assets import choices, leaks
from assets.checking import evaluations, rules
from assets.checking.rules import Rule, registered
from assets.inbox import Inbox
from assets.publishing import Event, publish_asset
from assets.versions import PARTITION, RANGE
from gristmill import families
from gristmill.asset import Asset, Wanted, declared
from gristmill.browse.web.asked import PREFIX
from gristmill.contract import Violation
from gristmill.data_root.states import BUILT
from gristmill.families import Source
from gristmill.leaks.texts import ASSETS
from gristmill.printable import command
from gristmill.provenance import Record
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
    "audits": Group("Evaluation questions in texts", "leaks.md"),
    "puzzles": Group("Puzzles", "puzzles.md"),
}
"""The groups by name. A `/` nests a group in another one. Others are shown without a subject."""


def with_subjects(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
) -> Sequence[dg.AssetsDefinition | dg.AssetSpec]:
    """Returns assets with their family as owner, their group's subject and its page."""
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
_SEEN: Final = dg.AutomationCondition.newly_requested() | dg.AutomationCondition.newly_updated()
# Dagster forgets an update that comes after a build, but before the tick that sees the build.
_HANDLED: Final = (
    _SEEN & ~dg.AutomationCondition.any_deps_updated()
) | dg.AutomationCondition.initial_evaluation()
_FOLLOWS: Final = {
    "all": dg.AutomationCondition.eager().replace("handled", _HANDLED),
    # A manifest describes what is published: it does not wait for the other partitions.
    "any": dg.AutomationCondition.eager()
    .without(~dg.AutomationCondition.any_deps_missing())
    .replace("handled", _HANDLED),
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

    inboxes: takes the definitions by key, and returns further arguments of `Inbox` by the name of
        the inbox; default: none.
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
            *(
                check
                for each in assets
                for check in disk_checks(
                    built[each.asset],
                    each.place,
                    bool(each.laws),
                    each.notes,
                    each.blocking,
                    each.table is not None,
                    each.counted,
                    each.across,
                )
            ),
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
    """Returns the definition of an asset."""
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
        "backfill_policy": None
        if asset.batch == 1
        else dg.BackfillPolicy.multi_run(max_partitions_per_run=asset.batch),
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


ON_DISK = frozenset({"intact", "lawful"})
"""Names of the checks that a rebuild of damaged files mends."""

_DESCRIPTIONS: Final = {
    BUILT: "The last build of every partition succeeded. What was published before a failed build "
    "stays as it was.",
    "intact": "Every published file has the size and sha256 that its record states, the record is "
    "complete, and the inputs of the artifact have not changed. What the same run built was hashed "
    "before its commit: it is not read again if the files kept size and time.",
    "lawful": "The contents obey the laws of the asset, recomputed from the published files. Where "
    "that takes long, the check takes a sample; the full check ran before the commit. Its verdict "
    "counts for what the same run built.",
    "noteworthy": "Unusual contents that come from the drop and break no law, raw files that are "
    "equal, and a config that is not the one that files choose for the next build. This check only "
    "warns.",
}


def disk_checks(
    asset: dg.AssetsDefinition,
    below: str,
    has_laws: bool = True,
    notes: Callable[[Path], Iterable[Violation]] | None = None,
    blocking: bool = False,
    has_config: bool = False,
    counted: Callable[[Record, Path], Iterable[Violation]] | None = None,
    across: bool = False,
) -> list[dg.AssetChecksDefinition]:
    """Returns the checks of every asset for one; they share a step, which takes longer than most.

    The arguments are fields of `Asset`. has_config: whether its files choose a config, so that
    `noteworthy` warns where they choose another one than the one that stands.
    """
    wanted = [
        Rule(BUILT, _DESCRIPTIONS[BUILT], None, lambda *_: ""),
        Rule("intact", _DESCRIPTIONS["intact"], rules.intact, _mend, of_bytes=True),
    ]
    if has_laws:
        wanted.append(
            Rule("lawful", _DESCRIPTIONS["lawful"], rules.lawful, _mend, blocking=blocking)
        )
    if asset.key.to_user_string() in ASSETS:
        wanted.append(leaks.RULE)
    if notes is not None or counted is not None or has_config or across:
        look = rules.noteworthy(notes or (lambda _: ()), across)
        warn = dg.AssetCheckSeverity.WARN
        wanted.append(Rule("noteworthy", _DESCRIPTIONS["noteworthy"], look, _consider, warn))
    return [checks_of(asset, below, wanted, f"{asset.key.to_python_identifier()}_on_disk")]


def checks_of(
    asset: dg.AssetsDefinition,
    below: str,
    wanted: Sequence[Rule],
    name: str,
) -> dg.AssetChecksDefinition:
    """Returns checks that look at the partitions of a run and speak for all."""
    checked = registered(asset, below, wanted)
    specs = [
        dg.AssetCheckSpec(
            name=rule.name,
            asset=asset,
            description=rule.description,
            blocking=rule.blocking,
        )
        for rule in wanted
    ]

    @dg.multi_asset_check(name=name, specs=specs, can_subset=True)
    def check(context: dg.AssetCheckExecutionContext, lake: Lake) -> Iterator[dg.AssetCheckResult]:
        selected = {key.name for key in context.selected_asset_check_keys}
        chosen = [rule for rule in wanted if rule.name in selected]
        yield from evaluations.evaluated(
            context, lake, checked, chosen, partitions_of_run(context, asset)
        )

    return check


def partitions_of_run(
    context: dg.AssetCheckExecutionContext, asset: dg.AssetsDefinition
) -> Collection[str] | None:
    """Returns the partition keys of the run; None if the run or the asset has no partitions."""
    if asset.partitions_def is None:
        return None
    tags = context.run.tags
    if PARTITION in tags:
        return [tags[PARTITION]]
    if RANGE[0] in tags:
        ends = dg.PartitionKeyRange(*(tags[name] for name in RANGE))
        with dg.partition_loading_context(dynamic_partitions_store=context.instance):
            return asset.partitions_def.get_partition_keys_in_range(ends)
    return None


def _mend(asset: str, subject: str, found: Sequence[Violation]) -> str:
    if all(one.law == "input" for one in found):
        if any("gristmill retire" in one.found for one in found):
            return f"bring the drop back, or run: {command('retire', subject)}"
        return f"build it from the current inputs: {rules.command(asset, subject)}"
    if "/" in subject:
        return "move the file away, or mend the record"
    return f"{rules.command(asset, subject)} --rebuild; if it fails again, mend the drop"


def _consider(asset: str, subject: str, found: Sequence[Violation]) -> str:
    if all(one.law == "config" for one in found):
        build = rules.command(asset, subject)
        return f"write the line that the problem names, or take the choice of the files: {build}"
    return "nothing must be done: know it when you train on it, or mend the drop"
