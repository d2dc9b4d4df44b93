"""Pictures are small, text stays text, and cells keep their colours."""

import base64
import struct
import xml.etree.ElementTree as ET
import zlib

import pytest

from gristmill.svg import MIDDLE, OVERVIEW, bitmap, small_card, small_text
from tests.drawings import SVG, is_right, texts


def test_text_cannot_leave_its_place_is_cut_and_loses_what_svg_forbids() -> None:
    wicked = '</text><script>&"'
    svg = small_card(40, [small_text(10, 20, wicked, MIDDLE)])
    assert texts(svg) == [wicked]
    assert not list(ET.fromstring(svg).iter(f"{SVG}script"))
    is_right(svg, OVERVIEW)
    svg = small_card(40, [small_text(10, 20, "a\x00b\x1b\ud800\ufffe"), small_text(1, 9, "n" * 90)])
    assert texts(svg) == ["a\ufffdb\ufffd\ufffd\ufffd", "n" * 29 + "…"]


@pytest.mark.parametrize("colours", [2, 3, 5, 17])
def test_a_bitmap_holds_each_cell(colours: int) -> None:
    palette = [f"#{k * 9:02x}8040" for k in range(colours)]
    rows = [[(3 * row + column) % colours for column in range(7)] for row in range(5)]
    image = ET.fromstring(bitmap(rows, palette, 3, 4, 10))
    assert (image.attrib["width"], image.attrib["height"]) == ("70", "50")
    data = base64.b64decode(image.attrib["href"].partition(",")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    kinds, place = {}, 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        body = data[place + 4 : place + 8 + length]
        (sum_,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert zlib.crc32(body) == sum_
        kinds[body[:4]], place = body[4:], place + 12 + length
    wide, tall, depth = struct.unpack(">IIB", kinds[b"IHDR"][:9])
    assert (wide, tall) == (7, 5)
    assert kinds[b"PLTE"] == bytes.fromhex("".join(colour[1:] for colour in palette))
    line = 1 + -(-7 * depth // 8)
    pixels = zlib.decompress(kinds[b"IDAT"])
    for row in range(5):
        bits = "".join(f"{byte:08b}" for byte in pixels[row * line + 1 : (row + 1) * line])
        found = [int(bits[k * depth : (k + 1) * depth], 2) for k in range(7)]
        assert found == rows[row]
