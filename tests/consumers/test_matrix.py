"""The table of docs/consumers.md is what the tests of the consumers open."""

from tests.consumers import matrix


def test_the_table_of_consumers_is_current_and_each_has_a_section_on_the_page() -> None:
    assert matrix.PAGE.read_text() == matrix.page(), "python -m tests.consumers.matrix"
    assert not matrix.unknown()
    text = matrix.PAGE.read_text()
    names = {cell.consumer.name for cell in matrix.cells()}
    assert {name for name in names if f"\n## {name}\n" not in text} == set()
