"""A folder for PYTHONPATH, from which each Python process imports `sitecustomize`."""
