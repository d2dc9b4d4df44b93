"""The routes of `/browse/` and `/docs/`, and the server of `gristmill browse`: GET, no network."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from importlib import resources
from itertools import groupby, islice
from pathlib import Path, PurePosixPath
from typing import Any, Final

import jinja2
import orjson
import uvicorn
from anyio import CapacityLimiter, to_thread
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from gristmill.asset import declared
from gristmill.browse.opening import first_picture
from gristmill.browse.source import OF_CONTENTS
from gristmill.browse.statistics import Held
from gristmill.browse.table import (
    RULES,
    Cell,
    Column,
    Filter,
    Query,
    Row,
    StillCounting,
    Token,
    colours,
)
from gristmill.browse.web.asked import PAGE, PREFIX, Asked, asked
from gristmill.browse.web.local_requests import LocalRequests
from gristmill.browse.web.shelf import (
    Known,
    Near,
    NoArtifact,
    Shelf,
    Shown,
    checks,
    shared_key,
)
from gristmill.contract import GristmillError
from gristmill.exports.card import card
from gristmill.families import FAMILIES
from gristmill.history.versions import lines_of
from gristmill.printable import printable
from gristmill.provenance.inventory import Entry
from gristmill.provenance.trace_inputs import raw_text
from gristmill.svg import small_card, small_text

_POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_DRAWN: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox"
"""The policy of a picture by itself, whose elements have styles."""
_HEADERS: Final = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"}
_STATIC: Final = {"style.css": "text/css", "keys.js": "text/javascript"}
_LISTED: Final = 200
"""Artifacts of a page of the list."""
_RECENT, _TRIED, _PICTURES = 8, 12, 64
"""Builds that home shows, artifacts of a family that are asked for a picture, pictures kept."""
_MOST_CARD, _UNPACKED = 64 << 20, 256 << 20
"""Bytes of an artifact whose card is made for a page, and those unpacked before a raw record."""
_TOKENS: Final = 3_000
"""Tokens of a page of a row."""
_FIRST_TOKENS: Final = 40
_THREADS: Final = 2
"""Pages that are made at a time."""
_SHORT, _FEW = 48, 8
"""Characters and members of a list that is not folded."""


def _files() -> Any:
    return resources.files("gristmill.browse.web")


def _visible(text: object) -> object:
    """A value in a page, a text without characters that cannot be seen; lines stay."""
    if not isinstance(text, str) or isinstance(text, Markup):
        return text
    return "\n".join(printable(line) for line in text.split("\n"))


def _cell(value: object, most: int = 160) -> str:
    """A cell as text of at most `most` characters; its lines stay."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return str(_visible(text if len(text) <= most else f"{text[: most - 1]}…"))


def _short(number: float) -> str:
    """A number as the end of an axis."""
    return f"{number:,.0f}" if 1e3 <= abs(number) < 1e7 else f"{number:.4g}"


def _image(svg: str) -> str:
    """The address of an image that is the SVG itself."""
    octets = svg.encode("utf-8", "replace")
    return f"data:image/svg+xml;base64,{base64.b64encode(octets).decode()}"


