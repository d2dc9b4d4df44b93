"""What a takedown says, before it and after it, and which versions in the mirror hold its rows.

Source: `docs/takedowns.md#the-report`, `docs/takedowns.md#runs-that-saw-the-rows`,
`docs/takedowns.md#mirrors`.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.data_root.drops import RootSettings
from gristmill.families import forgets
from gristmill.inbox.copying import write_whole
from gristmill.loading.commands import loader_of
from gristmill.loading.plan import step_of
from gristmill.mirror.store import Store
from gristmill.mirror.versions import Version, files_of, listed, read
from gristmill.provenance.find_artifacts import artifacts, readable
from gristmill.run import amounts
from gristmill.run.progress import Progress
from gristmill.takedowns.plan import NAMED, Plan, folder_of
from gristmill.takedowns.work import raw_rows

_MOST: Final = 20
_WHOLE: Final = ("removed", "made from files as they were", "in the mirror", "not reached")
_BYTES: Final = ("raw_bytes", "raw_unpacked_bytes")


def lines(plan: Plan) -> Iterator[str]:
    """Yield in words what a takedown is to do, or has done."""
    is_done, counts, still = plan.state != NAMED, Counter(plan.counts), plan.stands_still
    if is_done:
        yield f"{plan.date}: {plan.reason}"
    todo = "to erase" if plan.erased else "to leave out of builds"
    verb = ("erased" if plan.erased else "left out of builds") if is_done else todo
    for name, rows in plan.rows.items():
        named = ", ".join(f"{each['file']}:{each['row']}" for each in rows[:5])
        more = f" and {len(rows) - 5:,} more" if len(rows) > 5 else ""
        yield f"{name}: {_count(len(rows), 'row')} {verb}, {named}{more}"
    if not plan.rows:
        yield f"{plan.drop}: no row is one of the texts"
    if other := plan.texts_of_other_rows:
        texts = _count(other, "text")
        yield f"{texts} of these rows stand in other rows of the drop, too, and are not looked for"
    if is_done and plan.erased:
        yield f"raw files: {counts['erased_bytes']:,} bytes fewer; the rest is as it was"
    if is_done:
        made, of = counts["rebuilt_bytes"], counts["affected_bytes"]
        yield f"built again: {_count(counts['rebuilt'], 'artifact')}, {made:,} bytes of {of:,}"
        octets = amounts.size(counts["scanned_bytes"])
        where = f"{_count(len(still), 'place')} with a text that went"
        yield f"scan of {counts['scanned_files']:,} files, {octets}: {where}"
    files = Counter((each["place"], each["file"]) for each in plan.holds)
    listed = {
        "holds it": [
            f"{place}{': ' * bool(place)}{file}, {_count(count, 'place')}"
            for (place, file), count in files.items()
            if not is_done
        ],
        "stays": [
            f"{e['place']} {e['file']} row {e['row']:,} holds a text: --containing takes it"
            for e in plan.stays
        ],
        "built again": [
            f"{each['asset']} {each['partition']}, {amounts.size(each['bytes'])}"
            for each in plan.affected
            if not is_done
        ],
        "removed": plan.removed,
        "stands still": [f"{each['file']} row {each['row']:,}" for each in still],
        "made from files as they were": [f"{title}: build it again" for title in plan.stale],
        "in the mirror": plan.mirrored,
        "not reached": plan.not_reached,
    }
    for what, each_of in listed.items():
        most = len(each_of) if what in _WHOLE else _MOST
        yield from (f"{what}: {each}" for each in each_of[:most])
        if len(each_of) > most:
            yield f"{what}: {len(each_of) - most:,} more"
    if because := plan.stands_since_rows_stay:
        yield f"{_count(len(because), 'place')} with a text, since rows stay in raw files"
    yield from plan.steps


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def steps(
    root: Path, plan: Plan, states: Sequence[Path], mix: Path, progress: Progress
) -> Iterator[str]:
    """Yield what runs saw of the rows of a plan, a line for the state of each loader.

    Each sample of an artifact that is to be built again is traced to its raw row.
    """
    rows, spans = raw_rows(root, plan), dict[str, list[tuple[int, int]]]()
    for path, own in rows.items():
        how = forgets(path.split("/")[1])
        places = how.places(root / path) if how and how.places else None
        spans[path] = [places[row - 1] for row in own if row] if places else []

    def is_named(facts: Mapping[str, object]) -> bool:
        for path in (each for each in facts.values() if isinstance(each, str) and each in rows):
            at = next((str(facts[each]) for each in _BYTES if each in facts), "")
            begin = int(at.partition("-")[0] or -1)
            if not rows[path].isdisjoint((0, facts.get("raw_row"))) or any(
                low <= begin < high for low, high in spans[path]
            ):
                return True
        return False

    old = {each["data_version"] for each in plan.affected}
    for state in states:
        loader, found = loader_of(state, mix, root), set[int]()
        for at, source in enumerate(loader.plan.sources):
            if old.isdisjoint(source.identity.versions):
                continue
            count = int(source.cuts[-1])
            with progress.stage(f"tracing {source.identity.artifact}", "rows", count) as stage:
                for number in range(count):
                    if any(is_named(each.facts()) for each in source.origin(number)):
                        found |= {*loader.plan.seen(at, number, loader.position)}
                    stage.advance(1)
        seen = sorted({step_of(loader.changes, position) for position in found})
        shown = ", ".join([*map(str, seen[:_MOST]), *["..."][: len(seen) > _MOST]])
        of = f"{loader.step:,} steps of {state.name}"
        said = f"{len(found):,} samples in {len(seen):,} of {of} had the rows: {shown}"
        yield said if seen else f"none of {of} had the rows"


_REMOVERS: Final = {
    "": "xargs -d '\\n' rm -f <",
    "s3": "xargs -d '\\n' -n 1 aws s3 rm <",
    "gs": "gcloud storage rm -I <",
}
"""What removes the objects of a list, by the scheme of their URLs; "" for files."""


def look_in_mirror(root: Path, plan: Plan) -> None:
    """Say in a plan which versions in the mirror are of its artifacts, and what removes them.

    Those that are published now are made without the rows, once the plan is carried out.
    """
    plan.not_reached.append("checkpoints of models, exports and copies elsewhere, as on a hub")
    if not (url := RootSettings(root).settings("mirror").get("push")) or not plan.affected:
        return
    try:
        store = Store(url, make=False)
        if others := sum(Version.of(key) is None for key in store.keys("artifacts")):
            reason = f"{others:,} objects are no versions, as those of Gristmill 0.9.0"
            plan.not_reached.append(f"the mirror {url}: {reason}")
        known = [each for versions in listed(store).values() for each in versions]
        own = {each["name"] for each in plan.affected}
        found = [each for each in known if each.entry.name in own]
        if plan.state != NAMED:
            now = {record.data_version for _, record, _ in readable(artifacts(root))}
            found = [each for each in found if each.data_version not in now]
        plan.mirrored = [f"{each.entry.name}, {each}" for each in found]
        if found and plan.state != NAMED:
            files = {e: {e.file(file) for file in files_of(read(store, e)[1])} for e in known}
            stay = set[str]().union(*(files[each] for each in known if each not in found))
            gone = {each.key for each in found}.union(*(files[each] for each in found)) - stay
            path = folder_of(root) / f"{plan.begun}.mirror"
            is_folder, scheme = store.folder is not None, url.partition("://")[0]
            above = store.folder if is_folder else url.rstrip("/")
            write_whole(path, "".join(f"{above}/{key}\n" for key in sorted(gone)).encode())
            how = _REMOVERS.get("" if is_folder else scheme, "remove what is in")
            plan.mirrored.append(f"to remove them call: {how} {shlex.quote(str(path))}")
    except GristmillError as error:
        plan.not_reached.append(f"the mirror {url}: {error}")
