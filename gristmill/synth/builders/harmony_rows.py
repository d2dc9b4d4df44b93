"""Rows of a raw file become Harmony rows: messages and metadata as JSON.

Source: `docs/formats/synth.md#messages`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill.contract import BadInput
from gristmill.synth.config import HarmonyConfig
from gristmill.synth.format import parquet
from gristmill.synth.raw import files as raw

if TYPE_CHECKING:
    import pyarrow as pa

_CURE: Final = "correct it, write the column as strings, or leave it out of metadata_fields"
_COMPILED_ROWS: Final = 500
"""Rows of a batch from which on compiled code converts it; loading that code takes a while."""
_COMPILED_BYTES: Final = 1 << 30
"""Bytes around the texts of a batch, up to which it does; Arrow counts bytes in 32 bits."""


def system_message(config: HarmonyConfig) -> dict[str, Any]:
    """Return the system message of every conversation.

    The order of the keys is that of the rule.
    """
    return {
        "role": "system",
        "content": [
            {
                "type": "system_content",
                "model_identity": config.model_identity,
                "reasoning_effort": config.reasoning_effort.capitalize(),
                "conversation_start_date": config.conversation_start_date,
                "knowledge_cutoff": config.knowledge_cutoff,
                "channel_config": {
                    "valid_channels": ["analysis", "commentary", "final"],
                    "channel_required": True,
                },
            }
        ],
    }


def developer_message(config: HarmonyConfig) -> dict[str, Any] | None:
    """Return the developer message of every conversation, None if it has none.

    The order of the keys is that of the rule.
    """
    if config.developer is None:
        return None
    return {
        "role": "developer",
        "content": [{"type": "developer_content", "instructions": config.developer}],
    }


@dataclass(frozen=True)
class RawRows:
    """Some rows of a raw file."""

    path: Path
    before: int
    batch: pa.RecordBatch

    def values(self, name: str) -> list[Any]:
        """Return a column as Python values.

        Raises BadInput with the row of the first text that is not UTF-8, and for a value that
        Python cannot hold.
        """
        import pyarrow as pa

        try:
            values, broken = parquet.values(self.batch.column(name))
        except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
            # As a time beyond the calendar, or in a time zone that is unknown.
            rule = (
                f"{name}: holds a value that cannot be read in this row or one after it ({error}): "
                f"{_CURE}"
            )
            raise BadInput(self.path, rule, self.before + 1) from error
        if broken:
            index = min(broken)
            rule = f"{name} is not UTF-8 ({broken[index]}): correct the row"
            raise BadInput(self.path, rule, self.before + index + 1)
        return values

    def check_metadata(self, columns: Mapping[str, Sequence[Any]], kept: Sequence[int]) -> None:
        """Check that JSON can hold all metadata values."""
        for name, column in columns.items():
            for index, value in zip(kept, column, strict=True):
                try:
                    json.dumps(value, allow_nan=False)
                except (TypeError, ValueError) as error:
                    row = self.before + index + 1
                    kind = self.batch.column(name).type
                    rule = f"{name} is {kind}, and JSON cannot hold its value ({error}): {_CURE}"
                    raise BadInput(self.path, rule, row) from error

    def check_ids(self, kept: Iterable[int]) -> None:
        """Check that all kept rows have a synth_id."""
        ids = self.values("synth_id")
        for index in kept:
            if ids[index] is None or not str(ids[index]).strip():
                rule = f"synth_id is {ids[index]!r}: give the row an id, which chooses its split"
                raise BadInput(self.path, rule, self.before + index + 1)


class Envelope:
    """The JSON around the texts of a row. It is made once; each row adds its texts."""

    def __init__(self, config: HarmonyConfig) -> None:
        marks = [f"\0{index}\0" for index in range(len(raw.TEXTS))]
        channels: tuple[tuple[str, dict[str, str]], ...] = (
            ("user", {}),
            ("assistant", {"channel": "analysis"}),
            ("assistant", {"channel": "final"}),
        )
        messages = [system_message(config), developer_message(config)]
        messages += [
            {"role": role, "content": [{"type": "text", "text": mark}]} | channel
            for mark, (role, channel) in zip(marks, channels, strict=True)
        ]
        text = json.dumps({"messages": [message for message in messages if message is not None]})
        self._between: list[str] = []
        for mark in reversed(marks):
            # From the end: the config's own texts, which come first, may hold a mark.
            text, _, after = text.rpartition(json.dumps(mark))
            self._between.insert(0, after)
        self._between.insert(0, text)

    def convert(self, rows: RawRows, fields: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
        """Return the Harmony rows of those raw rows whose three texts are not empty.

        schema: columns of the Harmony shard. A field without a column is null.

        Raises BadInput for a text that is not UTF-8, for a row without an id, and for a metadata
        value that JSON cannot hold.
        """
        count = len(rows.batch)
        fits = count * sum(map(len, self._between)) <= _COMPILED_BYTES
        if fits and count >= _COMPILED_ROWS and _has_valid_strings(rows.batch):
            return self._compiled(rows, fields, schema)
        return self._interpreted(rows, fields, schema)

    def _compiled(self, rows: RawRows, fields: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
        """Convert rows whose columns are all valid strings."""
        import pyarrow as pa

        from gristmill.synth.format.json_strings import joined

        batch = rows.batch
        kept = _kept(batch)
        rows.check_ids(kept.to_pylist())
        names = [f"{json.dumps(name)}: " for name in fields]
        between = [
            f"{mark}{name}" for mark, name in zip(["{", *[", "] * len(names)], names, strict=False)
        ]
        absent = pa.nulls(len(kept), pa.string())
        columns = [
            joined([batch.column(name) for name in raw.TEXTS], self._between, kept),
            joined([batch.column(name) for name in fields], [*between, "}"], kept),
            *(
                batch.column(name).take(kept) if name in fields else absent
                for name in schema.names[2:]
            ),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _interpreted(
        self, rows: RawRows, fields: Sequence[str], schema: pa.Schema
    ) -> pa.RecordBatch:
        """Convert rows of any columns; errors name the row."""
        import pyarrow as pa

        messages, kept = self._messages(rows)
        rows.check_ids(kept)
        values = {name: list(map(rows.values(name).__getitem__, kept)) for name in fields}
        try:
            metadata = [
                json.dumps(dict(zip(fields, row, strict=True)), allow_nan=False)
                for row in zip(*values.values(), strict=True)
            ]
        except (TypeError, ValueError):
            rows.check_metadata(values, kept)
            raise
        strings = {
            name: [None if value is None else str(value) for value in column]
            for name, column in values.items()
        }
        absent = [None] * len(kept)
        columns = [messages, metadata, *(strings.get(name, absent) for name in schema.names[2:])]
        return pa.RecordBatch.from_arrays(
            [pa.array(column, pa.string()) for column in columns], schema=schema
        )

    def _messages(self, rows: RawRows) -> tuple[list[str], list[int]]:
        """Return the messages of the kept rows as JSON, and the indices of these rows."""
        encode = json.dumps
        p0, p1, p2, p3 = self._between
        texts = zip(*(rows.values(name) for name in raw.TEXTS), strict=True)
        messages: list[str] = []
        kept: list[int] = []
        for index, (query, reasoning, answer) in enumerate(texts):
            if query and reasoning and answer:
                kept.append(index)
                messages.append(
                    f"{p0}{encode(query)}{p1}{encode(reasoning)}{p2}{encode(answer)}{p3}"
                )
        return messages, kept


def _has_valid_strings(batch: pa.RecordBatch) -> bool:
    """Whether all columns are strings, and valid UTF-8."""
    import pyarrow as pa

    if any(kind != pa.string() for kind in batch.schema.types):
        return False
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _kept(batch: pa.RecordBatch) -> pa.Array:
    """Return the numbers of the rows whose three texts are not empty."""
    import pyarrow as pa

    every = np.ones(len(batch), dtype=np.bool_)
    for name in raw.TEXTS:
        column = batch.column(name)
        starts = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(batch) + 1]
        every &= starts[:-1] < starts[1:]
        if column.null_count:
            every &= column.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.flatnonzero(every), pa.int64())
