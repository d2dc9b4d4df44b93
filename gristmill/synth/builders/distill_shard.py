"""Conversations to a dataset of token ids, labels and spans: the rows of a part, then its files."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from gristmill.contract import BadInput, FileNote
from gristmill.hashing import HashedFile
from gristmill.run.parts import PartStore
from gristmill.run.progress import SILENT, Progress
from gristmill.synth.builders.chat import ChatPart, ChatTask, HarmonyPart, PiecesPart, Rendered
from gristmill.synth.builders.harmony_shard import MESSAGES, OPTIONAL, open_shard
from gristmill.synth.builders.kd_part import Part, Sorted, Task
from gristmill.synth.builders.kd_shard import Joiner, KDSummary, build_shard
from gristmill.synth.config import ChatDistillConfig, DistillConfig, KDConfig
from gristmill.synth.format import parquet
from gristmill.synth.format.harmony_tokens import FINAL, PROMPT, REASONING, ROLE_WORDS
from gristmill.synth.raw import HARMONY, Render
from gristmill.synth.read import distill
from gristmill.synth.read.distill import answers
from gristmill.synth.render import assemble, harmony
from gristmill.synth.render.assemble import PLAIN_SYSTEM, Piece, Turn, chatgpt_plain
from gristmill.synth.render.documents import Conversation, Documents
from gristmill.vocabularies.pinned import O200K
from gristmill.vocabularies.tokenizer import Tokenizer

_PLAIN_CODES: Final = (bytes([PROMPT, REASONING, FINAL]), bytes([PROMPT, FINAL]))
_END: Final = '"}], "channel": "final"}]}'
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Texts:
    """What a conversation asks and answers. is_single: at most one question, answer, thought."""

    query: str
    reasoning: str
    answer: str
    is_single: bool


def texts_of(messages_json: str) -> Texts:
    """The texts of a row of Harmony. Raises ValueError where it is no list of messages."""
    try:
        messages = orjson.loads(messages_json)["messages"]
    except ValueError:
        messages = harmony.parse(messages_json)
    found: dict[str, list[str]] = {"user": [], "analysis": [], "final": []}
    for message in messages:
        name = message.get("channel") if message["role"] == "assistant" else message["role"]
        if name in found:
            content = message["content"]
            if not isinstance(content, str):
                content = "".join(item.get("text") or "" for item in content)
            found[name].append(content)
    counts = [len(texts) for texts in found.values()]
    query, reasoning, answer = (texts[-1] if texts else "" for texts in found.values())
    return Texts(query, reasoning, answer, counts[0] == counts[2] == 1 and counts[1] <= 1)


def texts_in(conversation: Conversation, messages_json: str) -> Texts:
    """The same of a row that was read. conversation: what was read of it."""
    shape, bodies = conversation.shape, conversation.bodies
    codes = shape.spans[shape.has_body].tobytes()
    if codes not in _PLAIN_CODES or shape.templates[0][-2] != ROLE_WORDS["user"]:
        return texts_of(messages_json)
    return Texts(bodies[0], bodies[1] if len(bodies) > 2 else "", bodies[-1], True)


def ends_in_answer(messages_json: str) -> bool:
    """Whether a row surely ends in an answer that is not blank; False where it must be parsed."""
    end = messages_json[-len(_END) - 6 : -len(_END)]
    return messages_json.endswith(_END) and "\\" not in end and end[-1:] not in ('"', " ")


def _clean(text: str) -> str:
    text = text.replace("\0", "").strip()
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def rendered(texts: Texts, seed_text: str, level: str) -> list[Piece]:
    """The pieces of a conversation of one question and its answer."""
    query, reasoning, answer, seed = map(
        _clean, (texts.query, texts.reasoning, texts.answer, seed_text)
    )
    if seed:
        query = f"{query}\n\nReference:\n{seed}"
    return chatgpt_plain(
        [
            Turn("system", PLAIN_SYSTEM.format(level), PROMPT),
            Turn("user", query, PROMPT),
            Turn("assistant", answer, FINAL, reasoning, REASONING),
        ]
    )


_FAILED: Final = "failed after maximum attempts"
_RESULT: Final = re.compile(r"result\s*:\s*([^\s,;]+)", re.IGNORECASE)
_LETTER: Final = re.compile(r"\**\s*([A-D])\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
_TOLERANCE: Final = 1e-6
_MEMORIZATION, _ENGLISH = "memorization", "en"
UNKNOWN: Final = "unknown"


def draw(seed: int, salt: str, name: str) -> float:
    """The number from 0 to 1 that a seed, a salt and the id of a row give."""
    digest = blake2b(f"{seed}:{salt}:{name}".encode(), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") / 2**64)


def label(text: object) -> str:
    """A language or a kind of exercise as it is compared: in lower case, `unknown` without one."""
    return ("" if text is None else str(text)).strip().lower() or UNKNOWN


def is_valid(config: DistillConfig, name: str) -> bool:
    """Whether a row is in the validation split. name: its id."""
    # The share of the other split is what the project's configuration has: 1 - 0.99 > 0.01.
    return draw(config.seed, "split", name) < 1.0 - (1.0 - config.valid_fraction)


def is_wrong(constraints: str, answer: str) -> bool:
    """Whether an answer is another than `result:` of its constraints; False where one is unread."""
    if (found := _RESULT.search(constraints)) is None:
        return False
    expected, answer = found[1], answer.strip()
    if len(expected) == 1 and expected.upper() in "ABCD":
        letter = _LETTER.match(answer)
        return letter is not None and letter[1].upper() != expected.upper()
    numbers = [_number(text) for text in (expected, answer)]
    if numbers[0] is None or numbers[1] is None:
        return False
    return abs(numbers[0] - numbers[1]) > _TOLERANCE * max(1.0, abs(numbers[0]))


def _number(text: str) -> float | None:
    found = _NUMBER.search(text)
    return None if found is None else float(found[0].replace(",", ""))


def fault(config: DistillConfig, constraints: str, answer: str) -> str:
    """Why an answer is left out; "" for one that stays."""
    if not answer.strip():
        return "empty_answer"
    if config.drop_failed and _FAILED in constraints.lower():
        return "failed"
    return "wrong_answer" if config.drop_wrong and is_wrong(constraints, answer) else ""


@dataclass(frozen=True)
class Shares:
    """The shares of rows that stay, so that memorization and other languages keep their bounds."""

    memorization: float = 1.0
    other_languages: float = 1.0


def shares(config: DistillConfig, counts: Counter[tuple[str, str]]) -> Shares:
    """The shares that stay. counts: rows whose answer stays, by exercise and language.

    A shard without English cannot have a share of it: its other languages stay.
    """
    total = counts.total()
    memorized = sum(count for (kind, _), count in counts.items() if kind == _MEMORIZATION)
    others, cap, keep = total - memorized, config.memorization_cap, 1.0
    if memorized and others and memorized / total > cap:
        keep = cap * others / (1.0 - cap) / memorized
    foreign = 0.0
    for (kind, language), count in counts.items():
        if language != _ENGLISH:
            foreign += count * (keep if kind == _MEMORIZATION else 1.0)
    most = (others + memorized * keep) * (1.0 - config.english_share)
    has_english = any(language == _ENGLISH for _, language in counts)
    return Shares(keep, most / foreign if has_english and foreign > most else 1.0)


def sampled_out(config: DistillConfig, kept: Shares, name: str, kind: str, language: str) -> str:
    """Why a row is left out by its draws; "" for one that stays. name: its id."""
    for reason, salt, share in (
        ("memorization", "mem", kept.memorization if kind == _MEMORIZATION else 1.0),
        ("language", "lang", kept.other_languages if language != _ENGLISH else 1.0),
        ("share", "global", config.keep),
    ):
        if share < 1.0 and draw(config.seed, salt, name) > share:
            return reason
    return ""


TEXTS = ("constraints", "query_seed_text")
_PLAIN = "chatgpt_plain"
_SINGLE = 'ValueError: chatgpt_plain takes one question and one answer: set template = "harmony"'


@dataclass(frozen=True)
class DistillTask(ChatTask):
    """One part to make. config: of the dataset. shares: of rows that stay. columns: also read."""

    config: DistillConfig = field(kw_only=True)
    shares: Shares = field(default_factory=Shares)
    columns: Sequence[str] = ()


def part_of(task: DistillTask) -> Part:
    """The part of a task; it also counts `left_out` by reason."""
    if isinstance(task.config, ChatDistillConfig):
        return (_ChatHarmony if task.render.template == HARMONY else _ChatPieces)(task)
    return (_PlainRows if task.config.template == _PLAIN else _HarmonyRows)(task)


class _Distilled(Part):
    """Leaves rows out, and counts why."""

    task: DistillTask
    is_harmony = True
    """Whether a header before an answer is of the answer, as Harmony's spans say."""

    def __init__(self, task: DistillTask) -> None:
        self.columns = task.columns or type(self).columns
        super().__init__(task)
        self.summary.setdefault("dropped_thoughts", 0)
        self.left_out: Counter[str] = Counter()
        self.summary["left_out"] = self.left_out

    def limited(self, rows: Sorted, made: dict[str, Documents]) -> dict[str, Documents]:
        """The documents that have an answer and are not too long, up to a cap."""
        kept = {}
        for split, documents in made.items():
            found = answers(documents, self.is_harmony)
            has_answer = found.final > 0
            keep = has_answer & (found.end - found.first <= self.task.config.max_length)
            kept[split] = documents if keep.all() else documents.chosen(keep)
            if not keep.all():
                reasons = np.where(has_answer, "too_long", "no_answer")[~keep]
                self.left_out.update(reasons.tolist())
                rows.keep(split, keep.tolist())
        return super().limited(rows, kept)

    def leave_out(self, rows: Sorted, reasons: Mapping[int, str]) -> None:
        """Take rows out of a batch, by their place in it."""
        self.left_out.update(reasons.values())
        for split, places in rows.places.items():
            rows.keep(split, [place not in reasons for place in places])


