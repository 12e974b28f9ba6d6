"""D4, P3 and the unknown words of D6: what the tokenizer saw, and what it will not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.errors import BadInput
from fairtrial.text.copies import key
from fairtrial.text.corpus import Document
from fairtrial.text.dealing import Dealt
from fairtrial.text.finding import AMBER, PASS, RED, REPORT, DataFinding, count_of, first_few, quote
from fairtrial.text.tokenizer import NO_COURSE, Tokenizer, fit

MOST = 5000  # documents that are encoded for a share
MORE_UNKNOWN = 0.05  # unknown share of a test set above that of train


def audit_vocabulary(dealt: Dealt) -> Iterator[DataFinding]:
    if dealt.recipe.tokens.kind == "encoder" or dealt.recipe.encoder.source != "none":
        return  # a pretrained encoder brings its vocabulary
    if dealt.recipe.tokens.fit not in ("train", "course"):
        return  # so does a record
    fitted = fitted_lines(dealt)
    yield from _fitted_on_tests(dealt, fitted)
    yield _labels_fitted(dealt, fitted)
    tokenizer = fit(dealt.recipe.tokens, fitted)
    if tokenizer.unknown is not None:
        yield _unknown_trained(dealt, tokenizer)
        yield from _unknown_shares(dealt, tokenizer)


def fitted_lines(dealt: Dealt) -> Sequence[str]:
    """The texts that a trial of this recipe fits its tokenizer on."""
    if dealt.recipe.tokens.fit == "course":
        if not dealt.corpus.course_lines:
            raise BadInput(*NO_COURSE)
        return dealt.corpus.course_lines
    return [document.text for document in dealt.splits.train]


def _fitted_on_tests(dealt: Dealt, fitted: Sequence[str]) -> Iterator[DataFinding]:
    """Test items in the text of the vocabulary that do not stand in train: copies in train are told by D1."""
    known = {key(document.text) for document in dealt.known}
    seen = {key(line.partition("\t")[2] or line) for line in fitted} - known
    for name, documents in dealt.splits.tests.items():
        found = [document for document in documents if key(document.text) in seen]
        yield DataFinding(
            "D4",
            "vocabulary fitted on test",
            name,
            len(found) / len(documents),
            count_of(len(found), len(documents)),
            "0",
            RED if found else PASS,
            "test items that are not in the training split, but in the text that the vocabulary is made from: their"
            " words are never unknown."
            if found
            else "the vocabulary is made from text that holds no further test item.",
            first_few(map(quote, found)),
        )


def _labels_fitted(dealt: Dealt, fitted: Sequence[str]) -> DataFinding:
    lines = [line for line in fitted if "\t" in line and dealt.recipe.tokens.fit == "course"]
    return DataFinding(
        "D4l",
        "labels in the vocabulary",
        "train",
        len(lines) / len(fitted),
        count_of(len(lines), len(fitted)),
        "0",
        RED if lines else PASS,
        "lines that the vocabulary is made from with their label column."
        if lines
        else "no label column was fitted on.",
    )


def _unknown_trained(dealt: Dealt, tokenizer: Tokenizer) -> DataFinding:
    count = int(tokenizer.facts["unknown_tokens"])
    bad = RED if dealt.recipe.task == "lm" else AMBER
    return DataFinding(
        "P3",
        "unknown word never trained",
        "train",
        float(count),
        f"{count:,} tokens",
        "> 0",
        PASS if count else bad,
        "the unknown token occurs in training, so a model can learn what to expect of it."
        if count
        else "every training word has an entry, so the unknown token is never trained and each unknown word costs a"
        " random amount (raise tokens.min_count).",
    )


def _unknown_shares(dealt: Dealt, tokenizer: Tokenizer) -> Iterator[DataFinding]:
    train = unknown_share(dealt.splits.train, tokenizer)
    for name, documents in dealt.splits.tests.items():
        share = unknown_share(documents, tokenizer)
        yield DataFinding(
            "D6u",
            "unknown words",
            name,
            share,
            f"{share:.1%} (train {train:.1%})",
            f"train + {MORE_UNKNOWN:.0%}",
            AMBER if share > train + MORE_UNKNOWN else REPORT,
            "tokens of the test set that the vocabulary does not hold.",
        )


def unknown_share(documents: Sequence[Document], tokenizer: Tokenizer) -> float:
    """On documents evenly spread over the set, where it is large."""
    chosen = documents[:: -(-len(documents) // MOST)] if len(documents) > MOST else documents
    rows = tokenizer.encode([document.text for document in chosen])
    tokens = sum(map(len, rows))
    return sum(row.count(tokenizer.unknown or 0) for row in rows) / max(1, tokens)
