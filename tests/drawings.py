"""What tests of drawings share: the images of a Markdown text, the texts of an SVG."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from urllib.parse import unquote

from gristmill.svg import GROUND

MIN_TEXT = 11
"""Pixels of the smallest text of a picture."""
SVG = "{http://www.w3.org/2000/svg}"
_IMAGE = re.compile(r"!\[[^\]]*\]\(<data:image/svg\+xml,((?:\\.|[^<>])*)>\)")


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def size(svg: str) -> tuple[float, float]:
    """Width and height of an SVG in pixels."""
    root = ET.fromstring(svg)
    return float(root.attrib["width"]), float(root.attrib["height"])


def text_sizes(svg: str) -> list[float]:
    root = ET.fromstring(svg)
    box = [float(number) for number in root.get("viewBox", "").split()]
    scale = float(root.attrib["width"]) / box[2] if box else 1.0
    style = "".join(node.text or "" for node in root.iter(f"{SVG}style"))
    rule = re.search(r"text\{font:([\d.]+)px", style)
    return list(_text_sizes(root, scale, 0.0, float(rule[1]) if rule else None))


def _text_sizes(node: ET.Element, scale: float, font: float, rule: float | None) -> Iterator[float]:
    own = re.search(r"font:([\d.]+)px", node.get("style", ""))
    font = float(own[1]) if own else float(node.get("font-size", font))
    scaled = re.search(r"scale\(([\d.]+)", node.get("transform", ""))
    scale *= float(scaled[1]) if scaled else 1.0
    if node.tag == f"{SVG}text":
        # A rule of a style sheet counts more than an attribute.
        yield (rule or font) * scale
    for child in node:
        yield from _text_sizes(child, scale, font, rule)


def is_right(svg: str, widest: float) -> None:
    """Assert what holds of every picture of the UI: see `gristmill.svg`."""
    assert size(svg)[0] <= widest
    assert all(pixels >= MIN_TEXT for pixels in text_sizes(svg)), sorted(text_sizes(svg))[:3]
    assert "@media" not in svg and "prefers-color-scheme" not in svg
    ground = ET.fromstring(svg).find(f"{SVG}rect")
    assert ground is not None
    assert ground.attrib["fill"] == GROUND
    assert ground.attrib["width"] in ("100%", f"{size(svg)[0]:g}")
    assert ground.attrib["height"] in ("100%", f"{size(svg)[1]:g}")


def images(markdown: str) -> list[str]:
    return [unquote(re.sub(r"\\([<>])", r"\1", address)) for address in _IMAGE.findall(markdown)]
