"""The contract of a network of the user's own, and the adapter that needs no code."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.external import Declared, ExternalModel, build_external, padded_left
from fairtrial.model.hugging_face import build_model
from fairtrial.recipe import Shape, Training, read_model, split_model
from fairtrial.training.optimizer import make_optimizer

sys.path.append(str(Path(__file__).parents[1] / "training"))
from pretend_device import DEVICE, PretendDevice

VOCABULARY, LENGTH, CLASSES = 30, 12, 3
SHAPE = Shape(layers=2, heads=2, width=16, hidden=16, length=LENGTH, dropout=0.0)
IDS, LENGTHS = torch.randint(1, VOCABULARY, (3, LENGTH), generator=torch.Generator().manual_seed(0)), [12, 5, 9]


class Plain(nn.Module):
    """A unigram by its tokens: what it answers is changed by those who break the contract."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.tokens, self.out = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Any:
        return self.answer(self.out(self.tokens(ids)))

    def answer(self, logits: Tensor) -> Any:
        return logits


def answering(answer: Any) -> nn.Module:
    found = Plain()
    found.answer = answer  # type: ignore[method-assign]
    return found


class NeedsTargets(Plain):
    def forward(self, ids: Tensor, targets: Tensor) -> Any:  # type: ignore[override]
        return super().forward(ids)


class WrongMask(Plain):
    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Any:
        return self.out(self.tokens(ids) if mask is None else self.tokens(ids) * mask)


class Unpadded(Plain):
    fairtrial: ClassVar[dict[str, str]] = {"pads": "left"}

    def forward(self, ids: Tensor) -> Any:  # type: ignore[override]
        return super().forward(ids)


WRONG = {
    r"build\(vocabulary=30, length=12, classes=3, seed=1\) raises ValueError: width is 7 \(test_ext": ValueError(
        "width is 7"
    ),
    r"my.py:build gives function; it must give a torch.nn.Module": lambda ids: ids,
    r"model\(ids \[3, 12\]\) gives tensor \[3, 30\], and no logits": answering(lambda x: x[:, -1]),
    r"gives tensor \[3, 12, 29\], and no logits": answering(lambda x: x[..., 1:]),
    r"gives tensor \[12, 3, 30\], and no logits": answering(lambda x: x.transpose(0, 1)),
    r"gives \{output: \{scores: tensor \[3, 12, 30\]\}\}, and no logits": answering(
        lambda x: {"output": {"scores": x}}
    ),
    r"gives \(tensor \[3, 12\], None\), and no logits": answering(lambda x: (x.argmax(-1), None)),
    r"gives probabilities, which sum to one": answering(lambda x: x.softmax(-1)),
    r"1,080 values that are not finite": answering(lambda x: x * math.nan),
    r"raises TypeError: .* missing 1 required positional argument: 'targets'": NeedsTargets(),
    r"model\(ids \[3, 12\], mask bool \[3, 12\]\) raises RuntimeError: .*\(test_external.py:\d+\)": WrongMask(),
    r"declares pads = 'left', and its forward takes no mask": Unpadded(),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_breaks_the_contract_is_told_with_what_was_called_and_what_came_back(words: str) -> None:
    def build(vocabulary: int, length: int, classes: int, seed: int) -> Any:
        if isinstance(WRONG[words], Exception):
            raise WRONG[words]  # type: ignore[misc]
        return WRONG[words]

    def call() -> None:
        network = build_external("my.py:build", build, {}, "lm", (VOCABULARY, LENGTH, CLASSES), SHAPE, 1)
        network.check_answers(IDS)
        network(IDS, torch.tensor(LENGTHS))

    with pytest.raises(BadInput, match=words):
        call()
    with pytest.raises(BadInput, match="has no option 'widht'; did you mean"):
        build_external("my.py:build", lambda vocabulary, length, classes, seed, width=8: Plain(), {"widht": 3}, "lm",
                       (VOCABULARY, LENGTH, CLASSES), SHAPE, 1)  # fmt: skip


@pytest.mark.parametrize("folder", ["fairtrial", "torch", "a torch/fairtrial/é"])
def test_an_error_names_the_line_of_a_file_in_a_folder_of_any_name(tmp_path: Path, folder: str) -> None:
    file = tmp_path / folder / "my_model.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "def build(vocabulary, length, classes, seed):\n    import torch\n    torch.zeros(2) @ torch.zeros(3)\n"
    )
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(BadInput, match=r"RuntimeError: .*\(my_model\.py:3\)"):
        build_external("my_model.py:build", names["build"], {}, "lm", (VOCABULARY, LENGTH, CLASSES), SHAPE, 1)


