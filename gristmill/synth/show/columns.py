"""The columns of Harmony shards and Megatron datasets, for people who look for a field."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.families import Column
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format.trace import schema

_MESSAGES = "JSON with the messages: system, developer, user, analysis, final"
_METADATA = "JSON with the metadata columns that the raw file has; null is kept"
_DATASETS = (
    Column("tokens", "int32", "token ids of o200k_harmony, a document after the other"),
    Column("lossmask", "uint8", "0 or 1 for each token: whether it is trained"),
    Column("span", "uint8", "0 prompt, 1 reasoning, 2 final"),
)
_DISTILL = (
    Column("id", "string", "dataset and id of the row"),
    Column("source", "struct", "dataset, language, exercise, and these with the id as JSON"),
    Column("input_ids", "list<int32>", "token ids, without an end of document"),
    Column("labels", "list<int32>", "the same, -100 up to the answer; not shifted"),
    Column("attention_mask", "list<int8>", "1 for each token"),
    Column("spans", "struct", "tokens before the answer, of its reasoning, of its final part"),
)
_TRACE = {
    "split": "train or valid",
    "document": "number of the document in that split of this shard, from 0",
    "input": "file name of the Harmony shard",
    "row": "row in it, from 1",
    "synth_id": "of the row",
    "language": "of the row; may be null",
    "exercise": "of the row; may be null",
    "offsets": "token positions where the messages begin, then that of the end",
}


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables.

    asset: its key, as `synth/harmony`. The metadata columns of Harmony are the default ones.
    """
    if asset == "synth/harmony":
        return [
            Column("messages_json", "string", _MESSAGES),
            Column("metadata_json", "string", _METADATA),
            *(
                Column(name, "string", "metadata of the raw row, as text, or null")
                for name in HarmonyConfig().metadata_fields
            ),
        ]
    if asset.endswith("/kd_shards"):
        trace = (Column(f"trace.{f.name}", str(f.type), _TRACE[f.name]) for f in schema())
        return [*_DATASETS, *trace]
    if asset.endswith("/distill"):
        return _DISTILL
    return ()
