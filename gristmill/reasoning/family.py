"""Reasoning: its assets, the drops that they are built from, and what it says of artifacts."""

from __future__ import annotations

from functools import partial
from typing import Final

from gristmill.asset import Asset
from gristmill.corpora.corpus import CORPORA
from gristmill.families import Catalog, Law, Option, PartitionFile, Source
from gristmill.inbox import TOML, DropKind, Shape
from gristmill.lazy_exports import call
from gristmill.reasoning import code
from gristmill.reasoning.config import (
    AlignConfig,
    ConversationsConfig,
    ExportsConfig,
    NormalizeConfig,
    ReportConfig,
    SourcesConfig,
    SpansConfig,
    TokenizeConfig,
    TokensConfig,
)
from gristmill.reasoning.format import names
from gristmill.settings.tables import Table
from gristmill.vocabularies.pinned import PLACED, VOCABULARIES

# As `format/published.py` has them, which reads records: with it, `--help` would import pydantic.
_RECIPE_KEY, _DATASET_KEY = "reasoning/recipe", "reasoning/tokens"
_SPANS_KEY, _EXPORTS_KEY = "reasoning/spans", "reasoning/exports"
_TEXTS, _TOKENS, _QUALITY = "reasoning/texts", "reasoning/tokens", "reasoning/quality"
_CHATS: Final = "chat"
_AUDITS: Final = "audits"
_SPLITS: Final = "reasoning_splits"
_NOT_SET: Final = {"vocabulary": "the assets take the published vocabulary"}
_LEAKS: Final = {"leaks": "`[leaks] drop` of the data root's file names the sets"}
_OF_RECIPE: Final = dict.fromkeys(
    ("vocabulary", "safetensors", "corpora", "tokenizer", "outputs"), "the recipe says it"
) | {"steps": "the file of a corpus says it"}
_TOKENIZERS: Final = (PLACED, *(f"tokenizers/{each.name}" for each in VOCABULARIES))
_BUILDS: Final = "gristmill.reasoning.builds"
_LAWS: Final = "gristmill.reasoning.laws"
_RECIPES: Final = "gristmill.reasoning.raw"
_SHOW: Final = "gristmill.reasoning.show"
_TRACE: Final = "gristmill.reasoning.read.trace:traced"
_HISTORY: Final = "gristmill.reasoning.read.history"
_OF_DROP = partial(PartitionFile, change=call(f"{_RECIPES}:drop_change"), name="{1}/corpus.toml")
_INPUTS = call("gristmill.provenance.trace_inputs:of_request", names.MANIFEST_RECORD)
_MANIFEST_VERSION: Final = "1"
"""Code version of both manifests."""

_asset = partial(Asset, blocking=True)
_of_split = partial(_asset, partitions=_SPLITS, batch=100)

_RAW = Source(
    asset="reasoning/raw",
    inbox="reasoning",
    drop=DropKind(
        call("gristmill.corpora.raw.drops:account"),
        Shape(reserved=("audits", "recipes")),
        column_states=call("gristmill.corpora.account:corpus_columns"),
    ),
    text="Records of a corpus in the folder `drops/reasoning/<corpus>/`, as JSONL, JSON, Parquet, "
    "CSV or TSV, with the split in the file's name; and the audits of its alignment, "
    "`drops/reasoning/audits/<corpus>__<split>.jsonl`. `gristmill fetch reasoning` downloads "
    "the public releases.",
    group=_TEXTS,
    labels=["json"],
    partitions=_SPLITS,
    targets=["reasoning/normalized", "reasoning/gpt2_shards", "reasoning/alignment"],
    several=True,
)
_CHAT = Source(
    asset="chat/raw",
    inbox="chat",
    drop=DropKind(
        call("gristmill.corpora.raw.chat.messages:account"),
        column_states=call("gristmill.corpora.account:chat_columns"),
    ),
    text="Conversations in the folder `drops/chat/<name>/`, as JSONL, JSON, Parquet or CSV, with a "
    "recipe `corpus.toml` that says where the messages are.",
    group=_CHATS,
    labels=["json"],
    partitions="chat_shards",
    targets=["chat/conversations", "chat/kd_shards"],
    several=True,
)

_RECIPE = Source(
    asset=_RECIPE_KEY,
    inbox=names.RECIPES,
    drop=DropKind(call(f"{_RECIPES}:account"), TOML, call(f"{_RECIPES}:needs")),
    text="A file `drops/reasoning/recipes/<dataset>.toml` with `corpora`, `tokenizer` and "
    "`outputs`. Put it there, and the sensor builds its dataset once its corpora and its tokenizer "
    "are built.",
    group=_TOKENS,
    labels=["toml"],
    partitions="reasoning_datasets",
    targets=[_DATASET_KEY],
)
_EVALS = Source(
    asset="evals/raw",
    inbox="evals",
    drop=DropKind(call("gristmill.leaks.texts:account")),
    text="Questions that no training text should hold, in the folder `drops/evals/<name>/`: a list "
    "of texts is enough.",
    group=_AUDITS,
    labels=["json"],
    partitions="evaluation_sets",
    targets=["audits/leaks"],
)

