"""The data root: its paths and settings, drops that may be built from, artifacts as inputs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from gristmill import families, keys, provenance
from gristmill.contract import BadInput, GristmillError, NothingToBuild
from gristmill.hashing import sha256_of
from gristmill.inbox import GONE, READY, REFUSED, WAITS, Asked, Judgement, Settling
from gristmill.inbox.listing import Account, ColumnState, ambiguous, list_inbox
from gristmill.inbox.marks import SUMS, is_left_out, listed_sums, why_changed
from gristmill.inbox.readiness import HashOf, judged_now, present_drops, young_until
from gristmill.layout import DROPS
from gristmill.printable import command
from gristmill.provenance import Input, find_artifacts
from gristmill.provenance import raw_inputs as rawfiles
from gristmill.provenance.raw_inputs import DropHashes, Stamp, stamp_of
from gristmill.provenance.record import listing
from gristmill.settings.fields import did_you_mean, shown
from gristmill.settings.tables import (
    FILE,
    INBOX,
    MIRROR,
    InboxSettings,
    MirrorSettings,
    Settings,
    drop_refusal,
    inbox_table,
    read_drop,
    read_root,
)
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file, stat_file

log = logging.getLogger(__name__)


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
        file = self.root / FILE
        return Settings(read_root(file, table, known) if file.is_file() else {}, file=file)


class NotReady(NothingToBuild):
    """A drop is not there, not complete, or waits for something; the text says which.

    state: `gone`, `arriving`, `waits` or `unread`.
    """

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state


class NotBuilt(GristmillError):
    """An artifact that a build needs is not published. asset: the one that publishes it."""

    asset = ""


class NotRebuilt(NotBuilt):
    """Artifacts that a build needs do not fit each other until one of them is built again."""


class DataRoot(RootSettings):
    """A data root, with what is in it."""

    def asked(
        self,
        inbox: str,
        *,
        by_person: bool = True,
        alone: bool = False,
        made: list[Account] | None = None,
    ) -> Asked:
        """Returns what decides about the drops of an inbox.

        inbox: its name.
        by_person: whether drops count as complete because a person says so; default True.
        alone: whether it does not matter what else a drop needs; default False.
        made: takes the account of each drop that is not refused; default: nobody wants it.
        """
        links, settling, _ = self.rules(inbox)
        kind = families.drop_kind(inbox)

        def is_there(other: str, name: str) -> bool:
            return self._is_whole(other, self.inbox(other) / name, by_person)

        def refuse(drop: Path) -> str | None:
            if reason := drop_refusal(drop, families.tables(), links):
                return reason
            try:
                account = kind.account(drop, links)
            except BadInput as error:
                # What it says of the drop as a whole, it says without the sample's files.
                if error.file == str(drop) and (reason := why_changed(drop)):
                    raise BadInput(drop, reason) from error
                raise
            if made is not None:
                made.append(account)
            if not alone:
                kind.needs(drop, self.root, is_there)
            return None

        def hash_of(drop: Path) -> HashOf:
            return partial(DropHashes(self.root, drop).of_now, links=links)

        return Asked(refuse, links, settling, hash_of)

    def judged(
        self,
        inbox: str,
        drop: Path,
        made: list[Account] | None = None,
        sums: Mapping[str, str] | None = None,
    ) -> Judgement:
        """Returns the judgement of a drop that a person says is complete. Nothing is hashed.

        inbox: its name.
        drop: path of the drop in it.
        made: as for `asked`.
        sums: of its files, by name; default: those that are kept.
        """
        if not os.path.lexists(drop):
            return _gone(inbox, drop)
        shape, several = families.drop_kind(inbox).shape, None
        if shape.key_in is not None:  # another file may name its partition, too
            drops, _ = list_inbox(self.inbox(inbox), shape, self.rules(inbox)[0])
            several = ambiguous(drops.get(shape.key_of(drop.name), []))
        if several:
            return Judgement(REFUSED, several)
        asked = self.asked(inbox, made=made)
        if sums is not None:
            asked = replace(asked, hash_of=lambda _: sums.get)
        found = judged_now(drop, asked)[0]
        return found if os.path.lexists(drop) else _gone(inbox, drop)

    def ready_drop(self, inbox: str, name: str) -> tuple[Path, Account]:
        """Returns the path of a drop that a build may read, and its account; compares its sums.

        inbox: its name.
        name: of the entry in the inbox.

        Raises NotReady for a drop that is gone, not complete, or waits; GristmillError with the
        reason for one that is refused.
        """
        drop, made = self.inbox(inbox) / name, list[Account]()
        found = self.judged(inbox, drop, made, self._listed_sums(drop, self.rules(inbox)[0]))
        if found.is_buildable:
            return drop, made[-1]
        named = "" if str(drop) in found.reason else f"{drop}: "
        if found.state == REFUSED:
            raise GristmillError(f"{named}{found.reason}")
        state = WAITS if found.state == READY else found.state
        raise NotReady(state, f"{named}{found.reason}")

    def columns(
        self, drop: Path, account: Account, counts: Mapping[str, int | float] | None = None
    ) -> list[ColumnState]:
        """Returns what becomes of the columns of a drop; none where its rows cannot be read.

        drop: path of one that is not refused. account: the files to look at.
        counts: of the record of what was built from them; default: it is not built.
        """
        kind = families.inboxes().get(drop.parent.relative_to(self.root / DROPS).as_posix())
        if kind is None:
            return []
        try:
            return [*kind.column_states(drop, self.link_rule(), account, counts or {})]
        except (GristmillError, OSError) as error:
            log.warning("%s: nothing is said of its columns: %s", drop, error)
            return []

    def _listed_sums(self, drop: Path, links: LinkRule) -> dict[str, str]:
        """The sums of the files that a list of the drop has, hashed where they are not known.

        A file that cannot be hashed has none: the judgement or the build says what is wrong.
        """
        is_folder = drop.is_dir()
        try:
            listed = listed_sums(drop / SUMS if is_folder else Path(f"{drop}.sha256"), drop)
        except (GristmillError, OSError):
            return {}
        hashes = DropHashes(self.root, drop)
        new: dict[str, tuple[str, Stamp]] = {}

        def sum_of(name: str) -> str | None:
            path = drop / name if is_folder else drop
            try:
                stamp = stamp_of(stat_file(path, root=drop.parent, links=links))
                if (known := hashes.known(name, stamp)) is None:
                    with open_file(path, root=drop.parent, links=links, buffering=0) as file:
                        known = sha256_of(file)
                    new[name] = known, stamp
            except (GristmillError, OSError):
                return None
            return known

        with ThreadPoolExecutor() as threads:
            found = zip(listed, threads.map(sum_of, listed), strict=True)
            sums = {name: sha256 for name, sha256 in found if sha256 is not None}
        hashes.keep(new)
        return sums

    def _is_whole(self, inbox: str, drop: Path, by_person: bool) -> bool:
        """Whether another drop is there, complete and not refused, whatever it waits for."""
        if not os.path.lexists(drop):
            return False
        asked = self.asked(inbox, alone=True)
        found, seen = judged_now(drop, asked)
        if found.state != READY or seen is None:
            return False
        now = time.time_ns()
        until = young_until(seen.marks, now // 1_000_000, now, asked.settling)
        return by_person or seen.marks.says_complete or not until

    def taken(self, inbox: str) -> list[str]:
        """Returns the keys of the drops of an inbox that a build may read, sorted.

        inbox: its name.
        """
        shape = families.drop_kind(inbox).shape
        found = present_drops(self.inbox(inbox), self.asked(inbox), shape)
        return [arrival.key for arrival in found.arrivals]

    def partitions_of(self, asset: str, place: str) -> list[str]:
        """Returns the partitions of an asset that are published, sorted.

        asset: its key.
        place: folder of its artifacts, relative to the data root.
        """
        found = (provenance.read_record(item.record_path) for item in self.artifacts(place))
        return sorted(each.partition for each in found if each.asset == asset and each.partition)

    def artifacts(self, place: str) -> list[find_artifacts.Artifact]:
        """Returns the artifacts at or below a folder; says once which folders have no record.

        place: relative to the data root.
        """
        for line in self.without_record(place):
            _warn(line)
        return list(find_artifacts.artifacts(self.root / place))

    def without_record(self, *places: str) -> list[str]:
        """Returns the folders of artifacts that have no record, a line each with its cure.

        places: relative to the data root. Files beside the records of partitions are not named:
        the proof of an input refuses them.
        """
        tops = [self.root / place for place in places]
        return [
            f"{folder}: is left out, since it has no provenance record: bring {provenance.RECORD} "
            "back, or move the folder away and build it again"
            for top in tops
            if top.is_dir() and not find_artifacts.artifacts_in(top)
            for inner in _folders_in(top)
            for folder in _without_record(inner)
        ]

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
            error = NotBuilt(f"{folder}: {what} is not built: materialize {asset} first")
            error.asset = asset
            raise error
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


def _folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, but for hidden ones."""
    names = listing(folder).folders
    return [folder / name for name in names if not name.startswith(".")]


def _without_record(folder: Path) -> Iterator[Path]:
    """The topmost folders that hold files and have no record in, above or below them."""
    if find_artifacts.artifacts_in(folder):
        return
    if any(find_artifacts.artifacts(folder)):
        for inner in _folders_in(folder):
            yield from _without_record(inner)
    elif any(path.is_file() for path in folder.rglob("*")):
        yield folder


@cache
def _warn(line: str) -> None:
    """Say something once in a process."""
    log.warning("%s", line)


def _gone(inbox: str, drop: Path) -> Judgement:
    """The judgement of a drop that is not there."""
    key = families.drop_kind(inbox).shape.key_of(drop.name)
    named = key if keys.refusal(key) is None else "KEY"
    return Judgement(
        GONE,
        f"{drop}: the drop is gone: bring it back, or forget it with `{command('retire', named)}`",
    )
