"""2048: its assets, the drops that they are built from, and what it says of their artifacts."""

from __future__ import annotations

from functools import partial

from gristmill.asset import Asset
from gristmill.families import Catalog, Law, Option, PartitionFile, Source
from gristmill.inbox import TOML, DropKind
from gristmill.lazy_exports import call
from gristmill.macroxue import code
from gristmill.macroxue.config import SIDES, PackConfig, ValueConfig
from gristmill.macroxue.raw import POOL_TABLE, VIEW_TABLE
from gristmill.settings.tables import Table

_DROPS, _POOLS, _VIEWS = "macroxue_drops", "macroxue_pools", "macroxue_views"
_SAMPLE = call("gristmill.macroxue.show:late_row")
_TRACE = "gristmill.macroxue.read.trace:traced"
_HISTORY = "gristmill.macroxue.read.trace"
_PLAYED = Law("games", call("gristmill.macroxue.laws:game_law"), excused_by=("game_laws", "warn"))

_SOURCES = [
    Source(
        asset="macroxue/raw_drop",
        inbox="macroxue",
        drop=DropKind(
            call("gristmill.macroxue.raw.drops:account"),
            column_states=call("gristmill.macroxue.raw.step_files:column_states"),
        ),
        text="A folder of 2048 self-play logs under `drops/macroxue/`: for each game "
        "`S.meta.json` (or `.meta.json.gz`) with its `S.jsonl.gz`; or `steps*.npy` of another "
        "program with `steps.toml`. Copy a folder there, and the sensor builds its pack.",
        group="macroxue",
        labels=["json"],
        partitions=_DROPS,
        targets=["macroxue/pack", "macroxue/values"],
    ),
    Source(
        asset="macroxue/pool_members",
        inbox="pools",
        drop=DropKind(
            call("gristmill.macroxue.raw.described:account", "pool"),
            TOML,
            call("gristmill.macroxue.raw.described:pool_needs"),
        ),
        text='A file `drops/pools/<pool>.toml` with `members = ["d6_v1", "d7_v1"]`: the packs of a '
        "pool, in order. Put it there, and the sensor builds the pool once its packs are "
        "published.",
        group="macroxue",
        labels=["toml"],
        partitions=_POOLS,
        targets=["macroxue/pool"],
    ),
    Source(
        asset="macroxue/annotations",
        inbox="annotations",
        drop=DropKind(call("gristmill.macroxue.raw.annotations:account")),
        text="A folder `drops/annotations/<name>/` of what a student model said of the steps: "
        "`annotations-*.npy` and their side files, as the trainer's annotator writes them. Copy "
        "one there, and the sensor builds the views that name it.",
        group="macroxue",
        labels=["numpy"],
        partitions="macroxue_annotations",
        targets=["macroxue/training_view"],
    ),
    Source(
        asset="macroxue/view_file",
        inbox="views",
        drop=DropKind(
            call("gristmill.macroxue.raw.described:account", "view"),
            TOML,
            call("gristmill.macroxue.raw.described:view_needs"),
        ),
        text='A file `drops/views/<view>.toml` with `pool = "both"` or `pack = "d6_v1"`: what a '
        "training view is made from, and how its games are split. Put it there, and the sensor "
        "builds the view once pack or pool and the values are published.",
        group="macroxue",
        labels=["toml"],
        partitions=_VIEWS,
        targets=["macroxue/training_view"],
    ),
]

_asset = partial(Asset, group="macroxue", labels=["numpy", "sqlite"], batch=100)
_PACK = _asset(
    "macroxue/pack",
    laws=[Law("pack", call("gristmill.macroxue.laws:pack_law")), _PLAYED],
    trace=call(_TRACE, "macroxue/pack"),
    history=call(f"{_HISTORY}:rows"),
    kept=["metadata.db"],
    past=call(f"{_HISTORY}:past"),
    source=call("gristmill.macroxue.read.dataset:opened"),
    set_aside={"quarantined_by_rule": "quarantined"},
    listed=["rows_by_valuation_type", "rows_by_max_rank", "runs_by_highest_tile"],
    code=code.PACK,
    table=Table("macroxue/pack", PackConfig, inboxes=("macroxue",)),
    text="A drop as a training-ready pack: `steps.npy` (48-byte rows, or shards), `metadata.db` "
    "with one row a game, `valuation_types.json`, and `trace.jsonl` from run to raw files.",
    place="macroxue/packs",
    partitions=_DROPS,
    inputs=["macroxue/raw_drop"],
    build=call("gristmill.macroxue.builds:pack_build"),
    given=call("gristmill.macroxue.builds:pack_settings"),
    sample=_SAMPLE,
    notes=call("gristmill.macroxue.laws:game_notes"),
)

