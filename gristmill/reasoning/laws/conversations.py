"""What must hold of normalised conversations. Source: `docs/formats/chat.md#conversations`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from gristmill.contract import Violation
from gristmill.corpora.raw.chat.recipe import KEPT
from gristmill.families import Subject
from gristmill.inbox.division import is_valid, threshold
from gristmill.laws import Few
from gristmill.reasoning.format import conversations as form

_BATCH: Final = 1000
_CHANNELS: Final = {"analysis": "01", "final": "02"}
_ROLES: Final = ("system", "developer", "user", "assistant")


def conversation_laws(subject: Subject) -> Iterator[Violation]:
    """Yields what a shard of conversations breaks: columns, messages, spans, splits, ids.

    By the recipe of SYNTH, also whose split is not that of the hash of its id.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    limit = _limit(subject.config)
    paths = form.shards(subject.folder)
    if not paths:
        yield Violation("shards", ".", "there is no shard_NN.parquet")
    for path in paths:
        few = Few(path.name, "{more:,} more rows")
        try:
            with pq.ParquetFile(path) as file:
                if file.schema_arrow not in (form.schema(), form.schema(KEPT)):
                    yield Violation("columns", path.name, f"are not {', '.join(form.TEXTS)}, row")
                    continue
                number = 0
                for batch in file.iter_batches(_BATCH):
                    for row in batch.to_pylist():
                        number += 1
                        if (broken := _broken(row, limit)) is not None:
                            law, what = broken
                            few.add_all(law, 1, [(f"{path.name}: row {number}", what)])
        except (pa.ArrowException, OSError) as error:
            yield Violation("readable", path.name, str(error))
        yield from few.added()


def _limit(config: Mapping[str, Any]) -> int | None:
    """The hash below which an id is valid; None where hashes of ids do not divide the rows."""
    table = json.loads(config.get("recipe") or "{}")
    is_by_hash = "recipe" in table and "split" in table
    return threshold(table["split"].get("validation", 0)) if is_by_hash else None


def _broken(row: dict[str, Any], limit: int | None) -> tuple[str, str] | None:
    """The law that a row breaks, and what is there; None for a good row."""
    needed = (*form.TEXTS, form.ROW)
    if any(row[name] is None for name in needed) or not row["synth_id"].strip():
        return "no nulls", "has a column that is null, or an empty id"
    if row["split"] not in ("train", "validation"):
        return "split", row["split"]
    if limit is not None and is_valid(row["synth_id"], limit) != (row["split"] == "validation"):
        return "split rule", f"{row['synth_id']} is in {row['split']}"
    try:
        messages = orjson.loads(row["messages_json"])["messages"]
        codes = [_codes(each) for each in messages]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        return "messages", f"{type(error).__name__}: {error}"
    if len(codes) != len(row["spans"]):
        return "spans", f"{len(row['spans'])} for {len(codes)} messages"
    if any(code not in allowed for code, allowed in zip(row["spans"], codes, strict=True)):
        return "spans", f"{row['spans']} are not those of its roles"
    speakers = [each["role"] for each in messages if each.get("channel") != "analysis"]
    turns = [role for role in speakers if role in ("user", "assistant")]
    is_turn = turns == ["user", "assistant"] * (len(turns) // 2)
    if not turns or not is_turn or speakers[-len(turns) :] != turns:
        return "turns", " ".join(speakers)
    return None


def _codes(message: dict[str, str]) -> str:
    """The span codes that a message may have."""
    role, channel, content = message["role"], message.get("channel"), message["content"]
    if not isinstance(content, str) or len(message) != 2 + (channel is not None):
        raise ValueError("a message has other keys than role, content and channel")
    if role not in _ROLES or (channel in _CHANNELS) != (role == "assistant"):
        raise ValueError(f"{role} has the channel {channel}")
    return _CHANNELS[channel] if channel is not None else "02"
