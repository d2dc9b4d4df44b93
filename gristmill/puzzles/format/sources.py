"""`trace/sources.json`: the kind of a dataset, its config, and the files that it was made from.

Source: docs/formats/puzzles.md#trace
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gristmill.contract import BadInput


@dataclass(frozen=True)
class SourceFile:
    """One file that examples came from.

    path: the name of the source's folder, then the path in it.
    sha256: of the file's bytes, in hex.
    facts: what the laws of the kind compare with, such as the hash of a task; may be empty.
    """

    path: str
    sha256: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sources:
    """Where a dataset came from.

    kind: name of the builder, as `arc`.
    config: the fields that change the output.
    files: in the order of the numbers in the origins.
    """

    kind: str
    config: Mapping[str, Any]
    files: Sequence[SourceFile] = ()

    def text(self) -> str:
        """The content of `trace/sources.json`; one line for each file."""
        files = [
            json.dumps({"path": file.path, "sha256": file.sha256, **file.facts})
            for file in self.files
        ]
        listed = ",\n  ".join(files)
        head = f'{{"kind": {json.dumps(self.kind)}, "config": {json.dumps(dict(self.config))}'
        return f'{head}, "files": [\n  {listed}\n]}}\n' if files else f'{head}, "files": []}}\n'


def read_sources(path: Path) -> Sources:
    """Read `trace/sources.json`. Raises BadInput where it is not in its form."""
    try:
        read = json.loads(path.read_bytes())
        files = [
            SourceFile(
                str(entry["path"]),
                str(entry["sha256"]),
                {name: value for name, value in entry.items() if name not in ("path", "sha256")},
            )
            for entry in read["files"]
        ]
        return Sources(str(read["kind"]), dict(read["config"]), files)
    except FileNotFoundError as error:
        raise BadInput(path, "is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(path, "is not a list of sources as docs/formats/puzzles.md says") from error
