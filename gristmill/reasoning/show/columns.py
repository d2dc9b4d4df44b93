"""The keys of normalised records, indices and alignments, for people who look for a field."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.corpora.raw.chat.recipe import KEPT
from gristmill.families import Column

_EXAMPLE = Column("example_id", "string", "<corpus>_<split>_<record>")
_SHARD = Column("shard_path", "string", "shard with the first token of the example")
_SEQUENCE = Column("sequence_index", "integer", "row of that token in the shard")

_INDEX = (
    _EXAMPLE,
    _SHARD,
    _SEQUENCE,
    Column("token_start", "integer", "column of that token"),
    Column("num_tokens", "integer", "tokens of the text"),
    Column("num_tokens_with_eos", "integer", "one more"),
    Column("spans", "array of object", "where all its tokens are: shard, row, columns"),
    Column("rank", "integer", "the rank that packed it"),
    Column("text_sha256", "string", "of the rendered text in UTF-8"),
    Column("extras", "object", "difficulty, subject, dataset, source, where there are any"),
)

_COLUMNS = {
    "reasoning/normalized": (
        Column("question", "string", "never blank"),
        Column("answer", "string", "the final answer; may be empty where there is a cot"),
        Column("cot", "string or null", "the chain of thought"),
        Column("source_dataset", "string", "name of the corpus"),
        Column("cot_steps", "array of string", "only where the cot was a list"),
        Column("(extras)", "string or null", "further keys of the corpus, as difficulty"),
    ),
    "chat/conversations": (
        Column("messages_json", "string", "JSON with the messages: role, content, channel"),
        Column("synth_id", "string", "id of the row, else a hash of the messages"),
        Column("spans", "string", "a code for each message: 0 prompt, 1 reasoning, 2 final"),
        Column("split", "string", "train or validation"),
        Column("file", "string", "raw file, by its path in the drop"),
        Column("row", "int64", "row in it, from 1"),
        *(Column(name, "string or null", "of the row, by the recipe of SYNTH") for name in KEPT),
    ),
    "reasoning/gpt2_shards": (
        Column("input_ids", "int32[seq_len]", "the sequences of shard_NNNNN.pt"),
        *_INDEX,
    ),
    "reasoning/tokens": (
        Column("input_ids", "uint16 or int32[seq_len]", "the sequences of shard_NNNNN.bin"),
        *_INDEX,
    ),
    "reasoning/spans": (
        Column("trace_id", "string", "<corpus>_<split>_<row of the raw file, from 0>"),
        _EXAMPLE,
        Column("example_idx", "integer", "row of the raw file, from 0"),
        Column("raw_file", "integer", "number of the raw file, from 0"),
        Column("ann_idx", "integer", "number of the annotation in its record, from 0"),
        Column("ann_text", "string", "the annotation with its brackets"),
        Column("expr_str", "string", "its expression"),
        Column("C", "number", "its result"),
        Column("log_abs_C", "number", "logarithm of one more than the size of the result"),
        Column("magnitude", "string", "[0,10) [10,100) [100,1000) [1000+)"),
        Column("characters", "object", "ranges of characters of its parts, half-open"),
        Column("bytes", "object", "the same in bytes of UTF-8"),
        Column("tokens", "object", "the same in tokens"),
        Column("result_token_count", "integer", "tokens that the result shares a byte with"),
        Column("result_token_id", "integer", "the first of these"),
        Column("skipped", "string", "multi_token_result, token_alignment, or empty"),
        Column("part", "string", "calibration or evaluation, by trace"),
    ),
    "reasoning/exports": (Column("text", "string", "of nanochat: a rendered record"),),
    "reasoning/alignment": (
        _EXAMPLE,
        _SEQUENCE,
        _SHARD,
        Column("text_offset_ranges", "array of [int, int]", "characters of each step, half-open"),
        Column("token_offset_ranges", "array of [int, int]", "tokens of each step, half-open"),
        Column("step_labels", "array of string", "label of each step"),
        Column("confidence", "number", "of the least certain step, from 0 to 1"),
        Column("notes", "string", "the rule that found the steps, and the state of the audit"),
    ),
}


def columns(asset: str) -> Sequence[Column]:
    """Returns the columns of an asset's artifacts; none where it has no tables."""
    return _COLUMNS.get(asset, ())
