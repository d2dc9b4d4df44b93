"""One published build, as an asset makes it: for benchmarks whose builds take no asset graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gristmill.contract import Summary, Violation
from gristmill.provenance import Input
from gristmill.publish.build import Attempt, Build, Published
from gristmill.publish.publish import publish


def published(
    root: Path,
    asset: str,
    partition: str,
    config: Any,
    make: Callable[[Attempt], Summary],
    inputs: Sequence[Input] = (),
    *,
    artifact: str,
    laws: Callable[[Path], Iterable[Violation]] = lambda _: (),
    shared: bool = True,
    rebuild: bool = False,
) -> Published:
    """Build, check, record and commit a partition, in a folder that it shares by default."""
    version = getattr(config, "CODE_VERSION", "1")
    return publish(
        Build(
            root=root,
            artifact=artifact,
            asset=asset,
            partition=partition,
            code_version=version,
            config=config,
            inputs=inputs,
            make=make,
            laws=laws,
            shared=shared,
        ),
        rebuild,
    )
