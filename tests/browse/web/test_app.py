"""The pages over artifacts, asked as a browser asks: what they show, escape and refuse."""

import html
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from gristmill.browse import Column, Filter, Found, Picture, Query, Raw, Row, Table, Token
from gristmill.browse.table import StillCounting
from gristmill.browse.web import app, shelf
from gristmill.browse.web.app import application
from gristmill.browse.web.asked import Asked, asked
from gristmill.contract import GristmillError

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
NAME = "'\"><b onclick=alert(1)>"
COUNT = 60


class Hostile(Table):
    """A table in which every text is an attack."""

    def __init__(self, place: Path) -> None:
        self.place, self.kind, self.name, self.file = place, "corn/mill", "", place / "rows"
        self.columns = [Column(f"{EVIL}{type_}", type_, EVIL, True) for type_ in ("text", "list")]
        self.asked: list[tuple[Query, str]] = []
        self.wait = False

    @property
    def count(self) -> int:
        """The number of rows."""
        return COUNT

    def rows(self, start: int, count: int, seconds: float = 2) -> list[Row]:
        """Rows by number."""
        if self.wait:
            raise StillCounting(self.file, 0.25)
        return [self._row(number) for number in range(start, min(start + count, COUNT))]

    def find(self, query: Query, token: str = "", most: int = 25, seconds: float = 2) -> Found:
        """Finds two rows, then one."""
        self.asked.append((query, token))
        if query.sort == "no":
            raise GristmillError(f"sort {EVIL}: there is no such column")
        return Found([self._row(3)], 60) if token else Found([self._row(1)], 20, "later/+&")

    def _row(self, number: int) -> Row:
        def damaged() -> list[Picture]:
            raise GristmillError(f"{EVIL}: damaged")

        svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
        return Row(
            number,
            {column.name: EVIL for column in self.columns},
            Raw(self.place / EVIL.replace("/", "|"), EVIL, EVIL),
            EVIL,
            damaged if number == 7 else lambda: [Picture(EVIL, svg)],
            lambda: [Token(EVIL, 5, True, EVIL), Token("plain", None, False), Token("\ud800", 1)],
            lambda: [{EVIL: EVIL, "row": number}],
        )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in (f"corn/{NAME}", "drops/corn", ".gristmill/corn"):
        place = tmp_path / "data" / folder
        place.mkdir(parents=True)
        (place / "provenance.json").write_text(json.dumps({"asset": EVIL}))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/provenance.json").write_text("{}")
    (tmp_path / "data/way").symlink_to(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def table(root: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    made = Hostile(root / "corn" / NAME)
    monkeypatch.setattr(shelf, "open_table", lambda *_: made)
    monkeypatch.setattr(shelf, "tables_of", lambda *_: [EVIL, ""])
    return made


@pytest.fixture
def client(root: Path, table: Hostile) -> TestClient:
    return TestClient(application(root), base_url="http://127.0.0.1:3100")


def address(page: str = "rows", more: str = "") -> str:
    return f"/browse/{page}/corn/{quote(NAME)}{more}"


@pytest.mark.parametrize(
    "page",
    [
        *("/browse/", f"/browse/?q={quote(EVIL)}", address(), address(more=f"?q={quote(EVIL)}")),
        *(address("row", "?n=7"), address("row"), address(more="?sort=no&q=x")),
        *(address("history"), address("history", f"?partition={quote(EVIL)}")),
        address(more=f"?table={quote(EVIL)}&column={quote(EVIL)}&rule=is&value={quote(EVIL)}"),
        f"/browse/rows/{quote(NAME)}",
        address(more=f"?start={quote(EVIL)}"),
    ],
)
def test_hostile_text_is_text_on_every_page(client, page):
    answer = client.get(page)
    assert "alert(1)" in answer.text or answer.status_code == 400 or page == "/browse/"
    tags = re.findall(r"<[a-z][^>]*>", answer.text)
    assert not [tag for tag in tags if "alert" in re.sub(r'"[^"]*"', "", tag)]
    assert [tag for tag in tags if tag.startswith("<script")] == [
        '<script src="/browse/static/keys.js">'
    ]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", answer.text)
    policies = answer.headers.get_list("content-security-policy")
    assert any(policy.startswith("default-src 'none'") for policy in policies)
    assert "unsafe" not in " ".join(policies)


def test_a_damaged_record_has_a_line_in_the_list(client):
    text = client.get("/browse/").text
    assert "1 artifact" in text
    assert "records that cannot be read" in text


def test_pages_lead_forth_and_back(client):
    def links(page: str) -> dict[str, str]:
        found = re.findall(r'href="([^"]*)" rel="(prev|next)"', client.get(page).text)
        return {rel: html.unescape(href) for href, rel in found}

    first = links(address())
    assert set(first) == {"next"}
    assert "rows 25 to 49 of 60" in client.get(first["next"]).text
    assert set(links(first["next"])) == {"next", "prev"}
    assert set(links(links(first["next"])["next"])) == {"prev"}
    assert links(links(first["next"])["prev"]) == first
    assert set(links(address("row", "?n=59"))) == {"prev"}
    assert links(address("row", "?n=58"))["next"].endswith("n=59")


def test_a_table_without_pictures_and_one_without_rows_have_no_empty_panel(
    client, table, monkeypatch
):
    assert '<th class="lead">sample' in client.get(address()).text
    plain = Row(0, {}, Raw(table.file, "", ""))
    for rows, has_table in (([plain], True), ([], False)):
        monkeypatch.setattr(table, "rows", lambda *_, rows=rows: rows)
        text = client.get(address()).text
        assert ("<table" in text) is has_table and "sample</th>" not in text


def test_a_search_goes_on_by_a_link(client, table):
    page = address(more="?q=a+b&column=x&rule=from&value=%263&sort=x&desc=1&column=&rule=is&value=")
    text = client.get(page).text
    assert "1 row of 20 that were looked at; the search continues with next" in text
    (following,) = re.findall(r'href="([^"]*)" rel="next"', text)[:1]
    assert "these are the last" in client.get(html.unescape(following)).text
    query = Query("a b", (Filter("x", "from", "&3"),), "x", True)
    assert table.asked == [(query, ""), (query, "later/+&")]


def test_the_page_of_a_row_has_mask_span_raw_bytes_and_origin(client):
    text = client.get(address("row", "?n=2")).text
    assert 'class="s1 counts"' in text
    assert 'class=" masked"' in text
    assert "data:image/svg+xml;base64," in text
    assert '<dd class="raw">2</dd>' in text.split('id="origin"')[1]
    assert client.get(address("row", "?n=60")).status_code == 404


def test_a_page_waits_for_lines_that_are_not_counted(client, table):
    table.wait = True
    answer = client.get(address(more="?start=50"))
    assert answer.headers["refresh"] == "1"
    assert "25%" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        *("drops/corn", ".gristmill/corn", "way/outside", "..%2foutside", "corn", "%2fetc"),
        *("corn/..%2f..%2foutside", "corn%2f%2fx", "a%00b", "x" * 5000, "way"),
    ],
)
def test_no_other_folder_is_shown(client, path):
    for page in ("rows", "row", "values", "card"):
        answer = client.get(f"/browse/{page}/{path}")
        assert answer.status_code in (400, 404)
        assert "corn/mill" not in answer.text