_VALUES = _asset(
    "macroxue/values",
    laws=[Law("values", call("gristmill.macroxue.laws:value_law"), needs_inputs=True)],
    trace=call(_TRACE, "macroxue/values"),
    code=code.VALUES,
    table=Table("macroxue/values", ValueConfig),
    text="Rewards and discounted returns of a pack's steps, row by row, for value heads: "
    "`values.npy`, or shards if the pack has shards.",
    labels=["numpy"],
    place="macroxue/values",
    partitions=_DROPS,
    inputs=["macroxue/pack"],
    build=call("gristmill.macroxue.builds:values_build"),
)

_POOL = _asset(
    "macroxue/pool",
    laws=[Law("pool", call("gristmill.macroxue.laws:pool_law")), _PLAYED],
    trace=call(_TRACE, "macroxue/pool"),
    history=call(f"{_HISTORY}:rows"),
    kept=["metadata.db"],
    past=call(f"{_HISTORY}:past"),
    source=call("gristmill.macroxue.read.dataset:opened"),
    listed=["runs_by_pack", "rows_by_pack"],
    code=code.POOL,
    file=PartitionFile("pools", call("gristmill.macroxue.raw.described:pool_change")),
    table=POOL_TABLE,
    text="Several packs merged into one: runs are renumbered, valuation names are united, and "
    "`trace.jsonl` leads from each run to its pack and raw files.",
    place="macroxue/pools",
    partitions=_POOLS,
    # The pool's file names its packs, so no mapping of partitions can express the dependency.
    inputs=["macroxue/pool_members"],
    all_of=["macroxue/pack"],
    build=call("gristmill.macroxue.builds:pool_build"),
    given=call("gristmill.macroxue.builds:pool_settings"),
    sample=_SAMPLE,
)

_VIEW = _asset(
    "macroxue/training_view",
    laws=[Law("view", call("gristmill.macroxue.laws:view_law"))],
    trace=call(_TRACE, "macroxue/training_view"),
    code=code.VIEW,
    file=PartitionFile("views", call("gristmill.macroxue.raw.described:view_change")),
    table=VIEW_TABLE,
    text="A pack or pool as the folder that 2048former trains from: steps, values, `metadata.db`, "
    "names and `tokenizer.json`. Runs with missing steps are marked. A recipe may split the games "
    "into two folders, add the eight symmetries, and join what a student said.",
    place="macroxue/views",
    partitions=_VIEWS,
    # The view's file names its source, so no mapping of partitions can express the dependency.
    inputs=["macroxue/view_file"],
    all_of=["macroxue/pack", "macroxue/values", "macroxue/pool", "macroxue/annotations"],
    build=call("gristmill.macroxue.builds:view_build"),
    given=call("gristmill.macroxue.builds:view_settings"),
    sample=_SAMPLE,
)

CATALOG = Catalog(
    kinds=[_PACK, _VALUES, _POOL, _VIEW],
    sources=_SOURCES,
    asset_of=call("gristmill.macroxue.format.rows:asset_of"),
    columns=call("gristmill.macroxue.show:columns"),
    facts=call("gristmill.macroxue.show:facts"),
    tables=call("gristmill.macroxue.show:tables"),
    splits=call("gristmill.macroxue.read.dataset:splits"),
    options=[
        Option("run", int, "2048: steps of this run, at even distances.", commands=("show",)),
        Option("step", int, "2048: the step with this step_index, of --run (show) or of the run."),
        Option("split", str, "The split; train by default.", choices=SIDES),
    ],
    samples={
        "macroxue/sample_d6": call("gristmill.macroxue.samples:write_d6"),
        "macroxue/sample_d7": call("gristmill.macroxue.samples:write_d7"),
        "pools/samples.toml": call("gristmill.macroxue.samples:write_pool"),
        "views/samples.toml": call("gristmill.macroxue.samples:write_view"),
    },
    forgets={"macroxue": call("gristmill.macroxue.raw.drops:forgets")},
)