class _HarmonyRows(_Distilled):
    """Rows of Harmony as they stand."""

    def is_valid(self, synth_id: str) -> bool:
        """Whether a row is in the validation split."""
        return is_valid(self.task.config, synth_id)

    def sorted(self, batch: pa.RecordBatch) -> Sorted:
        """The conversations of a batch that stay, by split."""
        rows = super().sorted(batch)
        config, task = self.task.config, self.task
        texts, reasons = self._texts(batch, rows), {}
        names = ("exercise", "language", "constraints")
        kinds, languages, constraints = (column(batch, name) for name in names)
        for place, each in texts.items():
            reason = fault(config, constraints[place], each.answer)
            reason = reason or sampled_out(
                config,
                task.shares,
                str(rows.ids[place]),
                label(kinds[place]),
                label(languages[place]),
            )
            if reason or not each.query.strip():
                reasons[place] = reason or "empty_query"
        self.leave_out(rows, reasons)
        self.render(batch, rows, texts)
        return rows

    def _texts(self, batch: pa.RecordBatch, rows: Sorted) -> dict[int, Texts]:
        messages = batch.column(MESSAGES)
        return {
            place: texts_in(conversation, messages[place].as_py())
            for split, places in rows.places.items()
            for place, conversation in zip(places, rows.conversations[split], strict=True)
        }

    def render(self, batch: pa.RecordBatch, rows: Sorted, texts: Mapping[int, Texts]) -> None:
        """Render the rows that stay in another way. texts: of each place."""