def test_only_reads_of_this_machine_are_answered_and_few_files_served(client):
    for send in (client.post, client.put, client.delete, client.patch):
        assert send("/browse/").status_code == 405
    assert client.head(address()).status_code == 200
    assert client.get("/browse/", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/browse/", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/browse/static/style.css").headers["content-type"].startswith("text/css")
    assert client.get("/browse/static/keys.js").status_code == 200
    assert client.get("/browse/static/..%2fapp.py").status_code == 404
    assert client.get("/browse/static/app.py").status_code == 404


def test_an_address_holds_all_that_a_page_shows_and_cells_keep_their_lines():
    query = Query("ä&=", (Filter("a.b", "is", " "), Filter("c", "to", "+1 %")), "s", True)
    state = Asked("a b/c#?", "x/y", "p", "t", query, "tok/+", 25, 3, 9)
    path, _, given = state.address("row").removeprefix("/browse/row/").partition("?")
    from urllib.parse import parse_qsl, unquote

    assert asked(unquote(path), parse_qsl(given, keep_blank_values=True)) == state
    assert app._cell("a\nb\x07") == "a\nb\N{REPLACEMENT CHARACTER}"
    assert app._cell("a\nbcd", 4) == "a\nb…"
    assert (app._cell(None), app._cell(0.1), app._cell(7)) == ("", "0.1", "7")


@pytest.mark.parametrize(("column", "value"), [("", "x"), ("a", ""), ("", "")])
def test_a_filter_without_a_column_or_a_value_is_none(column, value):
    given = [("column", column), ("rule", "is"), ("value", value)]
    assert not asked("x", given).is_query


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([("n", "-1")], "a row number is 0 or more"),
        ([("start", "1e3")], "a row number is 0 or more"),
        ([("q", "x" * 2001)], "2,001 characters"),
        ([("column", "a"), ("rule", "like"), ("value", "b")], "none of is, is not"),
        ([("column", "a"), ("value", "b")], "one column, one rule and one value"),
        ([("column", "a"), ("rule", "is"), ("value", "b")] * 11, "at most 10 filters"),
    ],
)
def test_what_an_address_cannot_mean_is_refused(given, reason):
    with pytest.raises(GristmillError, match=reason):
        asked("x", given)


def test_a_table_is_opened_again_once_its_artifact_is_published_again(root, monkeypatch):
    opened: list[Path] = []

    def open_one(place: Path, *_: object) -> Hostile:
        opened.append(place)
        return Hostile(place)

    monkeypatch.setattr(shelf, "open_table", open_one)
    artifacts = shelf.Shelf(root)
    wanted = Asked(f"corn/{NAME}")
    assert artifacts.table(wanted) is artifacts.table(wanted)
    place = root / "corn" / NAME
    place.rename(root / "old")
    place.mkdir()
    (place / "provenance.json").write_text("{}")
    artifacts.table(wanted)
    assert len(opened) == 2
