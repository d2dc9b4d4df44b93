"""The control tokens: their names, and the pattern that finds them in text."""

from gristmill.synth.format import harmony_tokens


def test_the_pattern_finds_exactly_the_names_of_control_tokens() -> None:
    for token in range(199_900, 210_000):
        exists = (
            token in harmony_tokens.NAMES or 200_000 <= token < harmony_tokens.PADDED_VOCABULARY
        )
        text = f"<|reserved_{token}|>"
        assert bool(harmony_tokens.TEXT.fullmatch(text)) == (
            exists and token not in harmony_tokens.NAMES
        )
        if exists:
            assert harmony_tokens.TEXT.findall(f"x{harmony_tokens.name(token)}y") == [
                harmony_tokens.name(token)
            ]