_NORMALIZED = _of_split(
    "reasoning/normalized",
    laws=[Law("normalized", call(f"{_LAWS}.texts:normalized"))],
    trace=call(_TRACE, "reasoning/normalized"),
    history=call(f"{_HISTORY}:records"),
    rows=("records",),
    set_aside={
        "rejected_by": "refused",
        "left_out_by": "left out",
        "without_cot_by": "kept without cot",
        "part_unread_by": "kept without a part of their text",
    },
    counted=call(f"{_LAWS}.texts:ids_again"),
    compared=call(f"{_LAWS}.texts:questions_again"),
    listed=["shapes", "unknown_keys"],
    code=code.NORMALIZED,
    file=_OF_DROP("reasoning"),
    table=Table("reasoning/normalized", NormalizeConfig, ("reasoning",), not_set=_LEAKS),
    filled_in=_LEAKS,
    text="One split as JSONL with the keys `question`, `answer`, `cot`, `source_dataset` and the "
    "extras of its corpus. Lists and nested values are flattened; records that cannot be used "
    "are set aside and counted by reason.",
    group=_TEXTS,
    labels=["json"],
    place=names.NORMALIZED,
    inputs=["reasoning/raw"],
    build=call(f"{_BUILDS}:normalized_build"),
    given=call(f"{_RECIPES}:of_drop", "reasoning/normalized"),
    available=call(f"{_RECIPES}:dropped"),
)

_CONVERSATIONS = _asset(
    "chat/conversations",
    laws=[Law("conversations", call(f"{_LAWS}.texts:conversation_laws"))],
    trace=call(_TRACE, "chat/conversations"),
    history=call(f"{_HISTORY}:conversations"),
    set_aside={"rejected_by": "refused", "left_out_by": "left out"},
    listed=["ignored", "unknown_keys"],
    code=code.CONVERSATIONS,
    file=_OF_DROP("chat"),
    table=Table("chat/conversations", ConversationsConfig, ("chat",), not_set=_LEAKS),
    filled_in=_LEAKS,
    text="The conversations of a drop as Parquet: messages with role and channel, what is trained "
    "on, and the row that each is from. Rows that are no conversation are set aside and counted "
    "by reason.",
    group=_CHATS,
    labels=["parquet"],
    place="chat/conversations",
    partitions="chat_shards",
    inputs=["chat/raw"],
    build=call("gristmill.reasoning.builds:conversations_build"),
    given=call("gristmill.corpora.raw.chat.messages:settings_of"),
    available=call("gristmill.corpora.raw.chat.messages:available"),
)

_RAW_MANIFEST = _asset(
    "reasoning/raw_manifest",
    laws=[Law("raw_manifest", call(f"{_LAWS}.texts:raw_manifest"))],
    trace=_INPUTS,
    code=code.RAW_MANIFEST,
    version=_MANIFEST_VERSION,
    text="`reasoning/raw/manifest.json`: source, columns, licence and files of every corpus that "
    "is normalised. Rebuilt automatically after a split.",
    group=_TEXTS,
    labels=["json"],
    place=names.NORMALIZED,
    all_of=["reasoning/normalized"],
    build=call(f"{_BUILDS}:raw_manifest_build"),
    available=call(f"{_BUILDS}:manifest_of", names.NORMALIZED),
    follows="any",
)

_SHARDS = _of_split(
    "reasoning/gpt2_shards",
    laws=[Law("shards", call(f"{_LAWS}.shards:shards"))],
    trace=call(_TRACE, "reasoning/gpt2_shards"),
    history=call(f"{_HISTORY}:examples"),
    rows=("examples",),
    code=code.SHARDS,
    table=Table("reasoning/gpt2_shards", TokenizeConfig, ("reasoning",), not_set=_NOT_SET),
    filled_in=_NOT_SET,
    text="The rendered texts of a split as GPT-2 tokens, one end-of-text token after each, packed "
    "into sequences of equal length: `shard_NNNNN.pt` with `input_ids` int32, its meta file, "
    "and `index.jsonl` with the place of every example. A corpus whose terms forbid training "
    "is left out unless `allow` names it.",
    group=_TOKENS,
    labels=["pytorch", "tiktoken"],
    place=names.TOKENIZED,
    inputs=["reasoning/normalized", "tokenizers/gpt2"],
    build=call(f"{_BUILDS}:shards_build"),
    given=call(f"{_RECIPES}:shard_settings"),
    available=call(f"{_BUILDS}:splits_with", names.NORMALIZED),
    ranks=call(f"{_BUILDS}:shard_ranks"),
)

