"""Engines: where jobs run. In this process, on this machine's cores, on a Ray cluster; the results are the same."""

from fairtrial.engines.job import Engine, Job, JobResult, OnProgress, Stop, open_engine, run_job

__all__ = ["Engine", "Job", "JobResult", "OnProgress", "Stop", "open_engine", "run_job"]
