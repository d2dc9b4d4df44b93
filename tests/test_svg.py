"""Histograms are to scale and text stays text."""

import base64
import xml.etree.ElementTree as ET

from gristmill.svg import data_uri, histogram_svg
from tests.drawings import SVG, texts


def test_histograms_are_to_scale() -> None:
    svg = histogram_svg("Tiles", [("512", 4), ("1024", 8), ("2048", 0)])
    bars = list(ET.fromstring(svg).iter(f"{SVG}rect"))[1:]
    assert [float(bar.attrib["height"]) for bar in bars] == [59.0, 118.0]
    assert texts(svg) == ["Tiles", "4", "512", "8", "1024", "2048"]
    assert ET.fromstring(histogram_svg("none", [])).tag == f"{SVG}svg"


def test_text_cannot_leave_its_place() -> None:
    wicked = '</text><script>alert(1)</script>&"'
    svg = histogram_svg(wicked, [(wicked, 3)], wicked)
    assert texts(svg).count(wicked) == 3
    assert not list(ET.fromstring(svg).iter(f"{SVG}script"))


def test_characters_that_svg_forbids_are_replaced() -> None:
    svg = histogram_svg("a\x00b\x1b\ud800\ufffe", [])
    title = ET.fromstring(svg).find(f"{SVG}title")
    assert title is not None and title.text == "a\ufffdb\ufffd\ufffd\ufffd"
    assert data_uri(svg)


def test_an_address_holds_the_whole_picture() -> None:
    head, _, body = data_uri("<svg>é</svg>").partition(",")
    assert head == "data:image/svg+xml;base64"
    assert base64.b64decode(body).decode() == "<svg>é</svg>"
