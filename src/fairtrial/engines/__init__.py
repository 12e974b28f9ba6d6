"""Engines: where jobs run. In this process, on this machine's cores, on a Ray cluster; the results are the same."""

from fairtrial.engines.job import Drawing, Engine, Job, JobResult, OnEvent, Stop, open_engine, run_job

__all__ = ["Drawing", "Engine", "Job", "JobResult", "OnEvent", "Stop", "open_engine", "run_job"]
