"""A data root's paths, and the tables of its `gristmill.toml`.

Every path that an asset uses is made here. Every name in a path must be a valid key, since the
Dagster instance accepts any text as a partition key. See also `data_root.py`: what is there.

Source: `docs/drops.md#links`, `docs/drops.md#when-a-drop-has-arrived`,
`docs/mirror.md#after-each-build`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gristmill import families, keys
from gristmill.contract import BadInput, GristmillError
from gristmill.inbox import Settling
from gristmill.inbox.sample_mark import is_left_out
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.inboxes import INBOX, InboxSettings, inbox_table
from gristmill.settings.mirrors import MIRROR, MirrorSettings
from gristmill.settings.tables import FILE, Settings, read_drop, read_root
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule


class RootSettings:
    """A data root."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def root(self) -> Path:
        """The absolute path of the data root."""
        return self._root

    def inbox(self, family: str) -> Path:
        """Returns the path of an inbox; the folder may not exist yet.

        Raises BadKey if a name is not a valid key.
        """
        return self.root.joinpath("drops", *map(keys.checked, family.split("/")))

    def artifact(self, *names: str) -> str:
        """Returns the POSIX path of an artifact relative to the data root.

        Raises BadKey if a name is not a valid key.
        """
        return "/".join(keys.checked(name) for name in names)

    def link_rule(self) -> LinkRule:
        """Returns what happens to links in drops: `[inbox]` in the data root's gristmill.toml.

        Raises BadInput if the file is not TOML, or if the table is wrong.
        """
        settings = self.settings(INBOX.name)
        try:
            chosen = InboxSettings(**settings)
        except ValueError as error:
            raise BadInput(settings.file, f"{INBOX.header} {error}") from error
        return LinkRule(chosen.follow_links, tuple(str(self.root / path) for path in chosen.roots))

    def settling(self, inbox: str) -> Settling:
        """Returns what an inbox waits for before it takes a drop: `[inbox.<name>]`, then `[inbox]`.

        Raises BadInput if the data root's gristmill.toml is not TOML, or if a table is wrong.
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

    def rules(self, inbox: str) -> tuple[LinkRule, Settling, str]:
        """Returns what an inbox does with links, when its drops have arrived, and what is wrong.

        Where the settings cannot be read, links are refused and the defaults count, so that drops
        without links are still taken.
        """
        try:
            return self.link_rule(), self.settling(inbox), ""
        except (GristmillError, OSError) as error:
            usual = InboxSettings()
            settling = Settling(usual.settle_seconds, usual.require_done)
            return REFUSE_LINKS, settling, f"{error}: links in drops are refused"

    def mirror(self) -> MirrorSettings:
        """Returns what builds push to: `[mirror]` in the data root's gristmill.toml.

        A folder that is relative there is one relative to the data root. Raises BadInput if the
        file is not TOML, or if the table is wrong or names no asset.
        """
        settings = MirrorSettings(**self.settings(MIRROR.name))
        for name in settings.assets:
            if families.kind_of_asset(name) is None:
                known = [kind.asset for each in families.catalogs() for kind in each.kinds]
                rule = f"no asset is {shown(name)}{did_you_mean(name, known)}"
                raise BadInput(self.root / FILE, f"[mirror] assets: {rule}")
        if settings.push and "://" not in settings.push:
            return replace(settings, push=os.path.normpath(self.root / settings.push))
        return settings

    def settings(self, name: str, drop: Path | None = None) -> Settings:
        """Returns a table of `gristmill.toml`, checked: of the drop, else of the data root.

        A table in a drop's file takes the place of the whole table in the data root's file. The
        file of a sample does not count where real files are beside it. Raises BadInput, naming
        file, table and key, for a file that is not TOML, a table or key that is unknown or is not
        read there, and a value that its field cannot hold.
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
