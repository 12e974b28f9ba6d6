"""Can a record be reproduced from its recipe? All that it stores is made again from recipe, seed, data and weights, and
the two values are compared whole: `FREE` names the only fields that are not. Of a study the verdict is judged again and
compared the same way. A record is read, never written, and nothing in it is run."""

from __future__ import annotations

import math
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial import __version__
from fairtrial.disk import sha256_of, temporary_folder
from fairtrial.errors import BadInput, Diverged
from fairtrial.events import Improved, Logged, Ready, Scored, Stepped
from fairtrial.record import Record
from fairtrial.results.audit import Checked, Claim, ClaimState
from fairtrial.results.study import StudyFiles, is_of_0_2
from fairtrial.results.values import Verdict
from fairtrial.stored import read_plain
from fairtrial.typed import unstructure

if TYPE_CHECKING:
    import numpy as np

    from fairtrial.prepare import Prepared
    from fairtrial.study.plan import Plan
    from fairtrial.training.loop import Loop

PROVEN, CONSISTENT, FALSE, OPEN, SKIPPED = ClaimState
# what no computation gives again: times, where it was computed, what a recipe was before its data resolved it; and
# checksums, which are compared with the files themselves
FREE = frozenset(
    "seconds seconds_per_step seconds_ratio load peak_memory_mb environment code changed asked mark sha256".split()
)
SENTENCES = frozenset("notes part_notes sentences reasons cite meaning".split())  # other versions word them otherwise
ANSWERS = frozenset("accuracy interval macro_f1 confusion".split())  # change where an answer near a tie turns over
EXACT, ROUNDED = 1e-9, 1e-4  # relative: what one computer gives again, and what rounding makes of a score elsewhere
PERTURBED, AMPLIFIED = 2.0**-18, 100.0  # relative: first weights, and how much more another processor may do
FOREIGN = 0.5  # relative distance of two networks that began differently
MOST_TIES = 0.01  # share of answers that may turn over on another processor
OnStatus = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    steps: int | None = None  # of the training; None: all of them, 0: none
    data: str | None = None  # where the data are here
    trials: int | None = 2  # of a study; None: all of them, and its audits and baselines


def verify_folder(folder: Path, options: Options, on_status: OnStatus) -> Checked:
    """A record or a study."""
    if (folder / "study.toml").is_file() and not (folder / "trial.json").is_file():
        return verify_study(folder, options, on_status)
    return verify_record(folder, options, on_status)


def verify_record(folder: Path, options: Options, on_status: OnStatus) -> Checked:
    try:
        record = Record.open(folder)
        if not record.complete:
            return Checked(folder, (Claim("files", OPEN, "the trial is not finished, so it claims no result"),))
        files = check_files(record)
    except BadInput as error:
        state = FALSE if (folder / "trial.json").is_file() else OPEN
        return Checked(folder, (Claim("files", state, one_line(error)),))
    on_status(f"{folder}: reading the data")
    try:
        from fairtrial.environment import use_threads
        from fairtrial.plugins import require_plugins

        require_plugins(record)  # a part that is not built in runs only where it is named
        with use_threads(record.trial.environment.threads):
            claims = [files, *Repeated(record, options, on_status).claims()]
    except BadInput as error:
        claims = [files, Claim("training", OPEN, one_line(error))]
    return Checked(folder, tuple(claims), weights=record.result.model_sha256)


def one_line(error: BadInput) -> str:
    return error.what.replace("\n", " ")


def check_files(record: Record) -> Claim:
    """Every file is the one that the result names. Whoever edits a file can make its checksum again, too."""
    trial, result = record.trial, record.result
    for name in {**result.sha256, **trial.sha256, "model.safetensors": ""}:
        record.checked(name)
    _ = record.recipe, record.events(), record.outcomes(), record.baseline
    return Claim("files", CONSISTENT, f"all checksums fit; seed {trial.seed}, recipe {trial.recipe}")


