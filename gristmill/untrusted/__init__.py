"""Files that others wrote: opened without following links, and read within limits."""
