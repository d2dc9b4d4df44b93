"""The drop that a data root's Harmony dataset is built from: raw files, or a finished conversion.

The sample drop is used only if there is no other complete drop.
Source: `docs/formats/synth.md#complete-drop`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gristmill import provenance
from gristmill.contract import BadInput, GristmillError
from gristmill.data_root import DataRoot, NotReady
from gristmill.inbox import ARRIVING, GONE, REFUSED, UNREAD
from gristmill.inbox import READY as READY_STATE
from gristmill.inbox.listing import Account, ColumnState, IsThere, Unread
from gristmill.inbox.marks import own_files, sums_of
from gristmill.inbox.readiness import judged_now
from gristmill.provenance import Input, raw_inputs
from gristmill.publish.build import LeftOut
from gristmill.synth import raw
from gristmill.synth.raw import NUMBERS, RAW, READY
from gristmill.takedowns.left_out import left_out
from gristmill.untrusted.files import LinkRule

HARMONY: Final = "synth/harmony"
FOLDER: Final = "synth_harmony"
"""The folder of the Harmony dataset, below the data root."""
_ASSETS: Final = {RAW: "synth/raw", READY: "synth/ready_harmony"}
_SAMPLES: Final = "samples"


@dataclass(frozen=True)
class Source:
    """A drop.

    inbox: RAW or READY.
    folder: the drop, in that inbox.
    """

    inbox: str
    folder: Path

    @property
    def name(self) -> str:
        """Its name in settings, as `synth/first`."""
        return f"{self.inbox}/{self.folder.name}"

    @property
    def is_sample(self) -> bool:
        """Whether it is the sample, without files of a person."""
        if not (own := own_files(self.folder)):
            return self.folder.name == _SAMPLES and not sums_of(self.folder)
        return own.issuperset(path.name for path in raw.files(self.folder))


def raw_file_count(lake: DataRoot, folder: Path) -> int:
    """Returns how many raw files make a drop complete."""
    return int(lake.settings(_ASSETS[RAW], folder).get("files", raw.FILES))


def source_of(lake: DataRoot) -> Source:
    """Returns the drop of `synth_harmony/`. Raises NotReady for none or several; GristmillError."""
    drops, name = lake.root / "drops", lake.settings(HARMONY).get("drop")
    present = present_sources(drops)
    if not present:
        rule = f"there is no drop: put raw files into {RAW}/<name>/, or a finished conversion into"
        raise NotReady(GONE, f"{drops}: {rule} {READY}/<name>/")
    if name is not None and not (present := [each for each in present if each.name == name]):
        rule = f"there is no drop {name!r}, which gristmill.toml names: correct [synth.harmony]"
        raise NotReady(GONE, f"{drops}: {rule} drop, or bring the drop back")
    complete, reasons, states = [], [], set()
    for source in present:
        found, _ = judged_now(source.folder, lake.asked(source.inbox, alone=True))
        states.add(found.state)
        if found.state == READY_STATE:
            complete.append(source)
        else:
            named = "" if str(source.folder) in found.reason else f"{source.folder}: "
            reasons.append(f"{named}{found.reason}")
    if not complete:
        error = GristmillError("\n".join(reasons))
        raise error if REFUSED in states else NotReady(ARRIVING, str(error))
    complete = [source for source in complete if not source.is_sample] or complete
    if len(complete) > 1:
        names = ", ".join(source.name for source in complete)
        raise NotReady(
            UNREAD,
            f"several drops are complete ({names}) and there is one dataset: name the one to build "
            f"from in the data root's gristmill.toml, [synth.harmony] drop = "
            f'"{complete[0].name}"',
        )
    return complete[0]


def present_sources(drops: Path) -> list[Source]:
    """Return the folders in both inboxes, complete or not. Hidden folders are left out."""
    return [
        Source(inbox, folder)
        for inbox in (RAW, READY)
        for folder in sorted((drops / inbox).glob("*"))
        if folder.is_dir() and not folder.name.startswith(".")
    ]


def record_path(lake: DataRoot, artifact: str, partition: str) -> Path:
    """Returns the path of a shard's record in the folder that the shards share."""
    return provenance.record_path(lake.root / artifact, partition, shared=True)


