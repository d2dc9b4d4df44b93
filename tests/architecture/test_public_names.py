"""The names that training code and other projects import: none of them goes away or moves."""

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
        *("StepDataset", "ValueConfig", "ValueSummary", "ViewConfig", "ViewSummary", "merge"),
        *("pack", "training_view", "turned", "value_sidecar"),
    ],
    "gristmill.synth": [
        *("HarmonyConfig", "KDConfig", "KDTraining", "StaleDataset", "SynthKDDataset"),
        *("SynthKDBlendBuilder", "add_kd_arguments", "build_kd_shard", "span_normalized_loss"),
        *("DistilledRows", "SynthKDDocuments", "to_harmony"),
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
        "Record",
        "ReportConfig",
        "ShardReader",
        "TokenizeConfig",
        "Transform",
        "Unfit",
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
    "gristmill.browse": [
        "Column",
        "Filter",
        "Found",
        "StillCounting",
        "Picture",
        "Query",
        "Raw",
        "Row",
        "Table",
        "Token",
        "open_table",
        "tables_of",
    ],
    "gristmill.reading": ["Generation", "StaleDataset", "Verify"],
    "gristmill.puzzles": [
        "ArcConfig",
        "DominoConfig",
        "GridConfig",
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
        "build_grid",
        "build_maze",
        "build_sudoku",
        "inverse",
        "task_hash",
        "trace",
    ],
    "gristmill.loading": [
        *("BatchSampler", "Grouped", "Identity", "Loader", "Mixture", "OtherData", "Picked"),
        *("Packed", "Plan", "Source", "mixture", "read_mix"),
    ],
    "gristmill.samples": ["write_samples"],
}

FAMILY_PACKAGES = [f"gristmill.{family}" for family in FAMILIES]


def _is_importable(package: str, name: str) -> bool:
    """Whether a package gives a name, and not the module of the same name in its place."""
    return type(getattr(import_module(package), name, sys)).__name__ != "module"


@pytest.mark.slow
def test_public_names_can_be_imported() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about itself
        missing = [
            f"{package}.{name}"
            for package, names in PUBLIC.items()
            for name in names
            if not _is_importable(package, name)
        ]
    assert missing == []


def test_a_missing_name_and_a_module_are_found() -> None:
    assert not _is_importable("gristmill.macroxue", "nothing")
    assert not _is_importable("gristmill.publish", "locks")


@pytest.mark.parametrize("package", FAMILY_PACKAGES)
def test_the_package_lists_its_public_names(package: str) -> None:
    assert import_module(package).__all__ == sorted(PUBLIC[package])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = import_module(package).nothing


def test_importing_a_family_loads_none_of_its_modules_and_a_function_stays_one() -> None:
    code = f"import sys, {', '.join(FAMILY_PACKAGES)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert set(FAMILY_PACKAGES) <= set(loaded)
    assert [n for n in loaded if n.startswith(tuple(f"{each}." for each in FAMILY_PACKAGES))] == []
    import gristmill.macroxue
    import gristmill.macroxue.builders.pack
    import gristmill.provenance.verification

    assert callable(gristmill.macroxue.pack)
    assert callable(gristmill.provenance.verify)
