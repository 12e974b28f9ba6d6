"""Text with a shade behind each piece: the stronger, the more surprising. For terminals, and in plain letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

Piece = tuple[str, float | None]  # text, nats; None: not counted

# nats from which a colour is used: black on ever deeper orange, so that it reads on light and dark terminals
SCALE = ((2.0, "#ffe8cc"), (4.0, "#ffcf99"), (6.0, "#ffb066"), (8.0, "#ff8a3d"), (10.0, "#f4622a"))


def colour_of(nats: float | None) -> str | None:
    """None: no colour."""
    found = None
    for least, colour in SCALE:
        if nats is not None and nats >= least:
            found = colour
    return found


def shaded(pieces: Sequence[Piece]) -> Text:
    from rich.text import Text

    text = Text()
    for piece, nats in pieces:
        colour = colour_of(nats)
        word = piece.rstrip()
        text.append(word, style=f"black on {colour}" if colour else "dim" if nats is None else "")
        text.append(piece[len(word) :])
    return text


def plain_shaded(pieces: Sequence[Piece]) -> str:
    """`word/5.2`: each piece with its nats; a dash where nothing is counted, `␣` for a space that is a token."""
    told = ((piece.strip() or "␣", "-" if nats is None else f"{nats:.1f}") for piece, nats in pieces)
    return " ".join(f"{word}/{nats}" for word, nats in told)


def legend() -> Text:
    from rich.text import Text

    text = Text("nats: ")
    text.append(" below 2 ")
    for least, colour in SCALE:
        text.append(f" {least:g}+ ", style=f"black on {colour}")
    return text
