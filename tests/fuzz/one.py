"""One parser under atheris: `python -m tests.fuzz.one NAME [options of libFuzzer]`.

Prints `inputs: N` at the end. A finding is written below `-artifact_prefix=`, and the process
ends with a code that is not 0.
"""

import os
import sys
import warnings
from importlib import import_module

from tests.paths import CHECKOUT


def main(arguments: list[str]) -> None:
    from tests.fuzz import interpreted
    from tests.fuzz.mutate import mutated
    from tests.fuzz.parsers import PARSERS

    parser = PARSERS[arguments[1]]
    if parser.interpreted:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        interpreted.prepare()
    warnings.simplefilter("ignore")

    import atheris

    # Only these modules are changed, and none that they import: numba could not compile a changed
    # one. All are forgotten before the first one comes back, or two of them would know different
    # classes of a third.
    for name in parser.modules:
        sys.modules.pop(name, None)
    others = [name for name in _modules() if name not in parser.modules]
    with atheris.instrument_imports(include=list(parser.modules), exclude=others):
        for name in parser.modules:
            import_module(name)
    # Kernels are compiled at their first use, which takes longer than an input may.
    for seed in sorted(parser.corpus.glob("seed-*")):
        parser.check(seed.read_bytes())
    count = 0

    def one_input(data: bytes) -> None:
        nonlocal count
        count += 1
        parser.check(data)

    def change(data: bytes, most: int, seed: int) -> bytes:
        made = mutated(data, seed) if seed % 2 else None
        return made if made is not None and len(made) <= most else atheris.Mutate(data, most)

    options = {"custom_mutator": change} if parser.is_json else {}
    atheris.Setup([arguments[0], *arguments[2:]], one_input, **options)
    import atexit

    atexit.register(lambda: print(f"inputs: {count}", flush=True))  # noqa: T201
    atheris.Fuzz()


def _modules() -> list[str]:
    """The names of all modules of the library."""
    files = (CHECKOUT / "gristmill").rglob("*.py")
    parts = (file.relative_to(CHECKOUT).with_suffix("").parts for file in files)
    return [".".join(names[:-1] if names[-1] == "__init__" else names) for names in parts]


if __name__ == "__main__":
    main(sys.argv)
