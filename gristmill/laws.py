"""Laws, and what all of them share: the limit on what they name, and errors that end them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, GristmillError, Violation
from gristmill.hashing import sha256_file
from gristmill.run.progress import current_progress

MOST: Final = 20
"""Violations of one law at one place that are named; the others are counted."""


@dataclass(frozen=True)
class Subject:
    """A folder, published or staged, that laws are asked about.

    folder: the artifact's folder.
    partition: of a folder that several partitions share; else None.
    inputs: folders of the artifacts that it was made from.
    config: the builder's config by field name.
    sampled: a law that takes long may look at a sample, drawn by a fixed seed (default False).
    opened: what the laws of the subject share, such as files that they have opened; a law fills it.
    noted: takes what is unusual and breaks no law, of laws that find it in the same pass; None
        (default) where nobody asks for it.
    has_record: False for a folder that another program may have made: a rule on a file that only
        Gristmill writes is left out where the file is missing (default True).
    left_out: takes the rules that nobody looked at, each with the reason; laws fill it, too.
    sums: sha256 of files that were hashed a moment ago, by their path (default: none was).
    """

    folder: Path
    partition: str | None = None
    inputs: Sequence[Path] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    sampled: bool = False
    opened: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    noted: list[Violation] | None = field(default=None, compare=False, repr=False)
    has_record: bool = True
    left_out: list[str] = field(default_factory=list, compare=False, repr=False)
    sums: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)

    def sha256(self, path: Path) -> str:
        """The hex sha256 of a file, which is read if it was not a moment ago."""
        return self.sums.get(path) or sha256_file(path)

    def missing(self, rules: Mapping[str, str]) -> list[str]:
        """Files that a folder without a record lacks; their rules are left out.

        rules: path of a file in the folder -> the rules that need it, in words.

        Returns none for an artifact with a record: there the laws miss the files.
        """
        missing = [name for name in rules if not (self.folder / name).exists()]
        if self.has_record:
            return []
        self.left_out.extend(f"{rules[name]}: there is no {name}" for name in missing)
        return missing

    def leaves(self, name: str, kind: str) -> None:
        """Say of a file in a folder without a record that it is left to the laws of another kind.

        name: of the file, which need not be there. kind: key of the other kind.
        """
        if not self.has_record and (self.folder / name).is_file():
            self.left_out.append(f"{name}: it is of the kind {kind}, which --kind names")


@dataclass(frozen=True)
class Law:
    """One rule for the contents of an asset's artifacts.

    name: as reports give it.
    check: yields what a subject breaks; `where` is a path in its folder or a place in its contents.
    needs_inputs: the law compares with the inputs, and is left out where one of them is gone.
    needs_record: the law compares with records, and is left out where the folder has none.
    excused_by: a config field and the value with which a person leaves the law to the readers.
    rules_excused_by: the same for single rules of the law, by their names.
    """

    name: str
    check: Callable[[Subject], Iterable[Violation]]
    needs_inputs: bool = False
    needs_record: bool = False
    excused_by: tuple[str, Any] | None = None
    rules_excused_by: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    def left_out(self, subject: Subject) -> str | None:
        """Why the law is not asked about `subject`, None where it is."""
        if self.needs_record and not subject.has_record:
            return "the folder has no record"
        if self.excused_by is not None and _is_set(self.excused_by, subject.config):
            return _shown(self.excused_by)
        if not self.needs_inputs:
            return None
        if not subject.inputs:
            return "what it was made from is not known"
        gone = [path for path in subject.inputs if not path.exists()]
        return f"{gone[0]} is gone" if gone else None

    def excused(self, config: Mapping[str, Any]) -> list[str]:
        """What a config leaves to the readers, each with the setting: the law, or some rules."""
        if self.excused_by is not None and _is_set(self.excused_by, config):
            return [f"{self.name}: {_shown(self.excused_by)}"]
        return [
            f"{rule}: {_shown(setting)}"
            for rule, setting in self.rules_excused_by.items()
            if _is_set(setting, config)
        ]


def _is_set(setting: tuple[str, Any], config: Mapping[str, Any]) -> bool:
    return bool(config.get(setting[0]) == setting[1])


def _shown(setting: tuple[str, Any]) -> str:
    return f"{setting[0]} = {json.dumps(setting[1])}"


def run(laws: Iterable[Law], subject: Subject) -> Iterator[Violation]:
    """Yield what `subject` breaks; a law that is not asked about it is noted in `left_out`.

    The current progress gets the stage "laws".
    """
    asked = []
    for law in laws:
        if (reason := law.left_out(subject)) is None:
            asked.append(law)
        else:
            subject.left_out.append(f"{law.name}: {reason}")
    with current_progress().stage("laws", "laws", len(asked)) as stage:
        for law in asked:
            yield from law.check(subject)
            stage.advance(1)


class Few:
    """The first violations of each law; the others are counted.

    rest: its text: {more} are those without a name, {count} all. Default: "{more:,} more rows".
    most: how many are named (default MOST).

    A law yields violations as they come (`of`, `at`), or adds them and yields them law by law.
    Memory does not grow with their number.
    """

    def __init__(
        self, where: str, rest: str = "{more:,} more rows", most: int | None = None
    ) -> None:
        self._where, self._rest = where, rest
        self._most = MOST if most is None else most
        self._named: dict[str, list[Violation]] = {}
        self._counts: Counter[str] = Counter()

    def take(self, law: str, count: int = 1) -> int:
        """Count violations; return how many of them are to be named.

        law: its name. count: of the violations that were found now (default 1).
        """
        room = max(0, self._most - self._counts[law])
        self._counts[law] += count
        return min(count, room)

    def at(self, law: str, where: str, found: str) -> Iterator[Violation]:
        """Yield a violation if it is one of the first."""
        if self.take(law):
            yield Violation(law, where, found)

    def of(self, violations: Iterable[Violation]) -> Iterator[Violation]:
        """Yield the first violations of each law as they come, then how many more there are."""
        for each in violations:
            if self.take(each.law):
                yield each
        yield from self.rest()

    def add(self, law: str, where: str, found: str) -> None:
        """Note a violation."""
        self.add_all(law, 1, [(where, found)])

    def add_all(self, law: str, count: int, places: Iterable[tuple[str, str]]) -> None:
        """Note violations.

        places: where each is, and what is there; read as far as they are to be named.
        """
        named = islice(places, self.take(law, count))
        self._named.setdefault(law, []).extend(Violation(law, *each) for each in named)

    def added(self) -> Iterator[Violation]:
        """Yield the first violations that were added, law by law, and how many more there are."""
        for law, named in self._named.items():
            yield from named
            yield from self._more(law)

    def rest(self) -> Iterator[Violation]:
        """Yield of each law how many violations have no name."""
        for law in self._counts:
            yield from self._more(law)

    def _more(self, law: str) -> Iterator[Violation]:
        count = self._counts[law]
        if (more := count - self._most) > 0:
            yield Violation(law, self._where, self._rest.format(more=more, count=count))


def or_unreadable(
    violations: Iterable[Violation], where: str | None = None, law: str = "readable"
) -> Iterator[Violation]:
    """Yield violations; an error that ends them is one, too.

    where: place of the error; default None: the file that a BadInput names, and only a BadInput
        is a violation. law: name of the law that the error breaks (default "readable").
    """
    try:
        yield from violations
    except BadInput as error:
        found = (error.file, error.rule) if where is None else (where, str(error))
        yield Violation(law, *found)
    except GristmillError as error:
        if where is None:
            raise
        yield Violation(law, where, str(error))
