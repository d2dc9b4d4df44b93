"""Histograms are to scale and text stays text."""

import base64
import struct
import xml.etree.ElementTree as ET
import zlib

import pytest

from gristmill.svg import (
    OVERVIEW,
    WIDEST,
    bitmap,
    card,
    fitted_caption,
    histogram_svg,
    shortened,
    small_histogram,
    small_shares,
)
from tests.drawings import SVG, is_right, texts


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


def test_a_shortened_picture_has_the_same_texts() -> None:
    svg = histogram_svg('it\'s "so"', [("a", 1)])
    shorter = shortened(svg)
    assert '"' not in shorter
    assert texts(shorter) == texts(svg)
    assert shortened(shorter) == shorter


def test_characters_of_one_line_share_an_element() -> None:
    row = '<text x="1" y="2">a</text><text x="3.5" y="2">b</text>'
    other = '<text x="1" y="4">c</text><text x="9" y="5">dd</text><text x="9" y="5">é</text>'
    assert shortened(card(9, 9, "t", [row, other])).endswith(
        "<text x='1 3.5' y='2'>ab</text><text x='1' y='4'>c</text>"
        "<text x='9' y='5'>dd</text><text x='9' y='5'>é</text></svg>"
    )


@pytest.mark.parametrize("count", [0, 1, 8, 20, 24])
def test_a_histogram_is_never_wider_than_the_page(count: int) -> None:
    bars = [(f"{k * 1000:,}", k * 1000 + 1) for k in range(count)]
    svg = histogram_svg("t" * 100, bars, "n" * 200)
    is_right(svg, WIDEST)
    assert len(list(ET.fromstring(svg).iter(f"{SVG}rect"))) == 1 + count
    if count:
        assert bars[-1][0] in texts(svg)
        assert f"{bars[-1][1]:,}" in texts(svg)


def test_labels_that_would_overlap_are_left_out() -> None:
    wide = [(f"{k:09}", 123_456_789 - k) for k in range(8)]
    shown = texts(histogram_svg("t", wide))
    assert "000000007" in shown
    assert "000000006" not in shown
    assert [text for text in shown if text.startswith("123,")] == ["123,456,789"]


def test_small_pictures_fit_the_overview() -> None:
    bars = [(str(k), k) for k in range(24)]
    histogram = small_histogram("t" * 90, bars, "n" * 90)
    shares = small_shares("t" * 90, [("n" * 90, 10**12 + k) for k in range(9)])
    for svg in (histogram, shares, small_histogram("t", []), small_shares("t", [])):
        is_right(svg, OVERVIEW)
    assert texts(histogram)[-2:] == ["0", "23"]
    assert f"{10**12 + 4:,}" in texts(shares)
    assert f"{10**12 + 5:,}" not in texts(shares)
    places = ET.fromstring(histogram).findall(f"{SVG}path")[0].attrib["d"]
    assert places.count("M") == 23
    assert places.endswith("v-58")


def test_shares_are_to_scale() -> None:
    lines = ET.fromstring(small_shares("t", [("a", 3), ("b", 1)])).findall(f"{SVG}path")
    assert lines[0].attrib["d"] == "M10 46h153M10 72h51"


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a · b", "a · b"),
        ("document 0 · 348 tokens", "document 0 · 348 tokens"),
        ("document 0 · 348 tokens · a_long_name_of_a_file.parquet", "document 0 · 348 tokens"),
        ("document 0 · a_long_name_of_a_file.parquet · b", "document 0"),
        ("a_long_name_of_a_file_in_a_folder.parquet · b", "a_long_name_of_a_file_i…"),
    ],
)
def test_a_caption_loses_whole_parts_before_it_is_cut(text: str, shown: str) -> None:
    assert fitted_caption(text, 24 * 11 * 0.6, 11, 0.6) == shown
