"""The parsers of the chess family."""

from functools import partial

from gristmill.contract import BadInput
from tests.fuzz.parser import (
    HUNDRED_THOUSAND,
    JSON,
    TEN_THOUSAND,
    Parsers,
    file,
    folder,
    scratch,
    split,
)

PARSERS = Parsers()
_RAW = "gristmill.chess.raw"
_FORMAT = "gristmill.chess.format"
_READ = "gristmill.chess.read"
_KERNELS = "gristmill.chess.kernels"
_URL = "http://127.0.0.1/x.zip"
_PGN = (
    *(b'[Event "', b'"]\n', b"\n\n", b'[Result "1-0"]', b"1. e4 e5", b"{", b"}", b"(", b")"),
    *(b"$12", b"1-0", b"1/2-1/2", b"*", b"O-O-O", b"exd8=Q#", b"Nbd7", b";", b"\n%", b'[FEN "'),
    *(b'[SetUp "1"]', b'[TimeControl "600+0"]', b"--", b"0000", b"Z0", b"e2e4"),
    *(b"[%clk 0:01:00]", b'\\"', b"\r\n", b"\xef\xbb\xbf"),
)
_ROW = (
    *(b'"game_id":', b'"moves":["e2e4"]', b'"plies":', b'"headers":{', b'"result":"1-0"'),
    *(b'"winner_side":"W"', b'"source_file":'),
)
_SCANNED = tuple(f"{_KERNELS}.{name}" for name in ("scan", "headers", "movetext"))
_PGN_READERS = tuple(f"{_RAW}.{name}" for name in ("pgn", "python_chess", "pgn_text"))


@PARSERS.add(
    "chess_pgn",
    *_PGN_READERS,
    covers=_SCANNED,
    inputs=HUNDRED_THOUSAND,
    most_bytes=1500,
    words=_PGN,
)
def pgn(data: bytes) -> None:
    """A PGN: the compiled reader decides every game as python-chess does, stream by stream."""
    from gristmill.chess import ValidateConfig
    from tests.chess.both_readers import both_ways

    try:
        both_ways(file("x.pgn", data), ValidateConfig())
    except BadInput:
        return


@PARSERS.add(
    "chess_flags",
    f"{_RAW}.pgn_text",
    f"{_RAW}.python_chess",
    covers=_SCANNED,
    inputs=HUNDRED_THOUSAND,
    most_bytes=1500,
    words=(*_PGN, b" 2.", b" N ", b" e.p.", b" 1/2", b'[PlyCount "8"]\n'),
)
def flags(data: bytes) -> None:
    """A PGN: the flags of its valid games are those of the rules, read slowly."""
    from contextlib import suppress

    from tests.chess.flag_rules import check

    with suppress(BadInput):
        check(file("x.pgn", data))


@PARSERS.add("chess_pgn_reading", *_PGN_READERS, covers=_SCANNED, most_bytes=1500, words=_PGN)
def pgn_reading(data: bytes) -> None:
    """A PGN: its games are read, by python-chess where the compiled reader leaves them to it."""
    from gristmill.chess.raw.pgn import plan, read_range

    for byte_range in plan(file("x.pgn", data), 1 << 40):
        for _ in read_range(byte_range):
            pass


@PARSERS.add(
    "chess_pgn_kernels",
    *_SCANNED,
    f"{_KERNELS}.ending",
    f"{_KERNELS}.copying",
    inputs=TEN_THOUSAND,
    most_bytes=600,
    words=_PGN,
    interpreted=True,
)
def pgn_kernels(data: bytes) -> None:
    """A PGN in interpreted kernels: no index is outside its array; compiled, as `pgn`.

    Numbers of NumPy overflow in Python where compiled ones do not, so results are not compared.
    """
    from numba import config

    (pgn_reading if config.DISABLE_JIT else pgn)(data)