_DATASET = _asset(
    _DATASET_KEY,
    laws=[
        Law("shards", call(f"{_LAWS}.shards:tokens")),
        Law("steps", call(f"{_LAWS}.quality:token_steps"), needs_inputs=True),
    ],
    trace=call(_TRACE, _DATASET_KEY),
    history=call(f"{_HISTORY}:examples"),
    kept=[names.MANIFEST],
    past=call(f"{_HISTORY}:past"),
    source=call("gristmill.reasoning.read.shard_reader:opened"),
    rows=("examples",),
    code=code.TOKENS,
    file=PartitionFile(names.RECIPES, call(f"{_RECIPES}:recipe_change")),
    table=Table(_DATASET_KEY, TokensConfig, not_set=_OF_RECIPE),
    filled_in=_OF_RECIPE,
    text="Splits as the tokens of any tokenizer, for programs that read ids alone: `.bin` or "
    "`.safetensors` with uint16 where all ids fit, else int32; its meta files, `index.jsonl` and "
    "`manifest.json`.",
    group=_TOKENS,
    labels=["tiktoken"],
    place=names.TOKENS,
    partitions="reasoning_datasets",
    inputs=[_RECIPE_KEY],
    # A recipe names its corpora and its tokenizer: no mapping of partitions can express that.
    all_of=["reasoning/normalized", *_TOKENIZERS],
    build=call(f"{_BUILDS}:tokens_build"),
    given=call(f"{_RECIPES}:recipe_of"),
    available=call(f"{_RECIPES}:wanted"),
    ranks=call(f"{_BUILDS}:tokens_ranks"),
)

_MANIFEST = _asset(
    "reasoning/manifest",
    laws=[Law("manifest", call(f"{_LAWS}.shards:manifest"))],
    trace=_INPUTS,
    kept=[names.MANIFEST],
    past=call(f"{_HISTORY}:past"),
    source=call("gristmill.reasoning.read.shard_reader:opened"),
    rows=("examples",),
    code=code.MANIFEST,
    version=_MANIFEST_VERSION,
    text="`manifest.json`, the meta data of all shards, and `index.jsonl`, the places of all "
    "examples. Rebuilt automatically after a split.",
    group=_TOKENS,
    labels=["json"],
    place=names.TOKENIZED,
    all_of=["reasoning/gpt2_shards"],
    build=call(f"{_BUILDS}:manifest_build"),
    available=call(f"{_BUILDS}:manifest_of", names.TOKENIZED),
    follows="any",
)

_ALIGNMENT = _of_split(
    "reasoning/alignment",
    laws=[
        Law("alignment", call(f"{_LAWS}.quality:alignment")),
        Law("index", call(f"{_LAWS}.quality:aligned_index"), needs_inputs=True),
    ],
    trace=call(_TRACE, "reasoning/alignment"),
    rows=("examples",),
    listed=["rules", "labels", "confidence"],
    code=code.ALIGNMENT,
    table=Table("reasoning/alignment", AlignConfig, ("reasoning",), not_set=_NOT_SET),
    filled_in=_NOT_SET,
    text="The reasoning steps of every example of a split: their ranges of characters and of "
    "tokens, labels, and how sure they are. Audits in `drops/reasoning/audits/` are merged in. "
    "Plain text has no steps, and is not aligned.",
    group=_QUALITY,
    labels=["json"],
    place=names.ALIGNMENT,
    inputs=["reasoning/raw", "reasoning/normalized", "reasoning/gpt2_shards", "tokenizers/gpt2"],
    build=call(f"{_BUILDS}:alignment_build"),
    given=call(f"{_RECIPES}:of_drop", "reasoning/alignment"),
    available=call(f"{_BUILDS}:splits_with", names.TOKENIZED),
    is_asked=call(f"{_RECIPES}:may_have_steps"),
)

_SPANS = _of_split(
    _SPANS_KEY,
    laws=[Law("spans", call(f"{_LAWS}.quality:span_laws"))],
    trace=call(_TRACE, _SPANS_KEY),
    rows=("annotations",),
    code=code.SPANS,
    table=Table(_SPANS_KEY, SpansConfig),
    text="The annotations of arithmetic of a split, `<<48/2=24>>`: operands, operators and result "
    "as characters, bytes and tokens of a named tokenizer, split by trace for RL-Decoder. Without "
    "a name it is built only if `[reasoning.spans]` has a key.",
    group=_QUALITY,
    labels=["json"],
    place=names.SPANS,
    inputs=["reasoning/normalized"],
    all_of=_TOKENIZERS,
    build=call(f"{_BUILDS}:spans_build"),
    available=call(f"{_BUILDS}:splits_with", names.NORMALIZED),
    is_asked=call(f"{_BUILDS}:wants_spans"),
)

