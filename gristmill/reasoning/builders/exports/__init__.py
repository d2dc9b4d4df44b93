"""What is made for other programs: their own formats, and the spans of arithmetic."""