class Repeated:
    """A record's trial once more: its data, its training, its scores."""

    def __init__(self, record: Record, options: Options, on_status: OnStatus) -> None:
        from fairtrial.environment import changed_since
        from fairtrial.prepare import choose_length, prepare

        self.record, self.options, self.on_status = record, options, on_status
        self.events, self.result = record.events(), record.result
        trial, recipe = record.trial, record.recipe
        changed = [*changed_since(trial), *(f"resumed with {each}" for each in trial.changed)]
        changed += [] if trial.environment.cpu else ["its processor is not known"]
        changed += ["its device did not promise the same bits"] if self.result.not_deterministic else []
        self.other = "; ".join(changed)  # what may have changed the bits; empty: nothing
        self.version = trial.environment.fairtrial
        self.free = FREE if self.version == __version__ else FREE | SENTENCES
        if options.data is not None:
            recipe = replace(recipe, data=replace(recipe.data, source=options.data))
        prepared = prepare(recipe, trial.seed)
        measured = choose_length(prepared)  # the recipe of a record has a length; that it was chosen is a note
        if measured.length_note in trial.notes and measured.recipe == prepared.recipe:
            prepared = measured
        self.prepared = replace(prepared, device=trial.environment.device)

    def claims(self) -> Iterator[Claim]:
        data = self.check_data()
        yield data
        if data.state in (FALSE, OPEN):
            return
        loop = self.loop(self.prepared)
        yield self.check_training(loop)
        yield self.check_weights(loop)
        yield self.check_scores(loop)

    def differs(self, name: str, message: str, doubt: str | None = None) -> Claim:
        """A difference proves nothing where another environment computed it."""
        doubt = self.other if doubt is None else doubt
        return Claim(
            name, OPEN if doubt else FALSE, message + (f"; but the environment differs ({doubt})" * bool(doubt))
        )

    def check_data(self) -> Claim:
        """The same files, and all that trial.json says of them follows."""
        from fairtrial.provenance import trial_info

        trial, prepared = self.record.trial, self.prepared
        here = prepared.corpus.files
        if names := sorted(name for name in {**here, **trial.data} if here.get(name) != trial.data.get(name)):
            return Claim("data", OPEN, f"these data differ from those of the record ({', '.join(names[:3])})")
        if prepared.tokenizer.to_json() != (self.record.folder / "tokenizer.json").read_text(encoding="utf-8"):
            return self.differs("data", "another tokenizer follows from these data and this seed")
        own = trial_info(prepared, 1, trial.plugins, trial.asked)
        if wrong := difference(own, trial, free=self.free):
            return self.differs("data", f"trial.json: {wrong}")
        if difference(own, trial):
            return Claim("data", CONSISTENT, f"the same files; its notes are of version {self.version}, not compared")
        return Claim("data", PROVEN, "the same files by sha256; tokenizer, labels and notes follow from them")

    def loop(self, prepared: Prepared) -> Loop:
        from fairtrial.training.loop import Loop

        return Loop(prepared.task, prepared.recipe.training, prepared.recipe.scoring, self.record.trial.seed)

    def run(self, loop: Loop) -> Iterator[Logged]:
        """Train as far as it was asked for."""
        from fairtrial.training.device import deterministic

        end = loop.steps if self.options.steps is None else min(self.options.steps, loop.steps)
        with deterministic(loop.device):
            for event in loop.run():
                if not isinstance(event, Ready):
                    yield event
                elif event.step >= end:
                    return
                elif event.step % 20 == 0:
                    self.on_status(f"{self.record.folder}: step {event.step} of {end}")

    def check_training(self, loop: Loop) -> Claim:
        """Event by event: loss and learning rate of every step, scores of every evaluation."""
        if self.options.steps == 0:
            return Claim("training", SKIPPED, "not re-trained (--steps 0)")
        own, wrong = list[Logged](), ""
        try:
            for event in self.run(loop):
                told = self.events[len(own)] if len(own) < len(self.events) else None
                own.append(event)
                wrong = wrong or ("" if event == told else difference(event, told, 0.0) or f"{event} is not in the log")
                if wrong and not self.other:
                    return Claim("training", FALSE, f"step {event.step} differs: {wrong}")
        except Diverged as error:
            return self.differs("training", error.what)
        step = loop.progress.step
        if not wrong and ended(loop) and len(self.events) > len(own):
            return self.differs("training", f"the record's log goes on after the last step, {step}")
        if wrong:
            return self.within_rounding(own)
        part = f"all {step:,}" if ended(loop) else f"the first {step:,} of {loop.steps:,}"
        return Claim("training", PROVEN, f"re-trained bit by bit: {part} steps")

    def within_rounding(self, own: Sequence[Logged]) -> Claim:
        """Other bits, computed elsewhere: every value within what rounding does to this training. That is measured, by
        the same training from first weights that differ in their last digits."""
        import torch

        prepared = replace(self.prepared)  # with a network of its own
        for tensor in prepared.task.network.parameters():
            signs = torch.arange(tensor.numel()).remainder(2).view(tensor.shape).to(tensor)
            tensor.data.mul_(1 + PERTURBED * (2 * signs - 1))
        here, there, shaken = (losses(each) for each in (own, self.events, [*self.run(self.loop(prepared))]))
        moved = ROUNDED / AMPLIFIED
        for (step, name), value in here.items():
            size = max(abs(value), 1e-9)
            moved = max(moved, abs(shaken.get((step, name), value) - value) / size)
            told = there.get((step, name))
            if told is not None and not abs(told - value) <= AMPLIFIED * moved * size:
                return self.differs("training", f"{name} at step {step} is {told:.6g} there, {value:.6g} here")
        end = max((step for step, _ in here), default=0)
        if here.keys() != {(step, name) for step, name in there if step <= end}:
            return self.differs("training", "the record's log is of another training")
        return Claim("training", CONSISTENT, f"re-trained within rounding, not bit by bit ({self.other})")

    def check_weights(self, loop: Loop) -> Claim:
        """Those of the training beside the stored ones, which the network has from here on."""
        import torch
        from safetensors.torch import load as load_tensors

        from fairtrial.training.loop import cloned, put_weights, weights_of

        stored = load_tensors(self.record.weights())
        if ended(loop):
            loop.restore_best()
        own = cloned(weights_of(loop.network))
        one, other = ({name: (each.shape, each.dtype) for name, each in of.items()} for of in (own, stored))
        if one != other:
            raise BadInput("the stored weights do not fit the network of the recipe")
        put_weights(loop.network, stored)
        if not ended(loop):
            return Claim("weights", SKIPPED, "the training was not repeated to its end")
        wrong = [name for name, tensor in own.items() if not torch.equal(tensor.cpu(), stored[name])]
        if not wrong:
            return Claim("weights", PROVEN, "training reproduces every bit of them")
        apart = math.sqrt(sum(float((own[name].cpu().double() - stored[name]).square().sum()) for name in own))
        share = apart / math.sqrt(sum(float(each.double().square().sum()) for each in stored.values()))
        if self.other and share <= FOREIGN:
            return Claim("weights", CONSISTENT, f"near those of the training (relative distance {share:.1e})")
        message = f"{len(wrong)} of {len(own)} tensors are not reproduced by the training ({wrong[0]})"
        return self.differs("weights", message)

    def check_scores(self, loop: Loop) -> Claim:
        """Every outcome, and all of result.json, by the stored weights and the log."""
        from fairtrial.baselines.run import baseline_of
        from fairtrial.provenance import trial_result
        from fairtrial.trial import final_scores

        self.on_status(f"{self.record.folder}: scoring")
        scores, stored = final_scores(loop.task, self.record), self.record.outcomes()
        here = {f"{name}/{key}": array for name, score in scores.items() for key, array in score.outcomes.items()}
        unequal = sorted(name for name in {*here, *stored} if not same(here.get(name), stored.get(name)))
        code = self.other if "code" in self.other else ""  # rounding alone moves the scores of given weights little
        if unequal and not (self.other and all(same(here.get(name), stored.get(name), ROUNDED) for name in unequal)):
            return self.differs("scores", f"outcomes.safetensors: {unequal[0]} is not reproduced by the weights", code)
        progress, steps, kept = loop.progress, 0, 0
        for event in self.events:  # that the log is true is a claim of its own
            steps = event.step if isinstance(event, Stepped) else steps
            kept = event.step if isinstance(event, Improved) else kept
        progress.step = loop.steps
        kept = kept if loop.task.choose_on and self.record.recipe.training.keep == "best" else steps
        own = trial_result(self.record, loop.task, loop, kept, scores, self.result.not_deterministic)
        free = self.free | ANSWERS if unequal else self.free
        if wrong := difference(own, self.result, ROUNDED if unequal else EXACT, free):
            return self.differs("scores", f"result.json: {wrong}", code if unequal else "")
        told = self.record.baseline
        if told and (wrong := difference(baseline_of(self.record, self.prepared), told, free={"outcomes"})):
            return self.differs("scores", f"baseline.json: {wrong}")
        if unequal:
            return Claim("scores", CONSISTENT, f"re-scored within rounding ({self.other})")
        if difference(own, self.result):
            return Claim("scores", CONSISTENT, f"re-scored; its notes are of version {self.version}, not compared")
        return Claim("scores", PROVEN, f"re-scored: the stored weights reproduce every outcome of {', '.join(scores)}")


