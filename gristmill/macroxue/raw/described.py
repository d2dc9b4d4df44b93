"""The files of pools and views, what they name, and what their builds need.

Source: docs/formats/macroxue.md#pool-file, docs/formats/macroxue.md#view-file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill import keys, provenance
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.data_root import DataRoot, NotBuilt, NotRebuilt
from gristmill.inbox.listing import Account, IsThere, Waits
from gristmill.macroxue.config import ViewConfig
from gristmill.macroxue.raw import POOL_TABLE, VIEW_TABLE
from gristmill.printable import command
from gristmill.provenance import Input
from gristmill.settings.fields import did_you_mean, equal, shown
from gristmill.settings.tables import Table
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule
from gristmill.untrusted.toml import read_toml

PACK, VALUES = "macroxue/pack", "macroxue/values"
ANNOTATIONS_INBOX: Final = "annotations"
_MOST_NAMED: Final = 5


@dataclass(frozen=True)
class PoolFile:
    """The contents of a pool file; delete_members: the packs, after the pool is published."""

    members: tuple[str, ...]
    delete_members: bool
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class ViewFile:
    """The contents of a view file."""

    asset: str
    source: str
    annotations: str
    settings: Mapping[str, Any]

    @property
    def artifact(self) -> str:
        """Path of the pack or pool, relative to the data root."""
        return f"{self.asset}s/{self.source}"


def read_pool_file(path: Path, links: LinkRule = REFUSE_LINKS) -> PoolFile:
    """Read and check a pool file."""
    raw, settings = _opened(path, ("members", "delete_members"), POOL_TABLE, links)
    members = raw.get("members")
    if not isinstance(members, list) or not all(isinstance(name, str) for name in members):
        raise BadInput(path, "`members` must be a list of names of packs")
    if len(members) < 2 or len(set(members)) != len(members):
        raise BadInput(path, "`members` must name two or more packs, each once")
    for name in members:
        if reason := keys.refusal(name):
            raise BadInput(path, f"`members`: {reason}")
    delete = raw.get("delete_members", False)
    if not isinstance(delete, bool):
        raise BadInput(path, f"delete_members = {shown(delete)}: must be true or false")
    return PoolFile(tuple(members), delete, settings)


def read_view_file(path: Path, links: LinkRule = REFUSE_LINKS) -> ViewFile:
    """Read and check a view file."""
    raw, settings = _opened(path, ("pack", "pool", "annotations"), VIEW_TABLE, links)
    if ("pack" in raw) == ("pool" in raw):
        raise BadInput(path, "must name the pack or the pool that it is made from: one of them")
    kind = "pack" if "pack" in raw else "pool"
    for name in (kind, *(["annotations"] if "annotations" in raw else [])):
        if not isinstance(raw[name], str):
            raise BadInput(path, f"`{name}` must be a name")
        if reason := keys.refusal(raw[name]):
            raise BadInput(path, f"`{name}`: {reason}")
    try:
        ViewConfig(**settings)
    except ValueError as error:
        raise BadInput(path, f"{VIEW_TABLE.header} {error}") from error
    return ViewFile(f"macroxue/{kind}", raw[kind], raw.get("annotations", ""), settings)


def _opened(
    path: Path, own: Sequence[str], table: Table, links: LinkRule
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a file that says what a partition is made of, and its settings, checked."""
    name = table.name.removeprefix("macroxue/")
    try:
        raw = read_toml(path, root=path.parent, links=links)
    except FileNotFoundError as error:
        rule = f"the {name.removeprefix('training_')} file is gone: bring it back, or retire its "
        rule += f"partition with `{command('retire', path.name.removesuffix('.toml'))}`"
        raise BadInput(path, rule) from error
    known = (*own, "macroxue")
    if unknown := sorted(set(raw) - set(known)):
        key, keys_known = unknown[0], f"the known keys are {', '.join(known)}"
        raise BadInput(path, f"unknown key {shown(key)}{did_you_mean(key, known)}; {keys_known}")
    tables = raw.get("macroxue", {})
    if not isinstance(tables, dict):
        raise BadInput(path, f"[macroxue] must hold the table {table.header}, not {shown(tables)}")
    if others := sorted(set(tables) - {name}):
        rule = f"[macroxue] has the unknown key {shown(others[0])}; only {table.header} is read"
        raise BadInput(path, rule)
    return raw, table.checked(path, tables.get(name, {}))


