"""Every parser, by name. A new module that reads bytes needs an entry (test_corpus.py)."""

from tests.fuzz.parser import Parser
from tests.fuzz.parsers import (
    browse,
    chess,
    common,
    kept,
    loading,
    macroxue,
    mirror,
    puzzles_arc,
    puzzles_maze,
    puzzles_reader,
    puzzles_recipes,
    puzzles_rows,
    puzzles_trace,
    reasoning,
    reasoning_corpora,
    reasoning_read,
    reasoning_steps,
    synth,
)

PARSERS: dict[str, Parser] = {
    parser.name: parser
    for module in (
        common,
        kept,
        loading,
        browse,
        mirror,
        macroxue,
        synth,
        chess,
        reasoning,
        reasoning_corpora,
        reasoning_steps,
        reasoning_read,
        puzzles_arc,
        puzzles_maze,
        puzzles_reader,
        puzzles_recipes,
        puzzles_rows,
        puzzles_trace,
    )
    for parser in module.PARSERS
}

# Modules of the same folders that parse nothing which a fuzzer could give them.
NO_PARSERS = {
    "gristmill.chess.raw.archive_config": "settings; the parser `settings` reads them",
    "gristmill.macroxue.raw.pool_members": "files of pools, which `macroxue_pool_file` reads",
    "gristmill.provenance.canonical": "values of its caller, by way of JSON",
    "gristmill.publish.doctor": "what a process says that it has just started",
    "gristmill.puzzles.raw.hub": "a client of a server: tests/puzzles/raw/test_hub.py",
    "gristmill.puzzles.raw.known_recipes": "recipe files, which `puzzles_recipe` reads",
    "gristmill.puzzles.raw.samples": "writes the sample drops",
    "gristmill.synth.format.quarantine": "lines that a worker has just made",
    "gristmill.synth.raw.hub": "a client of a server: tests/synth/raw/test_hub.py",
}