@PARSERS.add(
    "chess_pgn_ranges", f"{_RAW}.pgn", inputs=HUNDRED_THOUSAND, most_bytes=2000, words=_PGN
)
def pgn_ranges(data: bytes) -> None:
    """A PGN: the games are the same wherever its byte ranges are cut."""
    from gristmill.chess.raw import pgn as reader

    path = file("x.pgn", data)

    def games(range_bytes: int) -> list[object]:
        found: list[object] = []
        end = 0
        for planned in reader.plan(path, range_bytes):
            byte_range = reader.follow(end, planned) or planned
            for item in reader.read_range(byte_range):
                if isinstance(item, reader.Batch):
                    places = item.known[:, :, 0]
                    found += [item.base + int(first) for first in places.max(axis=1, initial=-1)]
                elif isinstance(item, reader.PlacedGame):
                    found.append(("game", len(item.game.moves)))
                else:
                    end = item
        return [item for item in found if isinstance(item, tuple)]

    assert games(1 << 20) == games(300)


@PARSERS.add("chess_moves", f"{_RAW}.python_chess", words=(b"e2e4 ", b"e7e8q ", b"0000 "))
def rules(data: bytes) -> None:
    """The replay of moves in python-chess: any texts instead of moves."""
    from gristmill.chess.raw import python_chess

    moves = data.decode("latin-1").split()
    assert len(python_chess.phase_codes(moves)) == len(moves)


@PARSERS.add(
    "chess_month_list",
    f"{_RAW}.pgn_text",
    words=(b"lichess_elite_2024-01.zip", b"2020-06", b"#", b"\n", b"?"),
)
def month_list(data: bytes) -> None:
    """A list of months, and names of drops."""
    from gristmill.chess.raw import pgn_text

    text = data.decode("utf-8", "replace")
    if (month := pgn_text.month_in(text)) is not None:
        assert len(month) == 7
    pgn_text.parse_month_list(text)


def _unpacked(name: str, data: bytes) -> None:
    """A packed file: it is refused, or unpacks to at most the limit."""
    from gristmill.chess.config import Limits
    from gristmill.chess.raw.drops import unpack_pgn

    target, limit = scratch() / "out.pgn", 1 << 20
    target.unlink(missing_ok=True)
    note = unpack_pgn(file(name, data), target, Limits(limit))
    assert note.bytes == target.stat().st_size <= limit


_ZIP = (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"a.pgn", b"\x01\x00")
_ZST = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")
for _name, _reader, _words in (
    ("zip", "zipfile", _ZIP),
    ("pgn.zst", "gristmill.untrusted.walk", _ZST),
):
    _modules, _more = (f"{_RAW}.drops", _reader), {"inputs": TEN_THOUSAND, "words": _words}
    PARSERS.add(f"chess_{_name[-3:]}", *_modules, **_more)(partial(_unpacked, f"x.{_name}"))


@PARSERS.add(
    "chess_drop", f"{_RAW}.download", f"{_RAW}.drops", f"{_RAW}.pgn_text", inputs=TEN_THOUSAND
)
def drop(data: bytes) -> None:
    """A drop by its name: the first line is the name, the rest the file."""
    from contextlib import suppress

    from gristmill.chess.raw.download import take_drop
    from gristmill.chess.raw.drops import account
    from gristmill.contract import BadInput

    name, _, text = data.partition(b"\n")
    kind = (".pgn", ".zip", ".pgn.zst", ".txt")[len(name) % 4]
    with folder("drop") as place:
        path = file(f"drop/2024-01-x{kind}", text)
        with suppress(BadInput):
            assert account(path).taken == {"": [path.name]}
        take_drop(path, place / "out", "2024-01")


