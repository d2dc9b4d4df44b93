"""What a finding of `gristmill doctor` is, and the one on engines; the others are in `doctor`."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata, util
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.settings.engines import RAY, RUN, RunSettings
from gristmill.settings.mirrors import MIRROR, MirrorSettings
from gristmill.settings.tables import FILE
from gristmill.untrusted.toml import read_toml

_ENGINES: Final = ("ray", "dagster-ray", "dagster-celery", "dagster-dask", "dagster-k8s")


class Verdict(StrEnum):
    """How a finding stands: as it should be, to be known, or missing and needed."""

    OK = "ok"
    NOTE = "note"
    MISSING = "MISSING"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    name: what it is.
    found: what is there.
    use: what Gristmill does with it, or what to do; may be empty.
    verdict: how it stands.
    """

    name: str
    found: str
    use: str
    verdict: Verdict = Verdict.OK

    def __str__(self) -> str:
        use = f" ({self.use})" if self.use else ""
        return f"{self.verdict:<8}{self.name}: {self.found}{use}"


def of_engines(root: Path) -> Finding:
    """Which engines are installed, and what the settings of the data root choose.

    root: the data root. A `gristmill.toml` that is refused is a note.
    """
    installed = ["processes of this machine"]
    for name in _ENGINES:
        with suppress(metadata.PackageNotFoundError):
            installed.append(f"{name} {metadata.version(name)}")
    found = ", ".join(installed)
    try:
        run, mirror = _settings(root)
    except (GristmillError, OSError) as error:
        return Finding("engines", found, f"nothing is built: {error}", Verdict.NOTE)
    use, missing = "parts are made by processes of this machine", []
    if run.engine == RAY:
        use = f"parts are tasks of the Ray cluster, ray_address {run.ray_address}"
        missing += [] if util.find_spec("ray") else ["ray"]
    if mirror.push:
        use += f"; what is published is pushed to {mirror.push}"
        # The library of the hub is in the extra `pipeline`.
        needs = not mirror.push.startswith("hf://")
        missing += ["mirror"] if needs and util.find_spec("obstore") is None else []
    if missing:
        extras = " and ".join(f"`{extra}`" for extra in missing)
        return Finding("engines", found, f"{use}; not installed: extra {extras}", Verdict.NOTE)
    return Finding("engines", found, use)


def _settings(root: Path) -> tuple[RunSettings, MirrorSettings]:
    """The tables `[run]` and `[mirror]` of the data root; other tables are not looked at."""
    file = root / FILE
    if not file.is_file():
        return RunSettings(), MirrorSettings()
    # The file of the data root is a person's own, and may be a link.
    real = Path(os.path.realpath(file))
    tables = read_toml(real, root=real.parent)
    run = RUN.checked(file, tables.get(RUN.name, {}))
    return RunSettings(**run), MirrorSettings(**MIRROR.checked(file, tables.get(MIRROR.name, {})))
