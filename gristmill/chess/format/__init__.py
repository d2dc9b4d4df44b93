"""The formats of the chess family: names of files, rows, records, and how samples are counted."""
