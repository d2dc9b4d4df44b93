"""Splits below a data root as publishing leaves them: normalised, tokenised, aligned, recorded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gristmill.contract import Summary, counts_of
from gristmill.hashing import sha256_file
from gristmill.provenance import Output, Record, Tokenizer, record_path
from gristmill.reasoning.builders.align import align
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.builders.shards import tokenize
from gristmill.reasoning.config import AlignConfig, NormalizeConfig, TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.vocabularies.pinned import GPT2

SEQ_LEN = 64


def publish_split(
    root: Path,
    corpus: str,
    split: str,
    raw: Iterable[dict[str, Any]],
    vocabulary: Path,
    audits: Path | None = None,
) -> None:
    """Build all three artifacts of a split below a data root, with their records."""
    drop = root / ".drops" / corpus
    drop.mkdir(parents=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in raw)
    (drop / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    publish_drop(root, drop, split, vocabulary, audits)
    shutil.rmtree(root / ".drops")


def publish_drop(
    root: Path, drop: Path, split: str, vocabulary: Path, audits: Path | None = None
) -> None:
    """Build all three artifacts of a split below a data root, with their records."""
    made, corpus, partition = root / ".made", drop.name, f"{drop.name}__{split}"
    made.mkdir()
    summary: Summary = normalize(drop, made / "raw", NormalizeConfig(), split=split)
    _record(root, names.NORMALIZED, made / "raw", partition, summary)
    jsonl = root / names.NORMALIZED / names.normalized(corpus, split)
    config = TokenizeConfig(vocabulary, seq_len=SEQ_LEN, tokens_per_shard=16 * SEQ_LEN)
    summary = tokenize(jsonl, made / "tokens", config)
    _record(root, names.TOKENIZED, made / "tokens", partition, summary)
    tokenized = root / names.TOKENIZED
    summary = align(jsonl, tokenized, made / "aligned", AlignConfig(vocabulary), audits=audits)
    _record(root, names.ALIGNMENT, made / "aligned", partition, summary)
    shutil.rmtree(made)
    tokenizer = root / "tokenizer" / GPT2.relative
    tokenizer.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(vocabulary, tokenizer)


def change_counts(root: Path, folder: str, partition: str, **counts: float) -> None:
    """Change counts in the record of a split, as if other data had been built."""
    path = record_path(root / folder, partition, shared=True)
    record = Record.model_validate_json(path.read_bytes())
    changed = record.model_copy(update={"counts": record.counts | counts})
    path.write_bytes(changed.sealed().to_bytes())


def _record(root: Path, folder: str, out: Path, partition: str, summary: Summary) -> None:
    shutil.copytree(out, root / folder, dirs_exist_ok=True)
    outputs = [
        Output(
            path=path, bytes=(out / path).stat().st_size, mtime_ns=0, sha256=sha256_file(out / path)
        )
        for path in summary.files
    ]
    record = Record(
        artifact=folder,
        asset="reasoning/test",
        partition=partition,
        code_version="1",
        git_sha=None,
        config={},
        config_sha256="",
        fingerprint="",
        data_version="",
        inputs=[],
        tokenizer=Tokenizer(name=GPT2.name, path=GPT2.relative, sha256=GPT2.sha256),
        outputs=outputs,
        counts=counts_of(summary),
        libraries={},
        seconds=0.0,
        peak_memory_bytes=0,
        created=datetime.now(UTC),
    )
    path = record_path(root / folder, partition, shared=True)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(record.sealed().to_bytes())
