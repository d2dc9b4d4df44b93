"""The steps of a takedown: what goes, what is left out and erased, and the scan that proves it.

Rows are named by file and number, by their ids, by a column, or by their text.
Source: `docs/takedowns.md`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, GristmillError
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.raw import forgotten
from gristmill.corpora.raw.drops import corpus_of
from gristmill.corpora.raw.forgotten import Tombstone, add, hash_of, key_of, mark_of, note_erased
from gristmill.corpora.raw.texts import Unfit
from gristmill.families import Forgets, Unit, forgets, inboxes
from gristmill.hashing import sha256_file
from gristmill.inbox.copying import Copied, write_whole
from gristmill.layout import DROPS, WORK
from gristmill.leaks import texts as rows_of_text
from gristmill.leaks.texts import form, leaves
from gristmill.provenance.find_artifacts import Artifact, artifacts, readable
from gristmill.provenance.inventory import Entry
from gristmill.provenance.raw_inputs import DropHashes, stamp_of
from gristmill.provenance.record import Input, Record
from gristmill.run.progress import SILENT, Progress
from gristmill.settings.fields import did_you_mean
from gristmill.takedowns.erase import erase, list_again
from gristmill.takedowns.plan import ERASED, LEFT_OUT, Plan, folder_of
from gristmill.takedowns.search import LEAST, Search, files_below, normalised, octets_of

_CACHES: Final = ("answers", "browse", "drops", "history", "leaks")
"""What of `.gristmill` may be removed: no artifact, and no build that is under way."""


_ENOUGH: Final = 32
"""Bytes of a text of a row that is looked for elsewhere; where none has so many, the longest."""


@dataclass(frozen=True)
class Target:
    """A drop whose rows are named. name: as `reasoning/gsm8k`. how: its rows are forgotten."""

    root: Path
    name: str
    drop: Path
    how: Forgets

    def path(self, file: str) -> Path:
        """Of a file of the drop, as `Unit.file` names it."""
        return self.drop if self.drop.is_file() else self.drop / file

    def units(self) -> Iterator[Unit]:
        """Yield the rows of the drop."""
        return self.how.units(self.root, self.drop)

    def having(self, hashes: Collection[str]) -> Iterator[Unit]:
        """Yield the rows that have one of some keyed hashes."""
        key = key_of(self.root, makes=True)
        return (unit for unit in self.units() if hash_of(key, unit.values) in hashes)


def target_of(root: Path, named: str) -> Target:
    """The drop of a name, as `reasoning/gsm8k`. Raises GristmillError where there is none."""
    inbox, _, name = named.removeprefix(f"{DROPS}/").rstrip("/").rpartition("/")
    how = forgets(inbox)
    if how is None:
        known = [each for each in inboxes() if forgets(each)]
        rule = f"one of {', '.join(known)}{did_you_mean(inbox, known)}"
        raise GristmillError(f"{named}: name inbox and drop, as reasoning/gsm8k: {rule}")
    drop = root / DROPS / inbox / name
    if not drop.exists():
        raise GristmillError(f"{named}: there is no drop {drop}")
    return Target(root, f"{inbox}/{name}", drop, how)


def texts_in(path: Path) -> list[str]:
    """The texts of a file: a line each, or a string of JSON each. Raises BadInput without any."""
    if form(path.name) is None:
        raise BadInput(path, "must be a .txt with a text a line, or a .jsonl of strings")
    found = list[str]()
    for number, row in rows_of_text.rows(path):
        if isinstance(row, Unfit):
            raise BadInput(path, row.rule, number)
        found += (text for _, text in leaves(row))
    for text in found:
        if len(octets_of(normalised(text))) < LEAST:
            raise BadInput(path, f"{text!r} has fewer than {LEAST} bytes: name its row by --rows")
    if not found:
        raise BadInput(path, "has no text")
    return list(dict.fromkeys(found))


def by_rows(target: Target, path: Path) -> list[Unit]:
    """The rows that a file names, `FILE:ROW` or an id a line. Raises BadInput for one of none."""
    try:
        lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise BadInput(path, f"is not UTF-8: {error}") from error
    wanted = {line: number for number, line in reversed([*enumerate(lines, 1)]) if line}
    if not wanted:
        raise BadInput(path, "names no row")
    found, met = list[Unit](), set[str]()
    for unit in target.units():
        own = {f"{unit.file}:{unit.row}", unit.name, "" if unit.row else unit.file}
        if hits := own & wanted.keys():
            met |= hits
            found.append(unit)
    for line, number in wanted.items():
        if line not in met:
            what = "row" if re.fullmatch(".+:[1-9][0-9]*", line) else "row with the id"
            rule = f"{target.name} has no {what} {line}: write FILE:ROW, or an id"
            raise BadInput(path, rule, number)
    return found


def by_column(target: Target, condition: str) -> list[Unit]:
    """The rows whose column has a value, `KEY=VALUE`. Raises GristmillError where none has."""
    key, mark, value = condition.partition("=")
    if not mark or not key:
        raise GristmillError(f"--where {condition}: write KEY=VALUE, as source=forum")
    found, columns = list[Unit](), dict[str, None]()
    for unit in target.units():
        columns |= dict.fromkeys(unit.values)
        if (held := unit.values.get(key)) is not None and str(held) == value:
            found.append(unit)
    if key not in columns:
        rule = f"{target.name} has no column {key}{did_you_mean(key, columns)}"
        raise GristmillError(f"--where {condition}: {rule}")
    if not found:
        raise GristmillError(f"--where {condition}: no row of {target.name} has it")
    return found


def by_text(target: Target, texts: Sequence[str]) -> tuple[list[Unit], list[str]]:
    """The rows of which a value is one of the texts, the texts as they write them."""
    wanted, found, written = {normalised(text) for text in texts}, list[Unit](), [*texts]
    for unit in target.units():
        if same := [text for _, text in leaves(unit.values) if normalised(text) in wanted]:
            found.append(unit)
            written += same
    return found, list(dict.fromkeys(written))


def own_texts(target: Target, units: Sequence[Unit]) -> tuple[list[str], int]:
    """The texts by which copies of rows are found, and how many of them other rows have, too.

    A text that is whole in a row of the drop that is not named is not of these rows alone, as the
    first message of many conversations; it is not looked for.
    """
    found = dict[str, str]()
    for unit in units:
        each = {normalised(text): text for _, text in leaves(unit.values)}
        long = [k for k in each if len(octets_of(k)) >= _ENOUGH]
        long = long or [max(each, key=len, default="")]
        found |= {k: each[k] for k in long if len(octets_of(k)) >= LEAST}
    named, shared = {(unit.file, unit.row) for unit in units}, set[str]()
    for unit in target.units():
        if (unit.file, unit.row) not in named:
            shared |= {normalised(text) for _, text in leaves(unit.values)} & found.keys()
    return [text for k, text in found.items() if k not in shared], len(shared)


def with_equal(target: Target, units: Collection[Unit]) -> list[Unit]:
    """Rows of a drop that are named, and those that are equal to them.

    A row of a corpus is equal whose columns that are read are. Raises GristmillError as
    `tombstones` of `Forgets`.
    """
    key = key_of(target.root, makes=True)
    own = {hash_of(key, unit.values) for unit in units}
    found = {(each.file, each.row) for each in target.having(own)}
    if target.how.tombstones is not None:
        equal = target.how.tombstones(target.root, target.drop, found, "", "")
        found |= {(each.file, each.row) for each in equal}
    return [each for each in target.units() if (each.file, each.row) in found]


def _affected(root: Path, files: Collection[str]) -> list[tuple[Artifact, Record, list[Input]]]:
    """What was made from raw files, by paths below the root, directly or not, after its inputs."""
    every, keys = [*readable(artifacts(root))], set[tuple[str | None, str | None]]()
    found = every[:0]
    while more := [
        each
        for each in every
        if each not in found
        and any(
            item.path in files if item.data_version is None else (item.path, item.partition) in keys
            for item in each[2]
        )
    ]:
        found += more
        keys |= {(record.artifact, record.partition) for _, record, _ in more}
    return found


def _refuse_endless(holder: Target, own: Sequence[Unit], erases: bool) -> None:
    """Raise GristmillError where rows cannot go from a drop, before a plan bars others."""
    for path in {holder.path(each.file) for each in own if erases}:
        if path.resolve() != holder.root.resolve() / path.relative_to(holder.root):
            rule = f"is a link, or behind one: take the rows out of {path.resolve()}"
            raise GristmillError(f"{path}: {rule}")
    gone = Counter(each.file for each in own if each.row)
    left_in = Counter(each.file for each in holder.units()) - gone if gone else gone
    for file in (each for each in gone if not left_in[each]):
        rule = "no row would be left: remove the file, build, and name the texts by --text"
        raise GristmillError(f"{holder.path(file)}: {rule}")


def planned(
    target: Target,
    units: Sequence[Unit],
    texts: Sequence[str],
    how: Mapping[str, Any],
    progress: Progress = SILENT,
) -> Plan:
    """A plan, with all places of the texts, and each artifact that it builds again.

    units: the rows of a drop that go. how: `containing`, `erase`, `reason` and `shared`.

    Raises GristmillError where rows cannot be erased: before anything is changed, as a plan that
    cannot end bars others.
    """
    root, key = target.root, key_of(target.root, makes=True)
    plan = Plan(target.name, how["reason"], how["erase"], [*texts], how["shared"])
    found = [*Search(texts).everywhere(root, {folder_of(root)}, progress)]
    plan.holds = [each.facts(root) for each in found]
    rows = {target.name: [*units]} if units else {}
    inside = (each.path.relative_to(root).parts for each in found)
    for name in dict.fromkeys("/".join(parts[1:3]) for parts in inside if parts[0] == DROPS):
        try:
            holder = target_of(root, name)
        except GristmillError:  # no drop, or one whose rows cannot go
            continue
        own = rows.get(name, [])
        known = {(unit.file, unit.row) for unit in own}
        others = [each for each in _holding(holder, texts) if (each.file, each.row) not in known]
        if how["containing"] and others:
            rows[name] = with_equal(holder, [*own, *others])
        else:
            place = f"{DROPS}/{name}"
            plan.stays += [{"place": place, "file": e.file, "row": e.row} for e in others]
    for name, own in rows.items():
        _refuse_endless(target_of(root, name), own, how["erase"])
        plan.rows[name] = [
            {"file": each.file, "row": each.row, "hash": hash_of(key, each.values)} for each in own
        ]
    plan.affected = [
        {
            **{"asset": record.asset, "partition": record.partition or ""},
            **{"name": Entry.of(root, item).name, "data_version": record.data_version},
            "bytes": sum(each.bytes for each in record.outputs),
        }
        for item, record, _ in _affected(root, raw_rows(root, plan))
    ]
    plan.counts["affected_bytes"] = sum(each["bytes"] for each in plan.affected)
    return plan


def _holding(target: Target, texts: Sequence[str]) -> list[Unit]:
    """The rows of a drop that hold one of the texts; of whole files all of the same name."""
    numbered = ((at, unit.values) for at, unit in enumerate(target.units()))
    hits = {each.row for each in Search(texts).in_rows(target.drop, "", numbered)}
    held = {at: unit for at, unit in enumerate(target.units()) if at in hits}
    if names := {unit.name for unit in held.values() if not unit.row}:
        beside = enumerate(target.units())
        held |= {at: unit for at, unit in beside if not unit.row and unit.name in names}
    return [*held.values()]


def raw_rows(root: Path, plan: Plan, *, stay: bool = False) -> dict[str, set[int]]:
    """The rows of a plan in each raw file, by its path below the root; or those that stay."""
    found = defaultdict[str, set[int]](set)
    going = ((f"{DROPS}/{name}", each) for name, rows in plan.rows.items() for each in rows)
    for drop, each in ((each["place"], each) for each in plan.stays) if stay else going:
        found[drop if (root / drop).is_file() else f"{drop}/{each['file']}"].add(each["row"])
    return dict(found)


def compare(root: Path, plan: Plan) -> None:
    """Say in a plan which artifacts were made from files as they were, by their records.

    And how many have another data version than before, and their bytes.
    """
    before = {each["name"]: each["data_version"] for each in plan.affected}
    every = {
        (record.artifact, record.partition): (Entry.of(root, item).name, record, inputs)
        for item, record, inputs in readable(artifacts(root))
    }

    def is_old(item: Input) -> bool:
        if item.data_version is None:
            path = root / str(item.path)
            is_raw = str(item.path).startswith(f"{DROPS}/")
            return is_raw and (not path.is_file() or sha256_file(path) != item.sha256)
        now = every.get((str(item.path), item.partition))
        return now is not None and now[1].data_version != item.data_version

    of_plan = [each for each in every.values() if each[0] in before]
    plan.stale = [name for name, _, inputs in of_plan if any(map(is_old, inputs))]
    made = [record for name, record, _ in of_plan if record.data_version != before[name]]
    octets = sum(each.bytes for record in made for each in record.outputs)
    plan.counts |= {"rebuilt": len(made), "rebuilt_bytes": octets}


def leave_out(root: Path, plan: Plan) -> None:
    """Write the tombstones of all rows of a plan."""
    for name, rows in plan.rows.items():
        target, because = target_of(root, name), (plan.reason, plan.date)
        mark, named = mark_of(key_of(root)), {(each["file"], each["row"]) for each in rows}
        if (new := target.how.tombstones) is not None:
            add(target.drop, new(root, target.drop, named, *because))
        else:
            of = ((each["file"], each["row"], f"{mark}-{each['hash']}") for each in rows)
            add(target.drop, (Tombstone(at, n, "", None, own, *because) for at, n, own in of))
        path, known = _forgotten(root, name)
        lines = {each["hash"]: [plan.reason, plan.date] for each in rows} | known
        write_whole(path, json.dumps(lines, indent=0).encode())
    plan.keep(root, LEFT_OUT)


def _forgotten(root: Path, name: str) -> tuple[Path, dict[str, list[str]]]:
    """The list of forgotten rows of a drop, and what is in it: reason and day of each, by hash."""
    path = folder_of(root) / "rows" / f"{name}.json"
    return path, json.loads(path.read_bytes()) if path.exists() else {}


def erase_rows(root: Path, plan: Plan) -> None:
    """Take the rows of a plan out of their files; those that are out already are passed over."""
    for drop, rows in plan.rows.items() if plan.erased else ():
        hashes, files = ({each[name] for each in rows} for name in ("hash", "file"))
        less = _take_out(target_of(root, drop), hashes, files)
        plan.counts["erased_bytes"] = plan.counts.get("erased_bytes", 0) + less
    plan.keep(root, ERASED)


def _take_out(target: Target, hashes: Collection[str], erased: Collection[str] = ()) -> int:
    """Take the rows with some hashes out of a drop; returns the bytes that it has less.

    erased: files that a killed call may have written already.
    """
    files = defaultdict[str, set[int]](set)
    for unit in target.having(hashes):
        files[unit.file].add(unit.row)
    try:
        corpus = corpus_of(target.drop)
    except GristmillError:
        corpus = corpus_and_split("any__train")[0]
    less = sum(erase(target.path(file), files[file], corpus, target.how) for file in files)
    every = {*files, *erased}
    for file in every:
        list_again(target.path(file))
    note_erased(target.drop, every)
    return less


def scan(root: Path, plan: Plan, search: Search, progress: Progress = SILENT) -> None:
    """Say in a plan where its texts stand still, and where they stand since rows stay.

    Files of caches that hold a text are removed: whoever needs them makes them again.
    """
    gone, left = raw_rows(root, plan), raw_rows(root, plan, stay=True)
    erased = gone if plan.erased else {}
    # Rows before one that stays may be erased; one without a number is of any.
    stay = {
        file: {0, *(row - sum(each < row for each in erased.get(file, ())) for row in rows)}
        for file, rows in left.items()
    }
    downstream = {
        item.folder / output.path
        for item, record, _ in _affected(root, left)
        for output in record.outputs
    }
    plan.stands_still, plan.stands_since_rows_stay = [], []
    for each in search.everywhere(root, {folder_of(root)}, progress):
        parts, facts = each.path.relative_to(root).parts, each.facts(root)
        file, is_left_out = facts["file"], not plan.erased and facts["file"] in gone
        at = parts.index(WORK) if WORK in parts[:-1] else -1
        if at >= 0 and parts[at + 1] in _CACHES:
            each.path.unlink(missing_ok=True)
            plan.removed += [file] if file not in plan.removed else []
        elif each.row in stay.get(file, ()) or each.path in downstream or is_left_out:
            plan.stands_since_rows_stay.append(facts)
        else:
            plan.stands_still.append(facts)
    plan.not_reached += [
        f"{file}: cannot be searched: {why}" for file, why in search.unread.items()
    ]
    sizes = [path.stat().st_size for path in files_below(root, {folder_of(root)})]
    plan.counts |= {"scanned_files": len(sizes), "scanned_bytes": sum(sizes)}


def rows_left(root: Path, plan: Plan) -> int:
    """How many rows of a plan stand in the raw files still."""
    every = ((target_of(root, name), rows) for name, rows in plan.rows.items())
    return sum(1 for target, rows in every for _ in target.having({e["hash"] for e in rows}))


def taken_out_again(root: Path, drop: Path) -> str:
    """Take rows that were forgotten out of a drop that came again; what is said of it, or nothing.

    Where the drop has tombstones, of rows that no one erased, no build takes them, and they stay.
    """
    name = drop.relative_to(root / DROPS).as_posix()
    _, known = _forgotten(root, name)
    left = forgotten.read(drop) if known else []
    if not known or (left and not any(each.file.endswith(forgotten.ERASED) for each in left)):
        return ""
    target, key = target_of(root, name), key_of(root)
    days = Counter(known[hash_of(key, each.values)][1] for each in target.having(known))
    if not days:
        return ""
    _take_out(target, known)
    said = ", ".join(f"{count:,} forgotten on {date}" for date, count in sorted(days.items()))
    return f"{name}: rows that came again were taken out of it: {said}"


def arrived(root: Path, copied: Copied) -> str:
    """Take forgotten rows out of a drop that was copied; what is said of it, or nothing.

    The sums of a copy that stays as it is are kept, so that no build hashes it again.
    """
    if again := taken_out_again(root, copied.place):
        return again
    is_folder = copied.place.is_dir()
    paths = {each: copied.place / each if is_folder else copied.place for each in copied.sums}
    stamps = {each: (copied.sums[each], stamp_of(paths[each].stat())) for each in paths}
    DropHashes(root, copied.place).keep(stamps, is_own=True)
    return ""
