"""The texts of raw files, most of them zipped.

See also `strict_parser.py`: which texts are accepted.

Source: `docs/formats/macroxue.md#gzip`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

from gristmill.contract import BadInput
from gristmill.macroxue.raw.run_facts import RawDigest
from gristmill.untrusted.files import REFUSE_LINKS, LinkRule, open_file
from gristmill.untrusted.limits import LIMITS

_READ_BYTES = 1 << 18
_MAX_META_BYTES = 1 << 20
_HEADER_BYTES = 1 << 17


def _read(path: Path, digest: RawDigest, folder: Path | None, links: LinkRule) -> Iterator[bytes]:
    with open_file(path, root=folder or path.parent, links=links, buffering=0) as file:
        while octets := file.read(_READ_BYTES):
            digest.update(octets)
            yield octets


def gunzip(
    path: Path,
    digest: RawDigest,
    most: int,
    folder: Path | None = None,
    links: LinkRule = REFUSE_LINKS,
) -> Iterator[bytes]:
    """The text of all members of a gzip file, in order.

    path: the file.
    digest: counts the bytes that are read.
    most: largest number of bytes of text in each item.
    folder: the drop, from which the file is opened; default its own folder.
    links: what happens to links in it; default: they are refused.

    Raises BadInput for a file of 0 bytes, a file that is cut short, a wrong checksum or length,
    bytes behind the last member that are no further member, and much more text than its size
    explains.
    """
    size = 0
    for text in _members(path, _read(path, digest, folder, links), most):
        size += len(text)
        if size > LIMITS.unpacked(digest.size):
            raise BadInput(
                path,
                f"unpacks to more than {LIMITS.ratio} times its size: it looks like a "
                "decompression bomb",
            )
        yield text


def _members(path: Path, reads: Iterable[bytes], most: int) -> Iterator[bytes]:
    decoder = None
    members = 0
    held = b""
    for read in chain(reads, [b""]):
        octets, held = held + read, b""
        while octets or (decoder is not None and not decoder.eof and not decoder.needs_input):
            if decoder is None:
                if read and len(octets) < _HEADER_BYTES:
                    # ISA-L misreads a header with several fields if two calls share it. The
                    # fields take 64 KiB and two texts.
                    held = octets
                    break
                decoder = IgzipDecompressor(flag=DECOMP_GZIP)
            try:
                text = decoder.decompress(octets, most)
            except IsalError as error:  # type: ignore[misc]  # the stub calls it an instance
                where = f"behind gzip member {members}" if members else "gzip"
                raise BadInput(path, f"{where}: {error}: fetch the file anew") from error
            octets = b""
            if text:
                yield text
            if decoder.eof:
                octets = decoder.unused_data
                members += 1
                decoder = None
    if decoder is not None:
        where = f"what stands behind gzip member {members}" if members else "the gzip stream"
        raise BadInput(path, f"{where} is cut short: fetch the file anew")
    if members == 0:
        raise BadInput(path, "0 bytes: not even an empty gzip file")


def _capped(path: Path, texts: Iterable[bytes]) -> bytes:
    text = bytearray()
    for octets in texts:
        text += octets
        if len(text) > _MAX_META_BYTES:
            raise BadInput(path, f"a meta sidecar of more than {_MAX_META_BYTES} bytes")
    return bytes(text)


def read_meta(
    path: Path, digest: RawDigest, folder: Path | None = None, links: LinkRule = REFUSE_LINKS
) -> bytes:
    """The text of a meta file, unzipped if its name ends in .gz.

    path: the file.
    digest: counts the bytes that are read.
    folder, links: as for `gunzip`.

    Raises BadInput for a text of more than 1 MiB, and as `gunzip`.
    """
    zipped = path.name.endswith(".gz")
    if zipped:
        return _capped(path, gunzip(path, digest, _READ_BYTES, folder, links))
    return _capped(path, _read(path, digest, folder, links))
