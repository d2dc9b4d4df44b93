"""Random conversations, and six templates in the manner of known ones."""

from random import Random

from gristmill.synth.render.assemble import Turn

# Their control tokens are those of o200k_harmony, which the tests have.
CHATML = (
    "{% for m in messages %}{{ '<|start|>' + m.role + '\\n' + m.content + '<|end|>' + '\\n' }}"
    "{% endfor %}"
)
LLAMA = (
    "{{ bos_token }}{% for m in messages %}{{ '<|start|>' + m['role'] + '<|message|>\\n\\n' + "
    "m['content'] | trim + '<|end|>' }}{% endfor %}"
)
GEMMA = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% set role = 'model' %}{% else %}"
    "{% set role = m.role %}{% endif %}<|start|>{{ role }}\n{{ m.content | trim }}<|end|>\n"
    "{% endfor %}"
)
MISTRAL = (
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% elif m.role == 'assistant' %} {{ m.content | trim }}<|return|>{% else %}"
    "{{ m.content }}\n\n{% endif %}{% endfor %}"
)
QWEN = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}"
    "{% set content = m.content %}{% set thought = '' %}"
    "{% if m.role == 'assistant' and '</think>' in content %}"
    "{% set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1]"
    ".lstrip('\\n') %}{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    "{{ '<|start|>' + m.role + '\\n' }}{% if loop.index0 > ns.last and thought %}"
    "{{ '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}{% endif %}"
    "{{ content + '<|end|>\\n' }}{% endfor %}"
)
R1 = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ '<|channel|>' }}"
    "{% generation %}{{ m.content.split('</think>')[-1] | trim + '<|return|>' }}{% endgeneration %}"
    "{% else %}{{ '<|start|>' + m.content }}{% endif %}{% endfor %}"
)
TEMPLATES = {
    **{"chatml": CHATML, "llama": LLAMA, "gemma": GEMMA, "mistral": MISTRAL},
    **{"qwen": QWEN, "r1": R1},
}

_WORDS = (
    *("yes", "no", " 12", "x", "\n", "  ", "日本", "e\u0301", "🙂", "<", "|", "[INST]", "</s>"),
    *("The", " answer", ".", "\n\n", "don't", "{{", "%}", "\t", "’", "user"),
)


def text(random: Random, *, least: int = 1, control: bool = False) -> str:
    """A text that holds something, with blanks at its edges now and then."""
    words = (*_WORDS, "<|end|>", "<|start|>", "<|return|>") if control else _WORDS
    found = "".join(random.choice(words) for _ in range(random.randrange(least, 12)))
    edge = random.choice(["", "", " ", "\n"])
    return f"{edge}{found}a{edge}"


def talk(random: Random, control: bool = False) -> list[Turn]:
    """A conversation: one to three turns, with thoughts, blank edges and empty system messages."""
    turns = []
    if random.random() < 0.4:
        turns.append(Turn("system", random.choice(["", text(random, control=control)]), 0))
    for _ in range(random.randrange(1, 4)):
        turns.append(Turn("user", text(random, control=control), 0))
        has_thought = random.random() < 0.5
        thought = text(random, control=control).strip() if has_thought else ""
        trained = random.random() < 0.9
        answer = text(random, control=control)
        turns.append(Turn("assistant", answer, 2 * trained, thought, trained))
    return turns
