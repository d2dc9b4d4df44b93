"""The notebooks: their cells run over a small data root."""

import json
import sys
from types import ModuleType
from typing import Any

from gristmill.vocabularies.pinned import GPT2, find
from tests.paths import CHECKOUT
from tests.reasoning.published_root import CORPUS, SPLIT, aligned_root, worked

NOTEBOOKS = sorted((CHECKOUT / "notebooks").rglob("*.ipynb"))


def test_no_notebook_is_left_out_and_none_holds_outputs():
    assert [path.name for path in NOTEBOOKS] == ["spans.ipynb"]
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text())["cells"]:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None


def test_the_notebook_of_spans_runs(tmp_path, vocabulary_root, monkeypatch, capsys):
    root = aligned_root(
        tmp_path / "data", find(GPT2, vocabulary_root), worked(40), seq_len=64, tokens_per_shard=512
    )
    texts: list[str] = []
    module: Any = ModuleType("IPython.display")
    module.display = texts.append
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    cells = json.loads((CHECKOUT / "notebooks/data_checks/spans.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            source = source.replace("../../data", str(root)).replace(
                '"gsm8k", "test"', f'"{CORPUS}", "{SPLIT}"'
            )
            exec(compile(source, "spans.ipynb", "exec"), names)
    examples = capsys.readouterr().out.split("AlignRow(")[1:]
    assert all("Ann has" in each and " Step 1 " in each for each in examples)
    assert len(set(examples)) == 3
    assert texts[0].endswith(" steps of 40 examples")
    assert [text.split(":")[0] for text in texts[1:]] == ["step 1", "step 2", "step 3"]