class _Pages:
    def __init__(self, shelf: Shelf, has_dagster: bool) -> None:
        self._shelf = shelf
        self._threads = CapacityLimiter(_THREADS)
        loader = jinja2.FunctionLoader(
            lambda name: (_files() / "templates" / name).read_text("utf-8")
        )
        self._made = jinja2.Environment(
            loader=loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_visible,
            trim_blocks=True,
        )
        self._made.filters |= {"cell": _cell, "image": _image, "short": _short}
        self._made.globals["Filter"] = Filter
        self._made.globals |= {"prefix": PREFIX, "has_dagster": has_dagster, "address": _address}
        self._made.globals |= {"narrowed": _narrowed, "joined": _joined, "folded": _folded}
        self._drawn = lru_cache(_PICTURES)(self._picture_of)
        # Before anybody asks: the first page then waits for neither.
        for each in (_files() / "templates").iterdir():
            self._made.get_template(each.name)
        shelf.standing.begin()

    async def aside(self, page: Callable[[Request], Response], request: Request) -> Response:
        """A page within its share of the threads: Dagster's pages need them, too."""
        return await to_thread.run_sync(page, request, limiter=self._threads)

    def answer(self, page: Callable[[Asked], Response], request: Request) -> Response:
        """A page, or a page with the reason why there is none."""
        path = request.path_params.get("path", "")
        try:
            return page(asked(path, request.query_params.multi_items()))
        except StillCounting as error:
            # The count continues where it stopped, each time that the page is asked for.
            page_shown = self._page("wait.html", done=error.done)
            page_shown.headers["Refresh"] = "1"
            return page_shown
        except NoArtifact as error:
            return self._page("error.html", 404, title="No such artifact", text=str(error))
        except (GristmillError, OSError, ModuleNotFoundError) as error:
            return self._page("error.html", 400, title="This cannot be shown", text=str(error))

    def list(self, request: Request) -> Response:
        """The artifacts, those of a family or an asset, or whose names have a text."""
        given = request.query_params
        family, asset, text = (given.get(name, "") for name in ("family", "asset", "q"))
        found = list(self._shelf.listed())
        if [each.path for each in found] == [""]:
            return RedirectResponse(found[0].address, headers=_HEADERS)
        fitting = [
            each
            for each in found
            if family in ("", each.family)
            and asset in ("", each.asset)
            and text.lower() in f"{each.asset} {each.partition} {each.path}".lower()
        ]
        start = int(given["start"][:9]) if given.get("start", "").isdecimal() else 0
        families: dict[str, list[Shown]] = {}
        for each in islice(fitting, start, start + _LISTED):
            families.setdefault(each.family, []).append(each)
        later = start + _LISTED
        is_home = not (family or asset or text or start)
        known = self._shelf.standing.known()
        names = sorted(
            {each.family for each in found if each.family},
            key=lambda name: (FAMILIES.index(name) if name in FAMILIES else len(FAMILIES), name),
        )
        own = {name: [each for each in found if each.family == name] for name in names}
        recent = sorted((each for each in found if each.built), key=lambda each: each.built)
        return self._page(
            "list.html",
            root=str(self._shelf.root),
            families=families,
            known=known or Known(),
            is_known=known is not None,
            cards=own if is_home else {},
            recent=recent[: -_RECENT - 1 : -1] if is_home else [],
            sums=(known or Known()).sums([each.key for each in fitting]),
            names=names,
            assets=sorted({each.asset for each in found if each.asset}),
            family=family,
            asset=asset,
            text=text,
            count=len(fitting),
            start=start,
            earlier=max(0, start - _LISTED) if start else None,
            later=later if later < len(fitting) else None,
        )

    def rows(self, wanted: Asked) -> Response:
        """A page of rows: in the stored order, or those that a query finds."""
        table = self._shelf.table(wanted)
        held = self._shelf.statistics(wanted).known
        looked, following = None, None
        if wanted.is_query:
            found = table.find(wanted.query, wanted.token, PAGE)
            rows, looked = found.rows, found.looked
            if found.token:
                following = wanted.address("rows", token=found.token)
        else:
            rows = table.rows(wanted.start, PAGE)
            after = wanted.start + len(rows)
            if len(rows) == PAGE and (table.count is None or after < table.count):
                following = wanted.address("rows", start=after)
        before = None
        if wanted.start and not wanted.is_query:
            before = wanted.address("rows", start=max(0, wanted.start - PAGE))
        elif wanted.token:
            before = wanted.address("rows", token="")
        return self._page(
            "rows.html",
            asked=wanted,
            table=table,
            about=self._about(wanted, table.kind),
            held=held,
            constant=_constant(table.columns, rows, held, wanted.query),
            tables=self._shelf.tables(wanted),
            rows=[self._row(row) for row in rows],
            looked=looked,
            before=before,
            following=following,
            rules=RULES,
        )

    def values(self, wanted: Asked) -> Response:
        """What the columns hold; a page counts for two seconds, and the next one continues."""
        return self._page("values.html", asked=wanted, held=self._shelf.statistics(wanted).ask())

    def row(self, wanted: Asked) -> Response:
        """One row: pictures, tokens with mask and span, cells and the raw bytes side by side."""
        table = self._shelf.table(wanted)
        row = self._one(wanted)
        pictures, no_picture = _read(row.pictures)
        tokens, no_tokens = _read(row.tokens)
        facts, no_origin = _read(row.origin)
        shown = tokens[wanted.tokens : wanted.tokens + _TOKENS]
        is_last = table.count is not None and row.number + 1 >= table.count
        return self._page(
            "row.html",
            asked=wanted,
            table=table,
            row=row,
            raw_file=_below(self._shelf.root, row.raw.file),
            pictures=pictures,
            errors=[text for text in (row.error, no_picture, no_tokens, no_origin) if text],
            origin=[self._step(each) for each in facts],
            is_text=all(each.id is None and each.counts is None for each in tokens),
            filled=[name for name, value in row.cells.items() if value not in (None, "")],
            is_drawn=bool(pictures) and {each.span for each in tokens} <= {"inputs", "labels"},
            tokens=shown,
            first=wanted.tokens,
            token_count=len(tokens),
            step=_TOKENS,
            spans=colours(each.span for each in tokens),
            before=wanted.address("row", number=row.number - 1, tokens=0) if row.number else None,
            following=None if is_last else wanted.address("row", number=row.number + 1, tokens=0),
        )

    def history(self, wanted: Asked) -> Response:
        """The versions of an artifact, the newest first: when, why, and how many rows."""
        entry = Entry(wanted.path, shared_key(self._shelf.place(wanted.path), wanted.partition))
        listed, wrong = lines_of(self._shelf.root, entry) if wanted.path else ([], [])
        return self._page("history.html", asked=wanted, versions=listed, wrong=wrong)

    def card(self, wanted: Asked) -> Response:
        """The card of an artifact, as `gristmill card` writes it."""
        place, record = self._shelf.place(wanted.path), self._shelf.record(wanted)
        if record is None or sum(each.bytes for each in record.outputs) > _MOST_CARD:
            raise GristmillError(f"all lines are read for a card: gristmill card {place}")
        return self._page("card.html", asked=wanted, text=card(place))

    def picture(self, request: Request) -> Response:
        """The picture of the row that stands for a family; its name where none has pictures."""
        family = request.query_params.get("family", "")
        listed = sorted(self._shelf.listed(), key=lambda each: each.bytes)
        own = [each for each in listed if each.family == family and not each.error]
        svgs = (self._drawn(each, each.built) for each in own[:_TRIED])
        svg = next(filter(None, svgs), "") or small_card(90, [small_text(20, 50, family)])
        headers = {**_HEADERS, "Content-Security-Policy": _DRAWN, "Cache-Control": "max-age=60"}
        return Response(svg.encode("utf-8", "replace"), 200, headers, "image/svg+xml")

    def _picture_of(self, shown: Shown, _built: str) -> str:
        record = self._shelf.record(Asked(shown.path, shown.asset, shown.partition))
        asset = declared().get(shown.asset)
        if record is None or asset is None:
            return ""
        drawn = first_picture(self._shelf.root / shown.path, record, asset.sample)
        return "" if drawn is None else drawn.svg

    def _about(self, wanted: Asked, kind: str) -> dict[str, Any]:
        """State, lineage and checks of an artifact, for its page."""
        record = self._shelf.record(wanted)
        known = self._shelf.standing.known() or Known()
        key = (wanted.path, (record.partition if record is not None else "") or "")
        asset = declared().get(kind)
        return {
            "text": "" if asset is None else asset.text.partition("\n\n")[0].replace("`", ""),
            "state": known.states.get(key),
            "made_from": known.made_from.get(key, ()),
            "made_into": known.made_into.get(key, ()),
            "checks": [] if record is None else checks(self._shelf.data_root, record),
            "built": "" if record is None else f"{record.created:%Y-%m-%d %H:%M}",
            "version": "" if record is None else record.data_version[:12],
        }

    def _one(self, wanted: Asked) -> Row:
        table = self._shelf.table(wanted)
        found = table.rows(wanted.number, 1)
        if not found:
            count = "" if table.count is None else f", it has {table.count:,}"
            raise NoArtifact(f"{wanted.path or table.place.name} has no row {wanted.number}{count}")
        return found[0]

    def _step(self, facts: Mapping[str, object]) -> dict[str, Any]:
        """A step of an origin: facts, linked where they name an artifact, and its raw record."""
        known = self._shelf.standing.known() or Known()
        links = {path: Asked(path).address("rows") for path, _ in known.states}
        raw, begin = None, str(facts.get("raw_unpacked_bytes", "0")).partition("-")[0]
        with suppress(GristmillError, *OF_CONTENTS):
            if int(begin) < _UNPACKED:
                raw = raw_text(self._shelf.data_root, facts)
        values = [(name, value, links.get(str(value), "")) for name, value in facts.items()]
        return {"facts": values, "raw": raw}

    def _row(self, row: Row) -> dict[str, Any]:
        """A row of a list, with its first picture or else its first tokens."""
        pictures, error = _read(row.pictures)
        tokens, no_tokens = ([], "") if pictures else _read(row.tokens)
        wrong = row.error or error or no_tokens
        return {
            "row": row,
            "is_shown": bool(pictures or tokens or wrong),
            "picture": pictures[0] if pictures else None,
            "tokens": tokens[:_FIRST_TOKENS],
            "spans": colours(each.span for each in tokens),
            "error": wrong,
        }

    def _page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        text = self._made.get_template(template).render(values)
        octets = text.encode("utf-8", "replace")
        return HTMLResponse(octets, status, headers=_HEADERS)


