"""Files that are used as they lie: streams of tokens, and one folder over several of Arrow.

Source: `docs/consumers.md#datatrove`, `docs/consumers.md#distillkit`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from gristmill.contract import BadInput
from gristmill.exports.table import Split, cut

_STATE, _INFO, _DICT = "state.json", "dataset_info.json", "dataset_dict.json"
_DTYPES: Final = {2: "<u2", 4: "<u4"}


def token_streams(name: str, splits: Sequence[Split], out: Path, most: int) -> dict[str, int]:
    """Write the tokens of a split back to back, and where its documents end.

    `<split>/00000_tokens.ds` has tokens of 16 bits, of 32 where there are more than 65,536 ids;
    `.ds.index` a number of 64 bits a document; `.ds.metadata` the bytes of a token and the tokens.
    most: after so many tokens a file ends, with a whole document.
    """
    size = 2 if max(each.tokens.ids for each in splits if each.tokens) <= 1 << 16 else 4
    counts: dict[str, int] = {}
    files: list[BinaryIO] = []
    for tokens, bounds, is_last in cut(splits, most, out):
        if not files:
            key = f"{name}/{len(counts):05d}_tokens.ds"
            counts[key] = 0
            (out / name).mkdir(exist_ok=True)
            files = [(out / f"{key}{end}").open("xb") for end in ("", ".index")]
        files[0].write(tokens.astype(_DTYPES[size], copy=False).data)
        files[1].write((bounds[1:] + counts[key]).astype("<u8").data)
        counts[key] += len(tokens)
        if is_last:
            files = [each for each in files if each.close()]
    for each in files:
        each.close()
    for key, count in counts.items():
        (out / f"{key}.metadata").write_text(f"gristmill|{size}\n{count}\n{count:,} tokens")
    return counts


def arrow_folder(name: str, splits: Sequence[Split], out: Path, _: int) -> dict[str, int]:
    """Write a split of a folder that `load_from_disk` opens; its state names the Arrow files.

    Returns how many files it has.
    """
    files = [path.absolute() for each in splits if each.arrow for path in each.arrow()]
    folders = [*dict.fromkeys(path.parent for path in files)]
    states: list[dict[str, Any]] = [_read(folder / _STATE) for folder in folders]
    prints = "".join(str(each["_fingerprint"]) for each in states)
    own = {
        "_data_files": [{"filename": str(path)} for path in files],
        "_fingerprint": hashlib.sha256(prints.encode()).hexdigest()[:16],
    }
    (out / name).mkdir()
    (out / name / _INFO).write_text((folders[0] / _INFO).read_text())
    (out / name / _STATE).write_text(json.dumps(states[0] | own, indent=2))
    listed = sorted(path.name for path in out.iterdir() if path.is_dir())
    (out / _DICT).write_text(json.dumps({"splits": listed}))
    return {f"{name}/{_STATE}": len(files)}


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error}): build the dataset again") from error
    return found
