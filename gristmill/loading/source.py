"""What the loader needs of a family: samples by number, their names, and where they came from."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gristmill.contract import GristmillError, Trace
from gristmill.loading.bijection import Numbers, Words
from gristmill.reading.generation import Generation

Columns = dict[str, npt.NDArray[Any]]

MOST_VERSIONS: Final = 16
"""A source of more artifacts names them by one digest."""


@dataclass(frozen=True)
class Identity:
    """What decides which sample a number is.

    asset: key of the asset, as `chess/game_dataset`.
    versions: data version of each artifact or partition, in the order of the numbers; of more than
        16 the sha256 of the list.
    split: as the reader names it; None without splits.
    numbering: further facts of JSON by which numbers were given, such as the digest of a selection.
    artifact: path for a person. It is no part of the key: a copy elsewhere has the same order.
    """

    asset: str
    versions: tuple[str, ...]
    split: str | None = None
    numbering: Mapping[str, Any] = field(default_factory=dict)
    artifact: str = ""

    @property
    def text(self) -> str:
        """The JSON text that keys the order."""
        return json.dumps(self.facts(), sort_keys=True)

    def facts(self) -> dict[str, Any]:
        """The parts of the key, as a state has them."""
        return {
            "asset": self.asset,
            "versions": list(self.versions),
            "split": self.split,
            "numbering": dict(self.numbering),
        }


@runtime_checkable
class Source(Protocol):
    """Samples by number, from 0. It can be pickled: a worker opens its files again.

    cuts: int64 [S + 1]: the first number of each shard, and the length.

    One whose samples a person can see has `shown(number)`: what `gristmill show` takes for each
    part of a sample. One whose samples have tokens also has `lengths()`, int [N]; one whose ids are
    of a vocabulary of its own has `words`, a text that names it, and the length of rows that have
    one length: a mixture has sources of the same words. One whose columns are filled with another
    number than 0 where other rows are longer has `behind`, that number by the column's name.
    """

    @property
    def identity(self) -> Identity:
        """What decides which sample a number is."""

    @property
    def cuts(self) -> Numbers:
        """The first number of each shard, and the length."""

    def read(self, numbers: Numbers) -> Columns:
        """Columns [N, ...] of samples [N] by name, in the order asked."""

    def origin(self, number: int) -> Iterator[Trace]:
        """Where a sample came from, down to the raw file."""


def identity_of(
    asset: str,
    generations: Sequence[Generation],
    split: str | None = None,
    numbering: Mapping[str, Any] | None = None,
) -> Identity:
    """The identity of what a reader has open.

    asset: key of the asset. generations: of the artifacts, in the order of the numbers.
    split, numbering: as `Identity`; default none.

    Raises GristmillError for files without a record: nothing would tell another version from them.
    """
    for each in generations:
        if each.data_version is None:
            raise GristmillError(
                f"{each.folder}: has no provenance record, so no state could name its version:"
                " build it with Gristmill, or read it by its reader without the loader"
            )
    versions = tuple(str(each.data_version) for each in generations)
    if len(versions) > MOST_VERSIONS:
        listed = json.dumps(versions).encode()
        versions = (f"sha256 of {len(versions)}: {hashlib.sha256(listed).hexdigest()}",)
    folders = ", ".join(dict.fromkeys(short(each.folder) for each in generations))
    return Identity(asset, versions, split, numbering or {}, folders)


def names_of(identities: Sequence[Identity]) -> list[str]:
    """A name for each source, no two alike: its artifact, where several have it the split, too.

    Those that still have one name get their number among all sources, from 1.
    """
    artifacts = Counter(each.artifact for each in identities)
    names = [
        f"{each.artifact} {each.split}"
        if artifacts[each.artifact] > 1 and each.split
        else each.artifact
        for each in identities
    ]
    counts = Counter(names)
    return [
        f"{name} (source {number})" if counts[name] > 1 else name
        for number, name in enumerate(names, start=1)
    ]


def only(folders: Sequence[Path]) -> Path:
    """The one folder. Raises GristmillError for several."""
    if len(folders) != 1:
        raise GristmillError(
            f"{folders[1]}: a source of this asset has one folder: give each a source of its own"
        )
    return folders[0]


def digest_of(numbers: npt.NDArray[Any]) -> str:
    """The sha256 of chosen numbers as int64, which names a selection in `Identity.numbering`."""
    return hashlib.sha256(np.ascontiguousarray(numbers, "<i8").view(np.uint8).data).hexdigest()


def short(folder: Path) -> str:
    """The last three names of a folder, as of `chess/dataset/elite_2024-01_game`."""
    return "/".join(folder.absolute().parts[-3:])


class View:
    """A source whose places are samples of another one.

    source: the whole, or a view of it. kind: the name in `numbering` of the digest of `facts`.
    """

    def __init__(self, source: Source, kind: str, facts: npt.NDArray[Any], length: int) -> None:
        self._source = source
        numbering = {**source.identity.numbering, kind: digest_of(facts)}
        self.identity: Identity = replace(source.identity, numbering=numbering)
        self.cuts: Numbers = np.array([0, length], np.int64)
        self.read, self.origin = source.read, source.origin
        self.shown = getattr(source, "shown", None)

    @property
    def whole(self) -> Source:
        """The source that has the samples."""
        return whole(self._source)

    def chosen(self, places: Numbers, bits: Words) -> Numbers:
        """The samples int64 [N] of places int64 [N], by the random bits uint64 [N] of the draws."""
        own = self._own(places, bits)
        return self._source.chosen(own, bits) if isinstance(self._source, View) else own

    def place(self, number: int) -> int:
        """The place that gives a sample, perhaps among others. Raises IndexError for none."""
        own = self._source.place(number) if isinstance(self._source, View) else number
        return self._place(own)

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        raise NotImplementedError

    def _place(self, number: int) -> int:
        raise NotImplementedError


def whole(source: Source) -> Source:
    """The source that has the samples of a view; else the source itself."""
    return source.whole if isinstance(source, View) else source


class Picked(View):
    """Chosen samples of a source.

    numbers: int64 [N], each of a sample, in any order; with `counts` the first of each range.
    counts: int64 [N], samples of each range; default one. Memory grows with ranges.

    Raises GristmillError for none, a number outside and a sample that is chosen twice.
    """

    def __init__(self, source: Source, numbers: Numbers, counts: Numbers | None = None) -> None:
        firsts = np.asarray(numbers, np.int64)
        sizes = np.ones_like(firsts) if counts is None else np.asarray(counts, np.int64)
        self._firsts, self._ends = firsts, np.cumsum(sizes, dtype=np.int64)
        self._shift = firsts - (self._ends - sizes)
        order = np.argsort(firsts, kind="stable")
        bounds = np.append(firsts[order], source.cuts[-1])
        if not len(firsts) or bounds[0] < 0 or (bounds[:-1] + sizes[order] > bounds[1:]).any():
            raise GristmillError(
                f"{source.identity.artifact}: the chosen samples are none, or one is outside of"
                f" 0 to {int(source.cuts[-1]) - 1:,} or named twice: choose each once"
            )
        super().__init__(source, "picked", np.stack([firsts, sizes]), int(self._ends[-1]))

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        found: Numbers = places + self._shift[np.searchsorted(self._ends, places, "right")]
        return found

    def _place(self, number: int) -> int:
        places = number - self._shift
        begins = np.append(0, self._ends[:-1])
        here = np.flatnonzero((begins <= places) & (places < self._ends))
        if not len(here):
            raise IndexError(f"no sample {number}: it is not among the {self.cuts[-1]:,} chosen")
        return int(places[here[0]])


class Grouped(View):
    """One sample of each group an epoch, another one each time: of a game, of a puzzle's variants.

    bounds: int64 [G + 1], the first sample of each group, and the number of all.

    Its length is the number of groups. Raises GristmillError for an empty group.
    """

    def __init__(self, source: Source, bounds: Numbers) -> None:
        self._bounds = np.asarray(bounds, np.int64)
        empty = np.flatnonzero(np.diff(self._bounds) < 1).tolist()
        if empty or not 0 <= self._bounds[0] < self._bounds[-1] <= source.cuts[-1]:
            raise GristmillError(
                f"{source.identity.artifact}: bounds of its groups: group {(empty or [0])[0]} is"
                f" empty or outside of {int(source.cuts[-1]):,} samples: leave it out"
            )
        super().__init__(source, "grouped", self._bounds, len(self._bounds) - 1)

    def _own(self, places: Numbers, bits: Words) -> Numbers:
        begins = self._bounds[places]
        sizes = (self._bounds[places + 1] - begins).astype(np.uint64)
        return begins + (bits % sizes).astype(np.int64)

    def _place(self, number: int) -> int:
        if not int(self._bounds[0]) <= number < int(self._bounds[-1]):
            raise IndexError(f"no sample {number}: it is in no group")
        return int(np.searchsorted(self._bounds, number, "right")) - 1
