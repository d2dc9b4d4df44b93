"""What `gristmill ui` serves the instance with: its processes, its guard, the launcher of runs."""
