"""Artifacts of one file of text, for assets that only tests have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.contract import FileNote, Summary
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build


@dataclass(frozen=True)
class Config:
    """Nothing to choose."""


def words_build(
    root: Path,
    artifact: str,
    asset: str,
    key: str | None,
    text: Callable[[], str],
    inputs: Sequence[Input] = (),
) -> Build:
    """A build of `words.txt`, whose text is asked for when it is written."""

    def make(attempt: Attempt) -> Summary:
        attempt.out.mkdir()
        (attempt.out / "words.txt").write_text(text())
        return Summary(files={"words.txt": FileNote(rows=1)})

    return Build(root, artifact, asset, key, "1", Config(), list(inputs), make)
