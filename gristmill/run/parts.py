"""Finished parts of a build, kept so that a killed build goes on where it stopped.

A part is one file that a worker made from a known share of the input. The
store lives in a folder that belongs to one fingerprint (code version, config,
inputs), so a part found there was made from the same things; its sha256 is
checked before it is used. What an artifact is made of does not belong here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.hashing import sha256_file


@dataclass(frozen=True)
class PartStore:
    """Parts in `folder`, which exists. Pickles, so workers can hold it."""

    folder: Path

    def data(self, name: str) -> Path:
        """Where the finished part `name` lies."""
        return self.folder / f"{name}.part"

    def finished(self, name: str) -> dict[str, Any] | None:
        """The summary of part `name` if it is there whole, else None."""
        ledger = self.folder / f"{name}.json"
        try:
            entry = json.loads(ledger.read_bytes())
            if sha256_file(self.data(name)) == entry["sha256"]:
                return dict(entry["summary"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def sweep(self) -> None:
        """Remove what killed writers left, so that no one goes on writing in it.

        A half-written SQLite file and its journal would be taken for a database.
        """
        for path in self.folder.iterdir():
            if path.suffix not in (".part", ".json"):
                path.unlink()

    @contextmanager
    def writing(self, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Give a path to write part `name` to, and a dict for its JSON summary.

        Nothing stands at the path yet. On leaving without an error the part
        becomes visible to `finished`: first its data, then the ledger entry that
        vouches for it.
        """
        scratch = self.folder / f"{name}.writing"
        summary: dict[str, Any] = {}
        yield scratch, summary
        entry = {"sha256": sha256_file(scratch), "summary": summary}
        scratch.replace(self.data(name))
        ledger = self.folder / f"{name}.json.writing"
        ledger.write_text(json.dumps(entry))
        ledger.replace(self.folder / f"{name}.json")
