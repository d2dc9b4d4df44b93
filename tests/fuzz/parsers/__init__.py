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
    puzzles,
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
        puzzles,
    )
    for parser in module.PARSERS
}

# Modules of the same folders that parse nothing which a fuzzer could give them.
NO_PARSERS = {
    "gristmill.provenance.record": "values of its caller, by way of JSON",
    "gristmill.publish.doctor": "what a process says that it has just started",
    "gristmill.puzzles.raw.samples": "writes the sample drops",
    "gristmill.synth.format.quarantine": "lines that a worker has just made",
}
