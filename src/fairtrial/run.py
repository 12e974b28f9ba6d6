"""A finished trial with its trained network, and what can be asked of it. Its data are read when they are first asked
for; each question is answered by its package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.description import Description, Result
from fairtrial.environment import use_threads
from fairtrial.errors import BadInput
from fairtrial.recipe import Recipe
from fairtrial.record import Record, sibling

if TYPE_CHECKING:  # what needs torch or numpy is imported by the method that uses it: commands are made from this class
    import numpy as np

    from fairtrial.data.corpus import Splits
    from fairtrial.data.tokenizer import Tokenizer
    from fairtrial.inspection.attention import AttentionMaps
    from fairtrial.inspection.classifier import Errors, Predictions
    from fairtrial.inspection.heads import LookResult
    from fairtrial.inspection.language import Generation, Lengths, Surprisal
    from fairtrial.inspection.parameters import Parameters
    from fairtrial.prepare import Prepared
    from fairtrial.results.records import Curves
    from fairtrial.stored import Metrics
    from fairtrial.training.tasks import Network, Task

Texts = str | Sequence[str]
Source = str | Path
TASKS = {"classify": "a classifier", "lm": "a language model", "mlm": "a masked language model"}


@dataclass(frozen=True, repr=False)
class Run(Result):
    """A finished trial: `metrics`, `curves`, `recipe`, `seed`, `labels`, and the trained `network` with its
    `tokenizer`. It stays on disk in `folder`.

    >>> classifier.metrics["test"].items
    48
    """

    record: Record
    recipe: Recipe
    seed: int
    tokenizer: Tokenizer = field(repr=False)
    labels: tuple[str, ...]  # of a classifier
    network: Network = field(repr=False)  # in evaluation mode

    @property
    def folder(self) -> Path:
        """Where the record is."""
        return self.record.folder

    @property
    def metrics(self) -> dict[str, Metrics]:
        """Scores by split: validation, and each test set."""
        return self.record.result.scores

    @property
    def curves(self) -> Curves:
        """The training loss, and loss and score of each split while it was trained."""
        from fairtrial.results.records import Curves

        return Curves(self.record)

    @cached_property
    def prepared(self) -> Prepared:
        """The data as the trial saw them. Refused where they have changed or are gone."""
        from fairtrial.prepare import prepare_like

        return prepare_like(self.record)

    @property
    def splits(self) -> Splits:
        """The documents of each split."""
        return self.prepared.splits

    @cached_property
    def task(self) -> Task:
        """The encoded data, to be scored with the trained network."""
        from fairtrial.training.tasks import build_task

        return build_task(self.recipe, self.seed, self.splits, self.tokenizer, self.network)

    def initial_network(self) -> Network:
        """The network with its first weights; those of a pretrained encoder are not put in."""
        from fairtrial.training.tasks import build_network

        return build_network(self.recipe, self.seed, self.tokenizer.size, len(self.labels)).eval()

    def attention(self, text: str, *, initial: bool = False) -> AttentionMaps:
        """Attention maps of a text: which positions each head attends to.

        Args:
            text: A sentence.
            initial: Of the network before training.

        >>> maps = classifier.attention("a warm film")
        >>> maps.weights.shape  # layer head query key
        (1, 2, 3, 3)
        """
        from fairtrial.inspection.attention import initial_model, maps_of

        with use_threads(1):
            return maps_of(initial_model(self)[0] if initial else self.network, self.tokenizer, text)

    def parameters(self) -> Parameters:
        """Parameters of the network, component by component, and its FLOPs."""
        from fairtrial.inspection.parameters import cost_of_recipe

        with use_threads(1):
            return cost_of_recipe(self.recipe, self.tokenizer.size, len(self.labels))

    def log_probabilities(self, split: str = "validation", model: str = "network") -> np.ndarray:
        """Log-probabilities for a split that the trial scored ('validation', or a test set by its name): of every class
        [item class] of a classifier, of every target token [token] of a language model.

        `model`: the network, or a simple model fitted on the trial's training split ('naive Bayes', 'logistic
        regression'; 'unigram', 'bigram', 'Kneser-Ney trigram'), so that models can be combined.

        >>> classifier.log_probabilities("test", "naive Bayes").shape
        (48, 2)
        """
        from fairtrial.baselines.run import log_probabilities

        return log_probabilities(self.task, self.prepared, split, model)

    def predict(
        self,
        texts: Texts,
        *,
        names: str | Sequence[str] | None = None,
    ) -> Predictions:
        """Print the probability of each class for each sentence.

        Args:
            texts (TEXT): One sentence or several, each in quotes.
            names (NAMES): Names to show instead of the labels, in their order: 'Obama,W. Bush,H. W. Bush'.

        >>> classifier.predict(["a warm and funny film", "slow and dull"]).guesses
        ['good', 'bad']
        """
        from fairtrial.inspection.classifier import predict

        require_task(self.record, "classify")
        with use_threads(1):
            return predict(self, listed(texts), names=names_of(names))

    def surprisal(self, texts: Texts) -> Surprisal:
        """Print the surprisal of each token of a sentence, and the perplexity of sentences.

        Args:
            texts (TEXT): One sentence or several, each in quotes.

        >>> found = language_model.surprisal("a warm and funny film")
        >>> [token.word for token in found.texts[0].tokens if token.unknown]
        ['<unk>', '<unk>']
        """
        from fairtrial.inspection.language import surprisal

        require_task(self.record, "lm")
        with use_threads(1):
            return surprisal(self, listed(texts))

    def generate(
        self,
        prompt: str = "",
        *,
        tokens: int = 60,
        temperature: float = 1.0,
        samples: int = 1,
        seed: int = 0,
    ) -> Generation:
        """Continue a text with a language model.

        Args:
            prompt (PROMPT): The beginning of the text, in quotes.
            tokens: Maximum number of new tokens.
            temperature: 0: greedy; 1: the model's own probabilities.
            samples: Number of texts.
            seed: Random seed: the same seed gives the same text.

        >>> print(language_model.generate("a warm", tokens=3, temperature=0))  # doctest: +ELLIPSIS
        a warm ...
        """
        from fairtrial.inspection.language import generate

        require_task(self.record, "lm")
        with use_threads(1):
            return generate(self, prompt, tokens=tokens, temperature=temperature, samples=samples, seed=seed)

    def next_tokens(self, prompt: str, most: int | None = 20) -> list[tuple[str, float]]:
        """What a language model expects next, the most probable first, with its probability.

        >>> len(language_model.next_tokens("a warm", most=3))
        3
        """
        from fairtrial.inspection.language import next_tokens

        require_task(self.record, "lm")
        with use_threads(1):
            return next_tokens(self, prompt, most)

    def look(
        self,
        texts: Texts = (),
        *,
        layer: int | None = None,
        head: int | None = None,
        format: str = "png",
        out: Source | None = None,
    ) -> LookResult:
        """Plot attention maps before and after training, with a caption for each head.

        Three texts are drawn at most. Without a text, the first of the record's first test set are read.

        Args:
            texts (TEXT): One sentence or several, each in quotes.
            layer: Plot this layer only; layers count from 0.
            head: Plot this head only; heads count from 0.
            format: Format of the figures: png, svg or pdf.
            out: A folder for page and figures.

        >>> found = classifier.look("a warm and funny film", layer=0, head=1, out="looked")
        >>> found.page.name
        'index.html'
        """
        from fairtrial.inspection.heads import look, write_look

        with use_threads(1):
            found = look(self, listed(texts), layer, head)
            return found if out is None else write_look(found, self.record, Path(out), format)

    def errors(
        self,
        test: str | None = None,
        *,
        most: int = 10,
        names: str | Sequence[str] | None = None,
        html: Source | None = None,
    ) -> Errors:
        """Show a classifier's confusions and confident mistakes.

        Args:
            test: One test set only. Default: all.
            most: Number of mistakes to show.
            names (NAMES): Names to show instead of the labels, in their order: 'Obama,W. Bush,H. W. Bush'.
            html: Also write a page to open in a browser.

        >>> classifier.errors("test").tests["test"].items
        48
        """
        from fairtrial.inspection.classifier import errors

        require_task(self.record, "classify")
        chosen = names_of(names)
        with use_threads(1):
            result = errors(self, test=test, most=most, names=chosen)
        if html is not None:
            from fairtrial.report.page import result_page, write_page

            write_page(html, lambda: result_page(result.describe()))
        return result

    def lengths(self, times: str | Sequence[int] = "1,2,4,8") -> Lengths:
        """Score a language model at 1x, 2x, 4x and 8x its training length.

        Parts that cannot extrapolate say so.

        Args:
            times (LIST): Multiples of the training length: 1,2,4,8.

        >>> language_model.lengths([1, 4]).to_frame()["length"].tolist()
        [12, 48]
        """
        from fairtrial.inspection.language import Lengths, score_lengths

        require_task(self.record, "lm")
        with use_threads(1):
            return Lengths(tuple(score_lengths(self, factors_of(times))))

    def export(self, out: str | Path | None = None) -> Path:
        """Export a trained network for `transformers`' from_pretrained.

        A language model becomes the first class that computes the same: Starcoder2, GPT-NeoX, GPT-2, GPT-Neo,
        BertGeneration, Llama, SmolLM3, Arcee, Qwen3, VaultGemma or HYV3. An encoder becomes BERT (post-norm) or
        XLM-RoBERTa-XL (pre-norm). What none of them computes is refused, with what to set instead.

        Args:
            out: The folder to write. Default: next to the record.

        >>> (language_model.export("exported") / "model.safetensors").is_file()
        True
        """
        from fairtrial.pretrained.export import export_record

        return export_record(self.record, Path(out) if out is not None else sibling(self.folder, "hf")).folder

    def describe(self) -> Description:
        from fairtrial.results.records import describe_record

        return describe_record(self.record)

    def rows(self) -> list[dict[str, object]]:
        return [{"set": name, **score.known()} for name, score in self.metrics.items()]


def require_task(record: Record, task: str) -> None:
    found = record.recipe.task
    if found != task:
        raise BadInput(f"{record.folder} is {TASKS.get(found, found)}; this needs {TASKS[task]}")


def listed(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def names_of(names: str | Sequence[str] | None) -> list[str] | None:
    """Names of classes, or a text of them: 'Obama,W. Bush'."""
    if names is None:
        return None
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def factors_of(times: str | Sequence[int]) -> list[int]:
    """Whole numbers, or a text of them: '1,2,4,8'."""
    try:
        return [int(each) for each in (times.split(",") if isinstance(times, str) else times)]
    except ValueError as error:
        raise BadInput(f"times must be whole numbers: {times!r}", "such as 1,2,4,8") from error
