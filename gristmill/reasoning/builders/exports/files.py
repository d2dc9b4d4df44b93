"""A token dataset in the formats of other programs. Source: `docs/formats/reasoning.md#exports`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.contract import FileNote, Summary
from gristmill.exports.project import write
from gristmill.exports.table import Split
from gristmill.reasoning.config import ExportsConfig
from gristmill.reasoning.format.published import NORMALIZED, TOKENS
from gristmill.reasoning.read import exported
from gristmill.run.progress import SILENT, Progress

TEXTS = "nanochat"


@dataclass(frozen=True)
class ExportsSummary(Summary):
    """What was written."""

    tokens: Mapping[str, int]
    texts: Mapping[str, int]


def write_exports(
    dataset: Path,
    normalized: Path,
    root: Path,
    out: Path,
    config: ExportsConfig,
    progress: Progress = SILENT,
) -> ExportsSummary:
    """Write a folder for each format.

    dataset: the token dataset. normalized: the folder of the normalised files.
    root: the data root of both. out: folder to write, which must not exist.
    progress: gets the stage `formats`, one for each folder; default: nothing.

    Raises GristmillError where nanochat has nothing to validate with, BadInput for damage.
    """
    tokens, texts, files = dict[str, int](), dict[str, int](), dict[str, FileNote]()
    with progress.stage("formats", "files", len(config.formats)) as stage:
        for name in config.formats:
            folder = out / name
            folder.mkdir(parents=True)
            splits = splits_for(name, dataset, normalized, root)
            counts = write(name, splits, folder, config.file_tokens or None, dataset)
            (texts if name == TEXTS else tokens)[name] = sum(counts.values())
            if name == TEXTS:
                files |= {f"{name}/{file}": FileNote(rows=rows) for file, rows in counts.items()}
            stage.advance(1)
    return ExportsSummary(files=files, tokens=tokens, texts=texts)


def splits_for(name: str, dataset: Path, normalized: Path, root: Path) -> Sequence[Split]:
    """The splits that a format is written from; arguments as of `write_exports`."""
    splits = [*exported.splits(TOKENS, dataset)]
    if name != TEXTS:
        return splits
    keys = [f"{each.table}__{each.name}" for each in splits]
    return [exported.split_of(NORMALIZED, normalized, key, root) for key in keys]
