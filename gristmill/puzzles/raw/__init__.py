"""What arrives: task files, rated CSV files, puzzle banks, mazes, recipes."""
