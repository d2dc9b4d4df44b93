"""The tables of rows in normalised splits, token shards and alignments, for the sample browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gristmill.browse.columns import of_parquet
from gristmill.browse.lines import Form, json_row
from gristmill.browse.source import Record, Stored
from gristmill.browse.table import Picture, Token
from gristmill.contract import GristmillError
from gristmill.reasoning.format import align, conversations, id_files, names
from gristmill.reasoning.format.published import ALIGNMENT, EXPORTS, NORMALIZED, TOKENS, splits_in
from gristmill.reasoning.render.text import text_of
from gristmill.reasoning.show import steps
from gristmill.reasoning.show.place import normalized_beside, parsed

if TYPE_CHECKING:
    from gristmill.browse.opening import Files
    from gristmill.vocabularies.tokenizer import Tokenizer

_FILES: Final = {
    "reasoning/normalized": "{split}.jsonl",
    "reasoning/gpt2_shards": "{split}/index.jsonl",
    "reasoning/tokens": "{split}/index.jsonl",
    "reasoning/alignment": "{split}.align.jsonl",
    "reasoning/spans": "{split}.spans.jsonl",
}
_SEARCHABLE: Final = (
    *("question", "answer", "cot", "cot_steps", "source_dataset", "example_id", "subject"),
    *("step_labels", "notes", "text", "extras.subject", "extras.source", "extras.dataset"),
    *("messages_json", "synth_id", "trace_id", "ann_text", "expr_str", "skipped", "part"),
)


def tables(asset: str, folder: Path, files: Files) -> list[Stored]:
    """Returns a table for each split; none for manifests and reports, which are JSON files."""
    if asset == "chat/conversations":
        return [_parquet(files, path.name) for path in conversations.shards(folder)]
    if asset == EXPORTS:
        texts = sorted(folder.glob("nanochat/*.parquet"))
        return [_parquet(files, f"nanochat/{path.name}") for path in texts]
    found = splits_in(folder, _FILES[asset]) if asset in _FILES else ()
    return [_table(asset, folder, files, *key.rsplit("__", 1)) for key in found]


def _parquet(files: Files, path: str) -> Stored:
    shard = {"shard": Path(path).stem.removeprefix("shard_")}
    return Stored(
        path if "/" in path else shard["shard"],
        lambda: of_parquet(files.checked(path)),
        _SEARCHABLE,
        sample=lambda row: (str(row.number), shard if "/" in path else {}),
        chosen=shard,
        ids=() if "/" in path else ("synth_id",),
    )


def _table(asset: str, folder: Path, files: Files, corpus: str, split: str) -> Stored:
    name = f"{corpus}/{_FILES[asset].format(split=split)}"
    form, shown = Form(json_row), dict[str, Any]()
    if asset == ALIGNMENT:
        shown = {"pictures": _drawn(folder), "tokens": _pieces(folder)}
    if _FILES[asset].endswith(names.INDEX) and (decode := _decoder(folder)) is not None:
        held = _Tokens(folder, decode)
        form, shown = Form(json_row, more={"text": held.text}), {"tokens": held.shown}
    chosen = {"corpus": corpus, "split": split}

    def sample(row: Record) -> tuple[str, Mapping[str, Any]]:
        by_id = str(row.values.get("example_id", ""))
        return (by_id or str(row.number)), chosen

    def named(sample: str) -> int | Sequence[str]:
        place = parsed(sample)
        if place is None or place[:2] != (corpus, split):
            return ()
        return place.record if asset == NORMALIZED else ("example_id",)

    return Stored(
        f"{corpus}__{split}",
        lambda: files.lines(name, form),
        _SEARCHABLE,
        slow=[*form.more],
        partition="" if asset == TOKENS else f"{corpus}__{split}",
        sample=sample,
        chosen=chosen,
        ids=() if asset == NORMALIZED else ("example_id",),
        named=named,
        **shown,
    )


def _decoder(folder: Path) -> Callable[[], Tokenizer] | None:
    """Gives the tokenizer of the shards when it is needed; None where it is not to be had."""
    from gristmill.reasoning.read.trace import tokenizer_of

    try:
        tokenizer = tokenizer_of(folder, data_root(folder))
    except GristmillError:
        return None
    return lambda: tokenizer


class _Tokens:
    """The tokens of the examples of a split, as its shards hold them."""

    def __init__(self, folder: Path, decode: Callable[[], Tokenizer]) -> None:
        self._folder, self._decode = folder, decode
        self._mapped = lru_cache(64)(id_files.of_path)

    def ids(self, values: Mapping[str, Any]) -> list[int]:
        """The tokens of a row of the index, the last one apart."""
        found: list[int] = []
        for span in values["spans"]:
            corpus, split = Path(span["shard_path"]).parts[-3:-1]
            shard = self._mapped(self._folder / corpus / split / Path(span["shard_path"]).name)
            found += shard[span["sequence_index"], span["start"] : span["end"]].tolist()
        tokenizer = self._decode()
        known = range(tokenizer.size)
        return [token for token in found if token in known and token != tokenizer.eod]

    def text(self, values: Mapping[str, Any]) -> str:
        """The text of a row of the index."""
        pieces = self._decode().token_bytes
        return b"".join(pieces[token] for token in self.ids(values)).decode("utf-8", "replace")

    def shown(self, row: Record) -> Sequence[Token]:
        """The tokens of a row, each with its text."""
        one = self._decode().token_bytes
        return [Token(_visible(one[token]), token) for token in self.ids(row.values)]


def _visible(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return f"‹{octets.hex()}›"


def _example(folder: Path, row: Record) -> tuple[align.AlignRow, str] | None:
    """A row of an alignment with its text, None where its normalised record is not there."""
    from gristmill.reasoning.read.origins import record_at

    place = parsed(str(row.values["example_id"]))
    normalized = normalized_beside(folder)
    if place is None or not (normalized / names.normalized(place.corpus, place.split)).is_file():
        return None
    found = align.AlignRow(**{key: row.values[key] for key in align.KEYS})
    return found, text_of(record_at(normalized, place.partition, place.record)[0])


def _drawn(folder: Path) -> Callable[[Record], Sequence[Picture]]:
    def pictures(row: Record) -> Sequence[Picture]:
        example = _example(folder, row)
        return [steps.picture(*example)] if example is not None else ()

    return pictures


def _pieces(folder: Path) -> Callable[[Record], Sequence[Token]]:
    def tokens(row: Record) -> Sequence[Token]:
        example = _example(folder, row)
        return [*steps.pieces(*example)] if example is not None else ()

    return tokens


def data_root(path: Path) -> Path:
    """The data root above an artifact: the nearest folder with a vocabulary, else its parent."""
    above = path.absolute().parents
    return next((folder for folder in above if (folder / "tokenizer").is_dir()), above[0])