class _PlainRows(_HarmonyRows):
    """Rows of Harmony with a plain system message, and the text that the question refers to."""

    is_harmony = False

    def __init__(self, task: DistillTask) -> None:
        self.tokenizer = task.tokenizer
        super().__init__(task)

    def render(self, batch: pa.RecordBatch, rows: Sorted, texts: Mapping[int, Texts]) -> None:
        """Render the rows that stay; those of several questions are refused."""
        config = self.task.config
        seeds = column(batch, "query_seed_text" if config.reference else "")
        for split, places in rows.places.items():
            single = [texts[place].is_single for place in places]
            rows.refused |= {at: _SINGLE for at, one in zip(places, single, strict=True) if not one}
            rows.places[split] = list(compress(places, single))
            rows.conversations[split] = [
                self._rendered(rendered(texts[place], seeds[place], config.reasoning))
                for place in rows.places[split]
            ]

    def _rendered(self, pieces: Sequence[Any]) -> Rendered:
        words = assemble.words_of(self.tokenizer, self.task.engine)
        return Rendered(pieces, sum(words.controls(p.text) for p in pieces if p.message >= 0), 0)

    assemble = PiecesPart.assemble
    count = PiecesPart.count


class _ChatRows(_Distilled, ChatPart):
    """Rows of conversations of one's own: whether one stays, its draw says."""

    def sorted(self, batch: pa.RecordBatch) -> Sorted:
        """The conversations of a batch that stay, by split."""
        rows = super().sorted(batch)
        config, every = self.task.config, Shares()
        places = {place for each in rows.places.values() for place in each}
        drawn = {at: sampled_out(config, every, str(rows.ids[at]), "", "") for at in places}
        self.leave_out(rows, {place: reason for place, reason in drawn.items() if reason})
        return rows


