"""What a head does, in one line. The classes and their limits are told in docs/look.md; keep both alike."""

from __future__ import annotations

from dataclasses import dataclass

LEAD = 0.40  # least share on one place for a caption that names it
TIMES = 1.5  # ... and so many times what a head would give it that looks everywhere alike
STRIPE = 0.30
NEAR = 0.5  # mean distance, as a share of that of a head that looks everywhere alike
DIFFUSE = 0.85  # entropy, as a share of the most that is possible
ALIKE = 0.10  # shares that differ by less are alike


@dataclass(frozen=True)
class Habits:
    """Means over the rows of one head. None: no row had the choice."""

    entropy: float | None  # nats
    entropy_share: float | None  # of ln(words that may be seen)
    distance: float | None  # |query - key|, in words
    itself: float | None
    previous: float | None
    next: float | None
    first: float | None
    punctuation: float | None
    stripe: float | None  # what the most watched word of a text draws from each of the others
    stripe_word: str = ""  # that word, in most texts
    stripe_often: float = 0.0  # share of texts in which it is that word


PLACES = {"previous": "previous word", "next": "next word", "itself": "itself", "first": "first word"}


def caption(
    trained: Habits, untrained: Habits, uniform: Habits, before: str = "untrained", first: str = PLACES["first"]
) -> str:
    """One line, compared with the network before training; `before` says what it was then, and `first` what stands
    first in every text."""
    kind, value = kind_of(trained, uniform)
    kind_then, value_then = kind_of(untrained, uniform)
    alike = kind == kind_then and abs(value - value_then) < ALIKE
    end = f", as {before}" if alike else ""
    if kind in PLACES:
        return f"{first if kind == 'first' else PLACES[kind]}, {value:.0%}{end}"
    if kind == "punctuation":
        return f"punctuation, {value:.0%}{end}"
    if kind == "stripe":
        named = repr(trained.stripe_word) if trained.stripe_often > 0.5 else "one word of each text"
        return f"stripe on {named}, {value:.0%}{end}"
    if kind == "near":
        return f"near words, mean distance {trained.distance:.1f}{end}"
    if kind == "nothing":
        return "nothing to choose from"
    if not alike:
        end = f", {'sharper' if sharper(trained, untrained) else 'flatter'} than {before}"
    return f"{kind}{end}"


def kind_of(habits: Habits, uniform: Habits) -> tuple[str, float]:
    """(class, the number that put it there)"""
    if habits.entropy_share is None:
        return "nothing", 0.0
    shares = {name: (getattr(habits, name), getattr(uniform, name)) for name in (*PLACES, "punctuation")}
    leading = {name: share for name, (share, alike) in shares.items() if leads(share, alike, LEAD)}
    if leading:
        best = max(leading, key=lambda name: leading[name])
        return best, leading[best]
    if leads(habits.stripe, uniform.stripe, STRIPE):
        assert habits.stripe is not None
        return "stripe", habits.stripe
    if habits.distance is not None and uniform.distance and habits.distance <= NEAR * uniform.distance:
        return "near", habits.distance / uniform.distance
    return "diffuse" if habits.entropy_share >= DIFFUSE else "mixed", habits.entropy_share


def leads(share: float | None, alike: float | None, least: float) -> bool:
    return share is not None and alike is not None and share >= max(least, min(0.95, TIMES * alike))


def sharper(trained: Habits, untrained: Habits) -> bool:
    return (trained.entropy_share or 0.0) < (untrained.entropy_share or 0.0)
