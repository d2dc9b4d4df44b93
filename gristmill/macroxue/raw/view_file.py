"""The view file, and what its build needs. Source: docs/formats/macroxue.md#view-file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill import keys, provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.data_root import DataRoot, NotBuilt, NotRebuilt
from gristmill.inbox.account import Account, IsThere, Waits
from gristmill.macroxue.config import ViewConfig
from gristmill.macroxue.raw.pool_file import VIEW_TABLE, opened, settings_in
from gristmill.provenance import Input
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule

PACK, VALUES, POOL = "macroxue/pack", "macroxue/values", "macroxue/pool"
ANNOTATIONS_INBOX: Final = "annotations"
_KNOWN: Final = ("pack", "pool", "annotations", "macroxue")


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


def read_view_file(path: Path, links: LinkRule = REFUSE_LINKS) -> ViewFile:
    """Read and check a view file."""
    raw = opened(path, _KNOWN, "view", links)
    if ("pack" in raw) == ("pool" in raw):
        raise BadInput(path, "must name the pack or the pool that it is made from: one of them")
    kind = "pack" if "pack" in raw else "pool"
    for name in (kind, *(["annotations"] if "annotations" in raw else [])):
        if not isinstance(raw[name], str):
            raise BadInput(path, f"`{name}` must be a name")
        if reason := keys.refusal(raw[name]):
            raise BadInput(path, f"`{name}`: {reason}")
    settings = settings_in(path, raw, VIEW_TABLE)
    try:
        ViewConfig(**settings)
    except ValueError as error:
        raise BadInput(path, f"{VIEW_TABLE.header} {error}") from error
    return ViewFile(f"macroxue/{kind}", raw[kind], raw.get("annotations", ""), settings)


def account(file: Path, links: LinkRule = REFUSE_LINKS) -> Account:
    """The account of a view's file: it is taken. Raises BadInput where it breaks a rule."""
    read_view_file(file, links)
    return Account({"": [file.name]})


def needs(file: Path, root: Path, is_there: IsThere) -> None:
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


def change(file: Path, root: Path, config: Mapping[str, Any], raw: Sequence[str]) -> str:
    """What the next build of a view takes instead of what its record has; empty for nothing."""
    lake = DataRoot(root)
    view = read_view_file(file, lake.rules("views")[0])
    found = list(VIEW_TABLE.changes({**lake.settings(VIEW_TABLE.name), **view.settings}, config))
    inbox = lake.inbox(ANNOTATIONS_INBOX).relative_to(root).as_posix()
    used = {path.removeprefix(f"{inbox}/").split("/")[0] for path in raw}
    if used != ({view.annotations} if view.annotations else set()):
        found.insert(0, f"the annotations are now {view.annotations or 'none'}")
    return "; ".join(found)


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
