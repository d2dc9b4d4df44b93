"""Token datasets in the formats of other programs; the parts of traces, RL-Decoder's control pairs.

Source: `docs/formats/reasoning.md#exports`, `docs/formats/reasoning.md#controls`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import orjson

from gristmill.contract import FileNote, Summary
from gristmill.exports.project import write
from gristmill.hashing import HashedFile
from gristmill.reasoning.config import ExportsConfig, SpansConfig
from gristmill.reasoning.format.published import NORMALIZED, TOKENS
from gristmill.reasoning.read import exported
from gristmill.reasoning.render.annotations import (
    SCHEMA,
    VARIANTS,
    controls_of,
    label,
    rows_of,
    steps_of,
)
from gristmill.run.progress import SILENT, Progress

CALIBRATION, EVALUATION = "calibration", "evaluation"
Rows = list[dict[str, Any]]


def calibration(traces: Sequence[str], config: SpansConfig) -> set[str]:
    """The traces of calibration, as RL-Decoder draws them; those of one trace alone are none."""
    ids = sorted(traces)
    Random(config.split_seed).shuffle(ids)
    count = max(1, min(round(config.calibration * len(ids)), len(ids) - 1))
    return set(ids[:count]) if len(ids) > 1 else set()


def write_controls(path: Path, spans: Path, split: str, config: SpansConfig) -> FileNote:
    """Write the control pairs of a split to `path`; arguments and errors as of `control_texts`."""
    with HashedFile(path) as file:
        count = sum(1 for text in control_texts(spans, split, config) if file.write(text))
    return FileNote(rows=count - 2, sha256=file.sha256, bytes=file.bytes)


def control_texts(spans: Path, split: str, config: SpansConfig) -> Iterator[bytes]:
    """Yield the pieces of `<split>.controls.json`: its head, each control, its end.

    spans: `<split>.spans.jsonl`. split: its name.

    Memory grows with the rows of `control_traces` traces. Raises BadInput for rows of another form.
    """
    traces = _traces(spans, config.control_traces)
    calibrate = calibration([*traces], config)
    head = {
        "schema_version": SCHEMA,
        "num_controls": len(traces) * len(VARIANTS),
        "split": {
            "split_seed": config.split_seed,
            "calib_fraction": config.calibration,
            "trace_ids_calib": sorted(calibrate),
            "trace_ids_eval": sorted(traces.keys() - calibrate),
        },
        "audits": [
            {"trace_id": trace, "control_variant": name, "gold_label": label(name)}
            for trace in traces
            for name in VARIANTS
        ],
    }
    yield orjson.dumps(head)[:-1] + b',"controls":['
    random, comma = Random(config.control_seed), b"\n"
    for trace, rows in traces.items():
        steps = steps_of(rows)
        shared = {
            "schema_version": SCHEMA,
            "trace_id": trace,
            "example_id": rows[0]["example_id"],
            "example_idx": rows[0]["example_idx"],
            "gsm8k_split": split,
            "num_steps": len(steps),
            "part": CALIBRATION if trace in calibrate else EVALUATION,
        }
        for control in controls_of(steps, random):
            yield comma + orjson.dumps({**shared, **control})
            comma = b",\n"
    yield b"\n]}\n"


def _traces(spans: Path, most: int) -> dict[str, Rows]:
    """The rows that RL-Decoder does not skip, of the first traces by their ids."""
    ids = sorted({row["trace_id"] for row in rows_of(spans) if not row["skipped"]})[:most]
    traces: dict[str, Rows] = {trace: [] for trace in ids}
    for row in rows_of(spans):
        if row["trace_id"] in traces and not row["skipped"]:
            traces[row["trace_id"]].append(row)
    return traces


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
            splits = [*exported.splits(TOKENS, dataset)]
            if name == TEXTS:
                keys = [f"{each.table}__{each.name}" for each in splits]
                of_key = (exported.splits_of(NORMALIZED, normalized, key, root) for key in keys)
                splits = [*chain.from_iterable(of_key)]
            counts = write(name, splits, folder, config.file_tokens or None, dataset)
            (texts if name == TEXTS else tokens)[name] = sum(counts.values())
            if name == TEXTS:
                files |= {f"{name}/{file}": FileNote(rows=rows) for file, rows in counts.items()}
            stage.advance(1)
    return ExportsSummary(files=files, tokens=tokens, texts=texts)
