"""Events as the assets, sensors and checks of every family report them, about hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg

from assets.checks import _result
from assets.event_metadata import event_metadata
from gristmill import markdown
from gristmill.chess.show.preview import invalid_reasons, openings
from gristmill.contract import Violation
from gristmill.inbox import Look, Refusal
from gristmill.macroxue.show.board import safe_name
from gristmill.synth.show.preview import preview
from sensors.raw_drops import _events
from tests.hostile import TEXTS

Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


def events(folder: Path) -> Iterator[Event]:
    """Yield one event of each place where text of drops is shown."""
    rows = [[text, markdown.code(text), markdown.bold(text)] for text in TEXTS]
    table = markdown.table((TEXTS[0], "b", "c"), rows, "lll")
    boards = "\n\n".join(markdown.code(safe_name(text)) for text in TEXTS)
    yield _built("macroxue/pack", "hostile", {"table": table, "boards": boards}, folder)
    profile: dict[str, Any] = {
        "openings": {text: [9 - n, 1, 1, 1, text] for n, text in enumerate(TEXTS)},
        "reasons": dict.fromkeys(TEXTS, 1),
        "flags": dict.fromkeys(TEXTS, 1),
        "duplicate_games": 0,
    }
    month = {"openings": openings(profile), "reasons": invalid_reasons(profile)}
    yield _built("chess/valid_games", "2024-01", month, folder)
    counts = {"train_rows": 1, "train_tokens": 1, "valid_rows": 0, "valid_tokens": 0}
    counts |= {f"languages/{text}": 2 for text in TEXTS}
    counts |= {f"exercises/{text}": 2 for text in TEXTS}
    shard = {"preview": preview(folder / "none", "00", folder / "none", counts)}
    yield _built("synth/kd_shards", "00", shard, folder, counts)
    inbox = SimpleNamespace(raw_drop=dg.AssetKey(["macroxue", "raw_drop"]), folder="macroxue")
    seen = Look(refusals=[Refusal(text[:3000], text, is_new=True) for text in TEXTS])
    yield from _events(inbox, [], seen)  # type: ignore[arg-type]
    violations = [Violation("law", text, text) for text in TEXTS]
    check = dg.AssetCheckKey(dg.AssetKey(["macroxue", "pack"]), "intact")
    result = _result(check, None, 1, violations)
    yield dg.AssetCheckEvaluation(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=False,
        description=result.description,
        metadata=result.metadata,
    )


def _built(
    asset: str,
    partition: str,
    documents: dict[str, str],
    folder: Path,
    counts: dict[str, Any] | None = None,
) -> dg.AssetMaterialization:
    numbers = counts or {f"languages/{text}": 1 for text in TEXTS}
    record = SimpleNamespace(
        asset=asset,
        counts=numbers,
        outputs=[],
        seconds=0.0,
        peak_memory_bytes=0,
        model_dump=lambda mode: {"asset": asset, "counts": numbers, "config": {"text": TEXTS}},
    )
    published: Any = SimpleNamespace(record=record, folder=folder, rebuilt=True, notes=TEXTS)
    return dg.AssetMaterialization(
        asset.split("/"),
        partition=partition,
        metadata=event_metadata(published, lambda _: documents),
    )
