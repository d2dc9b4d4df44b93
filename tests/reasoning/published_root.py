"""Data roots whose splits their assets published: raw drop, normalised, tokenised, aligned."""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gristmill.asset import Wanted, declared
from gristmill.data_root import DataRoot
from gristmill.provenance import Record, record_path
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.reasoning.config import TokenizeConfig
from gristmill.reasoning.format import names
from gristmill.vocabularies.pinned import GPT2, drop_folder

PARTITION = "gsm8k__train"
SEQ_LEN = 64
CORPUS, SPLIT = PARTITION.split("__")


def build_of(root: Path, asset: str, partition: str, **chosen: object) -> Build:
    """The build of a partition, as the asset declares it."""
    found = declared()[asset]
    return found.build(Wanted(found, DataRoot(root), partition, chosen))


def built(root: Path, asset: str, partition: str, **chosen: object) -> Record:
    """Publish a partition of an asset."""
    return publish(build_of(root, asset, partition, **chosen)).record


def write_drop(root: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """A drop of two files in the seed's form; the second half of the records in the second."""
    drop = root / "drops/reasoning/gsm8k"
    drop.mkdir(parents=True)
    keys = {"question": "", "answer": ""}
    lines = [json.dumps({**keys, **record}, ensure_ascii=False) + "\n" for record in records]
    half = (len(lines) + 1) // 2
    for number, some in enumerate((lines[:half], lines[half:])):
        text = "".join(some)
        (drop / f"train-0000{number}-of-00002.jsonl").write_text(text, encoding="utf-8")


def put_vocabulary(root: Path, vocabulary: Path) -> None:
    """Publish GPT-2's vocabulary in a data root, unless it is there."""
    if (root / "tokenizer" / GPT2.relative).exists():
        return
    drop_folder(root).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(vocabulary, drop_folder(root) / GPT2.file)
    built(root, "tokenizers/gpt2", GPT2.name)


def shards_build(root: Path, config: TokenizeConfig) -> Build:
    """The build of shards with all values of a config but the vocabulary."""
    chosen = {key: value for key, value in vars(config).items() if key != "vocabulary"}
    return build_of(root, "reasoning/gpt2_shards", PARTITION, **chosen)


def publish_records(root: Path, vocabulary: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Publish the vocabulary and the normalised file of the records."""
    write_drop(root, records)
    put_vocabulary(root, vocabulary)
    built(root, "reasoning/normalized", PARTITION)


def publish_root(
    root: Path, vocabulary: Path, records: Iterable[Mapping[str, Any]], **chosen: object
) -> None:
    """Publish the normalised file, the shards and the manifest of the records."""
    publish_records(root, vocabulary, records)
    built(root, "reasoning/gpt2_shards", PARTITION, **chosen)
    built(root, "reasoning/manifest", names.MANIFEST_RECORD)


def publish_split(
    root: Path, corpus: str, split: str, raw: Iterable[Mapping[str, Any]], vocabulary: Path
) -> None:
    """Publish all three artifacts of a split that has these raw rows."""
    drop = root / "drops/reasoning" / corpus
    drop.mkdir(parents=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in raw)
    (drop / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    publish_dropped(root, corpus, split, vocabulary)


def publish_dropped(root: Path, corpus: str, split: str, vocabulary: Path) -> None:
    """Publish all three artifacts of a split of a drop."""
    put_vocabulary(root, vocabulary)
    partition, sizes = f"{corpus}__{split}", {"seq_len": SEQ_LEN, "tokens_per_shard": 16 * SEQ_LEN}
    built(root, "reasoning/normalized", partition)
    built(root, "reasoning/gpt2_shards", partition, allow=(corpus,), **sizes)
    built(root, "reasoning/alignment", partition)


def change_counts(root: Path, folder: str, partition: str, **counts: float) -> None:
    """Change counts in the record of a split, as if other data had been built."""
    path = record_path(root / folder, partition, shared=True)
    record = Record.model_validate_json(path.read_bytes())
    changed = record.model_copy(update={"counts": record.counts | counts})
    path.write_bytes(changed.sealed().to_bytes())


def worked(count: int) -> list[dict[str, Any]]:
    """Records of a few steps each, all different."""
    return [
        {
            "question": f"Ann has {n} pens and buys {n + 2}. “How many” now?",
            "answer": f"She had {n}.\nShe has {n}+{n + 2}=<<{n}+{n + 2}={2 * n + 2}>>{2 * n + 2}."
            f"\n#### {2 * n + 2}",
        }
        for n in range(count)
    ]


def aligned_root(
    root: Path, vocabulary: Path, records: Iterable[Mapping[str, Any]], **chosen: object
) -> Path:
    """Publish shards, manifest and alignment of the records."""
    publish_root(root, vocabulary, records, **chosen)
    built(root, "reasoning/alignment", PARTITION)
    return root
