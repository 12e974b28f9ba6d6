"""fairtrial: a fair trial for every transformer idea.

>>> import fairtrial as ft
>>> run = ft.train("classify", data=reviews, steps=5, layers=1, width=16, hidden=16, quiet=True)
>>> sorted(run.metrics)
['test', 'validation']
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # not typing's: `python -m fairtrial` comes here while the working folder is still on the path
if TYPE_CHECKING:
    from typing import Any

    from fairtrial.api import RunOptions as RunOptions
    from fairtrial.api import StudyOptions as StudyOptions
    from fairtrial.api import assert_not_worse as assert_not_worse
    from fairtrial.api import audit as audit
    from fairtrial.api import audit_data as audit_data
    from fairtrial.api import baseline as baseline
    from fairtrial.api import catalogue as catalogue
    from fairtrial.api import clean as clean
    from fairtrial.api import compare as compare
    from fairtrial.api import compare_curves as compare_curves
    from fairtrial.api import compare_runs as compare_runs
    from fairtrial.api import demo as demo
    from fairtrial.api import doctor as doctor
    from fairtrial.api import explore as explore
    from fairtrial.api import finetune as finetune
    from fairtrial.api import grade as grade
    from fairtrial.api import load as load
    from fairtrial.api import parameters as parameters
    from fairtrial.api import power as power
    from fairtrial.api import resume as resume
    from fairtrial.api import show as show
    from fairtrial.api import study as study
    from fairtrial.api import train as train
    from fairtrial.api import tune as tune
    from fairtrial.api import verdict as verdict
    from fairtrial.api import verify as verify
    from fairtrial.errors import BadInput as BadInput
    from fairtrial.errors import FairtrialError as FairtrialError
    from fairtrial.errors import Interrupted as Interrupted
    from fairtrial.gate.actions import gate as gate
    from fairtrial.gate.actions import gate_add as gate_add
    from fairtrial.gate.actions import gate_confirm as gate_confirm
    from fairtrial.gate.actions import gate_final as gate_final
    from fairtrial.gate.actions import gate_new as gate_new
    from fairtrial.gate.actions import gate_next as gate_next
    from fairtrial.gate.actions import gate_run as gate_run
    from fairtrial.gate.actions import gate_self_test as gate_self_test
    from fairtrial.gate.state import Gate as Gate
    from fairtrial.gate.state import ProposalState as ProposalState
    from fairtrial.gate.state import SelfTest as SelfTest
    from fairtrial.inspection.sanity import SanityCheck as SanityCheck
    from fairtrial.inspection.sanity import sanity_check as sanity_check
    from fairtrial.model.external import optimizer as optimizer
    from fairtrial.model.part import Part as Part
    from fairtrial.model.part import part as part
    from fairtrial.recipe import Recipe as Recipe
    from fairtrial.results.audit import Audit as Audit
    from fairtrial.results.outcomes import Outcomes as Outcomes
    from fairtrial.results.study import Study as Study
    from fairtrial.results.values import Comparison as Comparison
    from fairtrial.results.values import Interval as Interval
    from fairtrial.results.values import Metric as Metric
    from fairtrial.results.values import Question as Question
    from fairtrial.results.values import Score as Score
    from fairtrial.results.values import Speedup as Speedup
    from fairtrial.results.values import Speedups as Speedups
    from fairtrial.results.values import TaskVerdict as TaskVerdict
    from fairtrial.results.values import Verdict as Verdict
    from fairtrial.results.values import VerdictKind as VerdictKind
    from fairtrial.run import Run as Run

__version__ = "0.3.0"

FUNCTIONS = (
    "train tune resume load show finetune study demo verdict audit audit_data baseline clean catalogue parameters"
    " assert_not_worse compare compare_runs compare_curves power explore verify grade doctor"
)
GATE = "gate gate_new gate_add gate_run gate_next gate_confirm gate_final gate_self_test"
# public name -> the module that has it; imported when it is first used, so that `import fairtrial` is fast
PUBLIC = {
    **dict.fromkeys(
        [*FUNCTIONS.split(), "RunOptions", "StudyOptions"],
        "api",
    ),
    **dict.fromkeys(GATE.split(), "gate.actions"),
    **dict.fromkeys(["Gate", "ProposalState", "SelfTest"], "gate.state"),
    **dict.fromkeys(["Part", "part"], "model.part"),
    "optimizer": "model.external",
    **dict.fromkeys(["SanityCheck", "sanity_check"], "inspection.sanity"),
    "Recipe": "recipe",
    "Run": "run",
    **dict.fromkeys(
        "Verdict TaskVerdict Comparison Interval Metric Score Speedup Speedups VerdictKind Question".split(),
        "results.values",
    ),
    "Study": "results.study",
    "Outcomes": "results.outcomes",
    "Audit": "results.audit",
    **dict.fromkeys(["FairtrialError", "BadInput", "Interrupted"], "errors"),
}
EARLIER = {  # names of version 0.2
    "report": "verdict.write_page(path), or study.write_page(path)",
    "ensemble": "run.log_probabilities(), which gives what an ensemble averages",
    "cache": "nothing: the cache was removed",
}
__all__ = [*PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        earlier = f" since 0.3: use {EARLIER[name]}" if name in EARLIER else ""
        raise AttributeError(f"module 'fairtrial' has no attribute {name!r}{earlier}")
    value = getattr(import_module(f"fairtrial.{PUBLIC[name]}"), name)
    if PUBLIC[name] in ("api", "gate.actions", "inspection.sanity") and not isinstance(value, type):
        value = import_module("fairtrial.errors").with_checked_arguments(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class Package(ModuleType):
    """Public functions (`study`, `audit`, `explore`) have packages of their names: importing one does not hide them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in PUBLIC and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = Package
