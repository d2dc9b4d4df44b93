"""What tests of drawings share: the images of a Markdown text, the texts of an SVG."""

import base64
import re
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def images(markdown: str) -> list[str]:
    encoded = re.findall(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([^)]+)\)", markdown)
    return [base64.b64decode(image, validate=True).decode() for image in encoded]