def account(kind: str, file: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of the file of a pool or a view: it is taken, where it breaks no rule."""
    (read_pool_file if kind == "pool" else read_view_file)(file, links)
    return Account({"": [file.name]})


def pool_change(file: Path, root: Path, config: Mapping[str, Any], _raw: Sequence[str]) -> str:
    """What the next build of a pool takes instead of what its record has; empty for nothing."""
    lake = DataRoot(root)
    pool = read_pool_file(file, lake.rules("pools")[0])
    found = list(POOL_TABLE.changes({**lake.settings(POOL_TABLE.name), **pool.settings}, config))
    if not equal(pool.members, config.get("names")):
        found.insert(0, f"the members are now {', '.join(pool.members)}")
    return "; ".join(found)


def view_change(file: Path, root: Path, config: Mapping[str, Any], raw: Sequence[str]) -> str:
    """What the next build of a view takes instead of what its record has; empty for nothing."""
    lake = DataRoot(root)
    view = read_view_file(file, lake.rules("views")[0])
    found = list(VIEW_TABLE.changes({**lake.settings(VIEW_TABLE.name), **view.settings}, config))
    inbox = lake.inbox(ANNOTATIONS_INBOX).relative_to(root).as_posix()
    used = {path.removeprefix(f"{inbox}/").split("/")[0] for path in raw}
    if used != ({view.annotations} if view.annotations else set()):
        found.insert(0, f"the annotations are now {view.annotations or 'none'}")
    return "; ".join(found)


def pool_needs(file: Path, root: Path, _is_there: IsThere) -> None:
    """Raise Waits for a pool with members that are not published."""
    lake = DataRoot(root)
    missing = []
    for name in read_pool_file(file, lake.rules("pools")[0]).members:
        try:
            member(lake, lake.artifact("macroxue", "pools", file.stem), name)
        except NotBuilt:
            missing.append(name)
    if missing:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        named = ", ".join(missing[:_MOST_NAMED])
        raise Waits(f"{file}: waits for {PACK} {named}{more}, which is not built: bring its drop")


def view_needs(file: Path, root: Path, is_there: IsThere) -> None:
    """Raise Waits for a view whose source, values or annotations are not there."""
    lake = DataRoot(root)
    view = read_view_file(file, lake.rules("views")[0])
    try:
        values_of(lake, view, source_of(lake, view))
    except NotRebuilt:
        pass  # it can be built once these are built again: the build says so
    except NotBuilt as error:
        raise Waits(f"{file}: waits: {error}") from error
    if view.annotations and not is_there(ANNOTATIONS_INBOX, view.annotations):
        raise Waits(f"{file}: waits for drops/{ANNOTATIONS_INBOX}/{view.annotations}: bring it")


def member(lake: DataRoot, pool_artifact: str, name: str) -> Input:
    """A member of a pool as an input; if the pool deleted it, as the pool's record has it."""
    artifact = lake.artifact("macroxue", "packs", name)
    path = lake.root / pool_artifact / provenance.RECORD
    if not (lake.root / artifact).exists() and path.exists():
        record = provenance.read_record(path)
        for item in provenance.read_inputs(record, path):
            if item.path == artifact and artifact in record.deleted_inputs:
                return item
    return lake.published(artifact, PACK, name)


def refuse_merged_away(lake: DataRoot, key: str) -> None:
    """Raise NothingToBuild if a pool merged and deleted the pack, and would delete it again."""
    artifact = lake.artifact("macroxue", "packs", key)
    if (lake.root / artifact).exists():
        return
    for path in (item.record_path for item in lake.artifacts("macroxue/pools")):
        file = lake.inbox("pools") / f"{path.parent.name}.toml"
        if not file.exists() or artifact not in provenance.read_record(path).deleted_inputs:
            continue
        try:
            described = read_pool_file(file, lake.link_rule())
        except GristmillError as error:
            raise NothingToBuild(
                f"{key} was a member of the pool {path.parent.name}, which deleted its pack, and "
                f"the file of the pool cannot be read: {error}"
            ) from error
        if described.delete_members and key in described.members:
            raise NothingToBuild(
                f"{key} is a member of the pool {path.parent.name}, which deleted its pack: to "
                f"build the pack again, set delete_members = false in drops/pools/{file.name}"
            )


def stale_members(lake: DataRoot, pools: Collection[str] | None) -> dict[str, str]:
    """Returns what changed in members, by `pool/member`; of all pools where `pools` is None."""
    stale: dict[str, str] = {}
    for path in (item.record_path for item in lake.artifacts("macroxue/pools")):
        record = provenance.read_record(path)
        if pools is None or record.partition in pools:
            changed = _changed(lake, record, provenance.read_inputs(record, path))
            stale |= {f"{record.partition}/{name}": why for name, why in changed}
    return stale


def _changed(
    lake: DataRoot, record: provenance.Record, inputs: Sequence[Input]
) -> Iterator[tuple[str, str]]:
    """Yields the members of a pool that are not what it was merged from, and how they differ."""
    for item in inputs:
        if item.path is None or item.path in record.deleted_inputs:
            continue
        current = provenance.published_version(lake.root / item.path, item.partition)
        if current != item.data_version:
            yield str(item.partition), "is gone" if current is None else "was rebuilt"
    file = lake.inbox("pools") / f"{record.partition}.toml"
    if not file.exists():
        yield file.name, "is gone"
        return
    try:
        named = read_pool_file(file, lake.link_rule()).members
    except GristmillError as error:
        yield file.name, f"cannot be read: {error}"
        return
    if named != tuple(item.partition for item in inputs):
        yield file.name, f"now names other members: {', '.join(named)}"


def views_with(lake: DataRoot, annotations: str) -> list[str]:
    """The views whose files name a drop of annotations; a file that is refused names none."""
    found = []
    for file in sorted(lake.inbox("views").glob("*.toml")):
        try:
            if read_view_file(file, lake.rules("views")[0]).annotations == annotations:
                found.append(file.stem)
        except (GristmillError, OSError):
            continue  # the inbox of views says what is wrong with it
    return found


def source_of(lake: DataRoot, view: ViewFile) -> Input:
    """The pack or pool of a view. Raises NotBuilt where it is not published."""
    return lake.published(view.artifact, view.asset, view.source)


def values_of(lake: DataRoot, view: ViewFile, source: Input) -> list[Input]:
    """The values of a view's pack, or of each member of its pool, in order.

    Raises NotBuilt for values that are not published, NotRebuilt for those of another version of
    the pack than the source is or was merged from.
    """
    packs = [source] if view.asset == PACK else _inputs(lake, view.artifact)
    found = []
    for pack in packs:
        name = str(pack.partition)
        values = lake.published(lake.artifact("macroxue", "values", name), VALUES, name)
        if [item.data_version for item in _inputs(lake, str(values.path))] != [pack.data_version]:
            raise NotRebuilt(
                f"{values.path}: are the values of another version of {pack.path} than "
                f"{view.artifact} holds: materialize {view.asset} {view.source} and {VALUES} {name}"
            )
        found.append(values)
    return found


def _inputs(lake: DataRoot, artifact: str) -> list[Input]:
    path = lake.root / artifact / provenance.RECORD
    return provenance.read_inputs(provenance.read_record(path), path)
