"""Raw files of one record that have the same bytes: legal, and to be known before training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gristmill.printable import printable
from gristmill.provenance.record import Input

_DROPS: Final = "drops/"
_ORDINARY: Final = ".meta.json"
"""End of the names of the files beside 2048 games, which say little of them."""
_MOST_NAMED: Final = 5


def raw_hashes(inputs: Iterable[Input]) -> dict[str, str]:
    """Return the sha256 of the raw files of a record by path; empty files are left out."""
    return {
        item.path: item.sha256
        for item in inputs
        if item.path is not None
        and item.path.startswith(_DROPS)
        and not item.path.endswith(_ORDINARY)
        and item.sha256 is not None
        and item.bytes
    }


def equal_inputs(inputs: Iterable[Input]) -> list[list[str]]:
    """Return the paths of raw files that have the same bytes: a list of two or more for each."""
    by_hash: dict[str, list[str]] = {}
    for path, sha256 in raw_hashes(inputs).items():
        by_hash.setdefault(sha256, []).append(path)
    return sorted(sorted(paths) for paths in by_hash.values() if len(paths) > 1)


def named(groups: Sequence[Sequence[str]]) -> str:
    """Return how many raw files have the bytes of another one, and the first of them."""
    more = len(groups) - _MOST_NAMED
    parts = [_equal(group) for group in groups[:_MOST_NAMED]]
    count = sum(len(group) - 1 for group in groups)
    return f"{count:,}: {'; '.join(parts)}" + (f"; and {more:,} more" if more > 0 else "")


def _equal(group: Sequence[str]) -> str:
    more = len(group) - _MOST_NAMED
    shown = " = ".join(printable(path) for path in group[:_MOST_NAMED])
    return shown + (f" and {more:,} more" if more > 0 else "")
