"""Types blocks of pages in one process: `python -m tests.typed_page`, with the blocks on its input.

Commands of Gristmill run in the process, which spares the start of each. Bash types a block that
has other lines, too. Python is one program.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from gristmill.cli import main
from tests.pages import Block


def commands(code: str) -> list[list[str]]:
    """The words of each command of a block in bash, without comments."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run(blocks: Sequence[Block]) -> None:
    """Type blocks. Ends the process with the place of the first line that fails."""
    names: dict[str, object] = {}
    for block in blocks:
        sys.stdout.write(f"== {block.name}\n")
        sys.stdout.flush()
        if block.language == "python":
            exec(compile(block.code, block.name, "exec"), names)
        elif all(words[0] == "gristmill" for words in commands(block.code)):
            for words in commands(block.code):
                given = [os.path.expanduser(word) for word in words[1:]]  # noqa: PTH111
                with chdir(Path.cwd()):  # those that need Dagster go to the checkout
                    main(given, standalone_mode=False)
        else:
            subprocess.run(["bash", "-e", "-c", block.code], check=True)


if __name__ == "__main__":
    run([Block(**each) for each in json.load(sys.stdin)])
