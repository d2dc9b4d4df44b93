"""Files that are used as they lie: streams of tokens, and one folder over several of Arrow.

Source: `docs/consumers.md#datatrove`, `docs/consumers.md#distillkit`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final

from gristmill.contract import BadInput
from gristmill.exports.table import Split, cut

_STATE, _INFO, _DICT = "state.json", "dataset_info.json", "dataset_dict.json"


def token_streams(splits: Sequence[Split], out: Path, most: int) -> dict[str, int]:
    """Write the tokens of each split back to back, and where its documents end.

    `<split>/00000_tokens.ds` has tokens of 16 bits, of 32 where there are more than 65,536 ids;
    `.ds.index` a number of 64 bits a document; `.ds.metadata` the bytes of a token and the tokens.
    most: after so many tokens a file ends, with a whole document.
    """
    counts: dict[str, int] = {}
    dtype = "<u2" if max(each.tokens.ids for each in splits if each.tokens) <= 1 << 16 else "<u4"
    for name in dict.fromkeys(each.name for each in splits):
        files: list[BinaryIO] = []
        path, number = out, 0
        with ExitStack() as stack:
            for tokens, bounds, is_last in cut([s for s in splits if s.name == name], most, out):
                if not files:
                    path = out / name / f"{number:05d}_tokens.ds"
                    path.parent.mkdir(exist_ok=True)
                    counts[f"{name}/{path.name}"] = 0
                    names = (path, Path(f"{path}.index"))
                    files = [stack.enter_context(each.open("xb")) for each in names]
                key = f"{name}/{path.name}"
                files[0].write(tokens.astype(dtype, copy=False).data)
                files[1].write((bounds[1:] + counts[key]).astype("<u8").data)
                counts[key] += len(tokens)
                if is_last:
                    stack.close()
                    files, number = [], number + 1
    for key, count in counts.items():
        said = f"gristmill|{dtype[-1]}\n{count}\n{count:,} tokens"
        Path(out / f"{key}.metadata").write_text(said)
    return counts


def arrow_folder(splits: Sequence[Split], out: Path, _: int) -> dict[str, int]:
    """Write a folder that `load_from_disk` opens: its states name the Arrow files where they lie.

    Returns how many files each split has.
    """
    names = [*dict.fromkeys(each.name for each in splits)]
    counts = {}
    for name in names:
        files = [
            path.absolute()
            for each in splits
            if each.name == name and each.arrow is not None
            for path in each.arrow()
        ]
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
        counts[f"{name}/{_STATE}"] = len(files)
    (out / _DICT).write_text(json.dumps({"splits": names}))
    return counts


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(path, f"cannot be read ({error}): build the dataset again") from error
    return found


DATATROVE: Final = "datatrove"
DISK: Final = "disk"
STREAMS: Final[dict[str, Callable[[Sequence[Split], Path, int], dict[str, int]]]] = {
    DATATROVE: token_streams,
    DISK: arrow_folder,
}
"""Forms of token documents and of Arrow files, each with what writes it."""
