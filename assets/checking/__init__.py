"""What checks look at, what they keep, and what they show. See also `assets/family.py`."""