def _narrowed(asked: Asked, *filters: Filter) -> str:
    """The address of the rows that fit some filters of one column, instead of its others."""
    column = filters[0].column
    others = [each for each in asked.query.filters if each.column != column]
    query = replace(asked.query, filters=(*others, *filters))
    return asked.address("rows", query=query, token="", start=0)


def _address(near: Near) -> str:
    return Asked((near.key or ("", ""))[0], near.asset, near.partition).address("rows")


def _read(part: Callable[[], Sequence[Any]]) -> tuple[list[Any], str]:
    """A part of a row, and why it cannot be read."""
    try:
        return list(part()), ""
    except (GristmillError, OSError) as error:
        return [], " ".join(str(error).split())


def _joined(tokens: Sequence[Token]) -> Iterator[tuple[Token, str, bool]]:
    """Tokens of one span and mask as one text; control tokens by themselves, as the last says."""

    def kind(token: Token) -> tuple[object, ...]:
        text = token.text.rstrip("\n")
        return token.span, token.counts, text.startswith("<|") and text.endswith("|>")

    for (*_, is_mark), several in groupby(tokens, kind):
        one = list(several)
        yield (
            one[0],
            "".join(each.text if each.plain is None else each.plain for each in one),
            bool(is_mark),
        )


def _folded(column: Column, value: Cell) -> str:
    """What stands for a long list, as `900 numbers`; "" for what is shown as it is."""
    text = "" if value is None else str(value)
    if column.type != "list" or len(text) <= _SHORT:
        return ""
    try:
        members = orjson.loads(text)
    except ValueError:
        members = text.split()
    if len(members) <= _FEW:
        return ""
    kinds = {type(each) for each in members}
    named = "numbers" if kinds <= {int, float} else "words" if kinds == {str} else "members"
    return f"{len(members):,} {named}"


