"""Every parser, by name. A new module that reads bytes needs an entry (test_corpus.py)."""

from tests.fuzz.parser import Parser
from tests.fuzz.parsers import chess, common, macroxue, puzzles, reasoning, synth

PARSERS: dict[str, Parser] = {
    parser.name: parser
    for module in (common, macroxue, synth, chess, reasoning, puzzles)
    for parser in module.PARSERS
}

# Modules of the same folders that parse nothing which a fuzzer could give them.
NO_PARSERS = {
    "gristmill.corpora.raw.chat.marks": "texts of rows that a reader has parsed",
    "gristmill.publish.doctor": "what a process says that it has just started",
    "gristmill.puzzles.raw.samples": "writes the sample drops",
    "gristmill.synth.format.quarantine": "lines that a worker has just made",
}
