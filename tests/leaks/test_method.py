"""Which questions are found in which texts."""

import random

import pytest

from gristmill.leaks.held import Held
from gristmill.leaks.method import Hit, Index, compiled, shared
from gristmill.leaks.words import seeds_of
from tests.leaks import plants

SEEDS = seeds_of(b"k" * 32)


def _kinds(index, texts):
    """Of each set the hits, and those with other names or numbers."""
    hits = index.find(texts)[2]
    return [[Hit(*(of[hit.changed == kind] for of in hit)) for kind in (0, 1)] for hit in hits]


def _found(questions, texts):
    """Pairs of text and question, with the share."""
    ((hit, _),) = _kinds(Index([compiled(questions, SEEDS)], SEEDS), texts)
    pairs = zip(hit.text.tolist(), hit.question.tolist(), strict=True)
    return dict(zip(pairs, hit.share.tolist(), strict=True))


@pytest.mark.parametrize("make", [plants.prose, plants.chinese])
def test_a_question_is_found_however_it_is_planted(make):
    questions, others = make(1, 200), make(2, 200)
    for name, change in plants.kinds(others).items():
        found = _found(questions, [change(each) for each in questions])
        expected = {(each, each) for each in range(200)}
        assert {*found} == expected, name
        whole = 0.3 if name == "half" else 1
        assert min(found.values()) >= whole, name
    assert _found(questions, others) == {}


@pytest.mark.parametrize(
    ("question", "text", "is_found"),
    [
        ("a b c d e f g h", "x a b c d e f g h x", True),
        ("a b c d e f g h", "x a b c d e f g x", False),
        ("a b c d e", "x a b c d x", False),
        ("a b c d", "x a b c d x", False),
        ("a b c d", "A: b, c d?", True),
        ("a b", "a b", False),
        ("一二三四五六七", "又一二三四五六又", False),
        ("一二三四五六", "又一二三四五六又", False),
        ("一二三四五六", "一二，三四五六", True),
        ("?!", "?!", False),
    ],
)
def test_a_short_question_must_stand_there_whole(question, text, is_found):
    assert (
        bool(_found([question, "something else altogether, of ten words or of eleven"], [text]))
        is is_found
    )


def test_equal_words_count_as_one_and_each_set_keeps_its_own_rarity():
    one, two = plants.prose(5, 2)
    assert _found([one, two, one.upper()], [f"so: {one}"]) == {(0, 0): 1.0}
    assert _found([one, two, one.upper()], [one]) == {(0, 0): 1.0}
    one, two, both = plants.prose(7, 3)
    sets = [compiled([one, both], SEEDS), compiled([two, both], SEEDS), compiled([both], SEEDS)]
    hits = [hit for hit, _ in _kinds(Index(sets, SEEDS), [f"{one} {both}", two])]
    found = [[*zip(hit.text.tolist(), hit.question.tolist(), strict=True)] for hit in hits]
    assert found == [[(0, 0), (0, 1)], [(0, 1), (1, 0)], [(0, 0)]]


def test_hits_are_those_of_a_search_by_sets_of_runs():
    """The oracle: runs as tuples, in Python sets."""
    rng = random.Random(8)
    letters = ["a", "b", "c", "Dd", "7"]
    questions = [" ".join(rng.choices(letters, k=rng.randint(5, 60))) for _ in range(60)]
    texts = [" ".join(rng.choices(letters, k=60)) for _ in range(300)]
    texts += [f"{texts[at]} {question}" for at, question in enumerate(questions)]
    texts += [each.replace("7", "8").replace("Dd", "Ee") for each in questions]

    def runs(text, size, left_out):
        words = [each for each in text.split() if each not in left_out]
        return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}

    expected = dict[tuple[int, int], bool]()
    for is_changed, names in ((True, {"Dd", "7", "Ee", "8"}), (False, set())):
        for at, question in enumerate(questions):
            words = len([each for each in question.split() if each not in names])
            size = 8 if is_changed else min(max(words // 4, 4), 8)
            others = (runs(each, size, names) for each in questions if each != question)
            own = runs(question, size, names).difference(*others)
            least = 5 if is_changed else min(words, 8) - size + 1
            needed = max(-(-len(own) * (6 if is_changed else 3) // 10), least)
            if len(own) >= needed and (words >= 12 if is_changed else words > 4):
                for number, text in enumerate(texts):
                    if len(own & runs(text, size, names)) >= needed:
                        expected[number, at] = is_changed
    ((whole, changed),) = _kinds(Index([compiled(questions, SEEDS)], SEEDS), texts)
    found = dict.fromkeys(zip(whole.text, whole.question, strict=True), False)
    found |= dict.fromkeys(zip(changed.text, changed.question, strict=True), True)
    assert len(found) == len(whole.text) + len(changed.text)
    equal = {(300 + 60 + at, at) for at, each in enumerate(questions) if texts[360 + at] == each}
    assert found == expected | dict.fromkeys(equal, False)
    assert min(sum(found.values()), len(found) - sum(found.values())) > 20


@pytest.mark.parametrize(
    ("name", "number", "change", "found"),
    [
        ("Tom", "3", str, [False]),
        ("Tom", "3", str.upper, [False]),
        ("Ann", "4", str, [True]),
        ("Ann-Lee Smith", "1,234.5", str, [True]),
        ("", "", str, [True]),
        ("Ann", "four", str, []),
        ("Ann", "4", str.upper, []),
    ],
)
def test_a_question_with_other_names_or_numbers_is_of_its_own_kind(name, number, change, found):
    asked = [plants.renamed("Tom", 3), *plants.prose(13, 3)]
    made, text = Index([compiled(asked, SEEDS)], SEEDS), change(plants.renamed(name, number))
    ((whole, changed),) = _kinds(made, [text])
    kinds = [*(False for _ in whole.question), *(True for _ in changed.question)]
    assert (kinds, {*whole.question, *changed.question} <= {0}) == (found, True)
    (said,) = Held({"s": [("there", each) for each in asked]})([text])
    assert bool(said) is (found == [False])  # those with other names are left where they are


def test_shared_words_are_marked_in_both_texts_and_of_a_long_one_the_best_part():
    question = plants.prose(10, 1, 40)[0]
    text = f"He said: {question.upper()} Then he left."
    ours, theirs = shared(question, text, SEEDS)
    assert [question[begin:end] for begin, end in ours] == [question[:-1]]
    assert [text[begin:end] for begin, end in theirs] == [question[:-1].upper()]
    assert shared(question, "nothing of it", SEEDS) == ((), ())
    question = plants.prose(11, 1)[0]
    around = " é".join(plants.prose(12, 400))
    text = f"{question[:50]} {around} {question} {around}"
    _, ((begin, end),) = shared(question, text, SEEDS)
    assert text[begin:end] == question[:-1] and begin > 50_000
