"""Answers as plain values, for machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtrial.puzzles.frame import Array
from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.solve import Answer


def plain_answer(answer: Answer) -> dict[str, Any]:
    certificate, beside = answer.certificate, answer.least_squares
    return {
        **_shared(answer),
        "exact": answer.exact,
        "query_length": answer.norm,
        "length_allowed": answer.budget,
        "smallest_length": answer.smallest_norm,
        "best_weights": _list(answer.nearest),
        "certificate": {
            "direction": _list(certificate.direction),
            # every key wanted: there is no other key to lead
            "lead": certificate.lead if certificate.possible and np.isfinite(certificate.lead) else None,
            "base": _list(certificate.base),
            "balance": _list(certificate.balance),
        },
        "least_squares": {
            "scores": _list(beside.scores),
            "query": _list(beside.query),
            "weights": _list(beside.weights),
            "misplaced": beside.error,
        },
    }


def plain_replacement(answer: Replacement) -> dict[str, Any]:
    return {
        **_shared(answer),
        "place": answer.place,
        "key": _list(answer.key),
        "key_length": float(np.linalg.norm(answer.key)),
        "length_asked": answer.length,
        "smallest_length": answer.needed,
        "best_weights": _list(answer.best),
        "simple_way": {
            "what": answer.simple_way,
            "key": _list(answer.simple_key),
            "weights": _list(answer.simple_weights),
        },
    }


def _shared(answer: Answer | Replacement) -> dict[str, Any]:
    return {
        "ask": answer.ask,
        "possible": answer.possible,
        "scaled": answer.scaled,
        "keys": answer.keys.tolist(),
        "names": list(answer.names),
        "query": _list(answer.query),
        "wanted": _list(answer.target),
        "weights": _list(answer.weights),
        "precision": answer.precision,
        "wanted_precision": answer.wanted_precision,
        "misplaced": answer.error,
        "in_the_way": answer.in_the_way,
        "output": _list(answer.output),
        "wanted_output": _list(answer.wanted_output),
    }


def _list(numbers: Array | None) -> list[float] | None:
    return None if numbers is None else [float(number) for number in numbers]
