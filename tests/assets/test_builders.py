"""What every builder reports while it works, and the picture and the numbers that it shows."""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from itertools import pairwise
from typing import get_origin, get_type_hints

import dagster as dg
import pytest

from assets.events import COLUMNS, RESERVED, ROWS
from gristmill import families, markdown
from gristmill.contract import Summary
from gristmill.provenance import Record
from gristmill.run.progress import Progress, Report
from gristmill.svg import OVERVIEW
from tests.drawings import images, is_right
from tests.paths import CHECKOUT
from tests.sample_root import build_again

COMMON = {"inputs", "laws", "hash", "publish"}
"""Stages of every publication."""
SMALL = {
    *("tokenizers/gpt2", "tokenizers/o200k_harmony"),
    *("reasoning/raw_manifest", "reasoning/qc_report"),
}
"""Assets whose builders write one small file, or link one."""


def _stages(reports: list[Report]) -> dict[str, list[Report]]:
    stages: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        if report.moment == "stage":
            stages[report.stage].append(report)
    return stages


@pytest.mark.slow
def test_every_builder_reports_stages_that_end_at_their_total(sample_root, tmp_path):
    root = sample_root.copy(tmp_path)
    # The first partition of each asset.
    records: dict[str, Record] = {}
    for _, record in root.records():
        records.setdefault(record.asset, record)
    assert len(records) > 15
    with root.graph() as graph:
        for asset, record in records.items():
            reports: list[Report] = []
            with Progress(reports.append).current():
                outcome = build_again(graph, record)
            assert outcome.status == "built", outcome
            stages = _stages(reports)
            for name, stage in stages.items():
                begins = [n for n in range(1, len(stage)) if stage[n].done < stage[n - 1].done]
                passes = [stage[start:end] for start, end in pairwise([0, *begins, len(stage)])]
                assert len(passes) == 1, f"{asset} {name}: {stage}"
                last = stage[-1]
                assert last.done == last.total, f"{asset} {name}: {last}"
            assert stages["publish"], asset
            assert (set(stages) - COMMON) or asset in SMALL, f"{asset}: {set(stages)}"
            assert {report.moment for report in reports} >= {"begin", "stage", "end"}
            assert {report.work.split()[0] for report in reports} == {asset}


PICTURED = {
    *("macroxue/pack", "macroxue/pool", "macroxue/training_view"),
    *("chess/valid_games", "chess/game_dataset", "chess/splice_cache", "chess/splice_dataset"),
    *("chess/subset", "synth/harmony", "synth/kd_shards", "synth_smoke/kd_shards"),
    *("chat/kd_shards", "synth/distill", "chat/distill", "reasoning/alignment"),
    *(f"puzzles/{kind}" for kind in ("arc", "sudoku", "maze", "domino", "grid")),
}
MARKDOWN = {"picture", "notes"}


@pytest.mark.slow
def test_one_picture_of_an_asset_stands_first_and_is_seen_without_a_click(sample_root):
    pictured = set()
    with sample_root.graph(), dg.DagsterInstance.get() as instance:
        for asset in instance.get_asset_keys():
            for event in instance.fetch_materializations(asset, limit=1000).records:
                assert event.asset_materialization is not None
                shown = event.asset_materialization.metadata
                texts = {
                    name: entry.md_str
                    for name, entry in shown.items()
                    if isinstance(entry, dg.MarkdownMetadataValue)
                }
                assert set(texts) <= MARKDOWN
                assert all(len(text) <= markdown.INLINE for text in texts.values())
                if "picture" in texts:
                    pictured.add(asset.to_user_string())
                    assert next(iter(shown)) == "picture"
                    (picture,) = images(texts["picture"])
                    is_right(picture, OVERVIEW)
    assert pictured == PICTURED


PAGE = (CHECKOUT / "docs" / "numbers.md").read_text()
LISTS = re.compile(r"^### (.+)\n((?:\n|- .+\n)+)", re.MULTILINE)
NAMED = re.compile(r"^- ((?:`\w+`, )*`\w+`): \S.+\.$", re.MULTILINE)


def summaries() -> Iterator[tuple[str, type[Summary]]]:
    """The summaries of the builders of each asset."""
    for asset in (kind for each in families.catalogs() for kind in each.kinds):
        for entry in asset.code.entries if asset.code else ():
            module, _, name = entry.rpartition(".")
            given = get_type_hints(getattr(import_module(module), name)).get("return")
            if inspect.isclass(given) and issubclass(given, Summary):
                yield asset.asset, given


def numbers(summary: type[Summary]) -> set[str]:
    """The names of a summary that are numbers of an event."""
    hints = {name: get_origin(hint) or hint for name, hint in get_type_hints(summary).items()}
    named = {each.name for each in fields(summary)} - {"files"}
    return {name for name in named if hints[name] in (int, float, Mapping, dict)}


def test_every_number_and_every_row_of_every_event_has_a_sentence():
    made: dict[str, set[str]] = {}
    for asset, summary in summaries():
        made.setdefault(asset, set()).update(numbers(summary))
    said: dict[str, set[str]] = {}
    for assets, items in LISTS.findall(PAGE):
        names = re.findall(r"`(\w+)`", " ".join(NAMED.findall(items)))
        assert len(names) == len(set(names)), assets
        said |= {key: set(names) for key in assets.split(", ")}
    assert said == made
    rows = (*RESERVED, ROWS, COLUMNS, "dagster/uri", "picture")
    assert [name for name in rows if f"`{name}`" not in PAGE] == []
