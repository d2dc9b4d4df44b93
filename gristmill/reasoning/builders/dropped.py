"""Evaluation sets whose questions a build leaves out of training text: `[leaks] drop`.

A split that is a set is read from its raw files by its recipe, so that no artifact is made from
another one. Source: `docs/leaks.md#what-can-be-done`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gristmill import keys
from gristmill.asset import Wanted, declared
from gristmill.contract import BadInput, NothingToBuild
from gristmill.corpora.corpus import corpus_and_split, is_key
from gristmill.corpora.records import records
from gristmill.data_root import DataRoot
from gristmill.leaks.held import Held
from gristmill.leaks.texts import EvaluationSet, declared_set, set_names
from gristmill.leaks.words import VERSION
from gristmill.provenance import Input, digest, raw_inputs, read_record
from gristmill.provenance.record import config_fields
from gristmill.reasoning import raw
from gristmill.reasoning.builders.normalize import normalize
from gristmill.reasoning.format import names
from gristmill.reasoning.format.index import mapped
from gristmill.reasoning.format.published import NORMALIZED
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import FILE, LEAKS

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
        where = f"{LEAKS.header} drop = {shown([name])}"
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
    return f"no evaluation set is {shown(name)}{near}; the sets are {listed}: {cure}"
