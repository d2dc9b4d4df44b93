"""Laws of the manifest and index of splits. Source: `docs/formats/reasoning.md#manifest-laws`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gristmill.contract import BadInput, Violation
from gristmill.reasoning.builders.manifest import all_metas, different
from gristmill.reasoning.format import names
from gristmill.reasoning.format.shards import Meta, manifest_entries

_READ_BYTES: Final = 1 << 20
_AGAIN: Final = "materialize reasoning/manifest again if a split was rebuilt after it"


def manifest_laws(
    folder: Path, partition: str | None = None, tokenized: Path | None = None
) -> Iterator[Violation]:
    """Yield the violations of `manifest.json` and `index.jsonl`.

    tokenized: the folder of all shards, default `folder`. Before publishing they are apart.

    Memory grows with the shards of one split alone.
    """
    tokenized = tokenized or folder
    splits = published_splits(tokenized)
    if not splits:
        yield Violation("splits", ".", "there is no split with an index")
    try:
        yield from _manifest(folder / names.MANIFEST, tokenized, splits)
    except BadInput as error:
        yield Violation("readable", names.MANIFEST, str(error))
    except FileNotFoundError as error:
        yield Violation("readable", names.MANIFEST, f"{error.filename} is missing")
    try:
        yield from _index(folder / names.INDEX, tokenized, splits)
    except FileNotFoundError as error:
        yield Violation("readable", names.INDEX, f"{error.filename} is missing")


def published_splits(tokenized: Path) -> list[tuple[str, str]]:
    """Corpus and split of all folders with an index, sorted."""
    found = tokenized.glob(f"*/*/{names.INDEX}")
    return sorted((path.parent.parent.name, path.parent.name) for path in found)


def _manifest(path: Path, tokenized: Path, splits: list[tuple[str, str]]) -> Iterator[Violation]:
    """The manifest lists all metas and nothing else."""
    seen: list[Meta] = []

    def noted() -> Iterator[Meta]:
        for meta in all_metas(tokenized, splits):
            seen[1:] = [meta]
            yield meta

    with path.open("rb") as file:
        for entry in manifest_entries(noted()):
            if problem := different(seen[0], seen[-1]) if seen else None:
                yield Violation("one kind of shards", names.MANIFEST, problem)
                return
            if file.read(len(entry)) != entry:
                where = seen[-1].path if seen else "its begin"
                rule = f"differs from the meta files at {where}: {_AGAIN}"
                yield Violation("inventory", names.MANIFEST, rule)
                return
        if file.read(1):
            yield Violation("inventory", names.MANIFEST, f"lists more than all shards: {_AGAIN}")


def _index(path: Path, tokenized: Path, splits: list[tuple[str, str]]) -> Iterator[Violation]:
    """The index is that of all splits, one after the other."""
    with path.open("rb") as file:
        for corpus, split in splits:
            name = names.split_index(corpus, split)
            with (tokenized / name).open("rb") as part:
                while data := part.read(_READ_BYTES):
                    if file.read(len(data)) != data:
                        yield Violation("index", names.INDEX, f"differs from {name}: {_AGAIN}")
                        return
        if file.read(1):
            yield Violation("index", names.INDEX, f"has more lines than all splits: {_AGAIN}")
