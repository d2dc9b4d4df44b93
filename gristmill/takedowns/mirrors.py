"""Which versions in the mirror of a data root hold what a takedown is of, by their records alone.

Source: `docs/takedowns.md#mirrors`.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.data_root.drops import RootSettings
from gristmill.inbox.copying import write_whole
from gristmill.mirror.store import Store
from gristmill.mirror.versions import Version, files_of, listed, read
from gristmill.provenance.find_artifacts import artifacts, readable
from gristmill.takedowns.plan import NAMED, Plan, folder_of

_REMOVERS: Final = {
    "": "xargs -d '\\n' rm -f <",
    "s3": "xargs -d '\\n' -n 1 aws s3 rm <",
    "gs": "gcloud storage rm -I <",
}
"""What removes the objects of a list, by the scheme of their URLs; "" for files."""


def look(root: Path, plan: Plan) -> None:
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
