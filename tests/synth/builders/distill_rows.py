"""Harmony rows of tests, and what the rules of DistillKit make of them, by openai-harmony."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gristmill.vocabularies.pinned import load_harmony_file

PLAIN = (
    "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\n"
    "Reasoning: low\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message."
)


def message(role: str, text: str, channel: str | None = None) -> dict[str, Any]:
    found = {"role": role, "content": [{"type": "text", "text": text}]}
    return found | ({} if channel is None else {"channel": channel})


def harmony_row(
    name: str, query: str, reasoning: str, answer: str, **columns: str | None
) -> dict[str, Any]:
    """A row of a shard; its columns are null where nothing is said."""
    messages = [message("user", query)]
    messages += [message("assistant", reasoning, "analysis")] if reasoning else []
    messages.append(message("assistant", answer, "final"))
    known = dict.fromkeys(("language", "exercise", "constraints", "query_seed_text"))
    return {"messages_json": json.dumps({"messages": messages}), "synth_id": name} | known | columns


def write(rows: list[dict[str, Any]], folder: Path) -> Path:
    """Write a shard."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "synth_harmony_shard_00.parquet"
    schema = pa.schema([(name, pa.string()) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=64)
    return path


def rendered(
    vocabulary: Path, messages: list[dict[str, Any]]
) -> tuple[list[int], list[int], dict[str, int]]:
    """Ids, labels and spans of a conversation whose last messages are of the assistant."""
    from openai_harmony import Conversation, Message, RenderConversationConfig, Role

    harmony = load_harmony_file(vocabulary)
    keep = RenderConversationConfig(auto_drop_analysis=False)
    parsed = [Message.from_dict(each) for each in messages]
    answers = [at for at, each in enumerate(messages) if each["role"] == "assistant"]

    def ids(count: int) -> list[int]:
        return harmony.render_conversation_for_training(
            Conversation.from_messages(parsed[:count]), keep
        )

    prompt = Conversation.from_messages(parsed[: answers[0]])
    start = len(harmony.render_conversation_for_completion(prompt, Role.ASSISTANT, keep))
    whole = ids(len(parsed))
    thought = len(ids(len(parsed) - 1)) - start if len(answers) > 1 else 0
    spans = {
        "assistant_token_start": start,
        "analysis_token_count": thought,
        "final_token_count": len(whole) - start - thought,
    }
    return whole, [-100] * start + whole[start:], spans
