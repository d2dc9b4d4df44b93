"""Print what the code that stands makes of the samples; `--write` adds it to `builders.json`."""

import argparse
import json
import tempfile
from pathlib import Path

from tests.goldens import FILE, with_the_code_that_stands
from tests.kept_vocabularies import kept_vocabularies
from tests.sample_root import SampleRoot


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    is_wanted = parser.parse_args().write
    vocabularies = kept_vocabularies()
    with tempfile.TemporaryDirectory() as folder:
        entries = with_the_code_that_stands(SampleRoot.build(Path(folder), vocabularies))
    text = json.dumps(entries, indent=1, sort_keys=True) + "\n"
    if is_wanted:
        FILE.write_text(text)
    else:
        print(text, end="")  # noqa: T201  it is what the command is for


if __name__ == "__main__":
    main()
