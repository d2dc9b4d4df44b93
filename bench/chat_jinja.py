"""Conversations to Megatron datasets: by a person's Jinja template against Harmony.

Run from the checkout: python -m bench.chat_jinja [--rows N] [--vocabulary FILE]. Generates N
conversations of two turns (default 20,000), and builds them in turn by Harmony and by a template in
the manner of Qwen3. Prints the rows per CPU second of each, the children included, and their ratio.
Exit status 1 where the template makes less than half the rows of Harmony.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.cpu_seconds import cpu_seconds
from gristmill.synth.builders.chat.part import build_chat_shard
from gristmill.synth.config import ChatKDConfig
from gristmill.synth.raw.render import Render
from gristmill.vocabularies.find import find
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import of_pinned

LEAST, ROUNDS = 0.5, 3
SOURCE = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}"
    "{% set content = m.content %}{% if '</think>' in content and loop.index0 < ns.last %}"
    "{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    "{{ '<|start|>' + m.role + '\\n' + content + '<|end|>\\n' }}{% endfor %}"
)


def write_shard(path: Path, rows: int) -> None:
    """Conversations whose texts no row repeats, of 60 or 200 words each."""
    generator = np.random.default_rng(1)
    words = [f"{number:x}" for number in range(1 << 14)]

    def text(count: int) -> str:
        return " ".join([words[at] for at in generator.integers(0, len(words), count)])

    values = []
    for number in range(rows):
        messages = []
        for _ in range(2):
            messages += [
                {"role": "user", "content": text(60)},
                {"role": "assistant", "content": text(200), "channel": "analysis"},
                {"role": "assistant", "content": text(200), "channel": "final"},
            ]
        values.append((json.dumps({"messages": messages}), f"id{number}", "012012", "train"))
    names = ("messages_json", "synth_id", "spans", "split")
    table = pa.table(dict(zip(names, map(list, zip(*values, strict=True)), strict=True)))
    pq.write_table(table, path, row_group_size=1000, compression="zstd")


def measured(shard: Path, out: Path, vocabulary: Path, render: Render) -> float:
    """CPU seconds of a build."""
    config = ChatKDConfig(vocabulary, 0.0, render=render.recorded)
    before = cpu_seconds()
    build_chat_shard(shard, out, config, render, of_pinned(O200K, vocabulary))
    return cpu_seconds() - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--vocabulary", type=Path)
    chosen = parser.parse_args()
    vocabulary = chosen.vocabulary or find(O200K, Path("data"))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shard = work / "shard_00.parquet"
        write_shard(shard, chosen.rows)
        renders = (Render(), Render("drop:t.jinja", work / "t.jinja", SOURCE))
        seconds = [
            [measured(shard, work / f"{turn}{at}", vocabulary, each) for turn in range(ROUNDS)]
            for at, each in enumerate(renders)
        ]
    # The first build of each loads the vocabulary.
    harmony, jinja = (chosen.rows / min(each[1:]) for each in seconds)
    print(f"Harmony {harmony:,.0f} rows per CPU second, Jinja {jinja:,.0f}")
    print(f"ratio {jinja / harmony:.2f}, at least {LEAST} is wanted")
    return int(jinja < LEAST * harmony)


if __name__ == "__main__":
    sys.exit(main())
