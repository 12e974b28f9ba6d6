"""Studies: variants x seeds, run on any engine, judged together."""

from fairtrial.study.artifacts import finished, gather, passport_path, read_json
from fairtrial.study.design import Settings, Study, Variant, load_study, study_from, write_study
from fairtrial.study.plan import OnEvent, Plan, calibrate, make_plan, missing, write_plan
from fairtrial.study.run import Wishes, describe, refuse_strange_folder, run_study
from fairtrial.study.search import remembered, tries_of

__all__ = [
    "OnEvent",
    "Plan",
    "Settings",
    "Study",
    "Variant",
    "Wishes",
    "calibrate",
    "describe",
    "finished",
    "gather",
    "load_study",
    "make_plan",
    "missing",
    "passport_path",
    "read_json",
    "refuse_strange_folder",
    "remembered",
    "run_study",
    "study_from",
    "tries_of",
    "write_plan",
    "write_study",
]
