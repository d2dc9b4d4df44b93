"""tiktoken's public function that encodes for us, beside the private functions below it.

`encode_to_numpy` is what `gristmill/vocabularies/encode.py` calls. Of the private functions one
makes the same buffer of bytes, and one a list. Each in turn encodes the 1,000 real conversations,
and its fastest round counts; CPU seconds. Needs the real conversations (GRISTMILL_REAL_DATA) and a
vocabulary.

    python -m bench.tiktoken_public [--rounds 9]
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable

from bench import kit
from bench.synth import bodies_of
from bench.synth_build import NAME, write_real
from gristmill.vocabularies.engine import tiktoken_encoding
from gristmill.vocabularies.pinned import O200K, find

_ASKED = 0.97


def fastest(
    functions: list[Callable[[str], object]], bodies: list[str], rounds: int
) -> list[float]:
    """CPU seconds of each function over all bodies: the fastest of some rounds, in turns.

    One round after the other, since a body that was just encoded is encoded three times as fast.
    """
    best = [float("inf")] * len(functions)
    for first in range(rounds):
        for step in range(len(functions)):
            number = (first + step) % len(functions)
            began = time.process_time()
            for body in bodies:
                functions[number](body)
            best[number] = min(best[number], time.process_time() - began)
    return best


def functions(given: kit.Given) -> None:
    shard = given.scratch / NAME
    write_real(shard)
    tiktoken = tiktoken_encoding(O200K, find(O200K, kit.DATA))
    private = tiktoken._core_bpe
    encoders: list[Callable[[str], object]] = [
        lambda text: tiktoken.encode_to_numpy(text, disallowed_special=()).data,
        lambda text: memoryview(private.encode_to_tiktoken_buffer(text, set())),
        lambda text: array("I", private.encode_ordinary(text)),
    ]
    ours, *theirs = fastest(encoders, bodies_of(shard), given.rounds)
    for seconds, what in zip(theirs, ("its buffer", "a list"), strict=True):
        print(
            f"encode_to_numpy over the private function that makes {what}: {seconds / ours:.3f} "
            f"of its rate; asked {_ASKED}"
        )


if __name__ == "__main__":
    kit.main(__doc__, functions, rounds=9)
