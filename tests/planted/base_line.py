"""A base line: faults that are kept with what caught them, to ask later code the same."""

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Final

from tests.planted.checkout import Copy, Verdict, product
from tests.planted.faults import Fault, drawn, faults

FILE: Final = Path(__file__).with_name("base_line.json")
"""Its head: the commit, the seed, and `left_out`, patterns of modules that nothing is drawn from.
Then the faults, with `by` and `is_late` as in `Verdict`: what lacks `by` was not asked, what lacks
`is_late` does not say whether time was over."""

_KEY: Final = ("module", "inside", "before", "after")


def is_caught(by: str) -> bool:
    """Whether a verdict is that of a test. Tests that do not end may be those of a slow machine."""
    return by not in ("", "no end")


def found_again(key: tuple[str, ...], sources: Mapping[str, str]) -> Fault | None:
    """The fault of a key, or the only one like it in a function of that name, or None."""
    module, inside, *lines = key
    for fault in faults(module, sources.get(module, "")):
        if fault.key == key:
            return fault
    likely = {path: text for path, text in sources.items() if lines[0] in " ".join(text.split())}
    found = {
        fault.key: fault
        for path, text in likely.items()
        for fault in faults(path, text)
        if [fault.before, fault.after] == lines
        and fault.inside.split(".")[-1] == inside.split(".")[-1]
    }
    return found.popitem()[1] if len(found) == 1 else None


def keep(file: Path, copy: Copy, count: int, say: Callable[[str], object]) -> None:
    """Draw faults, unless the file has them, and write what caught each as it is known."""
    kept, sources = json.loads(file.read_text()), product()
    if "faults" not in kept:
        out = kept["left_out"]
        stay = {each: sources[each] for each in sources if not any(fnmatch(each, by) for by in out)}
        all_faults = drawn(stay, kept["seed"], "")
        # Of equal lines of a function, a key finds the first.
        fit = (each for each in all_faults if found_again(each.key, sources) == each)
        kept["faults"] = [dict(zip(_KEY, each.key, strict=True)) for each in islice(fit, count)]
    for item in kept["faults"]:
        fault = found_again(tuple(item[name] for name in _KEY), sources)
        if "by" in item or fault is None:
            continue
        verdict = copy.verdict(fault)
        if is_caught(verdict.by):  # a test that failed by chance does not fail again
            verdict = copy.verdict(fault, verdict.by)
        item |= {"by": verdict.by, "is_late": verdict.is_late}
        file.write_text(json.dumps(kept, indent=1) + "\n")
        say(f"{_word(verdict)}: {fault}")


def _word(verdict: Verdict) -> str:
    """What caught a fault, or that it survived, and whether for want of time."""
    return verdict.by or ("SURVIVED, but time was over" if verdict.is_late else "SURVIVED")


def ask_again(file: Path, copy: Copy, say: Callable[[str], object]) -> int:
    """Plant the faults of a file once more; 1 if a smaller share is caught than then, else 0."""
    sources = product()
    then, now, number, gone = 0, 0, 0, 0
    for item in json.loads(file.read_text())["faults"]:
        if "by" not in item:  # never asked
            continue
        fault = found_again(tuple(item[name] for name in _KEY), sources)
        if fault is None:
            gone += 1
            say(f"gone: {item['module']} in {item['inside']}: {item['before']}")
            continue
        verdict = copy.verdict(fault, item["by"])
        was, is_now = is_caught(item["by"]), is_caught(verdict.by)
        number, then, now = number + 1, then + was, now + is_now
        lost = f" ({item['by']} caught it)" if was and not is_now else ""
        say(f"{_word(verdict)}{lost}: {fault}")
    say(f"{now} of {number} caught, {then} at the base line; {gone} gone")
    return int(now < then)
