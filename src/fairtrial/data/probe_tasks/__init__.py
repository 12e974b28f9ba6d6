"""Tasks with exact answers that need what attention and positions are for. Each is one file: a generator with a seed.

A probe is a classification: a text, and one right answer that follows from its order or content. `inside` has the
lengths of training, `beyond` longer texts. All trials of a study share the items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from fairtrial import recipe
from fairtrial.data.corpus import TEST_SEED, Corpus, Document
from fairtrial.data.probe_tasks.brackets import brackets
from fairtrial.data.probe_tasks.counting import counting
from fairtrial.data.probe_tasks.induction import induction
from fairtrial.data.probe_tasks.order import read_order
from fairtrial.data.probe_tasks.recall import recall
from fairtrial.rng import generator_for

Item = tuple[list[str], str]  # words, the right answer
Generate = Callable[[np.random.Generator, bool], Item]  # `True`: longer than any text of training

TRAINING, TESTED = 20_000, 600  # items


def synthetic(generate: Generate, name: str, data: recipe.Data) -> Corpus:
    def items(split: str, count: int, *, beyond: bool = False) -> Iterator[Document]:
        rng = generator_for(TEST_SEED, "probe", name, split)
        for number in range(count):
            words, answer = generate(rng, beyond)
            yield Document(" ".join(words), answer, location=f"{name}, {split} item {number + 1}")

    train = tuple(items("train", TRAINING))
    seen = {document.text for document in train}
    tests = {
        "inside": tuple(document for document in items("inside", TESTED) if document.text not in seen),
        "beyond": tuple(items("beyond", TESTED, beyond=True)),
    }
    return Corpus(train, tests=tests, spaced=True)


PROBES: dict[str, Callable[[recipe.Data], Corpus]] = {
    "order": read_order,
    "recall": partial(synthetic, recall, "recall"),
    "induction": partial(synthetic, induction, "induction"),
    "brackets": partial(synthetic, brackets, "brackets"),
    "counting": partial(synthetic, counting, "counting"),
}
