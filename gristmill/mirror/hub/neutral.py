"""What a repository gets in place of files that name folders of this machine."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from gristmill.mirror.published import damaged
from gristmill.provenance import Record
from gristmill.reading.folder import OpenFolder

_MOST: Final = 64 << 20


def neutral(folder: OpenFolder, name: str, record: Record) -> tuple[Record, dict[str, bytes]]:
    """The record of what is pushed, and the files of it that differ from those that stand here.

    folder, record: of the artifact. name: path of the record in the folder; it is among the files
    that differ where there are any.
    """
    named = sorted({record.artifact, *(each.path for each in record.inputs if each.path)})
    texts = b"|".join(re.escape(json.dumps(each)[1:-1].encode()) for each in named)
    # A text that begins with a slash, up to the last place of an artifact in it.
    path = re.compile(rb'"/(?:[^"\\]|\\.)*(/(?:' + texts + rb')(?=["/]))')
    changed: dict[str, bytes] = {}
    outputs = list(record.outputs)
    for at, output in enumerate(outputs):
        if output.payload or not output.path.endswith(".json") or output.bytes > _MOST:
            continue
        data = (folder.inside / output.path).read_bytes()
        if hashlib.sha256(data).hexdigest() != output.sha256:
            raise damaged(folder.path / output.path)
        if (text := path.sub(rb'"\1', data)) != data:
            changed[output.path] = text
            said = {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
            outputs[at] = output.model_copy(update=said)
    if not changed:
        return record, {}
    pushed = record.model_copy(update={"outputs": outputs}).sealed()
    return pushed, changed | {name: pushed.to_bytes()}
