"""Findings of mazes beside plain Python, and which mazes are the same."""

from random import Random

import numpy as np
import pytest

from gristmill.puzzles.domains.grid import encoded
from gristmill.puzzles.domains.maze_paths import RULES, canonical, findings, rule_names
from tests.puzzles.plain_mazes import broken, maze, symmetries

GOOD = ("S  # #  G", "So # #ooG")


def tokens(*texts: str) -> np.ndarray:
    return encoded(np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1))


def found(question: str, answer: str) -> set[str]:
    (each,) = findings(tokens(question), tokens(answer))
    return set(rule_names(int(each)))


@pytest.mark.parametrize(
    ("question", "answer", "rules"),
    [
        ("S  # #  G", "Soo# #  G", {"path_not_connected"}),
        ("S  #  # G", "Soo# o# G", set()),
        ("S  #  # G", "Soo#  # G", {"path_not_connected"}),
        ("S     # G", "So ooo#oG", {"path_not_shortest"}),
        ("S     # G", "Soo oo# G", {"path_not_shortest"}),
        ("S  ### G ", "So ### G ", {"goal_not_reachable"}),
        ("S #### GS", "S #### GS", {"one_start"}),
        ("G #### G#", "G #### G#", {"one_start", "one_goal"}),
        ("SG#######", "SG#######", set()),
        ("SG ######", "SGo######", {"path_not_shortest"}),
        ("SG##### #", "SG#####o#", {"path_not_connected"}),
        ("SGo######", "SGo######", {"path_in_input"}),
        ("SG ######", "SG#######", {"label_changes_cell"}),
        ("SG#######", "SGo######", {"label_changes_cell"}),
        ("SG ######", "GS ######", {"label_changes_cell"}),
        ("SG x#####", "SG  #####", {"token_of_no_cell"}),
        ("S", "S", {"one_goal"}),
    ],
)
def test_a_maze_breaks_the_rules_that_it_should(question, answer, rules):
    assert found(question, answer) == rules
    assert broken(question.replace("x", "?"), answer) == rules


def test_the_other_side_of_a_line_is_no_neighbour():
    """The last cell of a line and the first of the next share no side."""
    assert found("##SG#####", "##SG#####") == {"goal_not_reachable"}


def test_findings_are_those_of_plain_python():
    """Mazes of several sizes with up to three changed cells: every rule is broken somewhere."""
    random = Random(3)
    seen: set[str] = set()
    for side in (2, 3, 5, 9):
        mazes = [maze(random, side) for _ in range(150)]
        changed = [*mazes[:30], *(_changed(random, each) for each in mazes[30:])]
        questions, answers = zip(*changed, strict=True)
        rows = findings(tokens(*questions), tokens(*answers))
        listed = [set(rule_names(int(each))) for each in rows]
        assert listed == [broken(*each) for each in changed]
        assert not any(listed[:30])
        seen |= set().union(*listed)
    assert seen == set(RULES) - {"not_square", "token_of_no_cell"}


def _changed(random: Random, pair: tuple[str, str]) -> tuple[str, str]:
    question, answer = map(list, pair)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(question))
        character = random.choice("##  SGoo")
        if random.random() < 0.4:
            question[place] = character
        answer[place] = character
    return "".join(question), "".join(answer)


@pytest.mark.parametrize("value", [0, 6, -1, 257, 1 << 30])
def test_tokens_of_no_cell_are_found_in_either_array(value):
    for side in (0, 1):
        rows = [tokens(text).astype(np.int32) for text in GOOD]
        rows[side][0, 8] = value
        assert [rule_names(int(each)) for each in findings(*rows)] == [["token_of_no_cell"]]


def test_rows_of_no_square_break_that_rule_alone():
    found = findings(np.ones((2, 8), np.uint8), np.ones((2, 8), np.uint8))
    assert [rule_names(int(each)) for each in found] == [["not_square"]] * 2
    with pytest.raises(ValueError, match="8 tokens"):
        canonical(np.ones((2, 8), np.uint8))


def test_mazes_have_one_key_if_and_only_if_a_symmetry_makes_them_equal():
    random = Random(4)
    mazes = [maze(random, 3)[0] for _ in range(80)]
    forms: dict[str, bytes] = {}
    for text in mazes:
        keys = set(canonical(tokens(*symmetries(text))))
        assert len(keys) == 1
        form = min(symmetries(text))
        assert forms.setdefault(form, *keys) in keys
    assert len(set(forms.values())) == len(forms)
    assert {len(key) for key in forms.values()} == {16}