def adapted(name: str, task: str = "lm") -> ExternalModel:
    choice, _ = split_model(read_model(name))
    return build_model(choice, task, VOCABULARY, CLASSES, SHAPE, 1).eval()


def test_a_class_or_a_field_that_transformers_lacks_is_refused() -> None:
    pytest.importorskip("transformers")
    for name, words in (
        ("hf:GPT2LMHeadModle", "did you mean"),
        ("hf:GPT2LMHeadModel:n_layers=2", "no field 'n_layers'"),
    ):
        with pytest.raises(BadInput, match=words):
            adapted(name)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore")
class Own(Plain):
    """With a loss and an optimizer of its own."""

    fairtrial: ClassVar[dict[str, str]] = {"loss": "squared", "optimizer": "slow"}

    def squared(self, ids: Tensor, mask: Tensor | None, answers: Tensor) -> Tensor:
        self.seen = (ids, mask, answers)
        real = answers >= 0
        return (self(ids)[real].gather(1, answers[real][:, None]) - 1).square().mean()

    def slow(self, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=learning_rate / 10)


def test_a_loss_and_an_optimizer_of_its_own_are_the_ones_that_train_it() -> None:
    model, lengths, answers = Own(), torch.tensor(LENGTHS), IDS.roll(-1, 1)
    network = ExternalModel(model, "lm", VOCABULARY, LENGTH, CLASSES, name="own")
    count = sum(LENGTHS)
    objective, told = network.loss(IDS, lengths, answers, 0.1, 1 / count)
    real = torch.arange(LENGTH) < lengths[:, None]
    with torch.no_grad():
        expected = float((model(IDS)[real].gather(1, answers[real][:, None]) - 1).square().mean())
    assert float(told) / count == pytest.approx(expected)
    assert float(objective.detach()) == pytest.approx(expected)
    assert bool((model.seen[2][~real] == -1).all()), "padding has no answer"
    optimizer = make_optimizer(network, Training(learning_rate=0.5))
    assert isinstance(optimizer, torch.optim.SGD)
    assert [group["scale"] for group in optimizer.param_groups] == [pytest.approx(0.1)], "the schedule scales its rates"
    left = ExternalModel(
        model, "lm", VOCABULARY, LENGTH, CLASSES, name="own", declared=Declared.of(model, {"pads": "left"})
    )
    assert float(left.loss(IDS, lengths, answers, 0.0, 1.0)[1]) == pytest.approx(float(told))
    assert model.seen[1].tolist() == padded_left(IDS, lengths)[1].tolist()
    model.squared = lambda ids, mask, answers: torch.zeros(2)  # type: ignore[method-assign]
    with pytest.raises(
        BadInput, match=r"squared\(ids \[3, 12\], bool \[3, 12\], answers \[3, 12\]\) gives tensor \[2\]; a loss is one"
    ):
        network.loss(IDS, lengths, answers, 0.0, 1.0)
    model.slow = lambda learning_rate, weight_decay: None  # type: ignore[method-assign, return-value]
    with pytest.raises(BadInput, match="slow gives NoneType, not a torch optimizer"):
        make_optimizer(network, Training())


class Masked(Plain):
    """Reads its mask, and pools where it classifies."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes, self.pooled = classes, nn.Linear(8, max(1, classes))

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Any:
        x = self.tokens(ids)
        x = x if mask is None else x * mask[..., None]
        return self.pooled(x.mean(1)) if self.classes else self.out(x)


@pytest.mark.parametrize("task", ["lm", "classify"])
@pytest.mark.parametrize("pads", ["right", "left", "none"])
def test_masks_are_made_where_the_tokens_are(task: str, pads: str) -> None:
    network = ExternalModel(
        Masked(0 if task == "lm" else CLASSES),
        task,
        VOCABULARY,
        LENGTH,
        CLASSES,
        name="own",
        declared=Declared(pads=pads),
    )
    answers = IDS.roll(-1, 1) if task == "lm" else torch.tensor([0, 2, 1])
    here = network.loss(IDS, torch.tensor(LENGTHS), answers, 0.0, 1.0)[1]
    with PretendDevice():
        there = network.to(DEVICE).loss(IDS.to(DEVICE), torch.tensor(LENGTHS), answers.to(DEVICE), 0.0, 1.0)[1]
    assert float(there) == pytest.approx(float(here), rel=1e-6)
