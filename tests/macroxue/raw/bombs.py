"""Reads small files that unpack to much, in a process with 1 GB of address space."""

import gzip
import resource
import sys
import time
from pathlib import Path

TEXTS = {
    "empty_lines": b"\n" * (15 << 20),
    "blank_lines": b" \t\r\n" * (3 << 20),
    "many_empty_lines": b"\n" * (40 << 20),
    "long_line": b'{"x":[' + b"[]," * (3 << 20) + b"[]]}\n",
    "deep_line": b"[" * (15 << 20) + b"\n",
    "long_number": b'{"board":[' + b"9" * (15 << 20) + b"]}\n",
    "endless_line": b"x" * (40 << 20),
    "long_string": b'{"valuation_type":"' + b"x" * (15 << 20) + b'"}\n',
}


def main(folder: Path) -> None:
    """Print for each text what reading it says, its CPU seconds, and the peak of the process."""
    from gristmill.contract import BadInput
    from gristmill.macroxue.raw.drops import find_runs
    from gristmill.macroxue.raw.fast_scanner import scan
    from gristmill.macroxue.raw.read_run import read_run
    from gristmill.macroxue.raw.strict_parser import Names
    from tests.macroxue.lines import step, write_run

    for name, text in TEXTS.items():
        write_run(folder / name, "g", [step()])
        (folder / name / "g.jsonl.gz").write_bytes(gzip.compress(text, 6))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    for name in TEXTS:
        (run,) = find_runs(folder / name).runs
        begin = time.process_time()
        try:
            said = f"{read_run(run, 0, Names(), lambda rows: None, scan).rows} rows"
        except BadInput as error:
            said = error.rule
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(name, f"{time.process_time() - begin:.1f}", peak, said, sep="\t")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
