"""Rules: what a check looks at in some partitions of an asset, and what it says about each."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Final

import dagster as dg

from assets import choices
from assets.checking.verdicts import Place, Verdict, Verdicts, stamp_of
from gristmill import provenance
from gristmill.contract import Violation, in_words
from gristmill.data_root.states import subject_of
from gristmill.printable import plain
from gristmill.provenance import Record, unusual, verification
from gristmill.provenance.find_artifacts import Artifact, artifacts
from gristmill.provenance.record import MALFORMED
from gristmill.provenance.verification import Finding
from resources import Lake

LONGEST_PROBLEM: Final = 700
"""Characters of one problem in a table."""


@dataclass(frozen=True)
class Standing:
    """A published artifact: its partition (empty without), its files, its data version.

    stamp: of its record before that was read.
    """

    subject: str
    artifact: Artifact
    data_version: str
    stamp: int | None = None


@dataclass(frozen=True)
class Scope:
    """What a check looks at.

    below: folder relative to the data root that holds the asset's artifacts.
    keys: the partitions; None for everything that is published.
    since: when the run started; None reads again what the run itself built.
    """

    lake: Lake
    asset: dg.AssetKey
    below: str
    keys: Collection[str] | None
    since: datetime | None
    verdicts: Verdicts

    @property
    def name(self) -> str:
        """The key of the asset, as records name it."""
        return self.asset.to_user_string()

    @property
    def whole(self) -> bool:
        """Whether the check looks at all that is published."""
        return self.keys is None

    @cached_property
    def standing(self) -> list[Standing]:
        """The artifacts to look at; one whose record cannot be read has its path as a partition."""
        places = None if self.keys is None else self._places(self.keys)
        if places is not None:
            return places
        found = list(walk(self.lake.root / self.below, self.name, self.lake.root))
        return [item for item in found if self.keys is None or item.subject in self.keys]

    def _places(self, keys: Collection[str]) -> list[Standing] | None:
        """The artifacts of some partitions; None if the place of one is not known."""
        found = []
        for key in keys:
            path = self.verdicts.place(self.name, key)
            if path is None:
                return None
            try:
                record = provenance.read_record(path)
            except MALFORMED:
                return None
            if (record.asset, record.partition or "") != (self.name, key):
                return None
            shared = path.parent.name == provenance.SHARED_RECORDS
            folder = path.parents[1] if shared else path.parent
            found.append(Standing(key, Artifact(folder, path), record.data_version))
        return found


@dataclass(frozen=True)
class Looked:
    """What a rule saw: the data version of each partition, and what falls short in some."""

    looked_at: Mapping[str, str]
    findings: Sequence[tuple[str, Violation]] = ()

    def verdicts(
        self, cure: Callable[[str, Sequence[Violation]], str], warns: bool = False
    ) -> Iterator[Verdict]:
        """Yields one verdict for each partition; warns: whether its problem is a warning (no)."""
        by_subject: dict[str, list[Violation]] = {subject: [] for subject in self.looked_at}
        for subject, violation in self.findings:
            by_subject.setdefault(subject, []).append(violation)
        for subject, found in by_subject.items():
            version = self.looked_at.get(subject, "")
            if found:
                yield Verdict(subject, version, _summary(found), cure(subject, found), warns)
            else:
                yield Verdict(subject, version)


@dataclass(frozen=True)
class Rule:
    """One check of an asset.

    look: looks at a scope; None for a check that only shows what builds said.
    cure: takes the asset's key, a partition and its findings; returns what to do.
    blocking: whether assets downstream in the same run wait for it, and are not built if it finds
        something in the partitions of the run; default False.
    of_bytes: whether its verdict counts for the very files, not for their data version;
        default False.
    newest_only: whether the last partition replaces those before it, as a daily report does;
        default False.
    follows: assets besides its own whose new events may change what it says; then the sensor
        `check_states` looks again, without a run. Default none.
    severity_of: says of a data root whether a finding is an error; one that is none blocks nothing.
        Default: `severity`, in every data root.
    """

    name: str
    description: str
    look: Callable[[Scope], Looked] | None
    cure: Callable[[str, str, Sequence[Violation]], str]
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
    blocking: bool = False
    of_bytes: bool = False
    newest_only: bool = field(default=False, kw_only=True)
    follows: tuple[dg.AssetKey, ...] = field(default=(), kw_only=True)
    severity_of: Callable[[Lake], dg.AssetCheckSeverity] | None = field(default=None, kw_only=True)

    def of(self, lake: Lake) -> Rule:
        """This check as the settings of a data root have it."""
        if self.severity_of is None:
            return self
        severity = self.severity_of(lake)
        is_error = severity is dg.AssetCheckSeverity.ERROR
        return replace(self, severity=severity, blocking=self.blocking and is_error)


def walk(folder: Path, asset: str, root: Path) -> Iterator[Standing]:
    """Yields the artifacts of an asset, and records there that cannot be read."""
    for item in artifacts(folder.absolute()):
        stamp = stamp_of(str(item.record_path))
        try:
            record = provenance.read_record(item.record_path)
        except MALFORMED:
            yield Standing(item.record_path.relative_to(root.absolute()).as_posix(), item, "")
            continue
        if record.asset == asset:
            yield Standing(subject_of(record), item, record.data_version, stamp)


def places(scope: Scope) -> dict[str, Place]:
    """Returns where the records of the artifacts are, by partition."""
    return {
        item.subject: Place(item.artifact.record_path, item.data_version, item.stamp)
        for item in scope.standing
        if item.data_version
    }


def intact(scope: Scope) -> Looked:
    """Bytes, records and inputs."""
    return _surveyed(scope, check_laws=False, whole_folders=scope.whole)


def lawful(scope: Scope) -> Looked:
    """The laws of the family."""
    return _surveyed(scope, check_bytes=False, sampled=True)


def _surveyed(scope: Scope, **which: bool) -> Looked:
    standing = [item.artifact for item in scope.standing]
    return looked(scope, verification.survey(standing, committed_since=scope.since, **which))


def noteworthy(
    notes: Callable[[Path], Iterable[Violation]], across: bool
) -> Callable[[Scope], Looked]:
    """Returns what looks for the unusual, equal raw files (`across` partitions, too) among it.

    notes: looks at the folder of an artifact whose record, of an earlier release, has no notes.
    """

    def look(scope: Scope) -> Looked:
        found: list[Finding] = []
        others = unusual.by_hash(_records(scope)) if across else {}
        for item in filter(lambda each: each.data_version, scope.standing):
            record = provenance.read_record(item.artifact.record_path)
            if record.notes is None:
                found += verification.as_notes(item.artifact, notes(item.artifact.folder))
            found += (
                Finding(item.artifact, item.artifact.folder, note)
                for note in chain(
                    unusual.unusual(item.artifact, record, others),
                    choices.config_notes(scope.lake, record),
                )
            )
        return looked(scope, found)

    return look


def _records(scope: Scope) -> Iterator[tuple[Record, Path]]:
    """The records of all that is published of the asset."""
    for item in walk(scope.lake.root / scope.below, scope.name, scope.lake.root):
        if item.data_version:
            path = item.artifact.record_path
            yield provenance.read_record(path), path


def looked(scope: Scope, findings: Iterable[Finding]) -> Looked:
    """Returns findings on artifacts by partition; files of no record go by their folder."""
    subjects = {item.artifact: item.subject for item in scope.standing}
    root = scope.lake.root.absolute()
    # A folder that several partitions share has findings of its own; they end as they came.
    looked_at = {item.subject: item.data_version for item in scope.standing}
    return Looked(
        looked_at,
        [
            (
                subjects[finding.item]
                if finding.item is not None
                else f"{finding.folder.relative_to(root).as_posix()}/",
                finding.violation,
            )
            for finding in findings
        ],
    )


def command(asset: str, subject: str) -> str:
    """Returns the command that builds a partition."""
    return f"gristmill materialize {asset}" + (f" --partition {subject}" if subject else "")


def _summary(found: Sequence[Violation]) -> str:
    more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    return plain(f"{found[0]}", LONGEST_PROBLEM) + more


def seen_by(rule: Rule, scope: Scope) -> Looked | None:
    """Returns what a check sees in some partitions; None if it looks at nothing.

    A partition at which it cannot look has that as a finding: nothing else fails by it.
    """
    if rule.look is None:
        return None
    try:
        return rule.look(scope)
    except sqlite3.Error:
        raise  # of the kept verdicts, which `VerdictFile` does without
    except Exception as error:  # noqa: BLE001  one artifact must not end the checks of all others
        versions = {item.subject: item.data_version for item in scope.standing}
        if len(versions) > 1:
            alone = [seen_by(rule, replace(scope, keys=[subject])) for subject in versions]
            return Looked(versions, [one for each in alone if each for one in each.findings])
        said = in_words(error)
        reason = plain(f"{type(said).__name__}: {said}", LONGEST_PROBLEM)
        problem = Violation("check", scope.below, f"cannot be looked at: {reason}")
        subjects = list(versions) or [f"{scope.below}/"]
        return Looked(versions, [(subject, problem) for subject in subjects])


def keep(rule: Rule, checked: Checked, scope: Scope, looked: Looked | None) -> None:
    """Keep what a check found in the partitions that it looked at; looked: of `seen_by`."""
    if looked is None:
        return
    warns = rule.of(scope.lake).severity is dg.AssetCheckSeverity.WARN
    reached = list(
        looked.verdicts(lambda subject, found: rule.cure(checked.name, subject, found), warns)
    )
    if scope.whole and not rule.newest_only:
        scope.verdicts.replace(checked.name, rule.name, reached)
    else:
        scope.verdicts.keep(checked.name, rule.name, reached)


@dataclass
class Checked:
    """An asset with its checks."""

    asset: dg.AssetsDefinition
    below: str
    rules: dict[str, Rule] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The key of the asset, as records name it."""
        return self.asset.key.to_user_string()

    @property
    def of_bytes(self) -> list[str]:
        """Names of the checks whose verdicts count for the very files."""
        return [rule.name for rule in self.rules.values() if rule.of_bytes]

    def key(self, rule: Rule) -> dg.AssetCheckKey:
        """The key of a check."""
        return dg.AssetCheckKey(self.asset.key, rule.name)

    def partitions(self, instance: dg.DagsterInstance) -> Collection[str] | None:
        """The partitions that the asset has; None if it has none."""
        definition = self.asset.partitions_def
        if definition is None:
            return None
        return set(definition.get_partition_keys(dynamic_partitions_store=instance))

    def scope(
        self,
        lake: Lake,
        keys: Collection[str] | None,
        since: datetime | None,
        verdicts: Verdicts,
    ) -> Scope:
        """What the checks look at; arguments as of `Scope`."""
        return Scope(lake, self.asset.key, self.below, keys, since, verdicts)


CHECKED: dict[dg.AssetKey, Checked] = {}
"""Every asset that has checks."""


def owners_of_checks() -> dict[dg.AssetCheckKey, Checked]:
    """Returns the asset of each check, by the key of the check."""
    return {item.key(rule): item for item in CHECKED.values() for rule in item.rules.values()}


def registered(asset: dg.AssetsDefinition, below: str, wanted: Iterable[Rule]) -> Checked:
    """Returns an asset with its checks, after adding some."""
    checked = CHECKED.get(asset.key)
    if checked is None or checked.asset is not asset:
        checked = CHECKED[asset.key] = Checked(asset, below)
    checked.rules.update({rule.name: rule for rule in wanted})
    return checked
