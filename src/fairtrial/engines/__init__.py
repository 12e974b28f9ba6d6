"""Engines: where jobs run. In this process, on this machine's cores, on a Ray cluster; the results are the same."""

from fairtrial.engines.job import Engine, Job, JobResult, Stop, open_engine

__all__ = ["Engine", "Job", "JobResult", "Stop", "open_engine"]
