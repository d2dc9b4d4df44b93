"""Tests; each module has the place here that what it tests has in the checkout."""

import os

# Processes of pytest-xdist inherit the size of a terminal that they do not have. Modules look at it
# when they are imported.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)
