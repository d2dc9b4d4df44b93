"""What the SYNTH benchmarks share: shards to build, and one published build of a shard."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench import kit, publishing
from bench.distinct_text import Text, raw_table
from gristmill.contract import Summary
from gristmill.provenance import Input
from gristmill.publish.build import Attempt
from gristmill.synth import laws
from gristmill.synth.builders.harmony import to_harmony
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import HarmonyConfig, KDConfig
from gristmill.vocabularies import encode as bpe
from gristmill.vocabularies.pinned import O200K

NAME = "synth_harmony_shard_00.parquet"
_ROWS_AT_ONCE = 4000


def write_real(path: Path) -> None:
    """The 1,000 real conversations once."""
    shards = sorted(kit.real("synth/synth_harmony").glob("synth_harmony_shard_*.parquet"))
    table = pa.concat_tables([pq.read_table(shard) for shard in shards])
    pq.write_table(table, path, compression="zstd", row_group_size=2000)


def write_distinct(path: Path, rows: int, seed: int = 1) -> None:
    """A Harmony shard of text that no row repeats."""
    text, raw = Text(seed), []
    for first in range(0, rows, _ROWS_AT_ONCE):
        raw.append(path.parent / f"raw_{first:08d}.parquet")
        pq.write_table(raw_table(text, min(_ROWS_AT_ONCE, rows - first), first), raw[-1])
    out = path.parent / "harmony"
    to_harmony(raw, out, 0, HarmonyConfig(num_shards=1))
    (out / NAME).replace(path)
    shutil.rmtree(out)
    for file in raw:
        file.unlink()


def published(shard: Path, root: Path, vocabulary: Path, workers: int = 1) -> int:
    """Build and publish the shard as the asset does; the number of tokens."""

    def make(attempt: Attempt) -> Summary:
        return build_kd_shard(shard, attempt.out, config, attempt.parts, is_own=True)

    config = KDConfig(vocabulary, 0.001, workers=workers)
    done = publishing.published(
        *(root, "synth/kd_shards", "00", config, make),
        [Input(path=shard.name, sha256="0" * 64, bytes=shard.stat().st_size)],
        artifact="megatron/synth_kd_v1",
        laws=lambda folder: laws.kd_laws(folder, "00", 0.001),
    )
    return int(done.record.counts["train_tokens"] + done.record.counts["valid_tokens"])


def forget(vocabulary: Path, root: Path) -> None:
    """An engine that knows no word yet, and an empty data root."""
    encoder = bpe.encoder(O200K, vocabulary)
    if encoder.why_reference_alone is None:
        encoder.fast.forget()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