def _constant(
    columns: Sequence[Column], rows: Sequence[Row], held: Mapping[str, Held] | None, query: Query
) -> dict[str, str]:
    """The columns that a page leaves out, each with the reason: all of it is empty, or 0."""
    asked, found = {query.sort, *(each.column for each in query.filters)}, dict[str, str]()
    for name in (each.name for each in columns if each.name not in asked):
        known = held.get(name) if held is not None else None
        if all(row.cells.get(name) in (None, "") for row in rows):
            found[name] = "empty"
        elif known is not None and known.values[:1] == [("0", known.rows)]:
            found[name] = "0 in all rows"
    return found if len(found) < len(columns) else {}


def _below(root: Path, file: Path) -> str:
    absolute = file.absolute()
    return str(absolute.relative_to(root) if absolute.is_relative_to(root) else absolute)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return Response("There is no such file.\n", 404, _HEADERS, "text/plain")
    octets = (_files() / "static" / name).read_bytes()
    return Response(octets, headers=_HEADERS, media_type=_STATIC[name])


def routes(root: Path, keep: Path | None = None, has_dagster: bool = False) -> list[Route]:
    """The routes of the pages, which all begin with `/browse/`.

    root: a data root, or the folder of an artifact; nothing outside of it is shown.
    keep: a folder outside of all artifacts for the places of lines; None (default) for none.
    has_dagster: whether Dagster's pages are at `/`, which the header then links (default False).
    """
    pages = _Pages(Shelf(root, keep), has_dagster)
    shown = {"": pages.list, "picture": pages.picture} | {
        f"{name}/{{path:path}}": partial(pages.answer, page)
        for name, page in (
            *(("rows", pages.rows), ("row", pages.row)),
            *(("history", pages.history), ("card", pages.card), ("values", pages.values)),
        )
    }
    static = Route(f"{PREFIX}static/{{name}}", _static)
    return [static, *(Route(PREFIX + at, partial(pages.aside, page)) for at, page in shown.items())]