class _ChatHarmony(_ChatRows, HarmonyPart):
    """Conversations of one's own in Harmony."""


class _ChatPieces(_ChatRows, PiecesPart):
    """Conversations of one's own by another template."""

    is_harmony = False


def column(batch: pa.RecordBatch, name: str) -> list[str]:
    """The texts of a column; each is empty where there is no such column or value."""
    if name not in batch.schema.names:
        return [""] * len(batch)
    values, _ = parquet.values(batch.column(name))  # a row that is not UTF-8 is refused elsewhere
    return ["" if value is None else str(value) for value in values]


_FILE_BYTES: Final = 512 << 20
_BATCH_ROWS: Final = 1000
_SCANNED_ROWS: Final = 4096


@dataclass(frozen=True)
class DistillSummary(KDSummary):
    """Counts of a dataset; spans are those of its tokens.

    trained_tokens: that its conversations train on. labelled_tokens: those that have a label.
    """

    left_out: Mapping[str, int]
    dropped_thoughts: int
    trained_tokens: int = 0
    labelled_tokens: int = 0
    memorization_keep: float = 1.0
    other_languages_keep: float = 1.0


def build_distill(
    shard: Path,
    out: Path,
    config: DistillConfig,
    tokenizer: Tokenizer,
    parts: PartStore | None = None,
    *,
    dataset: str,
    render: Render | None = None,
    is_own: bool = False,
    progress: Progress = SILENT,
) -> DistillSummary:
    """Write a shard's splits and its trace. Raises BadInput for no rows, or a missing column."""
    columns, shares = _scanned(shard, config, is_own) if render is None else ((), Shares())
    is_harmony = config.template == HARMONY if render is None else render.template == HARMONY

    def task_of(task: Task) -> DistillTask:
        return DistillTask(
            **vars(task),
            render=render or Render(),
            tokenizer=tokenizer,
            config=config,
            shares=shares,
            columns=columns,
        )

    summary = build_shard(
        shard,
        out,
        config,
        parts,
        is_own=is_own,
        tokenizer=tokenizer,
        part_of=part_of,
        task_of=task_of,
        joiner_of=partial(_DistillJoiner, dataset, is_harmony, tokenizer.name == O200K.name),
        progress=progress,
    )
    assert isinstance(summary, DistillSummary)
    if not summary.rows:
        reasons = ", ".join(f"{name} {count:,}" for name, count in summary.left_out.items())
        raise BadInput(shard, f"all rows are left out ({reasons}): change the settings")
    return replace(
        summary, memorization_keep=shares.memorization, other_languages_keep=shares.other_languages
    )


def _scanned(shard: Path, config: DistillConfig, is_own: bool) -> tuple[tuple[str, ...], Shares]:
    """The columns to read beside those of a shard, and the shares of rows that stay."""
    with open_shard(shard, is_own=is_own) as file:
        names = set(file.names)
        if config.template != HARMONY and config.reference and TEXTS[1] not in names:
            rule = f"has no column {TEXTS[1]}, which {config.template} adds to the question"
            cure = "name it in metadata_fields of [synth.harmony], or set reference = false"
            raise BadInput(shard, f"{rule}: {cure}")
        columns = tuple(name for name in TEXTS if name in names)
        if not (config.samples and names.issuperset(OPTIONAL)):
            return columns, Shares()
        counts: Counter[tuple[str, str]] = Counter()
        wanted = [MESSAGES, *OPTIONAL, *(name for name in columns if name == TEXTS[0])]
        for batch in file.batches(_SCANNED_ROWS, wanted):
            languages, kinds = (column(batch, name) for name in OPTIONAL)
            constraints = column(batch, TEXTS[0])
            for at, text in enumerate(column(batch, MESSAGES)):
                if constraints[at] or not ends_in_answer(text):
                    try:
                        answer = texts_of(text).answer
                    except (ValueError, KeyError, TypeError, AttributeError):
                        continue  # the row is refused where it is rendered
                    if fault(config, constraints[at], answer):
                        continue
                counts[label(kinds[at]), label(languages[at])] += 1
    return columns, shares(config, counts)