def ended(loop: Loop) -> bool:
    return loop.progress.step == loop.steps


def losses(events: Sequence[Logged]) -> dict[tuple[int, str], float]:
    """Of every step, and of every split that was scored."""
    steps = {(event.step, "loss"): event.loss for event in events if isinstance(event, Stepped)}
    return steps | {(event.step, event.split): event.metrics.loss for event in events if isinstance(event, Scored)}


def same(one: np.ndarray | None, other: np.ndarray | None, close: float = 0.0) -> bool:
    import numpy as np

    if one is None or other is None or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    if one.dtype.kind == "f" or not close:
        return bool(np.allclose(one, other, rtol=close, atol=close))
    return bool((one != other).mean() <= MOST_TIES)


def difference(
    own: Any, told: Any, close: float = EXACT, free: frozenset[str] | set[str] = FREE, path: str = ""
) -> str:
    """Where two values differ first, in words; empty where they do not. `close`: how far numbers may be apart; `free`:
    names of fields that are not compared."""
    own, told = (unstructure(each) if is_dataclass(each) else each for each in (own, told))
    if isinstance(own, dict) and isinstance(told, dict):
        names = {**own, **told}
        pairs = [(own.get(name), told.get(name), f"{path}.{name}") for name in names if name not in free]
    elif isinstance(own, list) and isinstance(told, list) and len(own) == len(told):
        pairs = [(one, other, f"{path}[{at}]") for at, (one, other) in enumerate(zip(own, told, strict=True))]
    else:
        if path.endswith(".meaning"):  # of an audit: how many batches fit its time
            own, told = (re.sub(r"\d+", "#", str(each)) for each in (own, told))
        numbers = {type(own), type(told)} <= {int, float}
        if own == told or (numbers and (math.isclose(own, told, rel_tol=close) or (own != own and told != told))):
            return ""
        return f"{path.lstrip('.')} is {short(told)} there, {short(own)} here"
    return next(filter(None, (difference(one, other, close, free, at) for one, other, at in pairs)), "")


