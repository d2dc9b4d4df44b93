"""The table of docs/consumers.md is what the tests of the consumers open."""

from tests.consumers import matrix


def test_the_table_of_consumers_is_current() -> None:
    assert matrix.on_the_page() == matrix.rendered(), "python -m tests.consumers.matrix"


def test_the_table_names_assets_that_there_are() -> None:
    assert not matrix.unknown()


def test_every_consumer_has_a_section_on_the_page() -> None:
    text = matrix.PAGE.read_text()
    names = {cell.consumer.name for cell in matrix.cells()}
    assert {name for name in names if f"\n## {name}\n" not in text} == set()


def test_a_test_has_one_row_for_all_artifacts_that_it_opens_alike() -> None:
    rows = [line.split(" | ") for line in matrix.rendered().splitlines()[2:]]
    assert len({(program, how, test) for program, _, _, _, how, test in rows}) == len(rows)
    shown = {
        (program.removeprefix("| "), asset.strip("`"), how, test.strip("`| "))
        for program, _, _, assets, how, test in rows
        for asset in assets.split(", ")
    }
    assert shown == {(c.consumer.name, c.asset, c.how, c.test) for c in matrix.cells()}