class _Stream:
    """The Arrow files of a split."""

    def __init__(self, folder: Path) -> None:
        self.rows: list[int] = []
        self._folder, self._count = folder, 0
        self._waiting: list[pa.RecordBatch] = []
        self._files: list[HashedFile] = []
        folder.mkdir()
        self._open()

    def _open(self) -> None:
        self._files.append(HashedFile(self._folder / f"{len(self._files)}.arrow"))
        self._writer = pa.ipc.new_stream(self._files[-1], distill.SCHEMA)
        self.rows.append(0)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows; the size of batches in the file does not depend on them."""
        self._waiting.append(batch)
        self._count += len(batch)
        if self._count >= _BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        if self._files[-1].bytes > _FILE_BYTES:
            self._close()
            self._open()
        table = pa.Table.from_batches(self._waiting, distill.SCHEMA).combine_chunks()
        self._writer.write_table(table)
        self.rows[-1] += len(table)
        self._waiting, self._count = [], 0

    def _close(self) -> None:
        self._writer.close()
        self._files[-1].close()

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None and self._waiting:
            self._write()
        self._close()

    def finished(self, split: str) -> Iterable[tuple[str, FileNote]]:
        """Name the files, write what `datasets` reads beside them, and yield all with notes."""
        names = []
        for number, (file, rows) in enumerate(zip(self._files, self.rows, strict=True)):
            names.append(f"data-{number:05d}-of-{len(self._files):05d}.arrow")
            (self._folder / f"{number}.arrow").rename(self._folder / names[-1])
            note = FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)
            yield f"{self._folder.name}/{names[-1]}", note
        digest = hashlib.sha256("".join(file.sha256 for file in self._files).encode())
        state: dict[str, Any] = {
            "_data_files": [{"filename": name} for name in names],
            "_fingerprint": digest.hexdigest()[:16],
            **dict.fromkeys(("_format_columns", "_format_type")),
            "_format_kwargs": {},
            "_output_all_columns": False,
            "_split": split,
        }
        info = {"citation": "", "description": "", "features": None, "homepage": "", "license": ""}
        for name, value in ((distill.STATE, state), ("dataset_info.json", info)):
            (self._folder / name).write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
            yield f"{self._folder.name}/{name}", FileNote()


class _DistillJoiner(Joiner):
    """Appends parts to the rows of a dataset."""

    summary_type = DistillSummary
    texts = (*Joiner.texts, "dropped_thoughts")
    names = (*Joiner.names, "left_out")

    def __init__(
        self,
        dataset: str,
        is_harmony: bool,
        returns: bool,
        out: Path,
        number: str,
        config: KDConfig,
    ) -> None:
        super().__init__(out, number, config)
        self._dataset, self._is_harmony, self._returns = dataset, is_harmony, returns
        self._trained: Any = 0
        self._labelled: Any = 0
        self._streams = {
            split: self.open.enter_context(_Stream(out / folder))
            for split, folder in distill.SPLITS.items()
        }

    def _append(self, split: str, documents: Documents, names: pa.RecordBatch) -> None:
        own = names.filter(pc.equal(names["split"], split)).select(["synth_id", *OPTIONAL])
        labels = [[label(text) for text in own[name].to_pylist()] for name in OPTIONAL]
        texts = [own["synth_id"], *(pa.array(each, pa.string()) for each in labels)]
        found = distill.answers(documents, self._is_harmony)
        named = pa.RecordBatch.from_arrays(texts, ["synth_id", *OPTIONAL])
        is_trained = distill.trained(documents, self._is_harmony)
        has_all = getattr(self._config, "turns", "") == "all"
        rows = distill.rows(
            *(documents.tokens, found, named, self._dataset, self._returns),
            is_trained if has_all else None,
        )
        self._streams[split].add(rows)
        self._trained += np.count_nonzero(is_trained)
        self._labelled += (
            np.count_nonzero(is_trained) if has_all else (found.end - found.start).sum()
        )
        self._rows[split] += len(documents.lengths)
        self._tokens[split] += int((found.end - found.first).sum())
        prompt = (found.start - found.first).sum()
        self._spans += [prompt, found.reasoning.sum(), found.final.sum()]

    def summary(self) -> KDSummary:
        """The counts of the dataset."""
        summary = super().summary()
        assert isinstance(summary, DistillSummary)
        return replace(
            summary, trained_tokens=int(self._trained), labelled_tokens=int(self._labelled)
        )

    def _written(self) -> dict[str, FileNote]:
        path = self._out / distill.DICT
        path.write_bytes(orjson.dumps({"splits": [*distill.SPLITS.values()]}))
        files = {distill.DICT: FileNote()}
        for folder, stream in zip(distill.SPLITS.values(), self._streams.values(), strict=True):
            files.update(stream.finished(folder))
        return files
