"""SYNTH: its assets, the drops that they are built from, and what it says of their artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gristmill.asset import Asset
from gristmill.families import Catalog, Law, Option, PartitionFile, Source
from gristmill.inbox import DropKind
from gristmill.lazy_exports import call
from gristmill.settings.tables import Table
from gristmill.synth import code
from gristmill.synth.config import (
    DistillConfig,
    HarmonyConfig,
    KDConfig,
    RawSettings,
    SourceSettings,
)

_SHARDS = "synth_shards"
_TRACE = "gristmill.synth.read.origins:traced"
_HISTORY = "gristmill.synth.read.history"
_KEPT: dict[str, Any] = {
    "history": call(f"{_HISTORY}:documents"),
    "past": call(f"{_HISTORY}:past"),
}
_GROUP = "synth/harmony"
_INBOXES = ("synth", "synth_harmony")
_NOT_SET = {"vocabulary": "the datasets take the published vocabulary"}
_SYNTH_NOT_SET = {**_NOT_SET, "turns": "a conversation of SYNTH has one answer"}
_CHAT_NOT_SET = {
    **_NOT_SET,
    "valid_fraction": "the recipe of the drop says which conversations are valid",
    "unknown_keys": "the recipe of the drop says it of its messages",
}
_MANIFEST_VERSION = "2"


def _source(asset: str, inbox: str, labels: Sequence[str], text: str) -> Source:
    return Source(
        asset=asset,
        inbox=inbox,
        drop=DropKind(
            call("gristmill.synth.builders.drop_in_use:account", inbox),
            needs=call("gristmill.synth.builders.drop_in_use:needs"),
            column_states=call("gristmill.synth.builders.drop_in_use:column_states", inbox),
        ),
        text=text,
        group=_GROUP,
        labels=labels,
        partitions=_SHARDS,
        targets=["synth/harmony", "synth_smoke/kd_shards", "synth/kd_shards"],
    )


_SOURCES = [
    _source(
        "synth/raw",
        "synth",
        ["parquet", "huggingface"],
        "A folder of raw SYNTH files under `drops/synth/`. It is complete with 500 files (or as "
        "many as `[synth.raw] files` says), or with a file `.done`; before that nothing is built, "
        "since every shard is built from consecutive files of the complete drop. "
        "`gristmill fetch synth` downloads the files from the hub.",
    ),
    _source(
        "synth/ready_harmony",
        "synth_harmony",
        ["parquet"],
        "A ready Harmony folder under `drops/synth_harmony/`: four shards with `manifest.json` and "
        "`metadata.json`, which are imported unchanged instead of a conversion.",
    ),
]

_HARMONY = Asset(
    "synth/harmony",
    laws=[Law("harmony", call("gristmill.synth.laws:harmony_law"))],
    trace=call(_TRACE, "synth/harmony"),
    history=call(f"{_HISTORY}:harmony"),
    code=code.HARMONY,
    table=Table("synth/harmony", HarmonyConfig, _INBOXES, root=SourceSettings),
    text="Conversations of a drop as `synth_harmony_v1` Parquet: system, developer, user, and the "
    "assistant's analysis and final messages. Rows without a query, reasoning or answer are "
    "omitted and counted.",
    group=_GROUP,
    labels=["parquet"],
    place="synth_harmony",
    partitions=_SHARDS,
    inputs=["synth/raw", "synth/ready_harmony"],
    build=call("gristmill.synth.builds:harmony_build"),
    given=call("gristmill.synth.builds:settings_of_shard", "synth/harmony"),
    filled_in=["num_shards"],
    left_out=["num_shards"],
    available=call("gristmill.synth.builders.drop_in_use:available"),
)

_HARMONY_MANIFEST = Asset(
    "synth/harmony_manifest",
    laws=[Law("harmony_manifest", call("gristmill.synth.laws:harmony_manifest_law"))],
    trace=call("gristmill.provenance.trace_inputs:of_request", "manifest"),
    code=code.HARMONY_MANIFEST,
    version=_MANIFEST_VERSION,
    text="`metadata.json` and `manifest.json` of the four shards, written from their records; from "
    "an imported folder its own files, byte for byte. Rebuilt automatically after the shards.",
    group=_GROUP,
    labels=["json"],
    place="synth_harmony",
    all_of=["synth/harmony"],
    build=call("gristmill.synth.builds:harmony_manifest_build"),
    follows="all",
)


def _dataset(place: str, table: Table, group: str, label: str, content: str) -> list[Asset]:
    shards = table.name
    labels = [label] if label else []
    return [
        Asset(
            shards,
            laws=[Law("kd_shards", call("gristmill.synth.laws:kd_law"))],
            trace=call(_TRACE, "synth/kd_shards"),
            **_KEPT,
            source=call("gristmill.synth.read.documents:opened"),
            listed=["languages", "exercises"],
            code=code.KD_SHARDS,
            table=table,
            text=f"{content} as Megatron IndexedDatasets: tokens, loss mask and span for train and "
            "valid, aligned to labels, and a trace from every document to its row and synth_id.",
            group=group,
            labels=["megatron", "tiktoken", *labels],
            place=place,
            partitions=_SHARDS,
            inputs=["synth/harmony", "tokenizers/o200k_harmony"],
            build=call("gristmill.synth.builds:kd_build"),
            given=call("gristmill.synth.builds:settings_of_shard", shards),
            filled_in=["vocabulary"],
            counted=call("gristmill.synth.laws:notes"),
        ),
        Asset(
            shards.replace("kd_shards", "kd_manifest"),
            laws=[
                Law("kd_manifest", call("gristmill.synth.laws:kd_manifest_law"), needs_record=True)
            ],
            trace=call("gristmill.provenance.trace_inputs:of_request", "manifest"),
            code=code.KD_MANIFEST,
            version=_MANIFEST_VERSION,
            text=f"`{place}/manifest.json`: config, tokenizer, input and the files of all "
            "shards, written from their records. The shards must have equal configs. Rebuilt "
            "automatically after the shards.",
            group=group,
            labels=["json", *labels],
            place=place,
            inputs=["synth/harmony_manifest"],
            all_of=[shards],
            build=call("gristmill.synth.builds:kd_manifest_build"),
            follows="all",
        ),
    ]


_RECIPE = PartitionFile(
    "chat", call("gristmill.synth.builds:render_change"), name="{1}/corpus.toml"
)
_CHAT = Asset(
    "chat/kd_shards",
    file=_RECIPE,
    laws=[Law("kd_shards", call("gristmill.synth.laws:chat_law"))],
    trace=call(_TRACE, "chat/kd_shards"),
    **_KEPT,
    source=call("gristmill.synth.read.documents:opened"),
    listed=["languages", "exercises"],
    code=code.CHAT_SHARDS,
    table=Table("chat/kd_shards", KDConfig, ("chat",), not_set=_CHAT_NOT_SET),
    text="Conversations of your own as Megatron IndexedDatasets: tokens, loss mask and span, by "
    "the template that the recipe names. `SynthKDDataset` reads them.",
    group="chat",
    labels=["megatron", "tiktoken"],
    place="megatron/chat",
    partitions="chat_shards",
    inputs=["chat/conversations", "tokenizers/o200k_harmony"],
    build=call("gristmill.synth.builds:chat_build"),
    given=call("gristmill.synth.builds:settings_of_shard", "chat/kd_shards"),
    filled_in=[*_CHAT_NOT_SET],
    counted=call("gristmill.synth.laws:notes"),
)

_CHAT_DISTILL_NOT_SET = {
    **_CHAT_NOT_SET,
    **dict.fromkeys(
        ("template", "reasoning", "reference"),
        "the recipe of the drop says how conversations are rendered",
    ),
    **dict.fromkeys(
        ("drop_failed", "drop_wrong", "memorization_cap", "english_share"),
        "conversations of one's own have no such columns",
    ),
}


def _distill(asset: str, build: str, source: str, text: str, **other: Any) -> Asset:
    """A dataset of token ids, labels and spans. source: key of the asset with its conversations."""
    return Asset(
        asset,
        laws=[Law("distill", call("gristmill.synth.laws:distill_law"))],
        trace=call(_TRACE, asset),
        **_KEPT,
        listed=["languages", "exercises"],
        set_aside={"left_out": "left out"},
        code=code.DISTILL,
        text=f"{text} as token ids, labels and spans, in a folder that "
        "`datasets.load_from_disk` opens, as DistillKit does. `gristmill project` makes Parquet "
        "of it.",
        labels=["arrow", "tiktoken"],
        place="distill/" + asset.partition("/")[0],
        inputs=[source, "tokenizers/o200k_harmony"],
        build=call(f"gristmill.synth.builds:{build}"),
        counted=call("gristmill.synth.laws:notes"),
        source=call("gristmill.synth.read.documents:opened_rows"),
        **other,
    )


_DISTILL = [
    _distill(
        "synth/distill",
        "distill_build",
        "synth/harmony",
        "The conversations of a Harmony shard, without failed and wrong answers,",
        table=Table("synth/distill", DistillConfig, _INBOXES, not_set=_SYNTH_NOT_SET),
        group="synth/full",
        partitions=_SHARDS,
        given=call("gristmill.synth.builds:settings_of_shard", "synth/distill"),
        is_asked=call("gristmill.synth.builds:is_asked", "synth/distill"),
        filled_in=[*_SYNTH_NOT_SET],
    ),
    _distill(
        "chat/distill",
        "chat_distill_build",
        "chat/conversations",
        "Conversations of your own, by the template that the recipe names,",
        file=_RECIPE,
        table=Table("chat/distill", DistillConfig, ("chat",), not_set=_CHAT_DISTILL_NOT_SET),
        group="chat",
        partitions="chat_shards",
        given=call("gristmill.synth.builds:settings_of_shard", "chat/distill"),
        is_asked=call("gristmill.synth.builds:is_asked", "chat/distill"),
        filled_in=[*_CHAT_DISTILL_NOT_SET],
    ),
]


def asset_of(folder: Path) -> str | None:
    """The asset whose laws and views a folder without a record takes, None where it has none.

    folder: any path. Another program writes Megatron datasets without a trace.
    """
    for files, asset in (
        ("dataset_dict.json", "synth/distill"),
        ("trace/trace_*.parquet", "synth/kd_shards"),
        ("synth_harmony_shard_*.parquet", "synth/harmony"),
        ("*/shard_*_tokens.idx", "synth/kd_shards"),
    ):
        if any(folder.glob(files)):
            return asset
    return None


CATALOG = Catalog(
    kinds=[
        _HARMONY,
        _HARMONY_MANIFEST,
        *_dataset(
            "megatron/synth_kd_v1",
            Table("synth/kd_shards", KDConfig, _INBOXES, not_set=_NOT_SET),
            "synth/full",
            "",
            "The conversations of a Harmony shard",
        ),
        *_dataset(
            "megatron/synth_kd_v1_smoke",
            Table(
                "synth_smoke/kd_shards",
                KDConfig,
                _INBOXES,
                not_set=_NOT_SET,
                defaults={"valid_fraction": 0.1, "max_rows": 250},
            ),
            "synth/smoke",
            "smoke",
            "The first 250 conversations of a Harmony shard, a tenth of them valid,",
        ),
        _CHAT,
        *_DISTILL,
    ],
    sources=_SOURCES,
    asset_of=asset_of,
    columns=call("gristmill.synth.show:columns"),
    facts=call("gristmill.synth.show:facts"),
    tables=call("gristmill.synth.show:tables"),
    splits=call("gristmill.synth.read.distill:splits"),
    talks=call("gristmill.synth.read.history:talks"),
    options=[
        Option("shard", str, "SYNTH: the number of the shard.", "00"),
        Option("split", str, "The split; train by default.", choices=("train", "valid")),
    ],
    samples={"synth/samples": call("gristmill.synth.samples:write_samples")},
    # There is one dataset. A file beside the drops, as a README, is none.
    place_of=lambda path: str(path) if path.is_file() else "synth",
    settings=[Table("synth/raw", RawSettings, _INBOXES)],
    forgets=dict.fromkeys(("synth", "synth_harmony"), call("gristmill.leaks.texts:forgets")),
)
