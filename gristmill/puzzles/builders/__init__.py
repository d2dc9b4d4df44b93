"""Sources to puzzle datasets: the base of all builders, and one module for each puzzle."""
