"""Engines: where jobs run. In this process or on this machine's cores; the results are the same."""

from fairtrial.engines.job import Drawing, Ending, Engine, Job, JobResult, OnEvent, Stop, open_engine, run_job

__all__ = ["Drawing", "Ending", "Engine", "Job", "JobResult", "OnEvent", "Stop", "open_engine", "run_job"]
