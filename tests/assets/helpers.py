"""What tests of assets share: the reason of a failed run, the digest of a file."""

import hashlib
from pathlib import Path

import dagster as dg


def failure(result: dg.ExecuteInProcessResult) -> str:
    assert not result.success
    return str(result.get_step_failure_events()[0].step_failure_data.user_failure_data.description)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
