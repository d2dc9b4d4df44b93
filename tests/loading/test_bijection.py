import numpy as np
import pytest

from gristmill.loading import bijection
from gristmill.loading.bijection import MOST, Bijection, Order, distinct, drawn_bits, key
from tests.loading.numbered import Numbered, permuted, sample_at


@pytest.fixture(params=["numpy", "kernels"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """In which of the two ways numbers are ordered."""
    monkeypatch.setattr(bijection, "_ordered", 0)
    monkeypatch.setattr(bijection, "PAYS", 0 if request.param == "kernels" else 1 << 62)
    return str(request.param)


GOLDEN = {
    1: [0],
    2: [0, 1],
    5: [4, 0, 1, 3, 2],
    1000: [658, 13, 106, 40, 119, 613, 581, 501],
    10**6: [784304, 859777, 599704, 799041, 555442, 116068, 693460, 831176],
    2**40: [
        1087677342448,
        233367627617,
        618817520864,
        1093870855097,
        133376767184,
        105764548468,
        1009583490938,
        660924562413,
    ],
}
BITS = [1346066267577507604, 17866957139361321409, 14316338740382112881]


@pytest.mark.parametrize("length", [*range(1, 200), 1023, 1024, 1025, 65_536, 65_537])
def test_it_is_a_permutation_with_its_inverse(length):
    made = Bijection(length, key("test", length))
    numbers = made(np.arange(length))
    assert np.array_equal(np.sort(numbers), np.arange(length))
    assert np.array_equal(made.places(numbers), np.arange(length))


@pytest.mark.parametrize("length", [2**40 + 7, MOST - 1])
def test_long_ones_stay_inside_and_have_an_inverse(length):
    made, places = Bijection(length, 5), np.arange(0, length, length // 1000)
    numbers = made(places)
    assert int(numbers.min()) >= 0
    assert int(numbers.max()) < length
    assert len(set(numbers.tolist())) == len(places)
    assert np.array_equal(made.places(numbers), places)


@pytest.mark.parametrize("length", [1, 2, 3, 97, 1024, 1025, 10**6, 2**50 + 1])
def test_it_is_the_permutation_as_scalars_have_it(length):
    seed = key("scalars", length)
    places = [0, length // 3, length // 2, length - 1]
    assert Bijection(length, seed)(np.array(places)).tolist() == [
        permuted(length, seed, place) for place in places
    ]


def test_the_numbers_of_version_1_never_change_and_other_parts_make_another_key():
    for length, expected in GOLDEN.items():
        places = np.arange(min(length, 8))
        assert Bijection(length, key("golden", length))(places).tolist() == expected
    assert len({key("a", 1), key("a1"), key("a", "1"), key("a", 1, None), key("a", 2)}) == 5
    source = Numbered("a", [0, 7, 10])
    orders = [Order(source.cuts, 7, source.identity.text, window) for window in (0, 1)]
    whole, windowed = (order.numbers(np.arange(12)).tolist() for order in orders)
    assert whole == [3, 8, 2, 7, 1, 4, 6, 0, 9, 5, 5, 7]
    assert windowed[:10] == [8, 7, 9, 6, 3, 5, 1, 0, 2, 4]


def test_random_bits_never_change(way):
    assert drawn_bits(np.array([0, 1, 2**40]), 7).tolist() == BITS


def test_kernels_give_what_numpy_gives(monkeypatch):
    chance = np.random.default_rng(0)
    for length in (65_537, 10**9, 10**12 + 39, 2**61 + 1):
        made, places = Bijection(length, key("both", length)), chance.integers(0, length, 1000)
        found = []
        for pays in (0, 1 << 62):
            monkeypatch.setattr(bijection, "PAYS", pays)
            found += [made(places), made(places[::2]), drawn_bits(places[::-1], length)]
        assert all(map(np.array_equal, found[:3], found[3:]))


def test_kernels_are_used_once_they_pay_and_where_numba_compiles(monkeypatch):
    made = Bijection(10**6, 1)
    monkeypatch.setattr(bijection, "_ordered", 0)
    monkeypatch.setattr(bijection, "PAYS", 100)
    made(np.arange(99))
    assert bijection.kernels() is None
    made(np.arange(1))
    assert bijection.kernels() is not None
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert bijection.kernels() is None
    assert made(np.arange(8)).tolist() == Bijection(10**6, 1)(np.arange(8)).tolist()


@pytest.mark.parametrize("values", [[], [5], [3, 3, 3], [9, 7, 9, 8], [0, 2**40, 0], [-4, -6, -4]])
def test_distinct_values_are_each_there_once(values):
    assert distinct(np.array(values, np.int64)) == sorted(set(values))


@pytest.mark.parametrize("length", [-1, MOST])
def test_a_length_outside_is_refused(length):
    with pytest.raises(ValueError, match="2\\^62"):
        Bijection(length, 1)


CUTS = [0, 7, 10, 11, 30]


@pytest.mark.parametrize("window", [0, 1, 2, 9])
def test_draws_are_as_scalars_have_them_and_places_lead_back(window):
    source = Numbered("a", CUTS)
    order = Order(source.cuts, 7, source.identity.text, window)
    numbers = order.numbers(np.arange(90))
    assert numbers.tolist() == [sample_at(source, 7, window, draw) for draw in range(90)]
    epochs = numbers.reshape(3, 30)
    assert all(sorted(epoch) == list(range(30)) for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 3
    for draw in (0, 29, 30, 77):
        assert order.place(draw // 30, int(numbers[draw])) == draw % 30


def test_a_window_reads_few_shards_empty_ones_are_passed_over_and_no_seed_is_no_shuffle():
    cuts = np.arange(0, 1001, 10)
    shards = Order(cuts, 1, "a", 3).numbers(np.arange(1000)) // 10
    assert all(len(set(part.tolist())) == 3 for part in np.split(shards[:990], 33))
    numbers = Order(np.array([0, 0, 4, 4, 4, 6, 6]), 1, "a", 2).numbers(np.arange(6))
    assert sorted(numbers.tolist()) == list(range(6))
    order = Order(np.array(CUTS), None, "a", 2)
    assert order.numbers(np.arange(28, 33)).tolist() == [28, 29, 0, 1, 2]
    assert order.place(1, 5) == 5
