"""The data root as a Dagster resource: paths of drops and artifacts, and `gristmill.toml`.

Every path that an asset uses is made here. Every name in a path must be a valid key, since the
Dagster instance accepts any text as a partition key.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg

from gristmill import families, keys, provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.inbox import Settling
from gristmill.inbox.sample_mark import is_left_out
from gristmill.printable import command
from gristmill.provenance import Input
from gristmill.provenance import raw_inputs as rawfiles
from gristmill.run import kernels
from gristmill.run.ray_parts import RayParts
from gristmill.run.workers import on_other_machines
from gristmill.settings.engines import LOCAL, RUN, RunSettings
from gristmill.settings.fields import nearest, shown
from gristmill.settings.inboxes import INBOX, InboxSettings, inbox_table
from gristmill.settings.mirrors import MIRROR, MirrorSettings
from gristmill.settings.tables import (
    FILE,
    Settings,
    read_drop,
    read_root,
)
from gristmill.untrusted.files import LinkRule, open_folder

CHECKOUT = Path(__file__).resolve().parent.parent
LOCATION = "gristmill"
"""Name of the code location, as in workspace.yaml."""


class NotBuilt(GristmillError):
    """An artifact that a build needs is not published."""


class NotRebuilt(NotBuilt):
    """Artifacts that a build needs do not fit each other until one of them is built again."""


class Lake(dg.ConfigurableResource[Any]):
    """The data root: `data_root`, else the variable GRISTMILL_DATA, else `data/` in the checkout.

    The variable is read for each path, so that a change needs no restart of the code server.

    data_root: path of the data root; default empty.
    """

    data_root: str = ""

    @property
    def root(self) -> Path:
        """The absolute path of the data root."""
        chosen = self.data_root or os.environ.get("GRISTMILL_DATA") or CHECKOUT / "data"
        return Path(chosen).absolute()

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Let compiled functions use the data root, before a run needs one.

        context: of the resource; not used.
        """
        kernels.fall_back_to(self.root)

    def inbox(self, family: str) -> Path:
        """Returns the path of an inbox; the folder may not exist yet.

        family: name of the inbox, as `macroxue` or `pools`, or the path of one in another, as
            `puzzles/recipes`.

        Raises BadKey if a name is not a valid key.
        """
        return self.root.joinpath("drops", *map(keys.checked, family.split("/")))

    def drop(self, family: str, key: str) -> Path:
        """Returns the folder of a raw drop.

        family: name of the inbox.
        key: key of the drop.

        Raises GristmillError if the folder is gone, BadInput if it is a link and links are not
        allowed.
        """
        inbox = self.inbox(family)
        folder = inbox / keys.checked(key)
        try:
            with open_folder(folder, root=inbox, links=self.link_rule()):
                return folder
        except FileNotFoundError as error:
            raise GristmillError(
                f"{folder}: the raw drop is gone: bring it back, or retire its partition with "
                f"`{command('retire', key)}`"
            ) from error

    def link_rule(self) -> LinkRule:
        """Returns what happens to links in drops: `[inbox]` in the data root's gristmill.toml.

        Raises BadInput if the file is not TOML, or if the table is wrong.
        Source: docs/drops.md#links.
        """
        settings = self.settings(INBOX.name)
        try:
            chosen = InboxSettings(**settings)
        except ValueError as error:
            raise BadInput(settings.file, f"{INBOX.header} {error}") from error
        return LinkRule(chosen.follow_links, tuple(str(self.root / path) for path in chosen.roots))

    @contextmanager
    def engine(self) -> Iterator[None]:
        """Let builds within make their parts where `[run]` in the data root's gristmill.toml says.

        Raises BadInput if the file is not TOML, or if the table is wrong.
        Source: docs/clusters.md#parts-on-ray.
        """
        settings = RunSettings(**self.settings(RUN.name))
        if settings.engine == LOCAL:
            yield
            return
        engine = RayParts(
            settings.ray_address, settings.ray_cpus, settings.ray_memory, settings.ray_retries
        )
        with on_other_machines(engine):
            yield

    def mirror(self) -> MirrorSettings:
        """Returns what builds push to: `[mirror]` in the data root's gristmill.toml.

        A folder that is relative there is one relative to the data root.

        Raises BadInput if the file is not TOML, or if the table is wrong or names no asset.
        Source: docs/mirror.md#after-each-build.
        """
        settings = MirrorSettings(**self.settings(MIRROR.name))
        for name in settings.assets:
            if families.kind_of_asset(name) is None:
                known = [kind.asset for each in families.catalogs() for kind in each.kinds]
                meant = nearest(name, known)
                hint = f": did you mean {meant}?" if meant else ""
                raise BadInput(
                    self.root / FILE, f"[mirror] assets: no asset is {shown(name)}{hint}"
                )
        if settings.push and "://" not in settings.push:
            return replace(settings, push=os.path.normpath(self.root / settings.push))
        return settings

    def settling(self, inbox: str) -> Settling:
        """Returns what an inbox waits for before it takes a drop: `[inbox.<name>]`, then `[inbox]`.

        inbox: name of the inbox, as for `inbox`.

        Raises BadInput if the data root's gristmill.toml is not TOML, or if a table is wrong.
        Source: docs/drops.md#when-a-drop-has-arrived.
        """
        own = inbox_table(inbox)
        chosen = {**self.settings(INBOX.name)}
        if own.name in families.tables():
            chosen |= self.settings(own.name)
        default = InboxSettings()
        return Settling(
            chosen.get("settle_seconds", default.settle_seconds),
            chosen.get("require_done", default.require_done),
        )

    def artifact(self, *names: str) -> str:
        """Returns the POSIX path of an artifact relative to the data root.

        names: the names of the path, each a valid key.

        Raises BadKey if a name is not a valid key.
        """
        return "/".join(keys.checked(name) for name in names)

    def raw_inputs(
        self, artifact: str, files: Iterable[Path], asset: str, partition: str
    ) -> list[Input]:
        """Returns raw files as inputs of an artifact; files that its record knows are not hashed.

        artifact: path of the artifact relative to the data root.
        files: files below the data root.
        asset: key of the external asset for the files.
        partition: key of the drop.
        """
        known = rawfiles.known_hashes(self.root / artifact / provenance.RECORD)
        return rawfiles.raw_inputs(self.root, files, asset, partition, known, self.link_rule())

    def published(self, artifact: str, asset: str, partition: str | None = None) -> Input:
        """Returns a published artifact as an input of another one.

        artifact: path of the artifact relative to the data root.
        asset: key of the asset that must have published it.
        partition: key of the partition; default None: an asset without partitions.

        Raises NotBuilt if the artifact is not published, GristmillError if it belongs to another
        asset.
        """
        folder = self.root / artifact
        path = provenance.record_path(folder, None, shared=False)
        if partition is not None and not path.exists():
            path = provenance.record_path(folder, partition, shared=True)
        if not path.exists():
            what = f"{asset} {partition}" if partition is not None else asset
            raise NotBuilt(f"{folder}: {what} is not built: materialize {asset} first")
        record = provenance.read_record(path)
        if record.asset != asset:
            raise GristmillError(
                f"{folder}: is an artifact of {record.asset}, expected {asset}: move it away"
            )
        # Their folders or records may have changed places.
        if record.artifact != artifact or partition not in (None, record.partition):
            raise GristmillError(
                f"{path}: is the record of {record.artifact}, partition {record.partition}: "
                "put both where they belong, or move this one away and build it again"
            )
        return Input(
            asset=record.asset,
            partition=record.partition,
            data_version=record.data_version,
            path=artifact,
        )

    def settings(self, name: str, drop: Path | None = None) -> Settings:
        """Returns a table of `gristmill.toml`, checked: of the drop, else of the data root.

        A table in a drop's file takes the place of the whole table in the data root's file. The
        file of a sample does not count where real files are beside it.

        name: `macroxue/pack` is the table `[macroxue.pack]`. The tables are those of the
            families' catalogs, and `inbox`.
        drop: folder of a drop, whose file comes first; default None: the data root's file only.

        Raises BadInput, naming file, table and key, for a file that is not TOML, a table or key
        that is unknown or is not read there, and a value that its field cannot hold.
        """
        known = families.tables()
        if name not in known:
            raise ValueError(f"{name}: is no table of the families' catalogs: add it to `settings`")
        table = known[name]
        if drop is not None and os.path.lexists(drop / FILE) and not is_left_out(drop / FILE):
            tables = read_drop(drop / FILE, drop.parent.name, known, self.link_rule())
            if values := tables.get(name):
                return Settings(values, file=drop / FILE)
        if (self.root / FILE).is_file():
            return Settings(read_root(self.root / FILE, table, known), file=self.root / FILE)
        return Settings({}, file=self.root / FILE)
