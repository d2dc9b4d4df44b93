"""Events as the assets, sensors and checks of every family report them, about hostile text."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg

from assets.checking.evaluations import Known, found_by_run, state_of
from assets.checking.rules import CHECKED, Looked
from assets.checking.verdicts import opened
from assets.events import event_metadata
from gristmill import markdown
from gristmill.chess.show import board_svg
from gristmill.contract import Violation
from gristmill.inbox import Look, Standing
from gristmill.provenance import Input, Record, Tokenizer
from sensors.raw_drops import events_of
from tests.assets.helpers import built
from tests.hostile import TEXTS

Event = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


def events(folder: Path) -> Iterator[Event]:
    """Yield one event of each place where text of drops is shown."""
    yield _built("macroxue/pack", "hostile", folder)
    lines = markdown.bullets(
        line
        for text in TEXTS
        for line in (markdown.code(text), markdown.image(text, board_svg(["e2e4"], text)))
    )
    month = _built("chess/valid_games", "2024-01", folder)
    yield month.with_metadata({**month.metadata, "picture": dg.MetadataValue.md(lines)})
    counts = {f"languages/{text}": 2 for text in TEXTS}
    counts |= {f"exercises/{text}": 2 for text in TEXTS}
    yield _built("synth/kd_shards", "00", folder, counts)
    yield _built("synth/harmony", "00", folder)
    inbox = SimpleNamespace(raw_drop=dg.AssetKey(["macroxue", "raw_drop"]), folder="macroxue")
    seen = Look(idle=[Standing(text[:3000], "refused", 0, text) for text in TEXTS])
    yield from events_of(inbox, [], {}, seen)  # type: ignore[arg-type]
    yield _checked([Violation("law", text, text) for text in TEXTS])


def _checked(violations: list[Violation]) -> dg.AssetCheckEvaluation:
    rule = CHECKED[built("macroxue/pack").key].rules["intact"]
    looked = Looked({"p": ""}, [("p", violation) for violation in violations])
    others = [
        Looked({f"p{number}": ""}, [(f"p{number}", violation)])
        for number, violation in enumerate(violations)
    ]
    with opened(Path(os.devnull)) as verdicts:
        for one in (looked, *others):
            verdicts.keep("macroxue/pack", "intact", one.verdicts(lambda *_: "cure"))
        state = state_of(rule, "macroxue/pack", verdicts, Known(None, ()))
    key = dg.AssetCheckKey(built("macroxue/pack").key, "intact")
    return state.evaluation(key, False).with_metadata(
        {**state.metadata, **found_by_run(looked, None)}
    )


def _built(
    asset: str, partition: str, folder: Path, counts: dict[str, Any] | None = None
) -> dg.AssetMaterialization:
    record = Record(
        artifact="artifact",
        asset=asset,
        partition=partition,
        code_version="1",
        git_sha=None,
        config={"text": TEXTS, "model_identity": "".join(TEXTS)},
        config_sha256="",
        fingerprint="",
        data_version="",
        inputs=[
            Input(asset="macroxue/raw_drop", partition="d6", path=f"drops/macroxue/{text}/file")
            for text in TEXTS
        ],
        tokenizer=Tokenizer(name=TEXTS[0], path="tokenizer", sha256=""),
        outputs=[],
        counts=counts or {f"languages/{text}": 1 for text in TEXTS},
        libraries={},
        seconds=0.0,
        peak_memory_bytes=0,
        created=datetime(2026, 1, 2, tzinfo=UTC),
    )
    before = record.model_copy(update={"config": {"model_identity": TEXTS[0]}})
    published: Any = SimpleNamespace(
        record=record,
        folder=folder / "artifact",
        rebuilt=True,
        notes=TEXTS,
        before=before,
        account="".join(TEXTS),
        not_checked="".join(TEXTS),
    )
    return dg.AssetMaterialization(
        asset.split("/"), partition=partition, metadata=event_metadata(published)
    )
