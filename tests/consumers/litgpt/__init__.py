"""litgpt, followed to the letter: what litdata, its library of data, reads of a folder of chunks.

The library is installed beside the tests, or GRISTMILL_LITDATA names a Python that has it:
`python -m venv V && V/bin/pip install litdata==0.2.76`.
"""

from tests.consumers.matrix import Consumer

LITGPT = Consumer("litgpt", "commit 2685705, litdata 0.2.76", "litdata")
