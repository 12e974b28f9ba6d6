"""Studies: variants x seeds, run on any engine, judged together."""

from fairtrial.study.artifacts import by_set, gather, stacked
from fairtrial.study.design import Study, recipe_of
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import OnEvent, Plan, make_plan, missing
from fairtrial.study.run import Options, describe, plan_study, run_study
from fairtrial.study.search import earlier_choice, tries_of
from fairtrial.study.tables import load_study, study_from, write_study

__all__ = [
    "OnEvent", "Options", "Plan", "Study", "StudyFolder", "by_set", "describe", "earlier_choice", "gather",
    "load_study", "make_plan", "missing", "plan_study", "recipe_of", "run_study", "stacked", "study_from", "tries_of",
    "write_study",
]  # fmt: skip
