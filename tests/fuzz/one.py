"""One parser under atheris: `python -m tests.fuzz.one NAME [options of libFuzzer]`.

Prints `inputs: N` at the end. A finding is written below `-artifact_prefix=`, and the process
ends with a code that is not 0.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module


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

    # Only these modules are changed: numba could not compile a changed one. All are forgotten
    # before the first one comes back, or two of them would know different classes of a third.
    for name in parser.modules:
        sys.modules.pop(name, None)
    with atheris.instrument_imports(include=list(parser.modules)):
        for name in parser.modules:
            import_module(name)
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


if __name__ == "__main__":
    main(sys.argv)
