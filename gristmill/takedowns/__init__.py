"""Which rows of a drop are taken down, what holds their text, and the proof that it is gone."""
