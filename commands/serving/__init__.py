"""What `gristmill ui` serves the instance with: its processes, its guard, the launcher of runs.

`commands/ui.py` is the command. `dagster.yaml` names the launcher.
"""
