"""All that is to be said of a classifier's mistakes on one test set, as plain values for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairtrial.judge.interval import wilson
from fairtrial.look.calibration import calibrate, class_scores, confident_mistakes
from fairtrial.look.telling import gradient_times_input, leave_one_out, telling_words
from fairtrial.model.network import Classifier
from fairtrial.text.contamination import find_copies
from fairtrial.text.corpus import Document
from fairtrial.text.tokenizer import Tokenizer
from fairtrial.train.score_classify import confusion, log_probabilities, macro_f1

MOST_TEXTS = 1000  # in which telling words are looked for; evenly spread where there are more
LEAST_TIMES = 5  # a word that stands in fewer places is an anecdote


def errors_of(
    network: Classifier,
    tokenizer: Tokenizer,
    documents: Sequence[Document],
    rows: Sequence[np.ndarray],
    labels: np.ndarray,
    names: Sequence[str],
    *,
    known: Sequence[str] = (),
    bins: int = 10,
    most: int = 10,
    telling: bool = True,
    tell: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """`known`: the training texts; what stands in them tests memory, so the rest is scored apart. `tell` hears how many
    texts have been searched for telling words."""
    log_p = log_probabilities(network, rows, tokenizer.pad)
    guesses = log_p.argmax(1)
    counts = confusion(labels, guesses, len(names))
    right = int((guesses == labels).sum())
    copied = find_copies(known, [each.text for each in documents]) > 0
    scores = zip(names, class_scores(counts), strict=True)
    found: dict[str, Any] = {
        "items": len(labels),
        "accuracy": right / len(labels),
        "interval": list(wilson(right, len(labels))),
        "macro_f1": macro_f1(counts),
        "confusion": counts.tolist(),
        "classes": [{"label": name, **asdict(score)} for name, score in scores],
        "calibration": asdict(calibrate(log_p, labels, bins)),
        "copies": int(copied.sum()),
        "clean": _clean(log_p[~copied], labels[~copied], bins) if copied.any() and not copied.all() else None,
        "mistakes": [
            {
                "text": documents[item].text,
                "place": documents[item].place,
                "true": names[labels[item]],
                "guess": names[guesses[item]],
                "confidence": float(np.exp(log_p[item].max())),
                "share_of_truth": float(np.exp(log_p[item, labels[item]])),
                "copy": bool(copied[item]),
            }
            for item in confident_mistakes(log_p, labels, most)
        ],
    }
    if telling:
        found["telling"] = _telling(network, tokenizer, rows, guesses, names, most, tell)
    return found


def _clean(log_p: np.ndarray, labels: np.ndarray, bins: int) -> dict[str, Any]:
    """The score of what does not stand in the training text."""
    right = int((log_p.argmax(1) == labels).sum())
    return {
        "items": len(labels),
        "accuracy": right / len(labels),
        "interval": list(wilson(right, len(labels))),
        "expected_error": calibrate(log_p, labels, bins).expected_error,
    }


def _telling(
    network: Classifier,
    tokenizer: Tokenizer,
    rows: Sequence[np.ndarray],
    guesses: np.ndarray,
    names: Sequence[str],
    most: int,
    tell: Callable[[int], None],
) -> dict[str, Any]:
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_TEXTS)).round().astype(int))
    texts, answers = [rows[item] for item in chosen], [int(guesses[item]) for item in chosen]
    nothing = tokenizer.unknown if tokenizer.unknown is not None else tokenizer.pad
    ways = {
        "gradient_times_input": gradient_times_input(network, texts, answers, tokenizer.pad),
        "leave_one_out": leave_one_out(network, texts, answers, tokenizer.pad, nothing, tell),
    }
    words = [tokenizer.words(row) for row in texts]
    marks = tokenizer.words(mark for mark in (tokenizer.start, tokenizer.stop) if mark is not None)
    least = min(LEAST_TIMES, max(1, len(texts) // 20))
    found: dict[str, Any] = {"texts": len(texts), "least_times": least}
    for way, told in ways.items():
        found[way] = {}
        for number, name in enumerate(names):
            own = [place for place, answer in enumerate(answers) if answer == number]
            own_words, own_told = [words[place] for place in own], [told[place] for place in own]
            best = telling_words(own_words, own_told, most=most, least_times=least, silent=marks)
            found[way][name] = [asdict(each) for each in best]
    return found
