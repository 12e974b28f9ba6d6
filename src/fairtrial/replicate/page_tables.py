"""The page's tables, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairtrial.judge.scores import score
from fairtrial.replicate.comparing import Decided
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.facts import published
from fairtrial.replicate.library import claims
from fairtrial.replicate.page_words import STREAM
from fairtrial.replicate.possible import told
from fairtrial.replicate.rules import Answer
from fairtrial.replicate.run import Replication
from fairtrial.report.rounding import with_interval


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(columns), line(["---"] * len(columns)), *map(line, rows)]


def answers_table(answers: Sequence[Answer]) -> list[str]:
    rows = []
    for each in answers:
        doubts = [*(f"unsound: {reason}" for reason in each.unsound), *each.weak]
        outcome, difference = f"**{each.outcome}**", size(each.decided)
        if each.at_one_rate is not None:
            outcome = f"at one rate **{each.at_one_rate.outcome}**; each at its own {outcome}"
            difference = f"at one rate {size(each.at_one_rate.decided)}; each at its own {difference or 'not run'}"
        rows.append([each.claim.report, each.claim.says, outcome, difference, "; ".join(doubts)])
    return table(["report", "claim", "retried", "difference", "the report's own comparison"], rows)


def size(decided: Decided | None) -> str:
    shown = decided.shown() if decided else None
    if shown is None or decided is None:
        return ""
    first, low, high = (f"{each:+.1f}" for each in shown)
    unit = "% perplexity" if decided.shown_unit == "% perplexity" else f" {decided.shown_unit}"
    return f"{first}{unit} [{low}, {high}]"


def printed_table(found: Replication, items: int) -> list[str]:
    """Whether the accuracies that the reports print can be at all."""
    rows = [
        [row["report"], f"{printed} %", told(printed, items)]
        for row in published()["printed"]
        for printed in row["accuracies"]
        if row["report"] in found.reports
    ]
    return table(["report", "printed", "right answers"], rows) if rows else []


def flaws_table(found: Replication) -> list[str]:
    """What was coded beside what was meant, with what the passport says of both."""
    pairs: dict[tuple[str, str, str], str] = {}
    rebuilt = {claim.as_coded for claim in claims() if claim.reconstructed}
    for claim in claims():
        if claim.as_coded and claim.report in found.reports:
            pairs[claim.study, claim.as_coded, claim.variant] = claim.report
    if "r4" in found.reports:
        pairs["lm1b-lm", "re-weight by row", "re-weight causal"] = "r4"
    if "r0" in found.reports:
        pairs["speeches-classify", "learned, normed stream", "learned"] = "r0"
    rows = []
    for (study, coded, meant), report in pairs.items():
        evidence = found.evidences.get(study)
        if evidence is None or not evidence.has(coded, meant):
            continue
        what_coded = "reconstructed" if coded in rebuilt else "another form" if report == "r4" else "as coded"
        for name, what in ((coded, what_coded), (meant, "as meant")):
            rows.append([report, study, what, name, passport_words(evidence, name), headline(evidence, name)])
    if not rows:
        return []
    columns = ["report", "study", "", "variant", "passport", "score, all test sets"]
    return table(columns, rows) + (["", STREAM] if "r0" in found.reports else [])


def passport_words(evidence: Evidence, variant: str) -> str:
    passport = evidence.outcomes.passports.get(variant, {})
    failed = passport.get("failed", [])
    return f"**{passport.get('level', 'none')}**" + (f": {'; '.join(failed)}" if failed else "")


def headline(evidence: Evidence, variant: str) -> str:
    outcomes = evidence.pooled(variant)
    status = evidence.status()
    keep = np.ones(outcomes.items, bool)
    if status is not None and evidence.basis()["basis"] == "clean":
        keep = status == 0
    shown = score(evidence.outcomes.metric, outcomes, keep, evidence.clusters())
    unit = "% of clean items" if evidence.basis()["basis"] == "clean" else "%"
    figure = with_interval(shown["mean"], shown["low"], shown["high"])
    return f"{figure} {unit}" if evidence.outcomes.metric == "accuracy" else f"perplexity {figure}"


def alone_table(alone: dict[str, list[tuple[float, float]]]) -> list[str]:
    rows = []
    for name, seeds in alone.items():
        one, other = (float(np.exp(np.log(column).mean())) for column in zip(*seeds, strict=True))
        rows.append([name, str(len(seeds)), f"{one:,.1f}", f"{other:,.1f}", f"{other / one:,.3g}"])
    return table(["variant", "seeds", "together", "alone", "alone / together"], rows)


def marks_table(found: Replication) -> list[str]:
    rows = []
    for evidence in found.everything:
        for variant, records in evidence.records.items():
            if records:
                marks = evidence.marks(variant)
                prints = [f"`{marks['recipe']}`", f"`{marks['weights']}`", marks["code"]]
                rows.append([evidence.folder, variant, str(len(records)), *prints])
    data = {
        name: digest for each in found.evidences.values() for name, digest in each.plan.grounds[each.task].files.items()
    }
    files = [[f"`{name}`", f"`{digest[:16]}`"] for name, digest in sorted(data.items())]
    shown = files if len(files) <= 20 else []  # the embedded corpus has a file for each speech
    return [
        *table(["study", "variant", "seeds", "recipe", "weights", "code"], rows),
        *(["", *table(["data file", "sha256"], shown)] if shown else []),
    ]
