"""What `gristmill doctor` finds: a data root's file system, Python, libraries, the instance."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata, util
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.history.versions import NEW
from gristmill.layout import HISTORY, WORK
from gristmill.provenance import RECORD
from gristmill.publish import storage
from gristmill.settings.tables import FILE, HASH, MIRROR, RAY, RUN, MirrorSettings, RunSettings
from gristmill.untrusted.toml import read_toml

_ENGINES: Final = ("ray", "dagster-ray", "dagster-celery", "dagster-dask", "dagster-k8s")


def chosen(root: Path) -> tuple[str, str, bool]:
    """Which engines are installed, what the settings choose, and whether that can be done.

    root: the data root. With a `gristmill.toml` that is refused nothing can be done.
    """
    installed = ["processes of this machine"]
    for name in _ENGINES:
        with suppress(metadata.PackageNotFoundError):
            installed.append(f"{name} {metadata.version(name)}")
    found = ", ".join(installed)
    try:
        run, mirror = settings_of(root)
    except (GristmillError, OSError) as error:
        return found, f"nothing is built: {error}", False
    use, missing = "parts are made by processes of this machine", []
    if run.engine == RAY:
        use = f"parts are tasks of the Ray cluster, ray_address {run.ray_address}"
        missing += [] if util.find_spec("ray") else ["ray"]
    if run.prove == HASH:
        use += "; every input is hashed before it is read"
    if mirror.push:
        use += f"; what is published is pushed to {mirror.push}"
        # The library of the hub is in the extra `pipeline`.
        needs = not mirror.push.startswith("hf://")
        missing += ["mirror"] if needs and util.find_spec("obstore") is None else []
    if missing:
        extras = " and ".join(f"`{extra}`" for extra in missing)
        return found, f"{use}; not installed: extra {extras}", False
    return found, use, True


def settings_of(root: Path) -> tuple[RunSettings, MirrorSettings]:
    """The tables `[run]` and `[mirror]` of the data root; other tables are not looked at.

    root: the data root; without a `gristmill.toml` all have their defaults.

    Raises BadInput for a file that is not TOML, and where one of the two is wrong.
    """
    file = root / FILE
    if not file.is_file():
        return RunSettings(), MirrorSettings()
    # The file of the data root is a person's own, and may be a link.
    real = Path(os.path.realpath(file))
    tables = read_toml(real, root=real.parent)
    run = RUN.checked(file, tables.get(RUN.name, {}))
    return RunSettings(**run), MirrorSettings(**MIRROR.checked(file, tables.get(MIRROR.name, {})))


_PINS: Final = Path(__file__).parents[2] / "constraints.txt"
_INSTANCE_SECONDS: Final = 120

_SPARE_BYTES: Final = 1 << 30
_SPARE_INODES: Final = 10_000
_LONGEST_NAME: Final = 211  # a lock file: two names of 100 bytes, `@`, and `@rank` with its number
_CLOCK_SECONDS: Final = 2.0

_USES: Final = {
    "place": ("rename to a free name", "a first build is published by it"),
    "exchange": ("exchange of folders", "a new version is published by it, in one step"),
    "rename_over": ("rename over a file", "finished parts and notes are written by it"),
    "hard_links": ("hard links", "a commit into a shared folder, or with a nested artifact"),
    "locks": ("file locks", "one builder for each artifact partition"),
    "flush_files": ("fsync of files", "a power cut after a commit loses nothing"),
    "flush_folders": ("fsync of folders", "a power cut after a commit loses no name"),
    "links": ("symbolic links", "a published folder may be moved away and linked"),
    "case": ("case of names", "partitions whose names differ in case alone"),
}
_NFS: Final = ({"nolock", "local_lock=all", "local_lock=flock"}, "mount without them")
_SMB: Final = ({"nobrl"}, "mount without it")
_LOCKS_STAY: Final[dict[str, tuple[set[str], str]]] = {
    "nfs": _NFS,
    "nfs4": _NFS,
    "cifs": _SMB,
    "smb3": _SMB,
    "lustre": ({"localflock", "noflock"}, "mount with `flock`"),
}
"""Options of a network file system that keep its locks on this host, by the kind of its mount."""
_UNKNOWN: Final = frozenset(
    {"ceph", "gpfs", "beegfs", "afs", "gfs2", "ocfs2"}
    | {"fuse.glusterfs", "fuse.sshfs", "fuse.juicefs", "fuse.ceph"}
)
"""Network file systems whose mount does not tell where locks are kept."""
_NOT_NEEDED: Final = {"place", "exchange", "links", "case"}


class Verdict(StrEnum):
    """How a finding stands: as it should be, to be known, or missing and needed."""

    OK = "ok"
    NOTE = "note"
    MISSING = "MISSING"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    found: str
    use: str
    verdict: Verdict = Verdict.OK

    def __str__(self) -> str:
        use = f" ({self.use})" if self.use else ""
        return f"{self.verdict:<8}{self.name}: {self.found}{use}"


def findings(root: Path) -> Iterator[Finding]:
    """All findings for a data root, in the order in which they are shown."""
    yield from of_file_system(root)
    yield of_history(root)
    yield from of_software()
    yield of_instance()
    yield of_engines(root)


def of_file_system(root: Path) -> Iterator[Finding]:
    """What the file system of `root` gives."""
    mounted = storage.mount(root)
    kind = "unknown" if mounted is None else f"{mounted.kind}, mounted at {mounted.point}"
    yield Finding("file system", kind, f"of {root.absolute()}")
    try:
        given, now = storage.abilities(root), storage.state(root)
    except OSError as error:
        why = error.strerror or str(error)
        yield Finding(
            "writing",
            why,
            "nothing can be published here; readers need no writing",
            Verdict.MISSING,
        )
        return
    for field, (name, use) in _USES.items():
        refusal: str | None = getattr(given, field)
        if refusal is None:
            yield Finding(name, "yes", use)
        elif field in _NOT_NEEDED:
            yield Finding(name, f"no: {refusal}", f"not possible here: {use}", Verdict.NOTE)
        else:
            cure = "put the data root on a local file system, such as ext4, xfs or btrfs"
            yield Finding(name, f"no: {refusal}", f"{use}; {cure}", Verdict.MISSING)
    yield _of_form(given)
    yield from _of_locks_between_hosts(mounted)
    yield from _of_state(now)


def _of_form(abilities: storage.Abilities) -> Finding:
    """Which form publishing takes, and whether the file system has what it needs."""
    name = "form of publishing"
    try:
        form = storage.setting()
    except GristmillError as error:
        return Finding(name, str(error), "nothing is published", Verdict.MISSING)
    if form == "auto":
        form = "link" if abilities.exchange else "exchange"
    refusal = abilities.links if form == "link" else abilities.exchange
    if refusal is not None:
        return Finding(name, form, f"not possible here: {refusal}", Verdict.MISSING)
    return Finding(name, form, f"{storage.VARIABLE} forces one")


def _of_locks_between_hosts(mount: storage.Mount | None) -> Iterator[Finding]:
    """Whether other hosts see the locks of a network file system, by what its mount says."""
    if mount is None or mount.kind not in {*_LOCKS_STAY, *_UNKNOWN}:
        return
    use, verdict = "several hosts may build in this data root", Verdict.NOTE
    options, cure = _LOCKS_STAY.get(mount.kind, (set(), ""))
    if not cure:
        found, use = "not known of this file system", f"try them on two hosts before {use}"
    elif mount.options & options or (mount.kind == "lustre" and "flock" not in mount.options):
        found, use = "no: the mount keeps locks on this host", f"build on one host only, or {cure}"
    else:
        found, verdict = "kept by the server", Verdict.OK
    yield Finding("locks between hosts", found, use, verdict)


def _of_state(state: storage.State) -> Iterator[Finding]:
    room = f"{state.free_bytes:,} bytes"
    low = Verdict.NOTE if state.free_bytes < _SPARE_BYTES else Verdict.OK
    yield Finding("free room", room, "a build that cannot fit is not begun", low)
    if state.free_inodes is None:
        yield Finding("free inodes", "no limit", "")
    else:
        low = Verdict.NOTE if state.free_inodes < _SPARE_INODES else Verdict.OK
        yield Finding("free inodes", f"{state.free_inodes:,}", "one for each file and folder", low)
    ahead = state.ahead_seconds
    wrong = abs(ahead) > _CLOCK_SECONDS
    yield Finding(
        "clock of the file system",
        f"{abs(ahead):,.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        if wrong
        else "that of this machine",
        "times of files say when a drop has arrived, and which inputs need no new hash",
        Verdict.NOTE if wrong else Verdict.OK,
    )
    short = state.longest_name < _LONGEST_NAME
    yield Finding(
        "longest name",
        f"{state.longest_name} bytes",
        f"a lock file has up to {_LONGEST_NAME}: keep names of drops short"
        if short
        else f"a lock file has up to {_LONGEST_NAME}",
        Verdict.NOTE if short else Verdict.OK,
    )


def of_history(root: Path) -> Finding:
    """How many versions are kept in `.gristmill/history`, their bytes, and what a kill left."""
    history = root / WORK / HISTORY
    files = [path for path in history.rglob("*") if path.is_file()]
    left = len([*history.rglob(NEW)])
    found = f"{sum(path.name == RECORD for path in files):,} versions, "
    found += f"{sum(path.stat().st_size for path in files):,} bytes"
    if not left:
        return Finding("history", found, "[history] keep bounds the versions of an artifact")
    use = "`gristmill prune` removes what a killed build left"
    return Finding("history", f"{found}, {left} not whole", use, Verdict.NOTE)


def of_software(pins: Path = _PINS) -> Iterator[Finding]:
    """Python, and the installed libraries whose versions are not the pinned ones."""
    version = platform.python_version()
    right = sys.version_info[:2] == (3, 11)
    use = "Gristmill is tested with 3.11"
    yield Finding("Python", version, use, Verdict.OK if right else Verdict.NOTE)
    if not pins.is_file():
        yield Finding("libraries", "no pins", "the pins are in a checkout", Verdict.NOTE)
        return
    same = 0
    for name, pinned in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", pins.read_text(), re.M):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed
        # A build for a machine, as of torch, has a local part after `+`.
        if found.partition("+")[0] == pinned.partition("+")[0]:
            same += 1
        else:
            use = "`make install` installs the pinned one; artifacts made with another may differ"
            yield Finding(name, f"{found}, pinned {pinned}", use, Verdict.NOTE)
    yield Finding("libraries", f"{same} as pinned", "in constraints.txt")


def of_instance() -> Finding:
    """The Dagster instance: its storage, and whether it answers.

    It is asked in a process of its own, so that a database that hangs ends nothing else.
    """
    if util.find_spec("dagster") is None or util.find_spec("commands") is None:
        return Finding(
            "instance", "none", "runs and the UI need a checkout with Dagster", Verdict.NOTE
        )
    # -P: not the folder in which the user typed the command, which may have a `commands`, too.
    command = [sys.executable, "-P", "-m", "commands.state"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTANCE_SECONDS, check=False
        )
        answer = json.loads(done.stdout)
        database, refusal = str(answer["storage"]), answer["refusal"]
    except subprocess.TimeoutExpired:
        database, refusal = "unknown", f"no answer in {_INSTANCE_SECONDS} s"
    except (OSError, ValueError, KeyError, TypeError):
        database, refusal = "unknown", "it cannot be asked: `gristmill ui` shows why"
    if refusal is None:
        return Finding("instance", f"{database}, reachable", "runs, sensors and the UI")
    use = "runs and the UI need it; `gristmill build` does not"
    return Finding("instance", f"{database}, not reachable: {refusal}", use, Verdict.NOTE)


def of_engines(root: Path) -> Finding:
    """Which engines are installed, and what the settings of the data root choose."""
    found, use, is_right = chosen(root)
    return Finding("engines", found, use, Verdict.OK if is_right else Verdict.NOTE)
