"""What makes the parts of builds, how inputs are proved, and what builds push to."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path
from typing import Final

from gristmill.contract import GristmillError
from gristmill.settings.root_tables import HASH, MIRROR, RAY, RUN, MirrorSettings, RunSettings
from gristmill.settings.tables import FILE
from gristmill.untrusted.toml import read_toml

_ENGINES: Final = ("ray", "dagster-ray", "dagster-celery", "dagster-dask", "dagster-k8s")


def chosen(root: Path) -> tuple[str, str, bool]:
    """Which engines are installed, what the settings choose, and whether that can be done.

    root: the data root. With a `gristmill.toml` that is refused nothing can be done.
    """
    installed = ["processes of this machine"]
    for name in _ENGINES:
        with suppress(metadata.PackageNotFoundError):
            installed.append(f"{name} {metadata.version(name)}")
    found = ", ".join(installed)
    try:
        run, mirror = settings_of(root)
    except (GristmillError, OSError) as error:
        return found, f"nothing is built: {error}", False
    use, missing = "parts are made by processes of this machine", []
    if run.engine == RAY:
        use = f"parts are tasks of the Ray cluster, ray_address {run.ray_address}"
        missing += [] if util.find_spec("ray") else ["ray"]
    if run.prove == HASH:
        use += "; every input is hashed before it is read"
    if mirror.push:
        use += f"; what is published is pushed to {mirror.push}"
        # The library of the hub is in the extra `pipeline`.
        needs = not mirror.push.startswith("hf://")
        missing += ["mirror"] if needs and util.find_spec("obstore") is None else []
    if missing:
        extras = " and ".join(f"`{extra}`" for extra in missing)
        return found, f"{use}; not installed: extra {extras}", False
    return found, use, True


def settings_of(root: Path) -> tuple[RunSettings, MirrorSettings]:
    """The tables `[run]` and `[mirror]` of the data root; other tables are not looked at.

    root: the data root; without a `gristmill.toml` all have their defaults.

    Raises BadInput for a file that is not TOML, and where one of the two is wrong.
    """
    file = root / FILE
    if not file.is_file():
        return RunSettings(), MirrorSettings()
    # The file of the data root is a person's own, and may be a link.
    real = Path(os.path.realpath(file))
    tables = read_toml(real, root=real.parent)
    run = RUN.checked(file, tables.get(RUN.name, {}))
    return RunSettings(**run), MirrorSettings(**MIRROR.checked(file, tables.get(MIRROR.name, {})))
