"""What texts hold of an evaluation set: the audit of all texts, and what a build leaves out.

A split that is a set is read from its raw files by its recipe, so that no artifact is made from
another one. Source: `docs/formats/reasoning.md#leaks`, `docs/leaks.md#what-can-be-done`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from gristmill import keys
from gristmill.asset import Wanted, declared
from gristmill.contract import BadInput, FileNote, NothingToBuild, Summary
from gristmill.corpora.corpus import corpus_and_split, is_key
from gristmill.corpora.records import records
from gristmill.data_root import DataRoot
from gristmill.hashing import HashedFile
from gristmill.leaks.findings import Place, audit, window, worst
from gristmill.leaks.held import Held
from gristmill.leaks.texts import EvaluationSet, Part, declared_set, set_names
from gristmill.leaks.words import VERSION
from gristmill.provenance import Input, digest, raw_inputs, read_record
from gristmill.provenance.record import config_fields
from gristmill.reasoning import raw
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.format import leaks, names
from gristmill.reasoning.format.index import mapped
from gristmill.reasoning.format.published import NORMALIZED
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.fields import did_you_mean
from gristmill.settings.fields import shown as toml_text
from gristmill.settings.tables import FILE, LEAKS


@dataclass(frozen=True)
class LeaksSummary(Summary):
    """What was found.

    questions: of the set. short: those of them that are too short to be looked for. texts: files
    that were looked at. looked_at: their rows. unread: those that could not be read. leaked: those
    in which a question stands. leaks: questions that were found, each with each of its places.
    changed: further leaks, of questions with other names or numbers, which may be others.
    rows: those of all of them that are listed.
    """

    rows: int
    questions: int
    short: int
    texts: int
    looked_at: int
    unread: int
    leaked: int
    leaks: int
    changed: int


def write_leaks(
    root: Path,
    out: Path,
    sets: Sequence[EvaluationSet],
    parts: Sequence[Part],
    progress: Progress = SILENT,
) -> LeaksSummary:
    """Write `leaks.jsonl`, the worst of each kind first, and `summary.json`, what each text holds.

    root: keeps what is found in a text. out: folder to write, which must not exist. sets: those of
    one name. Memory and errors as `audit`, and the texts of the leaks that are listed.
    """
    out.mkdir(parents=True)
    findings = audit(root, parts, sets, progress=progress)
    found = sum(each.numbers.shape[1] for each in findings)
    changed = sum(each.changed.shape[1] for each in findings)
    rows, total = 0, min(found + changed, leaks.MOST)
    with HashedFile(out / leaks.ROWS) as file, progress.stage("list", "rows", total) as stage:
        for leak in worst(root, findings, leaks.MOST):
            rows += 1
            row = {"share": round(leak.share, 6), "changed": leak.changed}
            row |= _side("", leak.text, leak.text_whole, leak.marked)
            row |= _side("question_", leak.question, leak.question_whole, leak.asked_marked)
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            stage.advance(1)
    texts = [each.counts | {"sha256": each.part.sha256} for each in findings]
    of_sets = {each.set: each for each in findings}.values()
    summary = {
        "set": sets[0].name,
        "questions": sum(each.questions for each in of_sets),
        "short": sum(each.short for each in of_sets),
        "leaks": found,
        "changed": changed,
        "listed": rows,
        "texts": texts,
    }
    (out / leaks.SUMMARY).write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    return LeaksSummary(
        files={leaks.ROWS: FileNote(rows=rows, sha256=file.sha256, bytes=file.bytes)},
        rows=rows,
        **{name: summary[name] for name in ("questions", "short", "leaks", "changed")},
        texts=len(texts),
        looked_at=sum(each.rows for each in findings),
        unread=sum(each.unread for each in findings),
        leaked=sum(each.leaked for each in findings),
    )


def _side(
    prefix: str, place: Place, text: str, marked: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """The columns of a text, of which a part around what both share is kept."""
    begin, end = window(text, marked, leaks.MOST_TEXT)
    marks = [(max(a, begin) - begin, min(b, end) - begin) for a, b in marked]
    # A lone surrogate has no bytes in UTF-8.
    shown = text[begin:end].encode(errors="replace").decode()
    row = {**place._asdict(), "text": shown, "marks": [pair for pair in marks if pair[0] < pair[1]]}
    return {f"{prefix}{name}": value for name, value in row.items()}


NO_TRAINING: Final = ("test", "validation")
"""Splits that are evaluation sets, and of which nothing is left out."""
_DIGITS: Final = 16
_Questions = Callable[[Path], Iterator[tuple[str, str]]]


@dataclass(frozen=True)
class Dropped:
    """The sets of one build.

    config: how each is read, a digest by name, as JSON. inputs: their raw files, of no drop.
    """

    config: str
    inputs: Sequence[Input]
    _questions: Mapping[str, Sequence[_Questions]]

    def found(self, scratch: Path) -> Held:
        """What says which rows hold a question. scratch: a folder for what is read."""
        sets = dict[str, list[tuple[str, str]]]()
        with TemporaryDirectory(prefix="leaks.", dir=scratch) as place:
            for name, every in self._questions.items():
                several = enumerate(every)
                sets[name] = [each for at, of in several for each in of(Path(place, name, str(at)))]
        return Held(sets)


def dropped(wanted: Wanted, record: Path) -> Dropped | None:
    """The sets that a build of training text leaves out, None where no setting names one.

    record: path of that of the artifact, whose sets count where it is built to be compared.

    Raises BadInput for the name of no set, and for a set that is not ready or is refused.
    """
    root, chosen = wanted.root, wanted.root.settings(LEAKS.name).get("drop", ())
    if wanted.is_comparison and record.exists():
        chosen = json.loads(read_record(record).config.get("leaks") or "{}")
    known, inputs = raw_inputs.known_hashes(record) if chosen else {}, list[Input]()
    read, questions = dict[str, str](), dict[str, list[_Questions]]()
    for name in sorted({*chosen}):
        for files, facts, of in _sources(root, name):
            inputs += raw_inputs.raw_inputs(root.root, files, None, None, known, root.link_rule())
            read[name] = digest([read.get(name), VERSION, facts])[:_DIGITS]
            questions.setdefault(name, []).append(of)
        if name not in read:
            raise BadInput(root.root / FILE, f"{LEAKS.header} drop: {_no_set(root, name)}")
    return Dropped(json.dumps(read), inputs, questions) if read else None


def _sources(root: DataRoot, name: str) -> Iterator[tuple[list[Path], object, _Questions]]:
    """Yield the raw files of each set of a name, how they are read, and what reads them."""
    if keys.refusal(name) is None and (given := declared_set(root.root, name)) is not None:
        recipes = [(each.name, each.corpus.table if each.corpus else "") for each in given.parts]
        yield [each.file for each in given.parts], recipes, partial(_declared, given)
    if not is_key(name) or not name.endswith(NO_TRAINING):
        return
    corpus, split = corpus_and_split(name)
    if not os.path.lexists(root.inbox(raw.INBOX) / corpus.name):
        return
    try:
        drop, corpus, files, _ = raw.files_of(root, corpus.name, split)
    except NothingToBuild as error:
        where = f"{LEAKS.header} drop = {toml_text([name])}"
        raise BadInput(root.root / FILE, f"{where}: the set cannot be read: {error}") from error
    config = raw.config_of(Wanted(declared()[NORMALIZED], root, name), corpus, drop)
    forgotten = raw.forgotten(root, drop, corpus, split)

    def of(out: Path) -> Iterator[tuple[str, str]]:
        links = root.link_rule()
        normalize(
            *(drop, out, config), corpus=corpus.name, split=split, links=links, forgotten=forgotten
        )
        places = mapped(out / names.origins(name)).tolist()
        made = records(out / names.normalized(corpus.name, split))
        for (_, record), (file, row) in zip(made, places, strict=True):
            yield f"{files[file].relative_to(root.root).as_posix()}:{row}", record["question"]

    yield [*files, *([forgotten.path] if forgotten else [])], config_fields(config, True), of


def _declared(given: EvaluationSet, _: Path) -> Iterator[tuple[str, str]]:
    for part, text in given.questions():
        yield f"{part.place}/{part.name}:{text.row}", text.text


def _no_set(root: DataRoot, name: str) -> str:
    known = {key for key in raw.available(root) if key.endswith(NO_TRAINING)}
    known |= {*set_names(root.root)}
    near, listed = did_you_mean(name, known), ", ".join(sorted(known)) or "none"
    cure = f"correct the name, or put the questions into drops/evals/{name}/"
    return f"no evaluation set is {toml_text(name)}{near}; the sets are {listed}: {cure}"
