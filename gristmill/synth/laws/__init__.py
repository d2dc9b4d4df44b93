"""Laws of the SYNTH artifacts: what must hold of their contents.

A law reads an artifact and yields violations; it changes nothing.
"""
