"""Runs the command line on small text of our own and gathers every number that comes out of it.

Only the command line and the files that it writes are used, so that modules may move freely. Everything runs in one
process of its own, in a folder of its own, with one thread: `python golden_runs.py make FOLDER`.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
RECIPES = HERE / "recipes"  # of version 0.2.0, whatever the defaults are today
sys.path.insert(0, str(HERE.parent))

from old_verdicts import GONE, old_form  # noqa: E402

from course_text import sentence, write_course  # noqa: E402
from fairtrial.cli.main import run  # noqa: E402
from forked import auditing_here  # noqa: E402

# Keys, tensor names, file names and enumerated values that were renamed since the values were stored: old -> new.
# A key is one component of a path such as `result/tests/test/nats`, or of a tensor's dotted name.
RENAMED = {
    "nats": "nll",
    "unknown_nats": "unknown_nll",
    "window_nats": "window_nll",
    "masked_nats": "masked_nll",
    "ledger": "rows",
}

# What two runs, machines or versions may tell differently, by key (with all that is inside).
NOT_COMPARED = {
    "format", "code", "environment", "model_sha256", "peak_memory_mb", "memory_mb", "bytes", "folder", "record",
    "records", "source", "recipe", "mark", "file", "files", "cores", "trial_seconds",
}  # fmt: skip
# Text is compared only where it is an enumeration, a label, or tokens that a model chose; sentences may be reworded.
COMPARED_TEXT = {"id", "verdict", "level", "task", "split", "event", "guess", "tokens", "words", "label", "labels"}

TINY = (
    "shape.layers=1", "shape.width=16", "shape.hidden=16", "shape.length=12", "shape.classifier_hidden=8",
    "training.batch=8", "training.learning_rate=0.01", "training.warmup_steps=1", "training.select_every=3 steps",
    "scoring.curve_every=4 steps",
)  # fmt: skip
# Fields of the default recipe for classifiers when the values were stored: it may change without them.
CLASSIFY = (
    "tokens.lowercase=false", "shape.dropout=0.3", "training.label_smoothing=0", "training.schedule=cosine",
)  # fmt: skip
TEXT = "We will build bridges for every child."


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Watched(io.StringIO):
    """Standard output; when this step is told on it, the process is asked to stop, as by Ctrl-C."""

    def __init__(self, stop_at: int | None) -> None:
        super().__init__()
        self.stop_at = stop_at

    def write(self, text: str) -> int:
        if self.stop_at is not None and re.search(rf'"step": {self.stop_at}\b', text):
            self.stop_at = None
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def command(*words: object, stop_at: int | None = None) -> Said:
    """One command line, run in this process."""
    out, err, before, code = Watched(stop_at), io.StringIO(), sys.argv, 0
    sys.argv = ["fairtrial", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv = before
    return Said(code, out.getvalue(), err.getvalue())


def need(*words: object, codes: tuple[int, ...] = (0,), stop_at: int | None = None) -> str:
    """The output of a command that must end with one of these exit codes."""
    said = command(*words, stop_at=stop_at)
    if said.code not in codes:
        raise RuntimeError(f"fairtrial {' '.join(map(str, words))}\nended with {said.code}:\n{said.out}\n{said.err}")
    return said.out


def answers(*words: object, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """The JSON lines that a command prints, flattened, and its exit code."""
    said = command(*words, "--json")
    if said.code not in codes:
        raise RuntimeError(f"fairtrial {' '.join(map(str, words))}\nended with {said.code}:\n{said.out}\n{said.err}")
    lines = [json.loads(line) for line in said.out.splitlines() if line.startswith(("{", "["))]
    numbers = flatten(lines, "json")
    if "errors" in words:  # 0.2.0 called influential words `telling`
        numbers = {name.replace("/words/", "/telling/"): number for name, number in numbers.items()}
    return {"exit code": said.code, **numbers}


# gathering


def flatten(value: Any, path: str) -> dict[str, Any]:
    """Path -> number, for all numbers inside; a list of numbers only stays one value."""
    return dict(_flat(value, path))


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    key = path.rpartition("/")[2]
    if isinstance(value, dict) and {"version", "sentences", "tasks"} <= value.keys():
        value = old_form(value)
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in NOT_COMPARED and "seconds" not in name:
                yield from _flat(inner, f"{path}/{name.replace('/', '|')}")
    elif isinstance(value, str):
        if key in COMPARED_TEXT:
            yield path, value
    elif not isinstance(value, list) or _only_numbers(value):
        yield path, value
    elif all(isinstance(each, str) for each in value):
        if key in COMPARED_TEXT:
            yield path, value
    else:
        for number, each in enumerate(value):
            known = isinstance(each, dict) and "id" in each
            inner = f"{each['id']} {each.get('task', '')} {each.get('where', '')}".strip() if known else number
            yield from _flat(each, f"{path}/{inner}")


def _only_numbers(values: list[Any]) -> bool:
    return all(
        _only_numbers(each) if isinstance(each, list) else each is None or isinstance(each, int | float)
        for each in values
    )


def tensors(path: Path) -> dict[str, str]:
    """The sha256 of each tensor of a file by value: dtype, shape, and bytes in order."""
    from safetensors.numpy import load_file

    found = {}
    for name, array in sorted(load_file(path).items()):
        head = f"{array.dtype.str} {array.shape}".encode()
        found[name] = hashlib.sha256(head + array.tobytes(order="C")).hexdigest()
    return found


def record_values(folder: Path) -> dict[str, Any]:
    """All numbers of a finished record, and its tensors."""
    numbers = flatten(json.loads((folder / "result.json").read_text()), "result")
    trial = json.loads((folder / "trial.json").read_text())
    trial |= trial.get("counts", {})  # since version 0.3 what became of the data is a table of its own
    numbers |= flatten({key: trial[key] for key in ("seed", "labels", "documents") if key in trial}, "trial")
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for number, event in enumerate(events):
        numbers |= flatten(event, f"events/{number}")
    hashes = {f"model {name}": each for name, each in tensors(folder / "model.safetensors").items()}
    hashes |= {f"outcomes {name}": each for name, each in tensors(folder / "outcomes.safetensors").items()}
    return {"numbers": numbers, "tensors": hashes}


def study_values(folder: Path) -> dict[str, Any]:
    """All numbers of a finished study, the tensors of its trials, and the names of its files."""
    numbers, hashes = {}, {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".safetensors":
            hashes |= {f"{name} {inner}": each for inner, each in tensors(path).items()}
        elif path.suffix == ".json" and path.name != "trial.json":
            numbers |= flatten(json.loads(path.read_text()), name.replace("/", "|"))
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    numbers = {path.replace("plan.json/summary/", "plan.json/"): value for path, value in numbers.items()}
    return {"numbers": numbers, "tensors": hashes, "files": sorted(files)}


# making


def sets(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def train(name: str, task: str, data: str, *settings: str, steps: int = 6, more: tuple[str, ...] = ()) -> Path:
    folder = Path(name)
    lasting = ("--steps", str(steps)) if steps else ()
    settings = (*TINY, *(CLASSIFY if task == "classify" else ()), *settings)
    recipe = () if "--recipe" in more else ("--recipe", RECIPES / f"default-{task}.toml")
    need("train", task, "--data", data, *sets(*settings), *lasting, "--out", folder, *recipe, *more)
    return folder


def write_texts() -> None:
    """The data: the course's form, JSON lines, a table, running text, a folder of files, lines."""
    write_course(Path("speechesdataset"))
    rng = random.Random(2)
    rows = [(who, sentence(who, rng)) for who in rng.choices("012", k=80)]
    Path("rows.jsonl").write_text("".join(json.dumps({"text": text, "label": who}) + "\n" for who, text in rows))
    with Path("rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *((text, who) for who, text in rows)])
    paragraphs = [" ".join(sentence(rng.choice("012"), rng) for _ in range(4)) for _ in range(40)]
    Path("novel.txt").write_text("\n\n".join(paragraphs) + "\n")
    Path("lines.txt").write_text("\n".join(sentence(rng.choice("012"), rng) for _ in range(90)) + "\n")
    for number, (who, text) in enumerate(rows):
        place = Path("folder") / f"speaker-{who}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text(text + "\n")
    for name in ("fade_plugin.py", "golden_study.toml"):
        Path(name).write_text((HERE / name).read_text().replace("RECIPES", RECIPES.as_posix()))


COURSE = "speechesdataset"
TRIALS: dict[str, tuple[Any, ...]] = {
    "classify-learned": (
        "classify", COURSE, "shape.layers=2", "shape.dropout=0.1", 'parts=["learned", "concat"]',
        "scoring.watch_test=true", "training.keep=last",
    ),
    "classify-rope": (
        "classify", "rows.jsonl", 'parts=[{name="rope", base=100.0}, "pool-cls", {name="shuffle", seed=3}]',
        "training.optimizer=adam", "training.label_smoothing=0.1", "shape.activation=gelu", "tokens.lowercase=true",
    ),
    "classify-sinusoidal": (
        "classify", "rows.csv", 'parts=["sinusoidal", "pool-attention", "concat"]', "tokens.kind=whitespace",
        "training.optimizer=sgd", "training.learning_rate=0.1", "data.validation=0.2",
    ),
    "classify-t5": (
        "classify", "folder", 'parts=[{name="t5", buckets=8, furthest=16}, "pool-max", "reweight"]',
        "tokens.kind=character", "shape.length=24", "training.optimizer=adagrad", "shape.classifier_activation=tanh",
    ),
    "classify-disentangled": (
        "classify", COURSE, 'parts=[{name="disentangled", furthest=4}, "pool-first", "shift"]', "shape.norm=rms",
        "shape.norm_place=post", "shape.activation=silu", "shape.attention_dropout=0.2", "training.schedule=linear",
        "shape.qkv_bias=true", "training.clip=0.5",
    ),
    "classify-window": (
        "classify", COURSE,
        'parts=["learned", {name="window", size=4, global_tokens=1}, "pool-mean", "reweight-causal"]',
        "shape.layers=2", "shape.start=torch",
        "tokens.fit=course",
    ),
    "classify-none": (
        "classify", COURSE, 'parts=["none", {name="shuffle", every_step=true}]', "data.train_share=0.6",
        "shape.layers=2",
    ),
    "lm-alibi": ("lm", COURSE, "parts=alibi", "shape.dropout=0.2", "training.clip=1.0"),
    "lm-block": (
        "lm", "novel.txt", 'parts=["learned", {name="block", size=4}]', "tokens.kind=bpe", "tokens.size=280",
        "data.windows=every", "shape.tied=true", "shape.output_bias=false", "shape.activation=gelu_tanh",
    ),
    "lm-window": (
        "lm", "lines.txt", "data.format=lines", 'parts=["rope", {name="window", size=4}]',
        "tokens.kind=character", "shape.length=24", "training.label_smoothing=0.05",
    ),
    "lm-vocabulary": (
        "lm", "novel.txt", "tokens.fit=lm-alibi", 'parts=[{name="alibi", slope=0.5}, "reweight-causal", "t5"]',
        "scoring.full_context=0.5",
    ),
    "classify-gated": (
        "classify", COURSE, 'parts=["shaw", "swiglu", "qk-norm", "value-residual", "parallel"]', "shape.layers=2",
    ),
    "classify-sigmoid": ("classify", COURSE, 'parts=["fire", "sigmoid", "relu-squared", "multi-query"]'),
    "lm-forgetting": ("lm", COURSE, 'parts=["forgetting", "experts", "sink", "soft-cap"]'),
    "lm-differential": ("lm", COURSE, 'parts=["kerple", "differential", "geglu"]'),
    "lm-talking": ("lm", COURSE, 'parts=["cope", "talking-heads", {name="grouped-query", groups=1}]'),
    "lm-linear": ("lm", COURSE, 'parts=["learned", "linear"]'),
    "mlm-encoder": ("mlm", COURSE, "parts=learned", "shape.layers=2", "training.schedule=cosine"),
    "mlm-text": ("mlm", "novel.txt", 'parts=["rope", "disentangled"]', "tokens.kind=bpe", "tokens.size=280"),
}  # fmt: skip


def make_trials() -> Iterator[tuple[str, Any]]:
    for name, (task, data, *settings) in TRIALS.items():
        yield name, record_values(train(name, task, data, *settings))
    folder = train("lm-course", "lm", COURSE, more=("--recipe", "course", "--seed", "7"))
    yield folder.name, record_values(folder)
    folder = train("lm-second", "lm", COURSE, *TRIALS["lm-alibi"][2:], more=("--seed", "1"))
    yield folder.name, record_values(folder)
    plugin = ("--with", "fade_plugin.py")
    folder = train("plugin", "classify", COURSE, 'parts=[{name="golden-fade", initial=0.5}]', more=plugin)
    yield folder.name, record_values(folder)
    tune = (
        "--data",
        "rows.csv",
        "--encoder",
        "mlm-encoder",
        "--epochs",
        "1",
        "--set",
        "batch=16",
        "--pool",
        "attention",
    )
    slow = ("--set", "learning_rate=0.003", "--threads", "1")
    need("finetune", *tune, *slow, "--out", "finetune")
    yield "finetune", record_values(Path("finetune"))


def make_resumed() -> Iterator[tuple[str, Any]]:
    """Two trials that are stopped and resumed; the first has an uninterrupted twin."""
    dropping = ("shape.dropout=0.2", "training.label_smoothing=0.1", "parts=rope")
    yield "uninterrupted", record_values(train("uninterrupted", "lm", COURSE, *dropping, steps=8))
    words = (
        "train",
        "lm",
        "--recipe",
        RECIPES / "default-lm.toml",
        "--data",
        COURSE,
        *sets(*TINY, *dropping),
        "--steps",
        "8",
        "--json",
    )
    need(*words, "--out", "resumed", codes=(1, 2, 3, 4, 5, 130), stop_at=5)
    if (Path("resumed") / "result.json").exists():
        raise RuntimeError("the trial was not interrupted")
    need("train", "--resume", "resumed")
    yield "resumed", record_values(Path("resumed"))


SAMPLES = (
    "Thank you all for being here tonight, and God bless the United States of America.",
    "Yesterday the quiet ladder sang blue arithmetic to the river",
    "When the old bridge was closed in the spring, the people of the town, who had crossed it every day to reach"
    " their work, their schools and their church, and who had never asked who built it or what it would cost to"
    " keep it standing, found that they had to walk an hour along the river to the next one, and it was on that"
    " long walk, with neighbors they had not spoken to in years, that they first began to talk about what they"
    " owed to those who had come before them and to those who would follow.",
)


def make_answers() -> Iterator[tuple[str, Any]]:
    """What commands say of finished records and of data."""

    def said(*words: object, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        return {"numbers": answers(*words, codes=codes)}

    yield "predict", said("inspect", "predict", "classify-learned", TEXT, "Our enemies")
    yield "predict plugin", said("inspect", "predict", "plugin", TEXT, "--with", "fade_plugin.py")
    yield "errors", said("inspect", "errors", "classify-rope", "--most", 3)
    yield "surprise", said("inspect", "surprisal", "lm-alibi", *SAMPLES, TEXT)
    yield (
        "generate",
        said("inspect", "generate", "lm-alibi", "We will", "--tokens", 12, "--samples", 2, "--seed", 3),
    )
    yield (
        "generate window",
        said("inspect", "generate", "lm-window", "We", "--tokens", 30, "--temperature", 0.7),
    )
    yield "length", said("inspect", "length", "lm-alibi", "--times", "1,2")
    yield "params record", said("inspect", "params", "classify-disentangled")
    yield (
        "params recipe",
        said(
            "inspect",
            "params",
            RECIPES / "default-classify.toml",
            "--vocabulary",
            100,
            "--classes",
            3,
            "--set",
            "shape.layers=4",
        ),
    )
    yield "baseline", said("data", "baseline", "--data", COURSE, "--recipe", "course")
    yield "baseline default", said("data", "baseline", "--data", "novel.txt")
    yield "puzzle select", said("puzzle", "select", 1)
    yield "audit data", said("data", "audit", "--data", COURSE, "--set", CLASSIFY[0], codes=(0, 1))
    yield "parts", {"names": sorted(each["name"] for each in json.loads(need("parts", "--json")))}


def make_audits() -> Iterator[tuple[str, Any]]:
    yield "audit record", {"numbers": answers("audit", "classify-t5", codes=(0, 1))}  # reweight is caught
    with auditing_here():
        yield "audit recipe", {"numbers": answers("audit", "lm-window/recipe.toml", codes=(0, 1))}
        plugin = ("audit", "plugin/recipe.toml", "--with", "fade_plugin.py")
        yield "audit plugin", {"numbers": answers(*plugin, codes=(0, 1))}


def make_studies() -> Iterator[tuple[str, Any]]:
    variants = ("learned", "rope+window:size=4")
    small = [each for each in TINY if not each.startswith(("training.select", "scoring"))]
    small += [*CLASSIFY, "training.select_every=1 epochs", "scoring.curve_every=1 epochs"]
    words = ("study", "--data", COURSE, "--task", "classify", "--variants", *variants, "--seeds", 5, "--steps", 6)
    words += ("--recipe", RECIPES / "default-classify.toml")
    with auditing_here():
        need(*words, "--engine", "here", "--out", "study-classify", "--set", *small)
        need("study", "golden_study.toml", "--engine", "here", "--out", "study-lm")
    yield "study classify", study_values(Path("study-classify"))
    yield "study lm", study_values(Path("study-lm"))


MAKERS: tuple[Callable[[], Iterator[tuple[str, Any]]], ...] = (
    make_trials, make_resumed, make_answers, make_audits, make_studies,
)  # fmt: skip


def make_all(folder: Path) -> dict[str, Any]:
    """Every artefact by its name. One that cannot be made is `{"failed": why}`, and so is what is made after it in its
    group."""
    os.chdir(folder)
    write_texts()
    found: dict[str, Any] = {}
    for maker in MAKERS:
        try:
            found.update(maker())
        except Exception as error:  # the test of each missing artefact tells it
            found[f"failed: {maker.__name__}"] = f"{type(error).__name__}: {error}"
    return found


# comparing


def machine() -> dict[str, str]:
    """What decides the last digits: the processor and torch."""
    facts: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    chip = [facts.get(key, "?") for key in ("model name", "cpu family", "model", "stepping")]
    return {"cpu": " / ".join(chip), "torch": version("torch")}


def renamed(path: str) -> str:
    """A stored path as it is called now."""
    if path in RENAMED:
        return RENAMED[path]
    return "".join(RENAMED.get(piece, piece) for piece in re.split(r"([/|. ])", path))


def differences(stored: dict[str, Any], made: dict[str, Any], *, exact: bool) -> list[str]:
    """What differs between two artefacts. `exact`: to the last digit, tensors included; else numbers only, within a
    thousandth."""
    found = []
    # a record begun by older code and resumed has old names, too
    now = {renamed(path): value for path, value in made.get("numbers", {}).items()}
    for path, value in stored.get("numbers", {}).items():
        name = renamed(path)
        if GONE.match(path):
            continue
        if name not in now and value is None:
            continue  # since version 0.3 what is not known is left out
        if name not in now:
            found.append(f"{name} is missing")
        elif not same(value, now[name], exact):
            found.append(f"{name}: was {value!r}, is {now[name]!r}")
    if exact:
        tensors_now = {renamed(path): digest for path, digest in made.get("tensors", {}).items()}
        for path, digest in stored.get("tensors", {}).items():
            if tensors_now.get(renamed(path)) != digest:
                found.append(f"tensor {renamed(path)} differs or is missing")
        if len(tensors_now) != len(stored.get("tensors", {})):
            found.append(f"{len(stored.get('tensors', {}))} tensors were there, now {len(tensors_now)}")
    for key in ("files", "names"):
        kept = ([name for name in artefact.get(key, []) if not GONE.match(name)] for artefact in (stored, made))
        before, after = (sorted(map(renamed, names)) for names in kept)
        if before != after:
            found.append(f"{key}: only before {set(before) - set(after)}, only now {set(after) - set(before)}")
    return found


def same(before: Any, now: Any, exact: bool) -> bool:
    if isinstance(before, str):
        return now in (before, RENAMED.get(before))
    if isinstance(before, list):
        return (
            isinstance(now, list)
            and len(before) == len(now)
            and all(same(one, other, exact) for one, other in zip(before, now, strict=True))
        )
    if isinstance(before, float) and isinstance(now, float):
        if exact or math.isnan(before) or math.isinf(before):
            return repr(before) == repr(now)
        return math.isclose(before, now, rel_tol=1e-3, abs_tol=1e-6)
    numbers = {type(before), type(now)} <= {int, float}  # a whole number may be stored as either
    return (numbers or type(before) is type(now)) and before == now


def run_apart(what: str, folder: Path) -> dict[str, Any]:
    """Make artefacts in a process of its own, so that parts of plugins and threads are nobody else's."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    for name in ("COLUMNS", "FORCE_COLOR"):
        env.pop(name, None)
    words = [sys.executable, str(Path(__file__).resolve()), what, str(folder)]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{what} failed:\n{done.stdout}\n{done.stderr}")
    return json.loads((folder / "made.json").read_text())


def write_values(path: Path, values: dict[str, Any]) -> None:
    """One line for each number, so that a diff names it."""
    path.write_text(json.dumps(values, indent=0, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    what, place = sys.argv[1], Path(sys.argv[2]).resolve()
    if what == "make":
        made = make_all(place)
    else:
        from old_samples import use_all

        made = use_all(place)
    (place / "made.json").write_text(json.dumps(made))