@PARSERS.add("chess_collection", f"{_RAW}.drops", f"{_RAW}.pgn_text", inputs=TEN_THOUSAND)
def collection(data: bytes) -> None:
    """A collection of one file, whose ending the first byte chooses, becomes its PGN or none."""
    from gristmill.chess.config import CollectionConfig
    from gristmill.chess.raw.drops import account, take_collection
    from gristmill.chess.raw.pgn_text import ENDINGS

    ending = ENDINGS[(data[:1] or b"0")[0] % len(ENDINGS)]
    with folder("collection") as place:
        file(f"collection/mine/a{ending}", data[1:])
        assert account(place / "mine").taken == {"": [f"a{ending}"]}
        taken = take_collection(place / "mine", place / "out", CollectionConfig())
        pgn = (place / "out/a.pgn").read_bytes()
        assert taken.pgn_bytes == len(pgn)
        assert ending != ".pgn" or pgn == data[1:]


@PARSERS.add(
    "chess_download_state",
    f"{_RAW}.download",
    words=(*JSON, *(b'"url": "' + _URL.encode() + b'"', b'"etag": ', b'"last_modified": ', b"W/")),
)
def download_state(data: bytes) -> None:
    """The validators of an unfinished download."""
    from gristmill.chess.raw.download import load_state, range_validator

    file("x.json", data)
    range_validator(load_state(scratch() / "x.zip", _URL))


@PARSERS.add(
    "chess_row",
    f"{_READ}.row_batches",
    f"{_FORMAT}.rows",
    allowed=(BadInput, ValueError),
    words=JSON + _ROW,
)
def row(data: bytes) -> None:
    """A line of a JSONL file of games of any program: the canonical form is its own."""
    from gristmill.chess.read.row_batches import canonical_row

    line = canonical_row(data)
    assert canonical_row(line) == line


@PARSERS.add("chess_rows", f"{_READ}.row_batches", f"{_FORMAT}.rows", words=JSON + _ROW)
def rows(data: bytes) -> None:
    """A JSONL file of games of any program, without a sidecar."""
    from gristmill.chess.read.row_batches import read_batch, row_ranges

    path = file("games.jsonl", data)
    for byte_range in row_ranges(path, 1 << 20, None):
        read_batch(byte_range).ids()


@PARSERS.add("chess_sidecar", f"{_FORMAT}.folders", words=(*JSON, b'"sources"', b"\xff\xfe"))
def sidecar(data: bytes) -> None:
    """A sidecar: records, phases, sources.json and rows.json."""
    from gristmill.chess.format import folders as form

    parts = split(data, 4)
    root = scratch() / "sidecar-root"
    file("sidecar-root/sidecar/games.games.bin", parts[0])
    file("sidecar-root/sidecar/games.phases.bin", parts[1])
    file("sidecar-root/sidecar/sources.json", parts[2] or b'{"sources": []}')
    file("sidecar-root/sidecar/rows.json", parts[3] or b"{}")
    form.read_sources(root)
    form.read_rows(root)
    opened = form.Sidecar.open(root, "games")
    assert opened is not None
    for first, ply, records in opened.batches(4):
        assert first < opened.games
        if len(records):
            opened.phases(ply, int(records["plies"][0]))


@PARSERS.add(
    "chess_samples_settings",
    f"{_READ}.dataset",
    words=(
        *JSON,
        *(b'"runtime_splice_defaults"', b'"config"', b'"kind"', b'"min_context":', b"\xff\xfe"),
    ),
)
def settings_of_samples(data: bytes) -> None:
    """The manifest of a splice cache, and stats.json of a dataset without one."""
    from gristmill.chess.read.dataset import config_of

    manifest, stats = split(data, 2)
    root = scratch() / "dataset"
    file("dataset/stats.json", stats)
    name = "dataset/runtime_splice_cache/manifest.json"
    cache = file(name, manifest)
    if not manifest:
        cache.unlink()
    config_of([root])


@PARSERS.add("chess_kind", f"{_FORMAT}.folders", words=(*JSON, b"dataset_format"))
def kind(data: bytes) -> None:
    """Which folder of the family this is, by its stats.json."""
    from gristmill.chess.format.folders import kind_of

    with folder("kind") as place:
        (place / "train.jsonl").touch()
        (place / "stats.json").write_bytes(data)
        kind_of(place)
