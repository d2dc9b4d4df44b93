"""The command `gristmill`, for those who start it by this file: `python operate.py prune`."""

from gristmill.cli import main

if __name__ == "__main__":
    main(prog_name="operate.py")
