"""Laws of the SYNTH artifacts: rules that their contents must obey.

A law reads an artifact and yields violations. It changes nothing.
"""
