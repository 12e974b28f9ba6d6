"""Jobs in processes of their own: the same bits as here, and no crash reaches another."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines import Ending, Engine, InProcess, Job, JobResult
from fairtrial.engines.processes import Processes, usable_cores
from fairtrial.errors import Busy, Interrupted
from fairtrial.events import JobEvent, JobNotice, JobStepped
from fairtrial.recipe import Recipe, write_recipe
from fairtrial.record import Record
from fairtrial.study.jobs import retry_while_locked
from fairtrial.trial import resume_trial

SAME = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")
PART = """
import os, signal, time
from fairtrial.model.part import Part, parts

@parts.add("{name}")
class Mine(Part):
    def embed(self, x, positions):
        {act}
        return x
"""
ACTS = {
    "leaves": "os._exit(3)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "raises": "raise ValueError('no such luck')",
    "sleeps": "time.sleep(100_000)",
}


@pytest.fixture
def job(tiny_recipe: Callable[..., Recipe], tmp_path: Path) -> Callable[..., Job]:
    def make(name: str, *settings: str, act: str = "", seconds: float | None = None) -> Job:
        recipe = tiny_recipe("classify", *settings, *([f"parts=[{name}]"] if act else []))
        plugins: tuple[str, ...] = ()
        if act:
            path = tmp_path / f"{name}.py"
            path.write_text(PART.format(name=name, act=act))
            plugins = (str(path),)
        return Job((name, "x", "seed 3"), "trial", write_recipe(recipe), 3, str(tmp_path / name), plugins, seconds)

    return make


def run(engine: Engine, jobs: list[Job], stop: Callable[[], bool] = lambda: False) -> dict[str, JobResult]:
    return {result.job.key[0]: result for result in engine.run(jobs, lambda event: None, stop)}


def test_a_process_of_its_own_gives_the_same_bits(job: Callable[..., Job]) -> None:
    results = run(InProcess(), [job("here")]) | run(Processes(2), [job("there"), job("also")])
    assert not [result.error for result in results.values() if result.error]
    for name in SAME:
        contents = {(Path(result.job.folder) / name).read_bytes() for result in results.values()}
        assert len(contents) == 1, name


def test_where_nothing_can_be_forked_a_new_python_gives_the_same_bits(
    job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows and macOS. It imports nothing from the working folder either."""
    monkeypatch.setattr("fairtrial.engines.processes.START", "spawn")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pickle.py").write_text("raise RuntimeError('imported from the working folder')")
    results = run(InProcess(), [job("here")]) | run(Processes(1), [job("there")])
    assert not [result.error for result in results.values() if result.error]
    for name in SAME:
        contents = {(Path(result.job.folder) / name).read_bytes() for result in results.values()}
        assert len(contents) == 1, name


def test_a_process_ends_when_its_caller_lets_go_of_its_standard_input() -> None:
    """Which every system does for a caller that was killed."""
    code = "import sys, time; from fairtrial.environment import end_with_caller; end_with_caller()"
    code += "; print(repr(sys.stdin.read()), flush=True); time.sleep(100)"
    held, ours = os.pipe()
    with subprocess.Popen([sys.executable, "-c", code], stdin=held, stdout=subprocess.PIPE, text=True) as process:
        os.close(held)
        assert process.stdout is not None
        assert process.stdout.readline() == "''\n", "who reads it finds nothing"
        assert process.poll() is None
        os.close(ours)
        assert process.wait(20) == 1


def test_whatever_happens_to_one_job_the_others_are_done(job: Callable[..., Job]) -> None:
    jobs = [job(name, act=act, seconds=3.0 if name == "sleeps" else None) for name, act in ACTS.items()]
    results = run(Processes(2), [*jobs[:2], job("good"), *jobs[2:], job("fine")])
    assert results["good"].value is not None
    assert results["fine"].value is not None
    assert "ended with code 3" in results["leaves"].error
    assert "SIGKILL" in results["killed"].error
    assert results["raises"].error == "ValueError: no such luck"
    assert "longer than 3 seconds" in results["sleeps"].error
    assert not any(results[name].ending is Ending.MISTAKE for name in ACTS)


