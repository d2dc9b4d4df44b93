"""What a check shows: its state over all partitions, and what one run found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dagster as dg

from assets.checking.rules import Looked, Rule
from assets.checking.verdicts import Verdict, Verdicts
from gristmill import markdown
from gristmill.data_root.reports import BUILT
from gristmill.printable import breakable

TABLE: Final = "findings"
"""Name of the table of partitions that fall short, in the metadata of an evaluation."""
FALLING_SHORT: Final = "falling short"
THIS_RUN: Final = "this run"
"""Name of the row that says what the run of an evaluation looked at and found."""
WHOLE_ASSET: Final = "(the asset)"
"""What the table says in place of a partition, for an asset without any."""

_COLUMNS: Final = ("partition", "problem", "cure")
# Rows and characters of a table: an event is stored for ever and has at most 100,000 bytes.
_MOST_ROWS, _MOST_CHARACTERS = 200, 40_000
# A path of an ordinary drop stays whole in the line above the table: it can be copied there.
_LONGEST_WORD: Final = 80


@dataclass(frozen=True)
class State:
    """What a check says of all partitions of its asset.

    passed: whether no partition falls short, and every one was checked.
    severity: of the findings; a warning where the only fault is that nobody has looked.
    description: one line for a person, as Markdown.
    metadata: counts, and the table of the partitions that fall short.
    """

    passed: bool
    severity: dg.AssetCheckSeverity
    description: str
    metadata: Mapping[str, Any]

    def is_shown_by(self, evaluation: dg.AssetCheckEvaluation | None) -> bool:
        """Whether an evaluation says the same."""
        if evaluation is None:
            return False
        shown = (evaluation.passed, evaluation.severity if not self.passed else self.severity)
        return shown == (self.passed, self.severity) and all(
            evaluation.metadata.get(name) == value for name, value in self._stored().items()
        )

    def evaluation(
        self, key: dg.AssetCheckKey, blocking: bool, target: Any = None
    ) -> dg.AssetCheckEvaluation:
        """Returns the state as an evaluation that belongs to no run."""
        return dg.AssetCheckEvaluation(
            asset_key=key.asset_key,
            check_name=key.name,
            passed=self.passed,
            severity=self.severity,
            description=self.description,
            metadata=dict(self.metadata),
            blocking=blocking,
            target_materialization_data=target,
        )

    def _stored(self) -> Mapping[str, Any]:
        return {
            name: dg.MetadataValue.int(value) if isinstance(value, int) else value
            for name, value in self.metadata.items()
        }


@dataclass(frozen=True)
class Known:
    """The partitions that an asset has.

    keys: of its partitions; None if it has none.
    """

    keys: Collection[str] | None
    published: Collection[str]

    @classmethod
    def of(cls, verdicts: Verdicts, asset: str, keys: Collection[str] | None) -> Known:
        """The partitions by the kept verdicts; arguments as of the fields."""
        known = cls(keys, ())
        return cls(keys, {key for key in verdicts.subjects(asset) if known.has(key)})

    def has(self, subject: str) -> bool:
        """Whether a verdict is about a partition that there is, or about files of none.

        Others are about partitions that were retired.
        """
        return self.keys is None or subject in self.keys or "/" in subject


def state_of(rule: Rule, asset: str, verdicts: Verdicts, known: Known) -> State:
    """Returns what a check says by the kept verdicts."""
    left: list[str] = []
    if rule.newest_only:
        kept = [one for one in verdicts.of(asset, rule.name) if known.has(one.subject)][-1:]
        short = [one for one in kept if one.problem is not None]
        count = len(kept)
    else:
        short = [one for one in verdicts.problems(asset, rule.name) if known.has(one.subject)]
        others = filter(known.has, verdicts.unpublished(asset, rule.name))
        count = len(known.published) + len(set(others) - set(known.published))
        if rule.name != BUILT:
            left = list(filter(known.has, verdicts.missing(asset, rule.name)))
    metadata: dict[str, Any] = {
        FALLING_SHORT: len(short),
        "partitions": count,
        **({"not checked": len(left)} if left else {}),
        **({TABLE: _table(short)} if short else {}),
    }
    if rule.newest_only and kept and not short:
        text = f"{kept[0].subject} is the newest: nothing found"
    else:
        text = _description(rule, short, count, known.keys is not None)
    if left:
        some = f"{len(left):,} of {count:,}"
        text += f"; {some} not checked since they were built: execute this check to look at them"
    described = breakable(markdown.escape(text), _LONGEST_WORD)
    # Green means checked: what nobody has looked at is a warning.
    severity = rule.severity if short else dg.AssetCheckSeverity.WARN
    return State(not short and not left, severity, described, metadata)


def found_by_run(looked: Looked | None, keys: Collection[str] | None) -> dict[str, Any]:
    """Returns the metadata of what one run looked at and found."""
    said = "everything published" if keys is None else f"partitions of it: {_first_keys(keys)}"
    violations = [violation for _, violation in looked.findings] if looked else []
    if looked is not None:
        found = f"findings: {len(violations):,}" if violations else "nothing found"
        said += f"; {len(looked.looked_at):,} looked at, {found}"
    listed = markdown.bullets(markdown.code(str(violation)) for violation in violations)
    return {THIS_RUN: said, **({"listed": dg.MetadataValue.md(listed)} if listed else {})}


def _table(short: Sequence[Verdict]) -> dg.TableMetadataValue:
    records, size = [], 0
    for one in short[:_MOST_ROWS]:
        subject, problem = one.subject or WHOLE_ASSET, one.problem or ""
        size += len(subject) + len(problem) + len(one.cure)
        if size > _MOST_CHARACTERS:
            break
        # Partitions and cures stay whole: a person copies the key and the command.
        row = (subject, breakable(problem), one.cure)
        records.append(dg.TableRecord(dict(zip(_COLUMNS, row, strict=True))))
    return dg.TableMetadataValue(
        records, dg.TableSchema([dg.TableColumn(name) for name in _COLUMNS])
    )


def _description(rule: Rule, short: Sequence[Verdict], count: int, partitioned: bool) -> str:
    if not short:
        said = "the last build of each succeeded" if rule.name == BUILT else "nothing found"
        if not count:
            return "nothing is published"
        if not partitioned:
            return "the last build succeeded" if rule.name == BUILT else said
        return f"{count:,} partition{'' if count == 1 else 's'}: {said}"
    first = f"{short[0].problem}"
    if not partitioned:
        return first
    return (
        f"{len(short):,} of {count:,} partition{'' if count == 1 else 's'} "
        f"({_first_keys([one.subject for one in short])}): {first}"
    )


def _first_keys(keys: Collection[str]) -> str:
    first = list(keys)[:3]
    return ", ".join(first) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
