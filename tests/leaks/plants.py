"""Questions without sense and texts that hold them, for tests and for the bench."""

import random
from collections.abc import Callable, Mapping

_SYLLABLES = [*map("".join, zip("bcdfgklmnprstvxy", "aeiouaeiouaeioua", strict=True))]
_HAN = [chr(code) for code in range(0x4E00, 0x5200)]


def prose(seed: int, count: int, words: int = 30) -> list[str]:
    """Questions of English form, no two of which share a run of words, but by chance."""
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4)))

    def one() -> str:
        rest = " ".join(word() for _ in range(words))
        return f"{word().title()} had {rng.randint(1000, 99999):,} {rest}?"

    return [one() for _ in range(count)]


def chinese(seed: int, count: int, characters: int = 40) -> list[str]:
    """The same of characters without spaces."""
    rng = random.Random(seed)
    return ["".join(rng.choices(_HAN, k=characters)) + "？" for _ in range(count)]


def half(text: str) -> str:
    """The first half of the words of a text; of one without spaces, of its characters."""
    parts = text.split()
    return " ".join(parts[: len(parts) // 2]) if parts[1:] else text[: len(text) // 2]


def renamed(name: str, number: object) -> str:
    """A question with a name and a number, of which much else is left."""
    return (
        f"{name} has {number} small apples, and {name} gives {number} of them all to {name} at "
        f"home after {number} long days, in which {name} eats {number} fresh pears while {name} "
        f"is away. How many are left for {name}?"
    )


def kinds(others: list[str]) -> Mapping[str, Callable[[str], str]]:
    """What becomes of a question, by name. others: texts by which it is diluted."""
    around = "\n".join(others[:5])
    return {
        "verbatim": str,
        "wrapped": lambda text: f'My cousin asked me yesterday: "{text}" and I had no idea.',
        "diluted": lambda text: f"{around}\n{text}\n{around}",
        "respelled": lambda text: text.upper().replace(" ", " \n ").replace(",", ""),
        "half": half,
    }
