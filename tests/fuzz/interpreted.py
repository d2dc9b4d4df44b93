"""Lets the kernels of chess run in Python, where the fuzzer sees their branches."""

from typing import Any


def prepare() -> None:
    """Replace what only compiled code can do; call it with NUMBA_DISABLE_JIT, before other imports.

    A uint64 of NumPy and an int of Python make a float64 in Python, as in numba: the rules of
    chess in Python may differ from the compiled ones in no game that has been seen, and what the
    fuzzer finds is replayed with compiled kernels by the parser `chess_pgn`.
    """
    import numpy as np

    from gristmill.chess.kernels import attacks, copying

    np.seterr(all="ignore")

    def copy(text: Any, start: int, end: int, out: Any, at: int) -> int:
        out[at : at + end - start] = text[start:end]
        return at + end - start

    replaced: dict[Any, dict[str, Any]] = {
        attacks: {
            "borrowed": lambda array: array,
            "lowest": lambda word: (int(word) & -int(word)).bit_length() - 1 if word else 64,
            "_leading": lambda word: 64 - int(word).bit_length(),
            "count": lambda word: int(word).bit_count(),
        },
        copying: {"copy": copy},
    }
    for module, functions in replaced.items():
        for name, function in functions.items():
            if not hasattr(module, name):
                raise AttributeError(f"{module.__name__} has no {name}: correct {__name__}")
            setattr(module, name, function)
