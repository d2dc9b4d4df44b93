"""Conversations to Megatron datasets: by a person's Jinja template against Harmony.

Run from the checkout: python -m bench.chat_jinja [--rows N] [--vocabulary FILE]. Generates N
conversations of two turns (default 20,000), and builds them in turn by Harmony and by a template in
the manner of Qwen3. Prints the rows per CPU second of each, the children included, and their ratio.
Exit status 1 where the template makes less than half the rows of Harmony.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import kit
from gristmill.synth.builders.chat import build_chat_shard
from gristmill.synth.config import ChatKDConfig
from gristmill.synth.raw import Render
from gristmill.vocabularies.pinned import O200K, find
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


def templates(given: kit.Given) -> None:
    vocabulary = given.vocabulary or find(O200K, kit.DATA)
    shard = given.scratch / "shard_00.parquet"
    write_shard(shard, given.rows)
    renders = Render(), Render("drop:t.jinja", given.scratch / "t.jinja", SOURCE)

    def built(render: Render) -> Callable[[], object]:
        config = ChatKDConfig(vocabulary, 0.0, render=render.recorded)
        outs = (given.scratch / f"{render.recorded} {turn}" for turn in range(ROUNDS))
        return lambda: build_chat_shard(
            shard, next(outs), config, render, of_pinned(O200K, vocabulary)
        )

    works = [built(render) for render in renders]
    times = kit.in_turns(*works, rounds=ROUNDS, clock=kit.cpu_seconds)
    # The first build of each loads the vocabulary.
    harmony, jinja = (given.rows / min(each[1:]) for each in times)
    what = f"Harmony {harmony:,.0f} rows per CPU second, Jinja {jinja:,.0f}, ratio"
    kit.bounded(what, jinja / harmony, least=LEAST)


if __name__ == "__main__":
    kit.main(__doc__, templates, rows=20_000, vocabulary={"type": Path})
