"""view.json and tokenizer.json of a view. Source: docs/formats/macroxue.md#training-view."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gristmill.contract import BadInput, os_reason

DESCRIPTION: Final = "view.json"
TOKENIZER: Final = "tokenizer.json"
TRAIN, VALIDATION = SIDES = ("train", "validation")
"""The folders of a view whose games are split."""


@dataclass(frozen=True)
class Description:
    """What view.json says.

    sides: folders below the view with rows; "" alone for a view without a split.
    images: how many runs each training game has: 1, or 8 with all symmetries. With 8 a run
        is 8 times the run of the source, plus the number of the symmetry.
    """

    sides: tuple[str, ...]
    images: int
    linked: tuple[str, ...] = ()
    annotations: str = ""

    def source_run(self, run_id: int) -> tuple[int, int]:
        """The run of the source that a run of the view is of, and the symmetry of its boards."""
        return divmod(run_id, self.images)


def write_description(folder: Path, view: Description) -> None:
    """Write view.json into the folder of a view."""
    (folder / DESCRIPTION).write_text(json.dumps(vars(view), indent=2) + "\n")


def read_description(folder: Path) -> Description:
    """Read view.json of a view. Raises BadInput where it is missing or no description of a view."""
    path = folder / DESCRIPTION
    try:
        found = json.loads(path.read_bytes())
        sides, linked = tuple(map(str, found["sides"])), tuple(map(str, found["linked"]))
        view = Description(sides, found["images"], linked, str(found["annotations"]))
    except OSError as error:
        raise BadInput(
            path, f"cannot be read ({os_reason(error)}): build the view again"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(path, f"does not describe a view: {error!r}") from error
    if view.images not in (1, 8) or sides not in (("",), SIDES):
        raise BadInput(
            path, f"has sides {sides!r} and {view.images!r} images: build the view again"
        )
    return view


def tokenizer(
    bins: int, failure_cutoff: int, edges: Mapping[str, Sequence[float]], counts: Mapping[str, Any]
) -> bytes:
    """The bytes of tokenizer.json, in the form of the trainer's second tokenizer.

    edges, counts: of each kind, by its name. The dataset is the folder of the file.
    """
    extra: dict[str, dict[str, Any]] = {kind: {} for kind in edges} | {
        "search": {"failure_cutoff": failure_cutoff}
    }
    value = {
        "tokenizer_type": "macroxue_ev_advantage_v2",
        "version": 2,
        "num_bins": bins,
        "vocab_order": ["ILLEGAL", "FAILURE", *(f"BIN_{k}" for k in range(bins)), "WINNER"],
        "valuation_types": list(edges),
        **{kind: of_kind | {"bin_edges": list(edges[kind])} for kind, of_kind in extra.items()},
        "metadata": {
            "dataset_dir": ".",
            "num_bins": bins,
            **counts,
            "search_value_scale": 1000.0,
        },
    }
    return json.dumps(value, indent=2).encode() + b"\n"
