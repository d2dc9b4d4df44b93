"""Distill datasets: rows per CPU second of our build and of openai-harmony, in turns in one run.

Builds the rows of a Harmony shard by both templates, files and hashes included, beside
openai-harmony, which renders the prompt, the prompt with its thought, and the whole: from these
come ids and spans. Also beside the whole alone. Neither makes labels, filters or files. Text that
no row repeats; medians of interleaved rounds. Needs a vocabulary. Ends with status 1 where a
template has less than ten times the rows with spans.

    python -m bench.distill [--rows 16000] [--rounds 3]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from bench import kit
from bench.synth_build import NAME, forget, write_distinct
from gristmill.synth.builders.distill_shard import build_distill
from gristmill.synth.config import DistillConfig
from gristmill.synth.render.harmony import encoding, parse
from gristmill.vocabularies.pinned import O200K, find
from gristmill.vocabularies.tokenizer import of_pinned

FLOOR = 10
_THEIR_ROWS = 300
_THEIRS = "openai-harmony"


def theirs(texts: list[str], vocabulary: Path, spans: bool = True) -> None:
    """Render each conversation; with spans also its two beginnings."""
    from openai_harmony import Conversation, Message, RenderConversationConfig, Role

    harmony, keep = encoding(vocabulary), RenderConversationConfig(auto_drop_analysis=False)
    for text in texts:
        messages = [Message.from_dict(each) for each in parse(text)]
        if spans:
            prompt, thought = (Conversation.from_messages(messages[:end]) for end in (-2, -1))
            harmony.render_conversation_for_completion(prompt, Role.ASSISTANT, keep)
            harmony.render_conversation_for_training(thought, keep)
        harmony.render_conversation_for_training(Conversation.from_messages(messages), keep)


def ours(shard: Path, out: Path, vocabulary: Path, template: str) -> None:
    """Build the dataset by an engine that knows no word yet."""
    forget(vocabulary, out)
    out.rmdir()
    config = DistillConfig(vocabulary, template=template, reference=False)  # type: ignore[arg-type]
    build_distill(shard, out, config, of_pinned(O200K, vocabulary), dataset="bench")


def templates(given: kit.Given) -> None:
    """Print rows per CPU second and their ratios."""
    vocabulary, shard, out = find(O200K, kit.DATA), given.scratch / NAME, given.scratch / "out"
    write_distinct(shard, given.rows)
    texts = pq.read_table(shard)["messages_json"].slice(0, _THEIR_ROWS).to_pylist()
    rows = pq.read_metadata(shard).num_rows
    theirs(texts[:1], vocabulary)  # loads both engines
    ours(shard, out, vocabulary, "harmony")
    work: dict[str, tuple[int, Callable[[], None]]] = {
        _THEIRS: (len(texts), lambda: theirs(texts, vocabulary)),
        "the whole alone": (len(texts), lambda: theirs(texts, vocabulary, False)),
    }
    for each in ("harmony", "chatgpt_plain"):
        work[each] = rows, partial(ours, shard, out, vocabulary, each)
    times = kit.in_turns(
        *(do for _, do in work.values()), rounds=given.rounds, clock=kit.cpu_seconds
    )
    rates = {
        name: count / median(spent)
        for (name, (count, _)), spent in zip(work.items(), times, strict=True)
    }
    for name, found in rates.items():
        least = FLOOR if name in ("harmony", "chatgpt_plain") else None
        what = f"{name}: {found:,.0f} rows per CPU second, times {_THEIRS}"
        kit.bounded(what, found / rates[_THEIRS], least=least)


if __name__ == "__main__":
    kit.main(__doc__, templates, rows=16000, rounds=3)
