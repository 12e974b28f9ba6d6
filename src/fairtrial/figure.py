"""What all figures share: one look, and the same bytes for the same numbers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMELESS: dict[str, dict[str, Any]] = {  # what a kind of file would say of its time and maker
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
LOOK: dict[str, Any] = {
    "text.parse_math": False,  # a user's words may hold dollars
    "svg.fonttype": "none",
    "svg.hashsalt": "fairtrial",
    "font.sans-serif": ["DejaVu Sans"],  # one font by name: every word of an SVG would carry the whole list
    "font.size": 8,
}


def our_look(more: dict[str, Any] | None = None) -> AbstractContextManager[None]:
    """Draw and write inside this; `more` are further settings of matplotlib."""
    import matplotlib

    settings: Any = {**LOOK, **(more or {})}  # matplotlib types every name
    return matplotlib.rc_context(settings)


def figure_bytes(figure: Figure, kind: str, dpi: float | str = "figure") -> bytes:
    file = BytesIO()
    figure.savefig(file, format=kind, dpi=dpi, metadata=TIMELESS[kind])
    return file.getvalue()
