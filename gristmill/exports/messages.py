"""Conversations as lists of messages, which trainers of chats read: JSON Lines and Parquet.

Source: `docs/consumers.md#messages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from gristmill.contract import BadInput
from gristmill.exports.table import Batches, Split
from gristmill.provenance import Record

Row = dict[str, Any]
Messages = list[dict[str, Any]]

INFO: Final = "dataset_info.json"
_ROWS: Final = 1 << 12
_CALLS: Final = pa.list_(
    pa.struct(
        {
            "type": pa.string(),
            "function": pa.struct({"name": pa.string(), "arguments": pa.string()}),
        }
    )
)
_KEYS: Final = {
    **dict.fromkeys(("role", "content", "thinking"), pa.string()),
    "tool_calls": _CALLS,
    "name": pa.string(),
    "train": pa.bool_(),
}
"""Keys of a message; a table has those that some message of it has."""
_TAGS: Final = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
    "observation_tag": "tool",
}


class Talks(NamedTuple):
    """The conversations of a split. rows: yields them as `row`, None for what is none."""

    name: str
    rows: Callable[[], Iterator[Row | None]]
    licence: str = ""


def row(name: str, source: str, licence: str | None, messages: Messages) -> Row:
    """A conversation with its id, what it is from, and the licence of that."""
    return {"messages": messages, "id": name, "source": source, "licence": licence}


def messages_of(messages: Sequence[Mapping[str, Any]], spans: Sequence[int]) -> Messages:
    """The messages of Harmony, or of a shard of conversations, as trainers take them.

    spans: a code for each: 0 is not trained on. A thought goes into the answer after it, which is
    trained on where both are. What Harmony's own system message says is of its template.
    """
    has_system = any(each["role"] == "system" and _text(each) for each in messages)
    found: Messages = []
    thoughts: list[tuple[str, int]] = []

    def add(role: str, said: Mapping[str, Any], code: int) -> None:
        if thoughts:
            said = {**said, "thinking": "\n\n".join(text for text, _ in thoughts)}
        is_trained = bool(code) and all(own for _, own in thoughts)
        found.append({"role": role, **said, "train": is_trained})
        thoughts.clear()

    for message, code in zip(messages, spans, strict=True):
        role, text = message["role"], _text(message)
        if message.get("channel") == "analysis":
            thoughts.append((text, code))
            continue
        if thoughts and role != "assistant":
            add("assistant", {"content": ""}, 1)
        if role == "assistant" and (to := message.get("recipient") or "all") != "all":
            function = {"name": to.removeprefix("functions."), "arguments": text}
            calls = [{"type": "function", "function": function}]
            add(role, {"content": "", "tool_calls": calls}, code)
        elif text or role not in ("system", "developer"):
            named = {"name": message["name"]} if message.get("name") else {}
            is_first = role == "developer" and not has_system
            add("system" if is_first else role, {"content": text, **named}, code)
    if thoughts:
        add("assistant", {"content": ""}, 1)
    return found


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(item.get("text") or item.get("instructions") or "" for item in content)


def shard_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield columns of a Parquet file, a row after the other."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_ROWS, columns=[*columns]):
            yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)


def rows_of(paths: Iterable[Path], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield columns of the parts of a shard, as `shard_rows`."""
    return chain.from_iterable(shard_rows(path, columns) for path in paths)


def row_at(paths: Sequence[Path], number: int) -> tuple[Path, int, Row]:
    """A row of a shard of conversations by its number: its part, its number there, and the row.

    paths: the parts. Numbers count from 0. Raises BadInput where there is none.
    """
    left = number
    for path in paths:
        with pq.ParquetFile(path) as file:
            inside = left
            for group in range(file.num_row_groups):
                if left < (count := file.metadata.row_group(group).num_rows):
                    (found,) = file.read_row_group(group).slice(left, 1).to_pylist()
                    return path, inside, found
                left -= count
    rule = f"has {number - left:,} conversations, no number {number:,}: they count from 0"
    raise BadInput(paths[0], rule)


def of_shard(
    paths: Sequence[Path], record: Record, numbers: Callable[[str], Iterator[int]] | None = None
) -> Iterator[Talks]:
    """Yield the splits of a shard of conversations.

    paths: of its parts. record: of it. numbers: yields the rows that a split has, from 1,
    ascending; default: those that the shard says.
    """
    source = str(record.partition).rpartition("__")[0]
    licence = json.loads(record.config["recipe"]).get("licence", {}).get("id", "unknown")

    def own(split: str) -> Iterator[int]:
        return (n for n, (name,) in enumerate(rows_of(paths, ("split",)), 1) if name == split)

    def rows(split: str) -> Iterator[Row]:
        wanted = (numbers or own)(split)
        following = next(wanted, None)
        columns = ("messages_json", "spans", "synth_id")
        for number, (text, spans, name) in enumerate(rows_of(paths, columns), start=1):
            if number == following:
                messages = messages_of(orjson.loads(text)["messages"], [*map(int, spans)])
                yield row(name, source, licence, messages)
                following = next(wanted, None)
        if following is not None:
            raise BadInput(
                paths[-1], f"has no row {following} behind those before it: build it again"
            )

    for split in ("train", "validation"):
        yield Talks(split, partial(rows, split), licence)


def write_messages(
    talks: Sequence[Talks], out: Path, is_tagged: bool
) -> tuple[dict[str, int], list[Split], int]:
    """Write a file of JSON Lines for each split, and what LLaMA-Factory needs to find them.

    is_tagged: whether thoughts stand in `<think>` before the content, and not as `thinking`.

    Returns the rows of each file, the same rows as splits, and how many rows are no conversation.
    LLaMA-Factory reads contents alone: where thoughts are beside them it gets no file.
    """
    counts: dict[str, int] = {}
    keys = set[str]()
    left = 0
    for name in dict.fromkeys(each.name for each in talks):
        path = out / f"{name}.jsonl"
        count = 0
        with path.open("xb") as file:
            for each in chain.from_iterable(each.rows() for each in talks if each.name == name):
                if each is None:
                    left += 1
                    continue
                for message in each["messages"] if is_tagged else ():
                    if thinking := message.pop("thinking", ""):
                        thought = f"<think>\n{thinking}\n</think>\n\n"
                        message["content"] = thought + message["content"]
                keys.update(*each["messages"])
                file.write(orjson.dumps(each, option=orjson.OPT_APPEND_NEWLINE))
                count += 1
        if count:
            counts[path.name] = count
        else:
            path.unlink()
    if "thinking" not in keys:
        form = "openai" if "tool_calls" in keys else "sharegpt"
        said = {"formatting": form, "columns": {"messages": "messages"}, "tags": _TAGS}
        info = {Path(name).stem: {"file_name": name, **said} for name in counts}
        (out / INFO).write_text(json.dumps(info, indent=2) + "\n")
    messages = pa.list_(pa.struct({name: _KEYS[name] for name in _KEYS if name in keys}))
    texts = dict.fromkeys(("id", "source", "licence"), pa.string())
    schema = pa.schema({"messages": messages, **texts})
    licences = {each.licence for each in talks}
    licence = licences.pop() if len(licences) == 1 else ""
    rows = {name: partial(_batches, out / name, schema) for name in counts}
    splits = [Split(Path(n).stem, lambda: schema, rows[n], licence=licence) for n in rows]
    return counts, splits, left


def _batches(path: Path, schema: pa.Schema) -> Batches:
    with path.open("rb") as file:
        rows = map(orjson.loads, file)
        while taken := [*islice(rows, _ROWS)]:
            yield pa.RecordBatch.from_pylist(taken, schema)
