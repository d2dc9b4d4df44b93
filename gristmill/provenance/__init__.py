"""What was built from what: the record of an artifact, and comparing records with the disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.provenance.environment import fingerprint, recipe, recorded_values
from gristmill.provenance.record import (
    INPUTS,
    INPUTS_LIMIT,
    INPUTS_LIMIT_BYTES,
    RECORD,
    SCHEMA_VERSION,
    SHARED_RECORDS,
    Input,
    InputsFile,
    Notes,
    Output,
    Record,
    Replaced,
    Tokenizer,
    canonical,
    config_fields,
    data_version,
    digest,
    holds_record,
    inputs_path,
    outputs_of,
    published_record_path,
    published_version,
    read_inputs,
    read_record,
    record_path,
    split_inputs,
)
from gristmill.run.progress import SILENT, Progress

if TYPE_CHECKING:
    from gristmill.contract import Violation

__all__ = [
    "INPUTS",
    "INPUTS_LIMIT",
    "INPUTS_LIMIT_BYTES",
    "RECORD",
    "SCHEMA_VERSION",
    "SHARED_RECORDS",
    "Input",
    "InputsFile",
    "Notes",
    "Output",
    "Record",
    "Replaced",
    "Tokenizer",
    "canonical",
    "config_fields",
    "data_version",
    "digest",
    "fingerprint",
    "holds_record",
    "inputs_path",
    "outputs_of",
    "published_record_path",
    "published_version",
    "read_inputs",
    "read_record",
    "recipe",
    "record_path",
    "recorded_values",
    "split_inputs",
    "verify",
]


def verify(
    path: Path | str,
    *,
    data_root: Path | None = None,
    check_inputs: bool = True,
    check_laws: bool = True,
    progress: Progress = SILENT,
    left_out: list[str] | None = None,
) -> list[Violation]:
    """Check the artifact at `path`, or all below it; see `verification.verify`."""
    from gristmill.provenance import verification

    return verification.verify(
        Path(path),
        data_root=data_root,
        check_inputs=check_inputs,
        check_laws=check_laws,
        progress=progress,
        left_out=left_out,
    )
