"""Sources of which a version was replaced: which samples they gave, by what a history keeps.

Source: docs/history.md#a-run-from-before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gristmill import families
from gristmill.contract import GristmillError, Trace
from gristmill.history import versions
from gristmill.history.rows import named
from gristmill.history.versions import Version
from gristmill.layout import HISTORY, WORK
from gristmill.loading.bijection import Numbers
from gristmill.loading.source import Identity, Source
from gristmill.provenance import RECORD
from gristmill.provenance.find_artifacts import artifacts, readable
from gristmill.provenance.inventory import Entry
from gristmill.provenance.trace_inputs import NotTraced, Origin
from gristmill.provenance.trace_inputs import Source as Made

if TYPE_CHECKING:
    import polars as pl

_VIEWS: Final = ("picked", "grouped", "packed")
Part = tuple[Version, str | None, int | None]
"""A version, one of its splits or None, and the samples of it, None where its rows say it."""


class NotKept(GristmillError):
    """A version is neither published nor kept."""


class Past:
    """Samples of kept versions by number: where they came from; what they were is gone.

    root: the data root. wanted: the source that a state names. `of` says which samples they are.
    firsts: the first sample of each row, int64 [rows]. shards: how many its reader has, each
    shuffled in a window of its own. needs: the versions that its samples are read of.
    """

    cuts: Numbers
    firsts: Numbers
    shards: int
    needs: list[Version]

    def __init__(self, root: Path, wanted: Identity) -> None:
        numbering = {name: v for name, v in wanted.numbering.items() if name not in _VIEWS}
        self.root, self.identity = root.absolute(), replace(wanted, numbering=numbering)
        self._frames: dict[tuple[str, str | None], pl.DataFrame] = {}

    @cached_property
    def versions(self) -> list[Version]:
        """The versions. Raises NotKept where one is neither kept nor published."""
        return [self.version(each) for each in self.identity.versions]

    @cached_property
    def _published(self) -> dict[str, Version]:
        return {
            record.data_version: Version(
                self.root, Entry.of(self.root, item), item.folder, record, is_kept=False
            )
            for item, record, _ in readable(artifacts(self.root))
        }

    def version(self, data_version: str) -> Version:
        """The version of this data version. Raises NotKept."""
        for folder in sorted((self.root / WORK / HISTORY).glob(f"**/{data_version}")):
            with suppress(GristmillError):
                return versions.read(self.root, folder)
        if data_version in self._published:
            return self._published[data_version]
        raise NotKept(
            f"{self.identity.artifact}: data version {data_version} is neither published here "
            "nor among the kept versions"
        )

    def all_of(self, *assets: str) -> Iterator[Version]:
        """The versions of artifacts of some assets, published and kept."""
        for version in self._published.values():
            if version.record.asset in assets:
                yield version
                yield from versions.kept(self.root, version.entry)[0]

    def frame(self, version: Version, split: str | None) -> pl.DataFrame:
        """The rows of a version, of one split or all, by their first sample."""
        import polars as pl

        at = version.record.data_version, split
        if at not in self._frames:
            of_split = True if split is None else pl.col("split") == split
            with version.rows() as rows:
                self._frames[at] = rows.filter(of_split).sort("first").collect()
        return self._frames[at]

    def of(
        self,
        parts: Sequence[Part] | None = None,
        counts: Callable[[Numbers], Numbers] | None = None,
    ) -> Past:
        """Number the samples of parts, one after the other; default: those of the split.

        counts: of each row by its size; default: as they are kept.
        """
        import polars as pl

        parts = parts or [(each, self.identity.split, None) for each in self.versions]
        cuts, frames = [0], list[pl.DataFrame]()
        for part, (version, split, samples) in enumerate(parts):
            frame = self.frame(version, split)
            if counts is not None:
                count = pl.Series(counts(frame["size"].to_numpy().astype(np.int64)))
                frame = frame.with_columns(first=count.cum_sum() - count, count=count)
            last = int((frame["first"] + frame["count"]).to_numpy().max(initial=0))
            frames.append(frame.with_columns(pl.col("first") + cuts[-1], part=part))
            cuts.append(cuts[-1] + (last if samples is None else samples))
        self._rows, self.cuts, self.shards = pl.concat(frames), np.array(cuts, np.int64), len(parts)
        self.needs = self._versions = [version for version, *_ in parts]
        self.firsts = self._rows["first"].to_numpy()
        return self

    def lengths(self) -> Numbers:
        """Tokens of each document, int64 [N]."""
        return self._rows["size"].to_numpy().astype(np.int64)

    def read(self, _: Numbers) -> Any:
        """Refuse: nothing is kept of what the samples were."""
        each_of = (f"{e.entry.name} --version {e.record.data_version[:16]}" for e in self.needs)
        listed = [*dict.fromkeys(each_of)]
        more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
        raise NotKept(
            f"{self.identity.artifact}: its samples are gone, since it was built again: they are "
            f"read of {', '.join(listed[:3])}{more}: name a mirror that has it with --mirror"
        )

    def origin(self, number: int) -> Iterator[Trace]:
        """The rows that a sample came from, and the raw place of each."""
        import polars as pl

        if not 0 <= number < int(self.cuts[-1]):
            raise IndexError(f"no sample {number}: there are {int(self.cuts[-1]):,}, from 0")
        inside = (pl.col("first") <= number) & (number < pl.col("first") + pl.col("count"))
        for row in self._rows.filter(inside).iter_rows(named=True):
            yield from self._steps(self._versions[row["part"]], row)

    def _steps(self, version: Version, row: Mapping[str, Any]) -> Iterator[Trace]:
        import polars as pl

        (own,) = named([row])
        facts: dict[str, object] = {"artifact": version.entry.title}
        facts["data_version"] = version.record.data_version
        facts |= {name: own[name] for name in ("split", "name", "hash") if name in own}
        made = [each for each in version.inputs if row["file"] == each.asset and each.data_version]
        if not made and row["file"]:
            file, folder, inputs = row["file"], version.folder, tuple(version.inputs)
            source = Made(folder, self.root, folder / RECORD, version.record, inputs)
            try:
                facts |= source.raw_facts(source.raw_input(file))
            except NotTraced:
                facts["raw_file"] = file
            if row["place"] >= 0:
                facts.pop("raw_bytes", None)
                is_bytes = row["end"] >= 0
                place = f"{row['place']}-{row['end']}" if is_bytes else row["place"]
                facts["raw_bytes" if is_bytes else "raw_row"] = place
        yield Origin(facts)
        for given in made[:1]:
            try:
                before = self.version(str(given.data_version))
                of_row = self.frame(before, None).filter(pl.col("first") == row["place"])
                (found,) = of_row.iter_rows(named=True)
            except (GristmillError, ValueError) as error:
                yield Origin({"not_traced": f"row {row['place']} of {given.path}: {error}"})
            else:
                yield from self._steps(before, found)


def source_of(
    root: Path, identity: Identity, samples: int, options: Sequence[Mapping[str, Any]]
) -> tuple[Source, Past]:
    """The source that a state names, by the kept versions; and its rows.

    options: of each source of the mix file: the first that gives this source counts. Raises
    GristmillError where its versions are not kept, or no options give it.
    """
    past, why = Past(root, identity), ""
    kind = families.kind_of_asset(identity.asset)
    if kind is None or kind.past is None:
        kind = families.kind_of_asset(past.versions[0].record.asset)
    assert kind is not None and kind.past is not None, identity.asset
    for each in options:
        try:
            found: Source = kind.past(past, **each)
            if (found.identity.text, int(found.cuts[-1])) == (identity.text, samples):
                return found, past
        except NotKept:
            raise
        except GristmillError as error:
            why = f": {error}"
    raise GristmillError(
        f"{identity.artifact}: no source of the mix file gives what the state names{why}"
    )
