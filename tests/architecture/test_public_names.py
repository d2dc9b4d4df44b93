"""The names that training code and other projects import: none of them goes away or moves."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from gristmill.families import FAMILIES
from tests.paths import CHECKOUT

PUBLIC = {
    "gristmill.macroxue": [
        *("MergeConfig", "MergeSummary", "PackConfig", "PackSummary", "StaleDataset"),
        *("StepDataset", "ValueConfig", "ValueSummary", "merge", "pack", "value_sidecar"),
    ],
    "gristmill.synth": [
        *("HarmonyConfig", "KDConfig", "KDTraining", "StaleDataset", "SynthKDDataset"),
        *("SynthKDBlendBuilder", "add_kd_arguments", "build_kd_shard", "span_normalized_loss"),
        "to_harmony",
    ],
    "gristmill.chess": [
        *("ArchiveConfig", "ArchiveSummary", "CacheConfig", "CacheSummary", "DownloadError"),
        *("FetchConfig", "GameConfig", "GameSpliceDataset", "GameSummary", "MonthConfig"),
        *("NotPublished", "SpliceConfig", "SpliceSummary", "StaleCache", "StaleDataset"),
        *("Trace", "ValidateConfig", "ValidateSummary", "build_game_dataset"),
        *("build_splice_cache", "build_splice_dataset", "check_month", "collate"),
        *("due_months", "fetch_month"),
        *("parse_month_list", "take_drop", "trace", "validate"),
    ],
    "gristmill.reasoning": [
        "AlignConfig",
        "NormalizeConfig",
        "ReportConfig",
        "ShardReader",
        "TokenizeConfig",
        "align",
        "by_step",
        "check_gate",
        "coverage_report",
        "normalize",
        "stage",
        "tokenize",
        "trace",
        "unstage",
        "verify_shards",
        "write_manifest",
        "write_raw_manifest",
    ],
    "gristmill.provenance": ["Input", "Output", "Record", "read_record", "verify"],
    "gristmill.reading": ["Generation", "StaleDataset", "Verify"],
    "gristmill.puzzles": [
        "ArcConfig",
        "DominoConfig",
        "MazeConfig",
        "PuzzleDataset",
        "PuzzleDatasetConfig",
        "PuzzleDatasetMetadata",
        "PuzzleExamples",
        "SudokuConfig",
        "arc_vote",
        "aug_id",
        "build_arc",
        "build_domino",
        "build_maze",
        "build_sudoku",
        "inverse",
        "task_hash",
        "trace",
    ],
    "gristmill.samples": ["write_samples"],
}

FAMILY_PACKAGES = [f"gristmill.{family}" for family in FAMILIES]


@pytest.mark.parametrize(("package", "name"), [(p, n) for p, ns in PUBLIC.items() for n in ns])
def test_a_public_name_can_be_imported(package: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about itself
        value = getattr(import_module(package), name)
    # A module of the same name must never take the place of the function.
    assert type(value).__name__ != "module"


@pytest.mark.parametrize("package", FAMILY_PACKAGES)
def test_the_package_lists_its_public_names(package: str) -> None:
    assert import_module(package).__all__ == sorted(PUBLIC[package])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = import_module(package).nothing


@pytest.mark.parametrize("package", FAMILY_PACKAGES)
def test_importing_a_family_loads_none_of_its_modules(package: str) -> None:
    code = f"import sys, {package}; print(*(n for n in sys.modules if n.startswith('{package}.')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_function_stays_a_function_after_its_module_was_imported() -> None:
    import gristmill.macroxue
    import gristmill.macroxue.build.pack
    import gristmill.provenance.verification

    assert callable(gristmill.macroxue.pack)
    assert callable(gristmill.provenance.verify)
