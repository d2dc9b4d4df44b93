"""Conversations in SVG."""

import xml.etree.ElementTree as ET

from gristmill.synth.show import drawing
from gristmill.synth.show.tokens import Line, ShownToken

SVG = "{http://www.w3.org/2000/svg}"


def texts(image: ET.Element, style: str) -> list[str]:
    return [x.text or "" for x in image.iter(f"{SVG}text") if x.get("class") == style]


def test_each_token_is_a_rectangle_of_its_span() -> None:
    lines = [
        Line("user", [ShownToken("<|start|>", 0, True, True), ShownToken("hi", 0, True)]),
        Line("analysis", [ShownToken("a", 1, False), ShownToken("… 9 more …", None, False)]),
        Line("final", [ShownToken("b", 2, False)] * 3),
    ]
    image = ET.fromstring(drawing.svg([("a <title>", lines)]))
    paths = {path.get("class"): path.get("d", "").count("M") for path in image.iter(f"{SVG}path")}
    # One token of each span is in the legend.
    assert paths == {"s0m": 2 + 1, "s1": 1 + 1, "s2": 3 + 1}
    assert texts(image, "h") == ["a <title>"]
    assert texts(image, "c m") == ["<|start|>"]
    assert texts(image, "m") == ["prompt", "hi"]
    legend = "dashed and pale: masked, not in the loss"
    assert texts(image, "l") == [legend, "user", "analysis", "… 9 more …", "final"]


def test_a_long_message_wraps_within_the_width() -> None:
    line = Line("final", [ShownToken("word", 2, False)] * 60)
    image = ET.fromstring(drawing.svg([("t", [line])]))
    places = [
        (float(x.get("x", "")), float(x.get("y", "")))
        for x in image.iter(f"{SVG}text")
        if x.text == "word"
    ]
    assert len({y for _, y in places}) > 1
    assert min(x for x, _ in places) == drawing._LEFT + 3
    width = drawing._token_width(line.tokens[0])
    assert max(x for x, _ in places) - 3 + width <= drawing._WIDTH - 10
    assert max(y for _, y in places) < float(image.get("height", ""))


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    widths = [drawing._token_width(ShownToken(x, 0, False)) for x in ("ab", "中", "e\u0301x")]
    assert len(set(widths)) == 1
    assert drawing._token_width(ShownToken("a", 0, False)) < widths[0]
