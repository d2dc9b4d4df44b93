"""SYNTH in fresh processes: Parquet to a published shard, and `encode_ordinary` over its texts.

Both begin with the start of Python, import, prove and load the vocabulary, read the same Parquet
file by pyarrow, and end; CPU seconds of the process and of what it starts, in turns. Each has its
compiled modules from a turn that does not count. Theirs checks the sha256 of the file, as tiktoken
does, and writes nothing. Needs the real conversations (GRISTMILL_REAL_DATA) and a vocabulary.

    python -m bench.synth_fresh [--rows 375] [--rounds 7]
"""

from __future__ import annotations

import shutil

import pyarrow.parquet as pq

from bench import kit
from bench.synth_build import NAME, write_real
from gristmill.vocabularies.pinned import O200K, O200K_PATTERN, find

_OURS = """
import sys
from pathlib import Path
from gristmill.provenance import Input
from gristmill.publish.build import Build
from gristmill.publish.publish import publish
from gristmill.synth import laws
from gristmill.synth.builders.kd_shard import build_kd_shard
from gristmill.synth.config import KDConfig
shard, root, vocabulary = map(Path, sys.argv[1:])
config = KDConfig(vocabulary, 0.001)
publish(Build(
    root=root,
    artifact="megatron/synth_kd_v1",
    asset="synth/kd_shards",
    partition="00",
    code_version=KDConfig.CODE_VERSION,
    config=config,
    inputs=[Input(path=shard.name, sha256="0" * 64, bytes=shard.stat().st_size)],
    make=lambda attempt: build_kd_shard(shard, attempt.out, config, attempt.parts, is_own=True),
    laws=lambda folder: laws.kd_laws(folder, "00", 0.001),
    shared=True,
))
"""
_THEIRS = """
import sys, json
import pyarrow.parquet as pq
import tiktoken
from tiktoken.load import load_tiktoken_bpe
shard, pattern, vocabulary, sha256 = sys.argv[1:]
ranks = load_tiktoken_bpe(vocabulary, expected_hash=sha256)
encode = tiktoken.Encoding("o200k", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
for text in pq.read_table(shard).column("messages_json").to_pylist():
    for message in json.loads(text)["messages"][2:]:
        encode.encode_ordinary(message["content"][0]["text"])
"""


def fresh(given: kit.Given) -> None:
    """Both in turns."""
    shard, root, vocabulary = given.scratch / NAME, given.scratch / "root", find(O200K, kit.DATA)
    write_real(whole := given.scratch / "whole.parquet")
    pq.write_table(pq.read_table(whole).slice(0, given.rows), shard, compression="zstd")
    # Without its cache tiktoken reads the file that it is given; with no compiled modules each
    # start would compile them again.
    variables = {
        "TIKTOKEN_CACHE_DIR": "",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(given.scratch / "compiled"),
    }
    pattern = O200K_PATTERN.replace("(?:[^", "[^", 1).replace(r"[\r\n]+)|", r"[\r\n]+|", 1)

    def ours() -> float:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        return kit.python(["-c", _OURS, str(shard), str(root), str(vocabulary)], variables)

    def theirs() -> float:
        words = [str(shard), pattern, str(vocabulary), O200K.sha256]
        return kit.python(["-c", _THEIRS, *words], variables)

    times = [(theirs(), ours()) for _ in range(given.rounds + 1)][1:]
    own = sorted(each for _, each in times)[len(times) // 2]
    print(f"ours {own:.2f} CPU s, median of {given.rounds}")
    other, mine = zip(*times, strict=True)
    what = f"{given.rows} rows in a fresh process, of the rate of encode_ordinary in its own"
    kit.bounded(what, kit.ratio(other, mine), least=_LEAST)


_LEAST = 0.6

if __name__ == "__main__":
    kit.main(__doc__, fresh, rows=375, rounds=7)
