"""The builder of a dataset of any tokenizer. Source: `docs/formats/reasoning.md#token-datasets`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gristmill.contract import BadInput, FileNote, GristmillError
from gristmill.hashing import HashedFile
from gristmill.reasoning.builders.align import AlignSummary, align
from gristmill.reasoning.builders.shard_join import Form, TokenizeSummary
from gristmill.reasoning.builders.shards import Split, pack
from gristmill.reasoning.config import ALIGNED, CorpusAlignConfig, TokensConfig
from gristmill.reasoning.format import names
from gristmill.reasoning.format.shards import manifest_entries
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.vocabularies.pinned import TokenizerFile
from gristmill.vocabularies.tokenizer import Tokenizer


def dataset_form(config: TokensConfig, tokenizer: TokenizerFile, name: str) -> Form:
    """How the shards of a dataset are stored. name: of the dataset."""
    return Form(tokenizer, config.suffixes, f"{names.TOKENS}/{name}")


def tokenize_dataset(
    splits: Sequence[Split],
    out: Path,
    config: TokensConfig,
    form: Form,
    parts: PartStore | None = None,
    progress: Progress = SILENT,
) -> TokenizeSummary:
    """Write the shards, metas and index of each split, and `manifest.json` of all shards.

    With the output "alignment" also `<corpus>/<split>.align.jsonl`, as of GPT-2's shards.

    splits: with unequal names. out: folder to write, which must not exist.
    form: as `dataset_form` returns it. parts, progress: as of `shards.tokenize`.

    Raises BadInput with the line for a record that cannot be encoded, and where the tokenizer's
    file is another one; EnginesDiffer as `compare.check_equal`.
    """
    form.tokenizer.read()  # before anything is written
    summary, metas = pack(splits, out, config, form, parts, progress)
    with HashedFile(out / names.MANIFEST) as file:
        for entry in manifest_entries(sorted(metas, key=lambda meta: meta.path)):
            file.write(entry)
    note = FileNote(rows=len(metas), sha256=file.sha256, bytes=file.bytes)
    files = {**summary.files, names.MANIFEST: note}
    for split in splits if ALIGNED in config.outputs else ():
        files |= _aligned(split, out, config, form, progress).files
    return replace(summary, files=files)


def _aligned(
    split: Split, out: Path, config: TokensConfig, form: Form, progress: Progress
) -> AlignSummary:
    marks = json.loads(config.steps or "{}").get(f"{split.corpus}__{split.split}")
    own = CorpusAlignConfig(
        vocabulary=form.tokenizer.path,
        workers=config.workers,
        engine=config.engine,
        steps="" if marks is None else json.dumps(marks, sort_keys=True),
    )
    tokenizer = Tokenizer(**vars(form.tokenizer))
    try:
        return align(split.jsonl, out, out, own, progress=progress, tokenizer=tokenizer)
    except GristmillError as error:
        if isinstance(error, BadInput):
            raise
        # The probe that says whether tokens are the bytes of a text has not all texts.
        raise GristmillError(f'{error}: leave "{ALIGNED}" out of outputs') from error
