"""Data roots and folders for the tests of the mirror: tiny artifacts, and what a mirror holds."""

import hashlib
import json
from pathlib import Path
from typing import Any

from gristmill import provenance
from gristmill.mirror import Pulled, Pushed, pull, push
from gristmill.publish import publish
from gristmill.publish.build import Published
from tests.publish.tiny import TinyConfig, snapshot, tiny_build


def built(
    root: Path, artifact: str = "family/tiny", seed: int = 1, *, rebuild: bool = False, **more: Any
) -> Published:
    """Publish a tiny artifact; another seed gives other data."""
    config = TinyConfig(seed=seed, rows=20)
    return publish.publish(tiny_build(root, artifact, config=config, **more), rebuild)


def pushed(root: Path, mirror: Path | str, *names: str, **more: Any) -> list[Pushed]:
    """Push, in as many pieces as `PIECE` says."""
    return push(root, str(mirror), names, **more)


def posted(folder: Path, artifact: str = "family/tiny", seed: int = 1, **more: Any) -> Pushed:
    """Publish a tiny artifact in the data root `a`, and push that root to the mirror `m`."""
    built(folder / "a", artifact, seed, **more)
    return pushed(folder / "a", folder / "m")[0]


def pulled(root: Path, mirror: Path | str, *names: str, **more: Any) -> list[Pulled]:
    """Pull."""
    return pull(root, str(mirror), names, **more)


def files(folder: Path) -> dict[str, bytes]:
    """Published files below a folder, by path."""
    return {path: data for path, data in snapshot(folder).items() if ".gristmill" not in path}


def in_repository(root: Path) -> dict[str, bytes]:
    """Published files as a dataset repository has them, where no file names the data root."""
    found = files(root)
    for name in [path for path in found if "provenance" in path]:
        record = provenance.Record.model_validate_json(found[name])
        outputs = list(record.outputs)
        for at, output in enumerate(outputs):
            if output.path.endswith("place.json"):
                data = json.dumps({"place": f"/{record.artifact}"}).encode()
                found[f"{record.artifact}/{output.path}"] = data
                said = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                outputs[at] = output.model_copy(update=said)
        found[name] = record.model_copy(update={"outputs": outputs}).sealed().to_bytes()
    return found


def objects(mirror: Path) -> list[Path]:
    """All files of a mirror in a folder, sorted, but for its versions."""
    found = [*mirror.glob("objects/*/*"), *mirror.glob("records/*/*")]
    return sorted(path for path in found if path.is_file())


def versions(mirror: Path, artifact: str = "family/tiny", partition: str = "") -> list[Path]:
    """The versions of an artifact in a mirror in a folder, the oldest first."""
    return sorted((mirror / "artifacts" / artifact / f"@{partition}").glob("*.json"))


def clean(root: Path) -> bool:
    """Whether verification of a data root without its inputs finds nothing."""
    return provenance.verify(root, check_inputs=False, check_laws=False) == []
