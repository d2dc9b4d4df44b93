"""Hypothesis strategies: texts with control tokens, messages and conversations of every kind."""

from typing import Any

from hypothesis import strategies as st

from gristmill.synth.format import harmony_tokens

CONTROL = [harmony_tokens.name(token) for token in (199999, 200002, 200005, 200006, 200007, 200008)]
texts = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            [
                *CONTROL,
                "<|reserved_200100|>",
                "<|reserved_209999|>",
                "<|",
                "|>",
                "\x00",
                "\r\n",
                "  \n",
                "😀",
            ]
        ),
    ),
    max_size=5,
).map("".join)
words = st.text("abcXYZ09_.", min_size=1, max_size=8)
content = st.one_of(
    texts,
    texts.map(lambda text: [{"type": "text", "text": text}]),
    st.lists(texts, max_size=3).map(lambda ts: [{"type": "text", "text": t} for t in ts]),
)


def namespace(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Tools of a system or developer content, declared under `name`."""
    tool = st.fixed_dictionaries(
        {
            "name": words,
            "description": texts,
            "parameters": st.none()
            | st.just({"type": "object", "properties": {"q": {"type": "string"}}}),
        }
    )
    space = st.fixed_dictionaries(
        {
            "name": st.just(name),
            "description": st.none() | texts,
            "tools": st.lists(tool, min_size=1, max_size=2),
        }
    )
    return st.fixed_dictionaries({name: space})


def between_texts(item: dict[str, Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Contents of one message: `item`, usually alone, else with texts before and after it."""
    text = texts.map(lambda text: {"type": "text", "text": text})
    return st.one_of(
        st.just([item]),
        st.just([item]),
        st.tuples(st.lists(text, max_size=2), st.lists(text, max_size=2)).map(
            lambda around: [*around[0], item, *around[1]]
        ),
    )


system = st.fixed_dictionaries(
    {"type": st.just("system_content")},
    optional={
        "model_identity": texts,
        "reasoning_effort": st.sampled_from(["Low", "Medium", "High"]),
        "conversation_start_date": words,
        "knowledge_cutoff": words,
        "channel_config": st.fixed_dictionaries(
            {
                "valid_channels": st.lists(words, min_size=1, max_size=3),
                "channel_required": st.booleans(),
            }
        ),
        "tools": namespace("browser"),
    },
)
developer = st.fixed_dictionaries(
    {"type": st.just("developer_content")},
    optional={"instructions": texts, "tools": namespace("functions")},
)
extras = {
    "name": words,
    "recipient": st.sampled_from(["all", "functions.f", "browser"]),
    "content_type": st.sampled_from(["json", "<|constrain|>json", "code"]),
}
prompts = st.one_of(
    st.fixed_dictionaries({"role": st.just("system"), "content": system.flatmap(between_texts)}),
    st.fixed_dictionaries(
        {"role": st.just("developer"), "content": developer.flatmap(between_texts)}
    ),
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user"]), "content": content},
        optional=extras | {"channel": st.sampled_from(["analysis", "final", "commentary"])},
    ),
)
answers = st.fixed_dictionaries(
    {
        "role": st.just("assistant"),
        "content": content,
        "channel": st.sampled_from(["analysis", "final"]),
    },
    optional=extras,
)
conversations = st.lists(st.one_of(prompts, answers), max_size=5)
