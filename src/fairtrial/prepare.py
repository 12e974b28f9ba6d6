"""Recipe + seed -> documents, tokenizer, network: the only place that reads, splits, tokenizes and builds.

Each is made when it is first asked for, so that a study's planning reads documents without fitting a tokenizer or
importing torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtrial.data.corpus import (
    Corpus,
    Document,
    Splits,
    fitting_tokens,
    item_groups,
    kind_in_use,
    shape_documents,
    split,
)
from fairtrial.data.readers import find_format, read
from fairtrial.data.sotu import check_presidents
from fairtrial.data.tables import source_files
from fairtrial.data.tokenizer import NO_COURSE, Tokenizer, fit, tokenizer_of_ids
from fairtrial.environment import check_memory
from fairtrial.errors import BadInput
from fairtrial.progress import status
from fairtrial.recipe import PROBES, Data, Recipe, Tokens, check_unused, choose_recipe, load_recipe, one_of, with_length

if TYPE_CHECKING:
    from fairtrial.data.duplicates import Duplicates
    from fairtrial.pretrained.checkpoint import Checkpoint
    from fairtrial.record import Record
    from fairtrial.training.tasks import Task

# a length that the recipe leaves open: so many of the training texts are read whole, within these bounds
WHOLE, SHORTEST, LONGEST = 0.99, 32, 256
MOST_MEASURED = 5000  # texts
ID_BYTES = 25  # of memory for each byte of token ids, about: they are read as words


@dataclass(frozen=True)
class Prepared:
    recipe: Recipe  # resolved: the encoder's shape and parts, the kind of tokens that fits the corpus, the length
    seed: int
    corpus: Corpus
    splits: Splits
    encoder: Checkpoint | None = None
    saved_tokenizer: Tokenizer | None = None  # of a record; else it is fitted
    length_note: str = ""  # where the length was chosen from the training text
    device: str = ""  # that a record's trial was begun on; else the recipe says

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of how the data were read."""
        return (*self.corpus.notes, *filter(None, [self.length_note]))

    @property
    def known(self) -> tuple[Document, ...]:
        """All that weights are trained on or chosen by: the same documents at every seed, unless train is thinned."""
        return self.splits.train + self.splits.validation

    @cached_property
    def copies(self) -> dict[str, Duplicates]:
        """Which items of each test set also occur in the training set, exactly or nearly: the one definition. The
        training set is all that is known, so that the answer is the same at every seed."""
        count = sum(map(len, self.splits.tests.values()))
        with status(f"comparing {count:,} test items with {len(self.known):,} training documents"):
            return {name: self.splits.index.copies(self.known, items) for name, items in self.splits.tests.items()}

    @property
    def fitted_texts(self) -> Sequence[str]:
        """The texts that a vocabulary is fitted on."""
        if self.recipe.tokens.fit != "course":
            return [document.text for document in self.splits.train]
        if not self.corpus.course_lines:
            raise BadInput(*NO_COURSE)
        return self.corpus.course_lines

    def groups(self, documents: Sequence[Document]) -> np.ndarray | None:
        """Documents of a scored set that belong together [document]; None: each stands alone."""
        return item_groups(documents, self.corpus.ordered, self.recipe.shape.length)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        if self.saved_tokenizer is not None:
            return self.saved_tokenizer
        with status("fitting the vocabulary"):
            fitted = _fit_tokenizer(self)
        # documents that are sentences: a text that a user gives to the trained model is split into sentences, too
        by_sentences = self.corpus.paragraphs or find_format(self.recipe.data) in ("sotu", "course")
        return replace(fitted, facts=fitted.facts | {"by_sentences": by_sentences})

    @property
    def memory_needed(self) -> int:
        """Bytes that training takes, about, beside the libraries and the text; of a user's own network its weights are
        not known before it is built."""
        import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
        from fairtrial.model.network import training_memory

        rows = min(self.recipe.training.batch, max(1, len(self.splits.train)))
        return training_memory(self.recipe, self.tokenizer.size, rows)

    @cached_property
    def task(self) -> Task:
        """Encoded sets, batches and a network with its first weights."""
        from fairtrial.training.tasks import build_task

        check_memory(self.memory_needed, "training")
        with status("encoding texts and building the network"):
            task = build_task(self.recipe, self.seed, self.splits, self.tokenizer)
        if self.encoder is not None:
            from fairtrial.pretrained.checkpoint import fill

            fill(task.network, self.encoder)
        task.network.to(self.chosen_device(task))
        return task

    def chosen_device(self, task: Task) -> Any:
        from fairtrial.model.network import count_parameters
        from fairtrial.training.device import choose_device

        tokens = self.recipe.training.batch * self.recipe.shape.length
        return choose_device(self.device or self.recipe.training.device, count_parameters(task.network), tokens)


