"""Every parser, by name. A new module in a `raw/` folder needs an entry (test_corpus.py)."""

from tests.fuzz.parser import Parser
from tests.fuzz.parsers import (
    chess,
    common,
    macroxue,
    puzzles_arc,
    puzzles_maze,
    puzzles_reader,
    puzzles_recipes,
    puzzles_rows,
    reasoning,
    reasoning_steps,
    synth,
)

PARSERS: dict[str, Parser] = {
    parser.name: parser
    for module in (
        common,
        macroxue,
        synth,
        chess,
        reasoning,
        reasoning_steps,
        puzzles_arc,
        puzzles_maze,
        puzzles_reader,
        puzzles_recipes,
        puzzles_rows,
    )
    for parser in module.PARSERS
}

# Modules in `raw/` folders that parse nothing which a fuzzer could give them.
NO_PARSERS = {
    "gristmill.chess.raw.archive_config": "settings; the parser `settings` reads them",
    "gristmill.chess.raw.download": "a client of a server: tests/chess/raw/test_download.py",
    "gristmill.puzzles.raw.folders": "kinds of paths, no contents",
    "gristmill.puzzles.raw.hub": "a client of a server: tests/puzzles/raw/test_hub.py",
    "gristmill.puzzles.raw.space": "sizes of files, no contents",
    "gristmill.reasoning.raw.hub": "a client of a server: tests/reasoning/raw/test_hub.py",
    "gristmill.synth.raw.hub": "a client of a server: tests/synth/raw/test_hub.py",
}
