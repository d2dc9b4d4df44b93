"""Every parser, by name. A new module in a `raw/` folder needs an entry (test_corpus.py)."""

from tests.fuzz.parser import Parser
from tests.fuzz.parsers import chess, common, macroxue, synth

PARSERS: dict[str, Parser] = {
    parser.name: parser for module in (common, macroxue, synth, chess) for parser in module.PARSERS
}

# Modules in `raw/` folders that parse nothing which a fuzzer could give them.
NO_PARSERS = {
    "gristmill.chess.raw.archive_config": "settings; the parser `settings` reads them",
    "gristmill.chess.raw.download": "a client of a server: tests/chess/raw/test_download.py",
    "gristmill.synth.raw.hub": "a client of a server: tests/synth/raw/test_hub.py",
}