def application(root: Path, keep: Path | None = None) -> Starlette:
    """The pages alone, behind the refusal of other sites. root, keep: as of `routes`."""

    def home(_: Request) -> Response:
        return RedirectResponse(PREFIX, headers=_HEADERS)

    return Starlette(
        routes=[Route("/", home), *docs_routes(), *routes(root, keep)],
        middleware=[Middleware(LocalRequests)],
    )


def serve(root: Path, keep: Path | None, listening: socket.socket, say: Callable[[], None]) -> None:
    """Serve the pages until an interrupt. root, keep: as of `routes`."""

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                say()

    config = uvicorn.Config(application(root, keep), log_level="warning", lifespan="off")
    Server(config).run(sockets=[listening])


SITE: Final = Path(__file__).parent / "site"
# The site has scripts in its pages, and searches in a worker. A browser asks nobody else.
_DOCS_POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
_NO_SITE: Final = """<!doctype html><title>Gristmill: docs</title>
<p>The site of the docs is not here yet.
<p><code>make ui</code> makes it beside the UI, in about ten seconds once what makes it is
installed: this page then shows it. <code>make docs</code> makes it alone, and says what fails, as
where there is no network. Until then the pages are in <code>docs/</code> of a checkout.
"""


def docs_routes() -> list[Route]:
    """The routes of `/docs/`: the site that `make docs` puts into this package, read-only."""
    return [Route(path, _docs_page) for path in ("/docs", "/docs/{path:path}")]


async def _docs_page(request: Request) -> Response:
    """A file of the site. Raises HTTPException of 404, unless there is no site."""
    if "path" not in request.path_params:
        return RedirectResponse("docs/")
    if not SITE.is_dir():
        return HTMLResponse(
            _NO_SITE, 503, {"Content-Security-Policy": _DOCS_POLICY, "Refresh": "3"}
        )
    name = request.path_params["path"]
    if (page := PurePosixPath(name)).suffix == ".md":  # as assets and pages on a forge name it
        made = page.with_name(f"{'index' if page.stem == 'README' else page.stem}.html")
        await _sent(str(made), request)
        return RedirectResponse(made.name)
    return await _sent(name or "index.html", request)


async def _sent(name: str, request: Request) -> Response:
    """A file of the site. Raises HTTPException where there is none, or a link leads out of it."""
    files = StaticFiles(directory=SITE, check_dir=False)
    try:
        answer = await files.get_response(name, request.scope)
    except HTTPException as error:
        raise HTTPException(404, "There is no such page of the docs.") from error
    answer.headers["Content-Security-Policy"] = _DOCS_POLICY
    return answer
