"""The steps of a takedown: what goes, what is left out and erased, and the scan that proves it.

Source: `docs/takedowns.md`.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from gristmill.contract import GristmillError
from gristmill.corpora.corpus import corpus_and_split
from gristmill.corpora.raw.drops import corpus_of
from gristmill.corpora.raw.forgotten import key_of
from gristmill.families import Unit
from gristmill.hashing import sha256_file
from gristmill.inbox.marks import FORGOTTEN
from gristmill.layout import DROPS, WORK
from gristmill.provenance.find_artifacts import Artifact, artifacts, readable
from gristmill.provenance.record import Input, Record
from gristmill.run.progress import SILENT, Progress
from gristmill.takedowns.erase import erase, list_again
from gristmill.takedowns.naming import Target, hash_of, target_of, with_equal
from gristmill.takedowns.plan import ERASED, LEFT_OUT, Plan, folder_of
from gristmill.takedowns.search import Found, Search, files_below

_CACHES: Final = ("answers", "browse", "drops", "history", "leaks")
"""What of `.gristmill` may be removed: no artifact, and no build that is under way."""


class Made(NamedTuple):
    """A published artifact with its record and inputs."""

    item: Artifact
    record: Record
    inputs: Sequence[Input]

    @property
    def bytes(self) -> int:
        """Of its files."""
        return sum(each.bytes for each in self.record.outputs)


def affected(root: Path, files: Collection[str]) -> list[Made]:
    """What was made from raw files, directly or not, each after its inputs.

    files: their paths below the data root.
    """
    every = [Made(*each) for each in readable(artifacts(root))]
    found, keys = list[Made](), set[tuple[str | None, str | None]]()
    while more := [
        each
        for each in every
        if each not in found
        and any(
            (item.path in files)
            if item.data_version is None
            else (item.path, item.partition) in keys
            for item in each.inputs
        )
    ]:
        found += more
        keys |= {(each.record.artifact, each.record.partition) for each in more}
    return found


def _refuse_endless(holder: Target, own: Sequence[Unit], erases: bool) -> None:
    """Raise GristmillError where rows cannot go from a drop, before a plan bars others."""
    root = holder.root
    if not erases and holder.how.leave_out is None:
        raise GristmillError(f"{holder.name}: no build leaves out rows of it: add --erase")
    gone = Counter(each.file for each in own if each.row)
    left_in = Counter(each.file for each in holder.units()) - gone if gone else gone
    for path in (holder.path(each) for each in {each.file for each in own} if erases):
        if path.resolve() != root.resolve() / path.relative_to(root):
            rule = f"is a link, or behind one: take the rows out of {path.resolve()}"
            raise GristmillError(f"{path}: {rule}")
    for file in (each for each in gone if not left_in[each]):
        rule = "no row would be left: remove the file, build, and name the texts by --text"
        raise GristmillError(f"{holder.path(file)}: {rule}")


def planned(
    target: Target,
    units: Sequence[Unit],
    texts: Sequence[str],
    how: Mapping[str, Any],
    progress: Progress = SILENT,
) -> tuple[Plan, list[Found], list[Made]]:
    """A plan, all places of the texts, and the artifacts that it builds again.

    units: the rows of a drop that go. how: `containing`, `erases`, `reason` and `shared`.

    Raises GristmillError where a drop's rows can only be erased, and nobody asked for that, and
    where they cannot be erased: before anything is changed, as a plan that cannot end bars others.
    """
    root, key = target.root, key_of(target.root, makes=True)
    found = list(places(root, Search(texts) if texts else None, progress))
    rows = {target.name: [*units]} if units else {}
    left = list[list[Any]]()
    for name in dict.fromkeys(_drop_of(root, each.path) for each in found):
        try:
            holder = target_of(root, name)
        except GristmillError:  # no drop, or one whose rows cannot go
            continue
        own = rows.get(name, [])
        known = {(unit.file, unit.row) for unit in own}
        others = [each for each in _holding(holder, texts) if (each.file, each.row) not in known]
        if how["containing"] and others:
            rows[name] = with_equal(holder, [*own, *others], key)
        else:
            left += ([f"{DROPS}/{name}", unit.file, unit.row] for unit in others)
    erases = how["erases"]
    for name, own in rows.items():
        _refuse_endless(target_of(root, name), own, erases)
    made = affected(
        root, {raw_path(root, name, unit.file) for name, some in rows.items() for unit in some}
    )
    plan = Plan(
        target.name,
        {
            name: [[unit.file, unit.row, hash_of(key, unit.values)] for unit in some]
            for name, some in rows.items()
        },
        [*texts],
        left,
        [[each.record.asset, each.record.partition or ""] for each in made],
        erases,
        how["reason"],
        how["shared"],
    )
    plan.versions = {_title(each.record): each.record.data_version for each in made}
    plan.counts["affected_bytes"] = sum(each.bytes for each in made)
    return plan, found, made


def _drop_of(root: Path, path: Path) -> str:
    """The drop that a file is in, as `reasoning/gsm8k`; empty for a file elsewhere."""
    parts = path.relative_to(root).parts
    return "/".join(parts[1:3]) if parts[0] == DROPS else ""


def _holding(target: Target, texts: Sequence[str]) -> list[Unit]:
    """The rows of a drop that hold one of the texts; of whole files all of the same name."""
    numbered = ((at, unit.values) for at, unit in enumerate(target.units()))
    hits = {each.row for each in Search(texts).in_rows(target.drop, "", numbered)}
    held = [unit for at, unit in enumerate(target.units()) if at in hits]
    names = {unit.name for unit in held if not unit.row}
    beside = (unit for unit in target.units() if not unit.row and unit.name in names)
    return list(
        {(unit.file, unit.row): unit for unit in (*held, *(beside if names else ()))}.values()
    )


def raw_path(root: Path, name: str, file: str) -> str:
    """Of a raw file, below the data root."""
    return target_of(root, name).path(file).relative_to(root).as_posix()


def stale(root: Path, plan: Plan) -> list[str]:
    """The artifacts that were made from files as they were before rows went, by their records."""
    every = [Made(*each) for each in readable(artifacts(root))]
    now = {(each.record.artifact, each.record.partition): each.record for each in every}
    wanted = {tuple(each) for each in plan.affected}

    def is_old(item: Input) -> bool:
        if item.data_version is None:
            path = root / str(item.path)
            is_raw = str(item.path).startswith(f"{DROPS}/")
            return is_raw and (not path.is_file() or sha256_file(path) != item.sha256)
        made = now.get((str(item.path), item.partition))
        return made is not None and made.data_version != item.data_version

    return [
        _title(each.record)
        for each in every
        if (each.record.asset, each.record.partition or "") in wanted
        and any(map(is_old, each.inputs))
    ]


def places(root: Path, search: Search | None, progress: Progress = SILENT) -> Iterator[Found]:
    """Yield where texts stand below a data root."""
    if search is not None:
        yield from search.everywhere(root, {folder_of(root)}, progress)


def _title(record: Record) -> str:
    return " ".join(filter(None, (record.asset, record.partition)))


def leave_out(root: Path, plan: Plan) -> None:
    """Write the tombstones of all rows of a plan."""
    for name, rows in plan.rows.items():
        target = target_of(root, name)
        if target.how.leave_out is not None:
            named = {(file, row) for file, row, _ in rows}
            target.how.leave_out(root, target.drop, named, plan.reason, plan.date)
        path = list_of(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        known = forgotten_of(root, name)
        lines = {**{own: [plan.reason, plan.date] for *_, own in rows}, **known}
        hidden = path.with_name(f".{path.name}")
        with hidden.open("w") as out:
            json.dump(lines, out, indent=0)
            out.flush()
            os.fsync(out.fileno())
        hidden.replace(path)
    plan.keep(root, LEFT_OUT)


def list_of(root: Path, name: str) -> Path:
    """The list of the rows of a drop that were forgotten, by their hashes."""
    return folder_of(root) / "rows" / f"{name}.json"


def forgotten_of(root: Path, name: str) -> dict[str, list[str]]:
    """Reason and day of each row of a drop that was forgotten, by its hash."""
    try:
        found: dict[str, list[str]] = json.loads(list_of(root, name).read_bytes())
    except FileNotFoundError:
        return {}
    return found


def erase_rows(root: Path, plan: Plan) -> None:
    """Take the rows of a plan out of their files; those that are out already are passed over."""
    for name, rows in plan.rows.items():
        if not plan.erases:
            break
        plan.counts["erased_bytes"] = plan.counts.get("erased_bytes", 0) + take_out(
            target_of(root, name), {own for *_, own in rows}, {file for file, *_ in rows}
        )
    plan.keep(root, ERASED)


def take_out(target: Target, hashes: Collection[str], erased: Collection[str] = ()) -> int:
    """Take the rows with some hashes out of a drop; returns the bytes that it has less.

    erased: files that a killed call may have written already.
    """
    key, files = key_of(target.root), defaultdict[str, set[int]](set)
    for unit in target.units():
        if hash_of(key, unit.values) in hashes:
            files[unit.file].add(unit.row)
    try:
        corpus = corpus_of(target.drop)
    except GristmillError:
        corpus = corpus_and_split("any__train")[0]
    less = 0
    for file, gone in files.items():
        less += erase(target.path(file), gone, corpus, target.how)
    every = {*files, *erased}
    for file in every:
        list_again(target.path(file))
    if target.how.gone is not None:
        target.how.gone(target.root, target.drop, every)
    return less


def scanned(
    root: Path, plan: Plan, search: Search | None, progress: Progress = SILENT
) -> tuple[list[Found], list[Found], list[str]]:
    """Where texts of a plan stand still, where they stand since rows stay, and what was removed.

    Files of caches that hold a text are removed: whoever needs them makes them again.
    """
    removed, found = list[str](), list[Found]()
    for each in places(root, search, progress):
        inside = each.path.relative_to(root).parts
        at = inside.index(WORK) if WORK in inside[:-1] else -1
        if at >= 0 and inside[at + 1] in _CACHES:
            each.path.unlink(missing_ok=True)
            removed.append("/".join(inside))
        else:
            found.append(each)
    stay = {f"{place}/{file}" for place, file, _ in plan.left}
    downstream = {
        made.item.folder / output.path
        for made in affected(root, stay)
        for output in made.record.outputs
    }
    raw = {
        raw_path(root, name, file)
        for name, rows in plan.rows.items()
        for file, _, _ in rows
        if not plan.erases
    }
    still, because = list[Found](), list[Found]()
    for each in found:
        file = each.path.relative_to(root).as_posix()
        stays = _stays(plan, each, file) if file in stay else each.path in downstream
        (because if stays or file in raw else still).append(each)
    return still, because, sorted(set(removed))


def _stays(plan: Plan, found: Found, file: str) -> bool:
    """Whether a row holds a text that nobody asked to remove; rows before it may be erased."""
    gone = [
        row
        for name, rows in plan.rows.items()
        for its, row, _ in rows
        if plan.erases and f"{DROPS}/{name}/{its}" == file
    ]
    left = {
        row - sum(each < row for each in gone)
        for at, its, row in plan.left
        if f"{at}/{its}" == file
    }
    return not found.row or found.row in left


def rows_left(root: Path, plan: Plan) -> int:
    """How many rows of a plan stand in the raw files still."""
    key, count = key_of(root), 0
    for name, rows in plan.rows.items():
        hashes = {own for *_, own in rows}
        target = target_of(root, name)
        count += sum(hash_of(key, unit.values) in hashes for unit in target.units())
    return count


def count_rebuilt(root: Path, plan: Plan) -> None:
    """Count the artifacts of a plan that have another data version now, and their bytes."""
    now = [Made(*each) for each in readable(artifacts(root))]
    other = [
        each
        for each in now
        if (before := plan.versions.get(_title(each.record))) is not None
        and before != each.record.data_version
    ]
    plan.counts |= {"rebuilt": len(other), "rebuilt_bytes": sum(each.bytes for each in other)}


def others(root: Path, plan: Plan) -> Iterator[str]:
    """Yield what no takedown of this data root can change."""
    from gristmill.data_root.drops import RootSettings

    if url := RootSettings(root).settings("mirror").get("push"):
        count = len(plan.affected)
        yield f"the mirror {url}: versions of {count:,} artifacts that were pushed before"
    yield "checkpoints of models, exports and copies elsewhere, as on a hub"


def taken_out_again(root: Path, drop: Path) -> str:
    """Take rows that were forgotten out of a drop that came again; what is said of it, or nothing.

    Where the drop has tombstones, no build takes the rows, and they stay.
    """
    name = drop.relative_to(root / DROPS).as_posix()
    if not (known := forgotten_of(root, name)) or (drop / FORGOTTEN).exists():
        return ""
    take_out(target := target_of(root, name), known)
    days = Counter(date for _, date in known.values())
    said = ", ".join(f"{count:,} forgotten on {date}" for date, count in sorted(days.items()))
    return f"{target.name}: rows that came again were taken out of it: {said}"


def sizes(root: Path) -> dict[str, int]:
    """How many files a scan reads, and their bytes."""
    found = [path.stat().st_size for path in files_below(root, {folder_of(root)})]
    return {"scanned_files": len(found), "scanned_bytes": sum(found)}