def test_a_plugins_endless_thread_holds_nothing_up(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtrial.engines.processes.LAST_SECONDS", 0.5)
    endless = "import threading; threading.Thread(target=time.sleep, args=(100_000,)).start()"
    result = run(Processes(1), [job("endless", act=endless)])["endless"]
    assert result.value is not None


def test_a_users_mistake_is_told_as_one(job: Callable[..., Job]) -> None:
    result = run(Processes(1), [job("typo", "parts=[rpoe]")])["typo"]
    assert result.ending is Ending.MISTAKE
    assert "did you mean 'rope'" in result.error


def test_when_asked_to_stop_jobs_save_what_they_have_and_no_other_begins(job: Callable[..., Job]) -> None:
    heard: list[JobEvent] = []
    long = "training.duration=100000 steps"
    jobs = [job("first", long), job("second", long), job("third", long)]

    def stepping() -> bool:
        return sum(isinstance(event, JobStepped) and event.step > 0 for event in heard) >= 2

    results = list(Processes(2).run(jobs, heard.append, stepping))
    assert all(result.ending is Ending.STOPPED for result in results)
    assert {event.key[0] for event in heard} == {"first", "second"}
    assert not Path(jobs[2].folder).exists()
    steps = [len(Record.open(Path(each.folder)).events()) for each in jobs[:2]]
    assert min(steps) > 1
    assert list((Path(jobs[0].folder) / "checkpoints").glob("step-*.safetensors"))


def test_a_trial_that_is_sent_sigterm_saves_and_has_not_failed(job: Callable[..., Job]) -> None:
    def on_event(event: JobEvent) -> None:
        if isinstance(event, JobStepped) and event.step > 0:
            for child in multiprocessing.active_children():
                child.terminate()

    (result,) = Processes(1).run([job("alone", "training.duration=100000 steps")], on_event, lambda: False)
    assert result.ending is Ending.STOPPED
    assert result.error.startswith("stopped after step")
    assert list((Path(result.job.folder) / "checkpoints").glob("step-*.safetensors"))


def test_jobs_end_when_whoever_asked_goes_away(job: Callable[..., Job]) -> None:
    class Gone(Exception):
        pass

    def on_event(event: JobEvent) -> None:
        if isinstance(event, JobStepped):
            raise Gone

    running: Iterator[JobResult] = Processes(1).run(
        [job("alone", "training.duration=100000 steps")], on_event, lambda: False
    )
    with pytest.raises(Gone):
        next(running)
    folder = Path(job("alone").folder)
    with pytest.raises(Interrupted, match="stopped after step"):  # the lock is free: nobody writes any more
        retry_while_locked(lambda: resume_trial(folder, stop=lambda: True, ignore_changes=True))


@pytest.mark.second
@pytest.mark.parametrize("whom", ["the job", "the fork server"])
def test_a_killed_process_is_run_once_more_to_the_same_bits(whom: str, job: Callable[..., Job]) -> None:
    killed, notices = list[int](), list[str]()

    def on_event(event: JobEvent) -> None:
        if isinstance(event, JobNotice):
            notices.append(event.text)
        if isinstance(event, JobStepped) and event.step > 0 and not killed:
            server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
            killed.extend([server] if whom == "the fork server" else [each.pid for each in children()])
            for number in killed:
                os.kill(number, signal.SIGKILL)

    lasts = "training.duration=800 steps"  # long enough to tell of a step while it trains
    (result,) = Processes(1).run([job("alone", lasts)], on_event, lambda: False)
    assert killed
    assert result.error == ""
    assert any("it runs once more" in text for text in notices)
    (whole,) = InProcess().run([job("whole", lasts)], lambda event: None, lambda: False)
    for name in SAME:
        assert (Path(result.job.folder) / name).read_bytes() == (Path(whole.job.folder) / name).read_bytes()


def children() -> list[Any]:
    return multiprocessing.active_children()


ORPHAN = """
import json, os, sys
from fairtrial.engines import Job
from fairtrial.engines.processes import Processes
job, preload = Job(**json.loads(sys.argv[1])), sys.argv[2:]
stop = lambda: "STOP_FILE" in os.environ and os.path.exists(os.environ["STOP_FILE"])
for _ in Processes(1, preload).run([job], lambda event: print(event.kind, flush=True), stop):
    pass
print("ended", flush=True)
"""


@contextmanager
def start_caller(job: Job, *preload: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Nothing of it stays, whatever the test finds."""
    words, where = [sys.executable, "-c", ORPHAN, json.dumps(asdict(job)), *preload], os.environ | environment
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=where, start_new_session=True) as caller:
        try:
            yield caller
        finally:
            with suppress(ProcessLookupError):
                os.killpg(caller.pid, signal.SIGKILL)


@pytest.mark.second
@pytest.mark.parametrize("act", ["", ACTS["sleeps"]], ids=["between steps", "within one that never ends"])
def test_no_process_is_left_when_the_one_that_started_it_is_killed(act: str, job: Callable[..., Job]) -> None:
    endless = job("endless", "training.duration=100000 steps", act=act)
    with start_caller(endless) as caller:
        assert caller.stdout is not None
        if act:
            while not (Path(endless.folder) / "trial.json").exists():
                assert caller.poll() is None
                time.sleep(0.05)
        else:
            assert any(line == "step\n" for line in caller.stdout)
        caller.kill()
        record = Record.open(Path(endless.folder))

        def is_free() -> bool:  # once the orphan has ended
            try:
                with record.hold():
                    return True
            except Busy:
                return False

        assert soon(is_free)


@pytest.mark.skipif(
    sys.platform != "linux", reason="no other system has a fork server, or ends a process with its parent"
)
def test_a_fork_server_that_is_loading_ends_with_the_one_that_started_it(
    job: Callable[..., Job], tmp_path: Path
) -> None:
    code = f"import os, time\nopen({str(tmp_path / 'loading')!r}, 'w').write(str(os.getpid()))\ntime.sleep(100_000)\n"
    (tmp_path / "endless_import.py").write_text(code)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    where = {"PYTHONPATH": paths, "STOP_FILE": str(tmp_path / "stop")}
    with start_caller(job("never"), "endless_import", **where) as caller:
        while not (tmp_path / "loading").exists() or not (tmp_path / "loading").read_text():
            assert caller.poll() is None
            time.sleep(0.05)
        caller.kill()
        server = Path("/proc") / (tmp_path / "loading").read_text() / "stat"

        def has_ended() -> bool:
            try:
                return ") Z " in server.read_text()
            except OSError:
                return True

        assert soon(has_ended)


def soon(happens: Callable[[], bool]) -> bool:
    """Two seconds are promised; a busy machine gets a minute."""
    until = time.monotonic() + 60
    while not (happened := happens()) and time.monotonic() < until:
        time.sleep(0.05)
    return happened


def test_each_process_has_one_thread_and_a_peak_of_its_own(job: Callable[..., Job]) -> None:
    before = os.environ.get("OMP_NUM_THREADS")
    (result,) = Processes(1).run([job("one")], lambda event: None, lambda: False)
    record = Record.open(Path(result.job.folder))
    assert record.trial.environment.threads == 1
    last = record.clock()[-1]
    assert last.what == "end"
    assert 50 < (last.peak_memory_mb or 0) < 5000
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_as_many_as_cores_by_default() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert Processes().width == usable_cores() >= 1
    assert signal.getsignal(signal.SIGINT) is before  # a user's Ctrl-C stays the user's


def test_ctrl_c_while_the_fork_server_loads_torch_does_not_end_it() -> None:
    code = """
import multiprocessing, os, signal, time
from multiprocessing import forkserver
from fairtrial.engines.processes import without_ctrl_c
signal.signal(signal.SIGINT, lambda *_: print("heard", flush=True))
context = multiprocessing.get_context("forkserver")
with without_ctrl_c():
    forkserver.ensure_running()
os.killpg(0, signal.SIGINT)
process = context.Process(target=print, args=("served",))
process.start()
process.join()
print(process.exitcode, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    said = subprocess.run(
        [sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert said.stdout.split() == ["heard", "served", "0", "set()"]
    assert said.stderr == ""
