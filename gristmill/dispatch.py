"""Which family answers for a folder: by the records in it, else by its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gristmill import families, provenance
from gristmill.contract import GristmillError, Violation
from gristmill.families import Kind, Misuse, Subject, catalogs, kind_of_asset, other_kind
from gristmill.provenance import find_artifacts
from gristmill.provenance.verification import broken_by


def kinds_at(path: Path) -> list[Kind]:
    """The kinds of the artifacts in a folder.

    Several where partitions of several assets share the folder. A folder that no asset made, or one
    that is not known, is of a kind that a family can show, if its files say so. Raises Misuse where
    the folder holds nothing that a family knows, and GristmillError where a record cannot be read.
    """
    recorded = dict.fromkeys(recorded_assets(path).values())
    kinds = [kind for asset in recorded if (kind := kind_of_asset(asset)) is not None]
    if not kinds:
        found = [asset for each in catalogs() if (asset := each.asset_of(path)) is not None]
        of_assets = [] if recorded else [kind_of_asset(asset) for asset in found]
        kinds = [kind for kind in (*of_assets, *map(other_kind, found)) if kind is not None]
    if not kinds:
        raise Misuse(f"{path} is not an artifact of a known asset; the assets are {_known()}")
    return kinds


def _known() -> str:
    return ", ".join(kind.asset for each in catalogs() for kind in each.kinds)


def recorded_assets(path: Path) -> dict[str | None, str]:
    """The assets of the artifacts in a folder by partition, None for one that has it to itself.

    Those of assets without partitions, as manifests, are the last: they answer for no sample.
    Raises GristmillError where a record cannot be read.
    """
    own = path / provenance.RECORD
    if own.exists():
        return {None: provenance.read_record(own).asset}
    shared = find_artifacts.artifacts_in(path)
    found = {item.partition: provenance.read_record(item.record_path).asset for item in shared}
    return dict(sorted(found.items(), key=lambda each: not families.has_partitions(each[1])))


@dataclass(frozen=True)
class Judged:
    """What is in a folder without a record, and what is wrong with it."""

    asset: str
    is_guessed: bool
    facts: list[str]
    left_out: list[str]
    violations: list[Violation]
    is_checked: bool


def judged(folder: Path, asset: str | None = None) -> Judged:
    """Judge a folder without a record, of any program, by the laws of its format.

    folder: any folder. Only the file formats and their rules count: nothing says what it was made
        from, so that laws over inputs and records are left out.
    asset: key of its kind; None (the default) where its files say it.

    Raises Misuse for an unknown kind and for a folder with a record, and GristmillError where the
    files are of no kind or of several.
    """
    if recorded_assets(folder):
        raise Misuse(f"{folder} has a record, which says its kind: leave --kind out")
    if asset is not None and _kind(asset) is None:
        raise Misuse(f"--kind {asset}: there is none of this name; the kinds are {_known()}")
    asset, is_guessed = (asset, False) if asset is not None else (_guessed(folder), True)
    facts, unread = list[str](), list[Violation]()
    try:
        facts.extend(families.facts_of(asset, folder))
    except (GristmillError, OSError, ValueError, KeyError) as error:
        facts.append(f"what follows cannot be read: {error}")
        unread = [Violation("readable", str(folder), str(error))]
    subject = Subject(folder, has_record=False)
    violations = broken_by(asset, subject)
    kind = _kind(asset)
    is_checked = kind is not None and any(law.left_out(subject) is None for law in kind.laws)
    if not is_checked:
        violations += unread  # no law names it
    return Judged(asset, is_guessed, facts, subject.left_out, violations, is_checked)


def _kind(asset: str) -> Kind | None:
    return kind_of_asset(asset) or other_kind(asset)


def _guessed(folder: Path) -> str:
    """The only kind that the files of a folder have."""
    found = [asset for each in catalogs() if (asset := each.asset_of(folder)) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        several = " or ".join(f"--kind {asset}" for asset in found)
        raise GristmillError(f"{folder}: its files are of several kinds, name one: {several}")
    raise GristmillError(
        f"{folder}: no artifact with a provenance record is here or below, and its files are of no "
        f"known kind. If it is one, name it with --kind: {_known()}"
    )
