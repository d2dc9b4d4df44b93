"""Coverage-guided fuzzing of every parser: `make fuzz`, or `python -m tests.fuzz NAME...`.

A parser is registered in `parsers/`. `one.py` runs one of them under atheris; `__main__.py` runs
several. `corpus/<name>/` holds inputs that cover it, and every input that once was a finding:
`test_corpus.py` reads them all again in `make test`.
"""
