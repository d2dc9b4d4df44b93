"""The example that trains small nets: losses fall, and a resumed run is the run itself."""

from importlib.util import find_spec
from xml.etree import ElementTree

import pytest

from tests.later import later

if not find_spec("torch"):  # importing it takes seconds
    pytest.skip("torch is not installed", allow_module_level=True)

example = later("examples.train_small_nets", "torch")
FAMILIES = ("2048", "chess", "SYNTH", "reasoning", "puzzles")


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_net_learns_and_goes_on_where_it_was(sample_root, tmp_path, name):
    family = example.families(sample_root.data)[name]
    losses = list(example.losses_of(family, 40, tmp_path))
    assert len(losses) == 40
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loader.json", "net.pt"]
    torch = later("torch")
    torch.manual_seed(example.SEED)
    net = example.SmallNet(family.is_causal)
    training = net, torch.optim.Adam(net.parameters(), lr=0.01)
    loader = example.Loader(example.endless(family, 40), example.BATCH)
    straight = list(example.trained(family, loader, training, 40))
    assert straight == pytest.approx(losses, rel=1e-3)


@pytest.mark.slow
def test_the_picture_has_a_line_for_each_family():
    losses = {name: [8.0 / (k + 1) for k in range(30)] for name in FAMILIES}
    svg = ElementTree.fromstring(example.plot(losses))
    assert len(svg.findall(".//{http://www.w3.org/2000/svg}polyline")) == len(FAMILIES)
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {*FAMILIES, "resumed after 15 steps", "step 30"} <= set(texts)
