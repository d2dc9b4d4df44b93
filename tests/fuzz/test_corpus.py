"""The inputs of all corpora are read without a foreign exception; no parser is forgotten."""

import re
from pathlib import Path

import pytest

import gristmill
from tests.fuzz.mutate import mutated
from tests.fuzz.parser import CORPUS, Parser, split
from tests.fuzz.parsers import NO_PARSERS, PARSERS

_LIBRARY = Path(gristmill.__file__).parent
_MOST_BYTES = 5_000_000
_ROOMS = {"format", "inbox", "mirror", "provenance", "publish", "run", "settings", "untrusted"}
_TAKES_APART = re.compile(
    r"\b(json\.loads?|orjson\.loads|model_validate_json|tomllib\.loads?|np\.load|csv\.reader)\("
)


@pytest.mark.parametrize("name", PARSERS)
def test_every_input_is_read_or_refused_with_a_text_for_the_user(name: str) -> None:
    parser = PARSERS[name]
    inputs = sorted(parser.corpus.iterdir())
    assert inputs
    accepted = 0
    for path in inputs:
        try:
            accepted += parser.check(path.read_bytes())
        except Exception as error:
            error.add_note(f"input: {path}")
            raise
    assert accepted, "no input reaches the end of the parser"


def _modules_that_read() -> set[str]:
    """All modules of `raw/`, and those of the other rooms that take JSON, TOML or .npy apart."""
    found = set()
    for path in _LIBRARY.rglob("*.py"):
        below = path.relative_to(_LIBRARY)
        is_raw = "raw" in below.parts and path.name != "__init__.py"
        if is_raw or (_ROOMS & set(below.parts) and _TAKES_APART.search(path.read_text())):
            found.add("gristmill." + ".".join(below.with_suffix("").parts))
    return found


def test_every_module_that_reads_is_fuzzed_and_every_corpus_is_small_and_of_a_parser() -> None:
    modules = _modules_that_read()
    assert {"gristmill.mirror.versions", "gristmill.provenance.raw_inputs"} < modules
    covered = {
        module for parser in PARSERS.values() for module in (*parser.modules, *parser.covers)
    }
    forgotten = modules - covered - NO_PARSERS.keys()
    assert not forgotten, (
        "register them in tests/fuzz/parsers/, or say there why they parse nothing"
    )
    assert NO_PARSERS.keys() <= modules - covered
    own = {module for module in covered if module.startswith("gristmill.")}
    gone = {m for m in own if not (_LIBRARY.parent / f"{m.replace('.', '/')}.py").is_file()}
    assert not gone, "the fuzzer cannot change modules that are elsewhere now"
    assert {path.name for path in CORPUS.iterdir()} == set(PARSERS)
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < _MOST_BYTES
    assert all(re.match(r"(seed|found|reach)-", path.name) for path in files)


def test_an_error_that_is_not_for_the_user_is_a_finding_and_mutated_json_is_json() -> None:
    def read(data: bytes) -> None:
        raise KeyError(data)

    with pytest.raises(KeyError):
        Parser("x", read, ()).check(b"")
    data = b'{"a": [1, {"b": null}], "c": "x"}\xff\xfeno json'
    found = {mutated(data, seed) for seed in range(50)} - {None}
    assert len(found) > 20
    assert all(split(made, 2)[1] == b"no json" for made in found if made is not None)
    assert mutated(b"no json", 1) is None
