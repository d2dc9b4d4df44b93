"""A drop to a Parquet shard of conversations. Source: `docs/formats/chat.md#conversations`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from gristmill.contract import BadInput, FileNote, Summary
from gristmill.corpora.raw.chat.lists import Trees
from gristmill.corpora.raw.chat.messages import CHAT_CURES, Messages, Talk, of_messages
from gristmill.corpora.raw.chat.recipe import Chat, chat_of_table
from gristmill.corpora.raw.drops import CORPUS
from gristmill.corpora.raw.reader import UnknownKeys, ignored_by
from gristmill.corpora.raw.rows import Piece, has_pieces, rows
from gristmill.corpora.raw.rows import Row as RowOfFile
from gristmill.corpora.raw.rules import Drawn, Place, Rules
from gristmill.corpora.raw.texts import Unfit, flattened
from gristmill.corpora.raw.transforms import Row
from gristmill.corpora.raw.values import Names, column
from gristmill.corpora.records import Record
from gristmill.inbox.division import is_valid, threshold
from gristmill.reasoning.builders.normalize import Ids, check_runs
from gristmill.reasoning.builders.refused import (
    Leaks,
    ListedRefused,
    PieceRun,
    PieceTask,
    Refused,
    read_pieces,
    until_damage,
)
from gristmill.reasoning.config import ChatConfig
from gristmill.reasoning.format import reports as form
from gristmill.run.parts import Made, PartStore
from gristmill.run.progress import SILENT, Progress, Stage
from gristmill.settings.fields import shown
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.vocabularies.encode import LONGEST_RUN

_GROUP_BYTES: Final = 32 << 20
_SHOWN: Final = 40
_NO_TRAINING: Final = ("validation", "test")
"""Splits whose rows no set leaves out."""
_NO_ROW: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True)
class ConversationsSummary(Summary):
    """What was normalised, of the rows that belong to the shard."""

    rows: int
    raw_rows: int
    held: int
    from_trees: int
    validation: int
    messages: int
    thoughts: int
    masked: int
    rejected: int
    rejected_by: Mapping[str, int]
    left_out_by: Mapping[str, int]
    ignored: Mapping[str, int]
    unknown_keys: Mapping[str, int]


def normalize_conversations(
    source: Path,
    files: Mapping[str, Sequence[Path]],
    out: Path,
    partition: str,
    config: ChatConfig,
    *,
    links: LinkRule = REFUSE_LINKS,
    parts: Callable[[], PartStore] | None = None,
    leaks: Leaks | None = None,
    progress: Progress = SILENT,
) -> ConversationsSummary:
    """Write the conversations of one shard, `shard_NN.parquet` or its parts, and what is set aside.

    source: the drop. files: its files by split; with a rule for splits, all are in each.
    partition: `<name>__NN`: row k of the drop, from 0, belongs to the shard k modulo their number;
        by the recipe of SYNTH, the rows of some files do.
    config: with the recipe. parts: gives the store of finished parts; default: none.
    leaks: finds rows of train that are left out; default: none.
    progress: gets the stage "normalise", in rows.
    Memory: 250 bytes a conversation of the shard where the recipe has `id`.

    Raises BadInput for files that are damaged, for a file without a good row, for too many damaged
    rows, and where no conversation is left.
    """
    chat = chat_of_table(json.loads(config.recipe))
    out.mkdir(parents=True)
    number, of = partition.rpartition("__")[2], dict[Path, str | None]()
    for split, paths in files.items():
        of |= {each: None if chat.corpus.split else split for each in paths if each not in of}

    def written(folder: Path, last: Drawn | None) -> tuple[_Work, ConversationsSummary]:
        target, rejected = folder / form.shard_name(number), folder / form.REJECTED
        with (
            form.ShardWriter(target, chat.kept, chat.corpus.part_bytes) as sink,
            Refused(
                rejected, config.bad_rows, source, "[chat.conversations]", CHAT_CURES
            ) as refused,
        ):
            rules = Rules(chat.corpus, None, last)
            work = _Work(source, chat, int(number), rules, of, refused, leaks, sink)
            work.run(PieceRun(links, parts, config.workers, folder), progress)
        notes = sink.notes(target.name, work.counts["rows"])
        if refused.count:
            notes[rejected.name] = FileNote(rows=refused.listed)
        return work, work.summary(notes)

    last = None
    if chat.corpus.sample is not None and "cap" in chat.corpus.sample:
        # The number of the last conversation that stays is known once all are read.
        with TemporaryDirectory(dir=out) as scratch:
            last = written(Path(scratch), None)[0].rules.last
    return written(out, last)[1]


def _read_piece(
    drop: Path,
    chat: Chat,
    number: int,
    files: Mapping[Path, str | None],
    links: LinkRule,
    leaks: Leaks | None,
    task: PieceTask,
) -> Made:
    """The conversations of a piece with their rows, and what was refused; the rest is counted."""
    refused = ListedRefused(task.path)
    work = _Work(drop, chat, number, Rules(chat.corpus, None), files, refused, leaks, None)
    found = until_damage(lambda: work.read_rows(task.number, task.path, links, task.piece))
    return work.piece | {"refused": json.dumps(refused.found).encode()}, {**work.state, **found}


class _Work:
    """One shard under way, or a piece of it without a `sink`: takes rows, writes conversations."""

    def __init__(
        self,
        drop: Path,
        chat: Chat,
        number: int,
        rules: Rules,
        files: Mapping[Path, str | None],
        refused: Refused,
        leaks: Leaks | None,
        sink: form.ShardWriter | None,
    ) -> None:
        self._drop, self._leaks = drop, leaks
        self.rules = rules
        self.counts: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self._chat, self._number, self._sink, self._refused = chat, number, sink, refused
        self._messages = Messages(chat)
        self._unknown = UnknownKeys(chat.corpus, known=self._messages.columns)
        # A shard of SYNTH reads some of the files, and they may lack what those of others have.
        names = [] if chat.is_synth else ignored_by(chat.corpus)
        self._lacking = {n for n in names if not n.startswith(of_messages(chat))}
        self._trees = None if chat.tree is None else Trees(chat)
        self._id = None if chat.corpus.id is None else column(chat.corpus.id, Names())
        self._ids = Ids()
        self._limit = threshold((chat.corpus.split or {}).get("validation", 0))
        # By files, or every so many rows.
        self._among = (0, 1) if chat.is_synth else (number, chat.shards)
        # These rules compare a row with the rows of all shards.
        self._needs_all = bool(chat.corpus.dedup) or "cap" in (chat.corpus.sample or {})
        self._paths, self._splits = [*files], [*files.values()]
        self._files = files
        self._held: list[tuple[tuple[str | None, ...], Place, Talk]] = []
        self._waiting: list[Sequence[str | None]] = []
        self._places: list[Place] = []
        self._bytes = self._row = 0

    def run(self, how: PieceRun, progress: Progress) -> None:
        read = self._chat.read_by(self._number, self._paths)
        with progress.stage("normalise", "rows") as stage:
            found = (each for each in enumerate(self._paths) if each[1] in read)
            kinds = groupby(found, key=lambda each: self._is_divided(each[1], how.links))
            for is_divided, files in kinds:
                if is_divided:
                    self._read_pieces(files, how, stage)
                    continue
                for number, path in files:
                    begun = self._begun
                    self._end(number, self.read_rows(number, path, how.links, stage=stage), begun)
            if self._trees is not None:
                self._read_trees(self._trees)
            self._flush()
        if self._lacking:
            rule = f"ignore: no row has a column {shown(min(self._lacking))}: correct it"
            raise BadInput(self._drop / CORPUS, rule)
        self._refused.check(self._paths[0], self.counts["rows"])
        if not self.counts["rows"]:
            rule = f"its rows give shard {self._number:02d} no conversation: lower `shards`"
            raise BadInput(self._paths[0], f"{rule} in corpus.toml, which is {self._chat.shards}")

    def summary(self, notes: Mapping[str, FileNote]) -> ConversationsSummary:
        names = ("rows", "raw_rows", "held", "from_trees", "validation", "messages", "thoughts")
        return ConversationsSummary(
            files=notes,
            **{name: self.counts[name] for name in (*names, "masked")},
            rejected=self._refused.count,
            rejected_by=dict(self._refused.damaged),
            left_out_by=dict(self._refused.left_out),
            ignored=dict(self.ignored),
            unknown_keys=dict(self._unknown.counts),
        )

    def _is_divided(self, path: Path, links: LinkRule) -> bool:
        """Whether a file is read in pieces: it is large, and no row of it counts for later ones."""
        counts = self._needs_all or self._trees is not None or links.forgotten.get(path)
        if counts or self._among[1] > 1 or (self._id is not None and not self._chat.is_synth):
            return False
        return has_pieces(path, links)

    def _read_pieces(self, files: Iterable[tuple[int, Path]], how: PieceRun, stage: Stage) -> None:
        """Take what the pieces of some files hold."""
        given = (self._drop, self._chat, self._number, self._files, how.links, self._leaks)
        begun, last, row = self._begun, -1, 0
        for task, before, held, state in read_pieces(
            partial(_read_piece, *given), files, how, self._refused
        ):
            if not task.piece.begin:
                if last >= 0:
                    self._end(last, row, begun)
                begun, last = self._begun, task.number
            lines = zip(orjson.loads(held["lines"]), orjson.loads(held["rows"]), strict=True)
            for line, number in lines:
                self._wait(line, (task.number, before + number))
                if self._is_full:
                    stage.advance(self._flush())
            self.counts.update(state["counts"])
            self.ignored.update(state["ignored"])
            self._unknown.add(*state["unknown"])
            self._lacking.intersection_update(state["lacking"])
            row = before + state["lines"]
        self._end(last, row, begun)

    @property
    def piece(self) -> dict[str, bytes]:
        """The conversations, and their rows, as `_read_pieces` takes them."""
        self._settle()
        lines = orjson.dumps(self._waiting)
        return {"lines": lines, "rows": orjson.dumps([row for _, row in self._places])}

    @property
    def state(self) -> dict[str, Any]:
        """What was counted, as `_read_pieces` adds it."""
        return {
            "counts": self.counts,
            "ignored": self.ignored,
            "unknown": (sorted(self._unknown.columns), self._unknown.counts),
            "lacking": sorted(self._lacking),
        }

    @property
    def _begun(self) -> tuple[int, int]:
        """What was counted before a file."""
        return self._good, self.counts["held"]

    def _end(self, number: int, row: int, begun: tuple[int, int]) -> None:
        """Raise BadInput for a file without a row, or of whose rows none is good.

        A shard that has few rows of a file says nothing of the file.
        """
        path = self._paths[number]
        if not row and not (path.suffix.lower() == ".parquet" and len(self._paths) > 1):
            raise BadInput(path, "holds no row: take it out, or get it again if it had some")
        self._settle()
        if begun == self._begun and row >= self._among[1]:
            self._refused.check_file(path, 0)

    def read_rows(
        self,
        number: int,
        path: Path,
        links: LinkRule,
        piece: Piece | None = None,
        stage: Stage | None = None,
    ) -> int:
        """Take the rows of one file, or of a piece of it; return the number of the last one."""
        row, gone = 0, links.forgotten.get(path, ())
        found = rows(path, self._chat.corpus, links, columns=self._messages.columns, piece=piece)
        for row, value in self._seen(found) if self._lacking else found:
            is_own = self._row % self._among[1] == self._among[0]
            self._row += 1
            if row in gone:
                continue
            if self._trees is None and not (is_own or self._needs_all):
                continue
            self.counts["raw_rows"] += is_own
            try:
                if isinstance(value, Unfit):
                    raise value
                if is_own:
                    self._unknown.check(value)
                self.rules.check_row(value)
                if self._trees is not None:
                    self._trees.add(value, (number, row))
                    self.counts["held"] += is_own
                else:
                    self._take(self._messages.read(value), (number, row), value, is_own)
            except Unfit as unfit:
                if is_own:
                    self._refused.add(path, row, unfit)
            if stage is not None and self._is_full:
                stage.advance(self._flush())
        return row

    def _seen(self, found: Iterable[RowOfFile]) -> Iterator[RowOfFile]:
        """Yield rows, and note the columns that the recipe ignores and that they have."""
        for row, value in found:
            here = value if isinstance(value, dict) else {}
            self._lacking -= {n for n in self._lacking if n in here or n.partition(".")[0] in here}
            yield row, value

    def _read_trees(self, trees: Trees) -> None:
        for at, (place, items) in enumerate(trees.conversations()):
            is_own = at % self._chat.shards == self._number
            if not (is_own or self._needs_all):
                continue
            self.counts["from_trees"] += is_own
            try:
                self._take(self._messages.talk(items), place, _NO_ROW, is_own)
            except Unfit as unfit:
                if is_own:
                    self._refused.add(self._paths[place[0]], place[1], unfit)
            if self._is_full:
                self._flush()
        for file, row in trees.lost() if self._number == 0 else ():
            rule = "no message that begins a tree leads to it: its parent is not there"
            self._refused.add(self._paths[file], row, Unfit("tree:parent", rule))

    @property
    def _good(self) -> int:
        return self.counts["rows"] + self._refused.left_out.total()

    def _take(self, talk: Talk, place: Place, row: Row, is_own: bool) -> None:
        """Write a conversation, if it is the shard's. Raises Unfit for one that must not be."""
        whole = talk.json
        if len(whole) > LONGEST_RUN:
            check_runs([each.content for each in talk.messages])
        record = Record(whole, "", None)
        self.rules.check(record, row)
        if not is_own:
            return
        own_id = self._id_of(row, whole, place)
        split = self._splits[place[0]]
        if split is None and self._chat.is_synth:
            split = "validation" if is_valid(own_id, self._limit) else "train"
        split = split or self.rules.split_of(record, row)
        name = self._paths[place[0]].relative_to(self._drop).as_posix()
        kept = [None if (said := row.get(each)) is None else str(said) for each in self._chat.kept]
        line = (whole, own_id, talk.spans, split, name, *kept)
        if self._leaks is None:
            self._keep(line, place, talk)
        else:
            self._held.append((line, place, talk))
            self._bytes += len(whole)

    @property
    def _is_full(self) -> bool:
        """Whether what waits is a row group."""
        count = len(self._waiting) + len(self._held)
        return self._bytes > _GROUP_BYTES or count >= form.GROUP_ROWS

    def _settle(self) -> None:
        """Keep what is held, but for rows of train that hold a question of a set."""
        held, self._held = self._held, []
        if self._leaks is None or not held:
            return
        texts = [
            [[each] for each in (*line, *(said.content for said in talk.messages)) if each]
            if line[3] not in _NO_TRAINING
            else []
            for line, _, talk in held
        ]
        for each, rule in zip(held, self._leaks(texts), strict=True):
            if rule:
                file, row = each[1]
                self._refused.add(self._paths[file], row, Unfit("leak", rule))
            else:
                self._keep(*each)

    def _keep(self, line: tuple[str | None, ...], place: Place, talk: Talk) -> None:
        """Write a conversation, and count it."""
        self._wait(line, place)
        self.ignored.update(dict.fromkeys(talk.ignored, 1))
        self.counts["rows"] += 1
        self.counts["validation"] += line[3] == "validation"
        self.counts["messages"] += len(talk.messages)
        for each in talk.messages:
            self.counts["thoughts"] += each.channel == "analysis"
            self.counts["masked"] += each.role == "assistant" and each.span == "0"

    def _wait(self, line: Sequence[str | None], place: Place) -> None:
        self._waiting.append(line)
        self._places.append(place)
        self._bytes += len(str(line[0]))

    def _id_of(self, row: Row, whole: str, place: Place) -> str:
        """The id of a conversation.

        Raises Unfit for the id of one before it in the shard, but for SYNTH, and for one of SYNTH
        without an id.
        """
        found = None if self._id is None else self._id(row)
        if not self._chat.is_synth:
            own_id = (flattened(found) or "").strip()
            if own_id:
                self._check_id(own_id, whole.encode(), place)
            return own_id or blake2b(whole.encode(), digest_size=8).hexdigest()
        if found is None or not str(found).strip():
            rule = "give the row an id, which chooses its split"
            raise Unfit("value", f"its {self._chat.corpus.id} is {found!r}: {rule}")
        return str(found)

    def _check_id(self, own_id: str, content: bytes, place: Place) -> None:
        """Raise Unfit for an id that was there before. content: of the conversation."""
        if (found := self._ids.before(own_id, content, place)) is None:
            return
        (file, row), is_equal = found
        name, where = self._chat.corpus.id, self._paths[file].relative_to(self._drop).as_posix()
        what = "and has the same messages" if is_equal else "with other messages"
        cure = f'leave `id` out of corpus.toml, or write dedup = ["{name}"], which keeps the first'
        raise Unfit(
            "id", f"its {name} {own_id[:_SHOWN]!r} is that of {where}:{row}, {what}: {cure}"
        )

    def _flush(self) -> int:
        """Write what waits as a row group; return the number of conversations."""
        self._settle()
        count = len(self._waiting)
        if count and self._sink is not None:
            self._sink.add(self._waiting, [row for _, row in self._places])
        self._waiting.clear()
        self._places.clear()
        self._bytes = 0
        return count
