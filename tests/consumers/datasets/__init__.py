"""The library `datasets` of the hub, without Gristmill in its environment.

It is installed beside the tests, or GRISTMILL_DATASETS names a Python that has it:
`python -m venv V && V/bin/pip install datasets==5.2.0`.
"""

from tests.consumers.matrix import Consumer

DATASETS = Consumer("datasets", "5.2.0", "the program")
