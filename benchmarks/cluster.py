"""A Ray cluster of three machines, of which one is lost and another joins: a study of 40 trials must end with the
verdict that it has on local processes, to the last digit.

    python benchmarks/cluster.py [--seeds 10] [--steps 200]       # Linux, as root, with ray installed: a few minutes

The machines are three `ray start` here: a head that runs no trial, and workers of one core for whom the folder of the
study is hidden (a mount of their own), so that all they know has travelled. Prints what each way took and what a trial
costs the driver.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ray.util import get_node_ip_address

from fairtrial.data import read
from fairtrial.recipe import Data

PORT = "6399"
PART = """from fairtrial.model.part import Part, parts


@parts.add("twice")
class Twice(Part):
    def embed(self, x, positions):
        return x * 2
"""
STUDY = """name = "on a cluster"
tasks = ["lm"]
data = "text.txt"
seeds = {seeds}
[set]
"shape.layers" = 1
"shape.width" = 32
"shape.hidden" = 64
"training.batch" = 8
"training.duration" = "{steps} steps"
[variants.learned]
parts = ["learned"]
[variants.rope]
parts = ["rope"]
[variants.alibi]
parts = ["alibi"]
[variants.twice]
parts = ["learned", "twice"]
with = ["twice.py"]
"""
RECORD = ("result.json", "events.jsonl", "model.safetensors", "outcomes.safetensors", "recipe.toml")
ENVIRONMENT = os.environ | {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0",
    "RAY_health_check_period_ms": "500", "RAY_health_check_failure_threshold": "4",
}  # fmt: skip


def ray_start(*words: str, hidden: Path | None = None) -> subprocess.Popen[bytes]:
    ray = [str(Path(sys.executable).with_name("ray")), "start", "--block", *words]
    if hidden is not None:
        ray = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$@"', "sh", *ray]
    return subprocess.Popen(ray, env=ENVIRONMENT, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)  # fmt: skip


def worker(workspace: Path) -> subprocess.Popen[bytes]:
    return ray_start("--address", f"{get_node_ip_address()}:{PORT}", "--num-cpus", "1", hidden=workspace)


def end(node: subprocess.Popen[bytes]) -> None:
    """A machine that is lost: everything of it at once."""
    os.killpg(node.pid, signal.SIGKILL)
    node.wait()


def run_study(workspace: Path, out: str, *words: str, on_done: Any = lambda count: None) -> tuple[float, float]:
    """Seconds, and the processor's seconds of the driver."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "fairtrial",
        "study",
        str(workspace / "study.toml"),
        "--out",
        str(workspace / out),
        "--json",
    ]
    began, before, done = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN), 0
    with subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            facts = json.loads(line)
            if facts.get("event") == "failed":
                raise SystemExit(line)
            if facts.get("event") == "done" and facts.get("work") == "trial":
                done += 1
                on_done(done)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, cpu


def without_times(path: Path) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads(path.read_text())
    verdict.pop("checksum")
    for task in verdict["tasks"].values():
        for cost in task["cost"].values():
            for name in ("seconds_per_step", "seconds_ratio", "peak_memory_mb"):
                cost.pop(name)
    return verdict


def trial_seconds(study: Path) -> list[float]:
    found = []
    for path in study.glob("trials/*/*/*/clock.jsonl"):
        times = [json.loads(line)["time"] for line in path.read_text().splitlines()]
        found.append(times[-1] - times[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200)
    asked = parser.parse_args()
    workspace = Path(tempfile.mkdtemp(prefix="cluster-"))
    sentences = [each.text for each in read(Data(), "lm").train][:3000]
    (workspace / "text.txt").write_text("\n\n".join(sentences) + "\n")
    (workspace / "twice.py").write_text(PART)
    (workspace / "study.toml").write_text(STUDY.format(seeds=asked.seeds, steps=asked.steps))
    count = 4 * asked.seeds
    nodes = [ray_start("--head", "--port", PORT, "--num-cpus", "0", "--include-dashboard", "false")]
    told: list[str] = []
    try:
        time.sleep(8)
        nodes += [worker(workspace), worker(workspace)]
        time.sleep(8)

        def lose_and_add(done: int) -> None:
            if done == count // 4:
                end(nodes[1])
                told.append(f"a worker was killed after {done} trials")
            if done == count // 2:
                nodes.append(worker(workspace))
                told.append(f"another joined after {done}")

        far, driver = run_study(
            workspace, "far", "--engine", "ray", "--address", f"{get_node_ip_address()}:{PORT}", on_done=lose_and_add
        )
    finally:
        for node in nodes:
            if node.poll() is None:
                end(node)
        subprocess.run([Path(sys.executable).with_name("ray"), "stop", "--force"], capture_output=True, check=False)
    near, _ = run_study(workspace, "near", "--jobs", "2")
    same = without_times(workspace / "far" / "verdict.json") == without_times(workspace / "near" / "verdict.json")
    records = [
        path.parent.relative_to(workspace / "near") for path in (workspace / "near").glob("trials/*/*/*/result.json")
    ]
    equal = sum(
        all(
            (workspace / "far" / each / name).read_bytes() == (workspace / "near" / each / name).read_bytes()
            for name in RECORD
        )
        for each in records
    )
    print(f"{len(records)} trials; {'; '.join(told)}")
    print(f"same verdict: {same}; records with the same bits: {equal} of {len(records)}")
    for name, seconds, out in (("local processes", near, "near"), ("Ray", far, "far")):
        print(f"{name}: {seconds:.0f} s, {sum(trial_seconds(workspace / out)):.0f} s of them in trials")
    print(f"the driver: {1000 * driver / count:.0f} ms of processor time for each trial, all else of a study included")
    if not same or equal < len(records):
        raise SystemExit(f"they differ: see {workspace}")
    shutil.rmtree(workspace)


if __name__ == "__main__":
    main()