def prepare(recipe: Recipe, seed: int) -> Prepared:
    """What a trial of this recipe and seed is trained, selected and tested on."""
    check_memory(0, "a trial")
    check_unused(recipe)
    encoder = None
    if recipe.encoder.source != "none":
        from fairtrial.pretrained.checkpoint import open_encoder, with_encoder

        encoder = open_encoder(recipe)
        recipe = with_encoder(recipe, encoder)
    corpus = open_corpus(recipe.data, recipe.task, recipe.tokens, encoder.tokenizer.facts if encoder else {})
    recipe = replace(recipe, tokens=fitting_tokens(corpus, recipe.tokens))
    with status("splitting the documents"):
        splits = split(corpus, recipe.data, seed)
    prepared = Prepared(recipe, seed, corpus, splits, encoder)
    if recipe.shape.length:
        return prepared
    with status("choosing a length from the training text"):
        return choose_length(prepared)


def choose_length(prepared: Prepared) -> Prepared:
    """The length that holds nearly all training texts whole, a multiple of 8. It follows from texts that all seeds
    share, so that all trials of a recipe have one length. A running text is never cut, so its length is the usual."""
    recipe, corpus = prepared.recipe, prepared.corpus
    if corpus.running:
        return replace(prepared, recipe=with_length(recipe, SHORTEST))
    tested = set(chain.from_iterable(prepared.splits.tests.values()))
    texts = [document.text for document in corpus.train if document not in tested]
    texts = texts[:: -(-len(texts) // MOST_MEASURED)]
    tokenizer = fit(recipe.tokens, texts) if recipe.tokens.fit == "train" else prepared.tokenizer
    marks = int(recipe.task == "lm")  # the start of a sentence is read, too
    tokens = sorted(len(ids) + marks for ids in tokenizer.encode(texts))
    needed = tokens[math.ceil(WHOLE * len(tokens)) - 1]
    length = min(LONGEST, max(SHORTEST, -(-needed // 8) * 8))
    note = f"length {length}, chosen from the training text: {WHOLE:.0%} of its texts have at most {needed:,} tokens"
    return replace(prepared, recipe=with_length(recipe, length), length_note=note)


def open_corpus(data: Data, task: str, tokens: Tokens, facts: Mapping[str, Any]) -> Corpus:
    """The documents of a source, as this kind of tokens needs them. `facts`: of the tokenizer, where an encoder brings
    one."""
    if data.presidents != Data().presidents:
        check_presidents(data.presidents)  # also where other data are read
    if data.format in ("auto", "ids") and find_format(data) == "ids":
        files = chain.from_iterable(source_files(Path(data.source).expanduser(), (".bin",)).values())
        check_memory(ID_BYTES * sum(file.stat().st_size for file in files), "reading these token ids")
    with status(f"reading {data.source}"):
        corpus = read(data, task, tokens.size)
        return shape_documents(corpus, kind_in_use(fitting_tokens(corpus, tokens), facts))


def prepare_like(record: Record) -> Prepared:
    """What a record's trial was prepared as, with the record's own tokenizer. Data that have changed are refused."""
    check_memory(0, "a trial")
    recipe, trial = record.recipe, record.trial
    tokenizer = record.tokenizer()
    corpus = open_corpus(recipe.data, recipe.task, recipe.tokens, tokenizer.facts)
    if corpus.files != trial.data:
        raise BadInput(
            f"the data have changed since {record.folder} was started", "restore them, or train a new record"
        )
    splits = split(corpus, recipe.data, trial.seed)
    encoder = None
    if not record.complete and recipe.encoder.source != "none":  # a finished record has weights of its own
        from fairtrial.pretrained.checkpoint import open_encoder

        encoder = open_encoder(recipe)
    device = trial.environment.device
    return Prepared(recipe, trial.seed, corpus, splits, encoder, tokenizer, device=device)


def _fit_tokenizer(prepared: Prepared) -> Tokenizer:
    recipe = prepared.recipe
    if prepared.encoder is not None:
        return prepared.encoder.tokenizer
    if prepared.corpus.entries:
        return tokenizer_of_ids(prepared.corpus.entries, prepared.corpus.named)
    if (Path(recipe.tokens.fit) / "trial.json").is_file():
        from fairtrial.pretrained.checkpoint import take_vocabulary

        return take_vocabulary(Path(recipe.tokens.fit), prepared.fitted_texts)
    if recipe.tokens.fit not in ("train", "course"):
        raise BadInput(f"tokens.fit must be 'train', 'course' or a record's folder, got {recipe.tokens.fit!r}")
    marks, mask = recipe.task == "lm" and not prepared.corpus.running, recipe.task == "mlm"
    return fit(recipe.tokens, prepared.fitted_texts, marks=marks, mask=mask)


def tasks_of(data: Data) -> tuple[str, ...]:
    """The tasks that a source can serve, where the user names none: plain text has no labels."""
    found = find_format(data)
    if found in ("course", "sotu"):
        return ("classify", "lm")
    return ("lm",) if found in ("text", "lines", "ids") else ("classify",)


def recipes_for(data: str, task: str | None, name: str | None) -> list[Recipe]:
    """One recipe for each task that the data are for, by default the one that `fairtrial train` uses."""
    if name is not None and name.endswith(".toml") and task is None:
        task = load_recipe(Path(name)).task
    if task is not None:
        one_of("task", task, ("classify", "lm", *PROBES))
    tasks = [task] if task else tasks_of(Data(source=data))
    return [choose_recipe(each, name, data) for each in tasks]
