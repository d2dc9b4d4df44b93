"""Tests have the tree of the code: the test of a module is found by its path."""

from collections.abc import Iterable
from pathlib import Path

from tests.architecture.graph import modules
from tests.paths import CHECKOUT

ACROSS = {
    "assets/chess/test_assets.py": "the assets of chess in runs",
    "assets/chess/test_schedules.py": "the months of chess, and the schedule that downloads them",
    "assets/chess/test_inbox.py": "the drops of chess and the runs that they start",
    "assets/macroxue/test_assets.py": "the assets of 2048 in runs",
    "assets/synth/test_assets.py": "the assets of SYNTH in runs",
    "assets/synth/test_inbox.py": "what the sensors ask for after drops of SYNTH",
    "assets/test_damaged_inputs.py": "all edges of the graph with damaged inputs",
    "assets/test_builders.py": "what all builders report, show and count",
    "assets/reasoning/test_assets.py": "the assets of the reasoning corpora in runs",
    "assets/reasoning/test_partitions.py": "partitions of corpora, from the drop to the trace",
    "assets/reasoning/test_inbox.py": "drops of the reasoning corpora as runs",
    "assets/puzzles/test_assets.py": "the assets of puzzles in runs",
    "assets/puzzles/test_inbox.py": "the drops of puzzles and the runs that they start",
    "chess/builders/test_goldens.py": "all builders of chess against golden files",
    "chess/kernels/test_rules.py": "all kernels against python-chess",
    "assets/chess/test_collections.py": "collections of PGNs, from the sensor to the reader",
    "chess/raw/test_tags_and_moves.py": "both readers of PGN against the rule of the standard",
    "chess/read/test_training_loader.py": "a reader written from the format page alone",
    "clusters/test_chain.py": "the chains of all families on Ray and Postgres, killed",
    "clusters/test_parts.py": "parts of builds as tasks of Ray, killed, and those of all families",
    "commands/test_drop_states.py": "the states of a drop at all entrances, in all inboxes",
    "commands/test_postgres.py": "commands on an instance in Postgres",
    "consumers/datasets/test_opens.py": "what all families publish, as `load_dataset` opens it",
    "consumers/hrm/test_hrm.py": "puzzles as HRM opens them",
    "consumers/distillkit/test_distillkit.py": "conversations as DistillKit opens them",
    "consumers/litgpt/test_litgpt.py": "documents of tokens as litgpt opens them",
    "consumers/llm_c/test_llm_c.py": "documents of tokens as llm.c and modded-nanogpt open them",
    "consumers/test_matrix.py": "which program opens which artifact",
    "consumers/test_programs.py": "what all families publish, as programs themselves open it",
    "consumers/macroxue_trainer/test_macroxue_trainer.py": "views of 2048 as 2048former opens them",
    "consumers/rl_decoder/test_rl_decoder.py": "annotations as RL-Decoder finds them",
    "consumers/trm/test_trm.py": "puzzles as TRM opens them",
    "examples/test_lights_out.py": "the example of docs/adding-a-puzzle.md",
    "examples/test_train_tiny_gpt.py": "the example that trains on the sample shards",
    "examples/test_train_small_nets.py": "the example that trains on the samples of each family",
    "fuzz/test_corpus.py": "all parsers on the inputs of the fuzzers",
    "goldens/test_goldens.py": "the output of all builders against that of earlier code",
    "goldens/test_traced.py": "what all builders execute, against their digests",
    "loading/test_oldest_numpy.py": "the golden numbers with the oldest NumPy",
    "mirror/test_kills.py": "pushes and pulls that are killed",
    "notebooks/test_data_checks.py": "the notebooks, over a small data root",
    "publish/test_kill.py": "publishing, killed at every step",
    "publish/test_real_builds.py": "the builds of all assets, killed and with failing calls",
    "puzzles/builders/test_processes.py": "builds of all puzzles in two processes",
    "puzzles/laws/test_workers.py": "builds and laws of every kind with several workers",
    "puzzles/read/test_training.py": "a toy model trained on every kind of puzzle",
    "reasoning/read/test_source.py": "the sequences of shards as a source of the loader",
    "resources/test_lake.py": "the data root as Dagster has it, and the archive of chess months",
    "sensors/test_first_ticks.py": "the sensors of all families over samples that are built",
    "synth/builders/chat/test_synth_recipe.py": "SYNTH by a recipe against its own assets",
    "synth/builders/chat/test_publishing.py": "conversations from their drop to a batch, published",
    "synth/render/test_golden.py": "both renderers against golden tokens",
    "upgrade/test_upgrade.py": "what an older version left, opened by the code of now",
    "test_damages.py": "a damage of an artifact of every asset, and what finds it",
    "browse/web/test_docs.py": "the site of the docs, below `/docs/`",
    "test_deploy.py": "the files of deploy/",
    "test_proxy.py": "the login of deploy/, run by nginx",
    "test_packaging.py": "the wheel and the editable install",
    "test_docs.py": "the code of the pages, run as it stands",
    "test_readme.py": "README, typed in a fresh clone",
    "test_sample_commands.py": "`gristmill samples` and what takes samples away",
}
"""Tests of several modules or of a part of one, and what they are about."""

HELPED = {
    "test_bench.py",
    "test_budget.py",
    "test_dealing.py",
    "test_helpers.py",
    "test_measured.py",
    "facts/test_facts.py",
    "planted/test_base_line.py",
    "planted/test_faults.py",
    "test_definitions.py",
    "test_operate.py",
}
"""Tests of modules outside the packages, and of the tests' own helpers."""


def _path_of_test(file: Path) -> Path:
    relative = file.relative_to(CHECKOUT)
    if relative.parts[0] == "gristmill":
        relative = relative.relative_to("gristmill")
    return relative.with_name(f"test_{relative.name}")


EXPECTED = {_path_of_test(file) for file in modules(CHECKOUT).values()}
TESTS = [
    test
    for file in sorted((CHECKOUT / "tests").rglob("test_*.py"))
    if (test := file.relative_to(CHECKOUT / "tests")).parts[0] not in ("architecture", "e2e")
]


def _strays(tests: Iterable[Path]) -> list[str]:
    """Tests that are named after no module, and are on no list."""
    known = {path.as_posix() for path in EXPECTED} | {*ACROSS, *HELPED}
    return sorted(test.as_posix() for test in tests if test.as_posix() not in known)


def test_tests_are_named_after_their_modules_and_one_that_is_not_is_found() -> None:
    strays = _strays(TESTS)
    assert not strays, "\n".join(strays)
    assert len(TESTS) > 300
    fine = ["run/test_kernels.py", "test_budget.py", "publish/test_kill.py"]
    strays = ["run/test_no_module.py", "test_kernels.py", "gristmill/run/test_kernels.py"]
    assert _strays(map(Path, [*fine, *strays])) == sorted(strays)


def test_every_folder_of_code_has_a_folder_of_tests_and_every_listed_test_is_there() -> None:
    folders = {test.parent for test in TESTS}
    missing = {path.parent.as_posix() for path in EXPECTED if path.parent not in folders}
    assert missing == set()
    assert {*ACROSS, *HELPED} <= {test.as_posix() for test in TESTS}
    assert not {Path(name) for name in ACROSS} & EXPECTED
