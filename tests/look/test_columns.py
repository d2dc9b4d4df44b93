"""The columns of rows are counted: types, shares of empty values, examples."""

from gristmill.look.columns import counted, kind_of, message_keys


def test_types_have_the_words_of_a_table():
    values: list[object] = ["a", 1, 1.5, True, {"a": 1}, ["a"], [True], [1], [{}]]
    said = [kind_of(value) for value in values]
    assert said[:5] == ["text", "number", "number", "truth value", "object"]
    assert said[5:] == ["list of texts", "list of truth values", "list", "list of objects"]
    empty: list[object] = [None, "", [], {}]
    assert {kind_of(value) for value in empty} == {"empty"}


def test_values_and_places_of_rows_are_counted():
    columns = counted([{"a": "x", "b": None}, {"a": ""}, {"a": "yy"}])
    assert columns.rows == 3
    assert (columns.by_name["a"].filled, columns.by_name["b"].filled) == (2, 0)
    assert (columns.by_name["a"].mean, columns.by_name["a"].example) == (1.5, "x")
    assert list(counted([{"a": {"b": {"c": 1}}}]).by_name) == ["a", "a.b"]
    assert len(counted([{str(number): 1 for number in range(2000)}]).by_name) == 500
    columns = counted([{"a": "['x', 'y']"}, {"a": "plain"}, {"a": '[{"role": "user"}]'}])
    assert columns.by_name["a"].is_written == 2


def test_messages_are_objects_with_a_known_speaker_and_a_text():
    assert message_keys([{"role": "user", "content": "a"}]) == ("role", "content")
    assert message_keys([{"from": "gpt", "value": "a", "weight": 1}]) == ("from", "value")
    # Who it is, the keys of messages need not say.
    assert message_keys([{"role": "noun", "content": "a"}]) == ("role", "content")
    for other in ([{"speaker": "noun", "text": "a"}], [{"role": "user"}], [], "user", [1]):
        assert message_keys(other) is None


def test_the_first_of_some_names_is_found_in_their_order():
    columns = counted([{"b": 1, "a": 2}])
    assert columns.first(("c", "a", "b")) == "a"
    assert columns.first(("c",)) is None
