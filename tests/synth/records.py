"""The record of a shard, as the writers of manifests take it."""

from pathlib import Path
from typing import Any

from gristmill.contract import Summary, counts_of
from gristmill.provenance import config_fields
from gristmill.vocabularies.pinned import O200K
from tests.synth.conversations import hashes


def record(root: Path, number: str, config: object, summary: Summary) -> dict[str, Any]:
    """The parts of the provenance record of a shard that manifests are written from."""
    return {
        "partition": number,
        "code_version": "1",
        "config": config_fields(config),
        "counts": counts_of(summary),
        "data_version": f"version of {number}",
        "libraries": {"openai-harmony": "0.0.8", "tiktoken": "0.14.0"},
        "tokenizer": {"name": O200K.name, "path": "x", "sha256": O200K.sha256},
        "outputs": [
            {
                "path": path,
                "bytes": (root / path).stat().st_size,
                "sha256": digest,
                "rows": summary.files[path].rows,
            }
            for path, digest in hashes(root).items()
        ],
    }
