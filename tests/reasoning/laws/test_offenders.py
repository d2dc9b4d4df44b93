from gristmill.contract import Violation
from gristmill.reasoning.laws.offenders import MOST, Offenders


def test_the_first_of_each_law_are_given_and_the_rest_counted() -> None:
    found = Offenders("file")
    for number in range(MOST + 5):
        found.add("a", f"row {number}", "wrong")
        if number < MOST:
            found.add("b", f"row {number}", "worse")
    violations = list(found.violations())
    assert len(violations) == 2 * MOST + 1
    assert violations[0] == Violation("a", "row 0", "wrong")
    assert violations[MOST - 1] == Violation("a", "row 19", "wrong")
    assert violations[MOST] == Violation("a", "file", "5 more of 25 rows")
    assert [each.law for each in violations[MOST + 1 :]] == ["b"] * MOST
