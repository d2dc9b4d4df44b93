"""Module paths of the version before this one, which pickles and Ray tasks may name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

MOVED: Final = {
    **{
        f"gristmill.{family}.build": f"gristmill.{family}.builders"
        for family in ("macroxue", "synth", "chess", "reasoning", "puzzles")
    },
    "gristmill.chess.raw.partial_download": "gristmill.chess.raw.download",
    "gristmill.hub": "gristmill.inbox.hub",
    "gristmill.reasoning.raw.parquet_child": "gristmill.reasoning.raw.parquet",
    "gristmill.untrusted.arrow_errors": "gristmill.untrusted.parquet",
    "gristmill.untrusted.named": "gristmill.untrusted.files",
    "gristmill.puzzles.domains.arc_places": "gristmill.puzzles.domains.arc_kernels",
    "gristmill.puzzles.format.identifiers": "gristmill.puzzles.format.metadata",
    "gristmill.reasoning.builders.align_part": "gristmill.reasoning.builders.align",
    "gristmill.reasoning.builders.shard_ranks": "gristmill.reasoning.builders.shards",
    "gristmill.reasoning.show.audit_command": "gristmill.reasoning.commands",
    "gristmill.reasoning.show.tracing": "gristmill.reasoning.show.place",
    "gristmill.reasoning.read.steps": "gristmill.reasoning.read.shard_rows",
    "gristmill.reasoning.read.gate": "gristmill.reasoning.read.supervised",
    "gristmill.reasoning.read.shard_state": "gristmill.reasoning.read.shard_order",
    "gristmill.reasoning.render.cleaning": "gristmill.reasoning.render.text",
    "gristmill.synth.builders.harmony_join": "gristmill.synth.builders.harmony",
    "gristmill.vocabularies.load": "gristmill.vocabularies.find",
    "gristmill.synth.show.lengths": "gristmill.synth.show.preview",
    "gristmill.synth.read.shard": "gristmill.synth.read.dataset",
    "gristmill.synth.read.raw_row": "gristmill.synth.read.origins",
    "gristmill.reasoning.read.audit_sample": "gristmill.reasoning.read.alignment",
    "gristmill.synth.render.shapes": "gristmill.synth.render.documents",
    "gristmill.synth.read.batch": "gristmill.synth.read.training",
    "gristmill.reasoning.render.arithmetic": "gristmill.reasoning.render.steps",
    "gristmill.synth.laws.hash_bounds": "gristmill.synth.laws.kd_shard",
    "gristmill.reasoning.build.drift": "gristmill.reasoning.builders.report",
    "gristmill.reasoning.build.perturbations": "gristmill.reasoning.builders.invariance",
    "gristmill.reasoning.build.refused": "gristmill.reasoning.builders.refused",
    "gristmill.reasoning.build.shard_groups": "gristmill.reasoning.builders.shard_part",
    "gristmill.reasoning.build.shard_index": "gristmill.reasoning.builders.shard_join",
    "gristmill.reasoning.read.staged_copy": "gristmill.reasoning.read.stage",
    "gristmill.puzzles.format.encoding": "gristmill.puzzles.format.metadata",
    "gristmill.puzzles.build.sudoku_choice": "gristmill.puzzles.builders.sudoku",
    "gristmill.puzzles.raw.folders": "gristmill.puzzles.raw.file_forms",
    "gristmill.puzzles.raw.recipe_file": "gristmill.puzzles.raw.recipes",
    "gristmill.puzzles.show.tracing": "gristmill.puzzles.show.terminal",
    "gristmill.puzzles.format.join": "gristmill.puzzles.format.part_file",
    "gristmill.puzzles.format.sources": "gristmill.puzzles.format.metadata",
    "gristmill.puzzles.domains.arc_vote": "gristmill.puzzles.domains.arc_augment",
    "gristmill.puzzles.laws.encoding": "gristmill.puzzles.laws.contract",
    "gristmill.puzzles.raw.space": "gristmill.puzzles.builds",
    "gristmill.settings.mirrors": "gristmill.settings.root_tables",
    "gristmill.settings.engines": "gristmill.settings.root_tables",
    "gristmill.settings.inboxes": "gristmill.settings.root_tables",
    "gristmill.settings.alerts": "gristmill.settings.root_tables",
    "gristmill.puzzles.show.domino_picture": "gristmill.puzzles.show.pictures",
    "gristmill.puzzles.show.token_table": "gristmill.puzzles.show.pictures",
    "gristmill.puzzles.read.npy_file": "gristmill.puzzles.read.split_files",
    "gristmill.puzzles.laws.trace": "gristmill.puzzles.laws.contract",
    "gristmill.puzzles.show.findings": "gristmill.puzzles.show.terminal",
    "gristmill.puzzles.domains.sudoku.augment": "gristmill.puzzles.domains.sudoku.symmetry",
    "gristmill.puzzles.laws.domino_draws": "gristmill.puzzles.laws.domino",
    "gristmill.puzzles.laws.maze_kernels": "gristmill.puzzles.laws.maze",
    "gristmill.puzzles.laws.sudoku_kernels": "gristmill.puzzles.laws.sudoku_draws",
    "gristmill.puzzles.show.sheet": "gristmill.puzzles.show.cells",
    "gristmill.reasoning.laws.index_lines": "gristmill.reasoning.laws.shard_index",
    "gristmill.reasoning.format.selection": "gristmill.reasoning.format.index",
    "gristmill.chess.builders.validate_fallback": "gristmill.chess.builders.validate",
    "gristmill.macroxue.read.open_rows": "gristmill.macroxue.read.dataset",
    "gristmill.macroxue.read.run_query": "gristmill.macroxue.read.dataset",
    "gristmill.synth.builders.kd_part_trace": "gristmill.synth.builders.kd_part",
    "gristmill.synth.builders.kd_part_compare": "gristmill.synth.builders.kd_part",
    "gristmill.mirror.hub.nested": "gristmill.mirror.hub.push",
    "gristmill.mirror.hub.sources": "gristmill.mirror.hub.push",
    "gristmill.mirror.address": "gristmill.mirror.cache",
    "gristmill.publish.write_record": "gristmill.publish.publish",
    "gristmill.macroxue.raw.whole_lines": "gristmill.macroxue.raw.read_run",
    "gristmill.synth.laws.hash_sample": "gristmill.synth.laws.kd_shard",
    "gristmill.synth.laws.trace": "gristmill.synth.laws.kd_shard",
    "gristmill.chess.builders.validate_reports": "gristmill.chess.builders.validate",
    "gristmill.chess.builders.validate_range": "gristmill.chess.builders.validate",
    "gristmill.chess.kernels.san": "gristmill.chess.kernels.movetext",
    "gristmill.chess.read.canonical_rows": "gristmill.chess.read.row_batches",
    "gristmill.chess.read.month_config": "gristmill.chess.read.dataset",
    "gristmill.data_root.settings": "gristmill.data_root.drops",
    "gristmill.untrusted.timed": "gristmill.inbox.judging",
    "gristmill.run.kept_facts": "gristmill.code.digest",
    "gristmill.synth.show.drawing": "gristmill.synth.show.preview",
    "gristmill.puzzles.read.parameters": "gristmill.puzzles.read.trace",
    "gristmill.reasoning.raw.unpacked": "gristmill.reasoning.raw.rows",
    "gristmill.reading.reopened": "gristmill.reasoning.read.shard_files",
    "gristmill.puzzles.laws.arc_identifiers": "gristmill.puzzles.laws.arc",
    "gristmill.chess.format.cache_arrays": "gristmill.chess.format.names",
    "gristmill.chess.raw.pgn_lines": "gristmill.chess.raw.python_chess",
    "gristmill.chess.raw.zip_member": "gristmill.chess.raw.unpack",
    "gristmill.chess.raw.pgn_head": "gristmill.chess.raw.text_limits",
    "gristmill.chess.builders.verdict": "gristmill.chess.builders.range_output",
    "gristmill.chess.read.staleness": "gristmill.chess.read.months",
    "gristmill.chess.laws.rows": "gristmill.chess.laws.files",
    "gristmill.macroxue.laws.report": "gristmill.macroxue.laws.pack",
    "gristmill.macroxue.laws.notes": "gristmill.macroxue.laws.games",
    "gristmill.macroxue.raw.gzip_files": "gristmill.macroxue.raw.read_run",
    "gristmill.macroxue.read.check_runs": "gristmill.macroxue.read.gather",
    "gristmill.macroxue.builders.pool_sidefiles": "gristmill.macroxue.builders.pool_members",
    "gristmill.macroxue.format.foreign_packs": "gristmill.macroxue.format.shards",
    "gristmill.macroxue.raw.names": "gristmill.macroxue.raw.run_facts",
    "gristmill.mirror.wanted": "gristmill.mirror.versions",
    "gristmill.mirror.listing": "gristmill.mirror.versions",
    "gristmill.mirror.standing": "gristmill.mirror.pulling",
    "gristmill.inbox.staging": "gristmill.inbox.copying",
    "gristmill.run.build_mark": "gristmill.run.part_store",
}
"""Earlier path of a module or package -> its path; a package brings the modules in it."""


def moved_to(name: str) -> str | None:
    """Returns today's path of a module, None where `name` is no earlier one."""
    head = name
    while head:
        if head in MOVED:
            return MOVED[head] + name[len(head) :]
        head = head.rpartition(".")[0]
    return None


class _OldPaths(MetaPathFinder, Loader):
    """Imports a module by its earlier path."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("gristmill.") or moved_to(name) is None:
            return None
        return ModuleSpec(name, self, is_package=False)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        today = str(moved_to(name))
        warnings.warn(f"{name} is now {today}", DeprecationWarning, stacklevel=2)
        # The import system returns what stands here, so that both paths name one module.
        sys.modules[name] = import_module(today)


def install() -> None:
    """Let this process import modules by their earlier paths."""
    if not any(isinstance(each, _OldPaths) for each in sys.meta_path):
        # First, since the parent's folder would give a second copy of the module.
        sys.meta_path.insert(0, _OldPaths())