def short(value: object) -> str:
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def verify_study(folder: Path, options: Options, on_status: OnStatus) -> Checked:
    """Every trial's checksums and place, the verdict again from their outcomes, some trials again."""
    if not (folder / "verdict.json").exists():
        return Checked(folder, (Claim("files", OPEN, "the study has no verdict yet, so it claims no result"),))
    try:
        study = StudyFiles.open(folder)
        study.check_unchanged()
        records = [Record.open(path.parent) for path in sorted(folder.glob("*/*/*/**/result.json"))]
        for record in records:
            check_files(record)
        claims = [Claim("files", CONSISTENT, f"all checksums of {len(records)} trials fit"), *copies(folder, records)]
        told = study.verdict
    except BadInput as error:
        return Checked(folder, (Claim("files", FALSE, one_line(error)),))
    on_status(f"{folder}: judging again")
    claims.append(check_verdict(folder, told, options))
    count = len(records) if options.trials is None else min(options.trials, len(records))
    chosen = random.SystemRandom().sample(records, count)  # nobody can know which
    inside = [verify_record(record.folder, options, on_status) for record in chosen]
    states = [each.state for each in inside] + [CONSISTENT] * (count < len(records))
    detail = f"{states.count(PROVEN)} of {len(records)} trials re-trained bit by bit"
    worst = next((state for state in (FALSE, OPEN, CONSISTENT) if state in states), PROVEN)
    detail += next((f"; {each.folder}: {each.reason}" for each in inside if each.state == worst != PROVEN), "")
    return Checked(folder, (*claims, Claim("trials", worst, detail)), tuple(inside))