_EXPORTED = _asset(
    _EXPORTS_KEY,
    laws=[Law("files", call(f"{_LAWS}.quality:file_laws"))],
    trace=call(_TRACE, _EXPORTS_KEY),
    code=code.EXPORTS,
    table=Table(_EXPORTS_KEY, ExportsConfig),
    text="A token dataset as other programs read it: files of llm.c and modded-nanogpt, chunks of "
    "litdata for litgpt, texts for nanochat. It is built only if `[reasoning.exports]` names "
    "formats.",
    group=_TOKENS,
    labels=["parquet"],
    place=names.EXPORTS,
    partitions="reasoning_datasets",
    inputs=[_DATASET_KEY],
    all_of=["reasoning/normalized"],
    build=call(f"{_BUILDS}:exports_build"),
    is_asked=call(f"{_BUILDS}:wants_exports"),
)

_REPORT = _asset(
    "reasoning/qc_report",
    laws=[Law("report", call(f"{_LAWS}.quality:report"))],
    code=code.REPORT,
    table=Table("reasoning/qc_report", ReportConfig, not_set=_NOT_SET),
    filled_in=_NOT_SET,
    text="`reports/YYYY-MM-DD.json`: examples, tokens, share with CoT, alignment and confidence of "
    "every split and token dataset, what perturbed records change, and drift against the baseline "
    "that `[reasoning.qc_report] baseline` names. Only the current day in UTC can be built.",
    group=_QUALITY,
    labels=["json"],
    place=names.REPORTS,
    partitions="reasoning_days",
    inputs=["reasoning/raw_manifest", "reasoning/manifest", "tokenizers/gpt2"],
    all_of=["reasoning/normalized", "reasoning/gpt2_shards", "reasoning/alignment", _DATASET_KEY],
    build=call(f"{_BUILDS}:report_build"),
    available=call(f"{_BUILDS}:reports_now"),
)

_AUDIT = Asset(
    "audits/leaks",
    laws=[Law("leaks", call(f"{_LAWS}.quality:leak_laws"))],
    code=code.LEAKS,
    version="1",
    text="Which questions of an evaluation set stand in texts that are built: `leaks.jsonl` with "
    "both places and both texts, the worst first, and `summary.json` with a count for each text. A "
    "set is a folder of `drops/evals/`, or a split `test` or `validation` that is built.",
    group=_AUDITS,
    labels=["json"],
    place="audits/leaks",
    partitions="evaluation_sets",
    inputs=["evals/raw"],
    all_of=["reasoning/normalized", "chat/conversations", "synth/harmony"],
    build=call(f"{_BUILDS}:leaks_build"),
    available=call(f"{_BUILDS}:evaluation_sets"),
    batch=100,
)

CATALOG = Catalog(
    kinds=[
        *(_NORMALIZED, _CONVERSATIONS, _RAW_MANIFEST, _SHARDS, _MANIFEST, _ALIGNMENT, _REPORT),
        *(_DATASET, _EXPORTED, _SPANS, _AUDIT),
    ],
    sources=[_RAW, _CHAT, _RECIPE, _EVALS],
    asset_of=call("gristmill.reasoning.format.reports:asset_of"),
    columns=call(f"{_SHOW}:columns"),
    facts=call(f"{_SHOW}:facts"),
    tables=call(f"{_SHOW}:tables"),
    splits=call("gristmill.reasoning.read.exported:splits"),
    talks=call("gristmill.reasoning.read.exported:talks"),
    options=[
        Option("corpus", str, "Reasoning: the corpus."),
        Option("split", str, "The split; train by default."),
        Option("shard", str, "Reasoning: the number of the shard.", "00", commands=("trace",)),
        Option(
            "token",
            int,
            "Reasoning: the number of a token of an example, or its column where SAMPLE is a row.",
            least=0,
            commands=("trace",),
        ),
    ],
    samples={
        f"reasoning/{corpus}": call("gristmill.reasoning.samples:write_sample", corpus)
        for corpus in CORPORA
    }
    | {"evals/sample-questions": call("gristmill.reasoning.samples:write_questions")},
    commands={
        "audit": ("Look", "Look at the steps of reasoning examples, and record verdicts."),
        "stage": ("Share", "Copy the token shards of this node's ranks to a local disk."),
        "unstage": ("Clean", "Remove what `gristmill stage` put into the folder of JOB."),
    },
    settings=[Table("reasoning/sources", SourcesConfig)],
    forgets={
        "reasoning": call("gristmill.reasoning.builders.forget:forgets"),
        "chat": call("gristmill.leaks.texts:forgets"),
    },
)
