"""The leak audit: an audit that every variant passes before anyone believes its number."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtrial.audit.run import audit_plans
    from fairtrial.audit.subject import plans_of_part

__all__ = ["audit_plans", "plans_of_part"]
MODULES = {"audit_plans": "run", "plans_of_part": "subject"}


def __getattr__(name: str) -> object:
    """Lazily: these modules import torch."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
