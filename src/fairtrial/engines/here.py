"""One job after another, in this process: nothing to set up, nothing between the user and a debugger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fairtrial.engines.job import Answer, Hear, Job, News, Stop, do


class Here:
    name = "here"
    width = 1

    def run(self, jobs: Sequence[Job], hear: Hear, stop: Stop) -> Iterator[Answer]:
        for job in jobs:
            if stop():
                return
            hear(News(job, "begin"))
            yield do(job, partial(_pass_on, job, hear), stop)


def _pass_on(job: Job, hear: Hear, kind: str, facts: dict[str, Any]) -> None:
    hear(News(job, kind, facts))