def drop_of_shard(lake: DataRoot, number: str) -> Path | None:
    """Returns the drop that a Harmony shard was built from, which may be gone, or None."""
    path = record_path(lake, FOLDER, number)
    if not path.exists():
        return None
    inputs = provenance.read_inputs(provenance.read_record(path), path)
    return next(((lake.root / item.path).parent for item in inputs if item.path), None)


def refuse_samples(lake: DataRoot, source: Source) -> None:
    """Raise GristmillError if samples would take the place of what another drop was built into.

    A drop that was moved away, or that a copy left incomplete, must not end the dataset. A shard
    whose record is damaged does not say what it was built from: `publish` replaces it if asked to.
    """
    if not source.is_sample or lake.settings(HARMONY).get("drop"):
        return
    for number in NUMBERS:
        try:
            used = drop_of_shard(lake, number)
        except GristmillError:
            continue
        if used is None or used == source.folder:
            continue
        what = "is not complete" if used.is_dir() else "is gone"
        raise GristmillError(
            f"{lake.root / FOLDER}: its drop {what}: {used.relative_to(lake.root)}; bring it back, "
            f"or take the shards away to build them from the samples: `gristmill remove {HARMONY} "
            f"--partition {number}`, and so on for each shard"
        )


def available(lake: DataRoot) -> Sequence[str]:
    """Returns the shards that can be built: all of them, or none without a drop in use."""
    try:
        source_of(lake)
    except GristmillError:
        return ()  # the inboxes report which drop is refused and why
    return NUMBERS


def drop_inputs(
    lake: DataRoot, source: Source, files: Sequence[Path], record: str
) -> tuple[list[Input], LeftOut]:
    """Returns files of a drop as inputs, and what of them is left out.

    Files that the record knows are not hashed again.
    """
    known = raw_inputs.known_hashes(record_path(lake, FOLDER, record))
    asset, name = _ASSETS[source.inbox], source.folder.name
    inputs = raw_inputs.raw_inputs(lake.root, files, asset, name, known, lake.link_rule())
    if source.inbox == RAW:
        raw_inputs.refuse_equal(lake.root, inputs)
    return inputs, left_out(lake, [source.folder], files, asset, name)


def account(inbox: str, drop: Path, links: LinkRule) -> Account:
    """Returns what becomes of each file of a drop, whatever the other drops are.

    inbox: `RAW` or `READY`. Raises BadInput for a drop that is refused.
    """
    if inbox == RAW:
        # The root is above `drops/` and the inbox; for a path of fewer folders the highest one.
        return raw.raw_account(drop, links, raw_file_count(DataRoot(drop.parents[:3][-1]), drop))
    from gristmill.synth.builders import manifests

    found = raw.ready_account(drop, links)
    for violation in manifests.folder_violations(drop, links):
        raise BadInput(drop, str(violation))
    return found


def column_states(
    inbox: str, drop: Path, links: LinkRule, account: Account, _counts: Mapping[str, float]
) -> list[ColumnState]:
    """What becomes of the columns of raw files, by their first rows. inbox: as for `account`."""
    if inbox != RAW:
        return []
    from gristmill.corpora.account import Head, rows_of_parquet, states_of
    from gristmill.synth.config import HarmonyConfig

    paths = [drop / names[0] for names in account.taken.values() if names]
    heads = [Head("", rows) for rows in rows_of_parquet(paths, links).values()]
    settings = DataRoot([*drop.parents][:3][-1]).settings("synth/harmony", drop)
    fields = settings.get("metadata_fields", HarmonyConfig.metadata_fields)
    read = dict.fromkeys(fields, "metadata_fields") | dict.fromkeys(raw.TEXTS, "messages")
    return states_of(heads, read)


def needs(drop: Path, root: Path, _is_there: IsThere) -> None:
    """Raise Unread for a drop that is not the one in use."""
    try:
        used = source_of(DataRoot(root))
    except GristmillError as error:
        raise Unread(str(error)) from error
    if used.folder != drop:
        raise Unread(
            f"{used.name} is the drop in use: to use this drop, name it in gristmill.toml as "
            "[synth.harmony] drop"
        )