def copies(folder: Path, records: Sequence[Record]) -> Iterator[Claim]:
    """Records with the same weights or the same log: of different seeds they cannot be."""
    alike: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for digest in (record.result.model_sha256, record.result.sha256.get("events.jsonl", "")):
            alike[digest].append(record)
    for group in alike.values():
        names = " and ".join(record.folder.relative_to(folder).as_posix() for record in group)
        if len({record.trial.seed for record in group}) > 1:
            yield Claim("copies", FALSE, f"{names} are the same training under different seeds")
            return


def check_verdict(folder: Path, told: Verdict, options: Options) -> Claim:
    """The whole verdict once more, sentences included. Where all trials are repeated, audits, baselines and costs are
    made again, too, in a copy of the folder."""
    from fairtrial.plugins import loaded_digests
    from fairtrial.study.run import judge_again, open_plan

    if is_of_0_2(folder / "verdict.json"):
        return Claim("verdict", OPEN, f"it was written by version 0.2; judge again with: fairtrial study {folder}")
    try:
        plan = open_plan(folder, options.data)
    except BadInput as error:
        return Claim("verdict", OPEN, one_line(error))
    for path in (Path(name) for variant in plan.study.variants for name in variant.plugins):
        if not path.is_file() or sha256_of(path) not in loaded_digests():  # it runs only where it is named
            return Claim("verdict", OPEN, f"it needs code from {path}: name that file with --with")
    measured = {"calibration", "steps", "looks", "summary"}  # and earlier looks, which nothing else remembers
    if wrong := difference(plan.stored(), plan.home.read_plan(), free=measured):
        return Claim("verdict", FALSE, f"plan.json: {wrong}")
    trials = {task: [one for own in plan.finished(task).values() for one in own.values()] for task in plan.recipes}
    if any(one.trial.data != plan.eval_sets[task].files for task, own in trials.items() for one in own):
        return Claim("verdict", OPEN, "these data differ from those of the study")
    others = {one.trial.environment.fairtrial for own in trials.values() for one in own} - {__version__}
    free, rebuild = FREE | SENTENCES if others else FREE, options.trials is None
    try:
        if rebuild:
            wrong = rebuilt_differs(plan, told, free)
        else:
            wrong = difference(judge_again(plan, told.rule), told, free=free)
    except BadInput as error:  # outcomes that do not give the metrics of their record, for example
        wrong = one_line(error)
    if wrong or others:
        return Claim("verdict", FALSE if wrong else CONSISTENT, wrong or f"its sentences are of version {min(others)}")
    if rebuild:
        return Claim("verdict", PROVEN, "verdict, baselines and audits recomputed")
    return Claim("verdict", CONSISTENT, "verdict re-judged from all trials, baselines and audits not recomputed")


def rebuilt_differs(plan: Plan, told: Verdict, free: frozenset[str]) -> str:
    """Where the verdict, or an audit that it rests on, is not what trials and data give."""
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.run import judge_again

    made = ("passports", "passport.json", "contamination.json", "baselines", "report.html")
    with temporary_folder() as place:
        home = StudyFolder(place / "study")
        shutil.copytree(plan.home.path, home.path, ignore=shutil.ignore_patterns(*made))
        home.write("plan.json", replace(home.read_plan(), calibration={}))
        wrong = difference(judge_again(replace(plan, home=home), told.rule, rebuild=True), told, free=free)
        for path in sorted(home.path.rglob("*.json")):
            name = path.relative_to(home.path)
            if not wrong and {*name.parts} & {*made}:
                there = read_plain(plan.home.path / name)
                wrong = difference(read_plain(path), there, ROUNDED, free | {"value"}, f"{name}: ")
    return wrong
