"""What each command does beside calling its public function: what it reads, and how it prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli import tools
from fairtrial.cli.declare import COLUMNS, Call, TextFile, With, check_utf8, command, notice, read_texts
from fairtrial.errors import BadInput, Stopped
from fairtrial.events import Ended, event_json
from fairtrial.gate import actions
from fairtrial.progress import stopping
from fairtrial.puzzles import puzzle as solve_puzzle
from fairtrial.recipe import Recipe, built_in_recipe, load_recipe, one_of, to_table
from fairtrial.record import Record, sibling
from fairtrial.run import Run
from fairtrial.typed import unstructure

if TYPE_CHECKING:
    from fairtrial.description import Result
    from fairtrial.gate.state import Gate
    from fairtrial.results.values import Verdict


Json = Annotated[bool, Option("--json", help="Print JSON, for machines.")]
Events = Annotated[bool, Option("--json", help="Print events and the result as JSON lines, for machines.")]
DURATION = ("steps", "epochs")


def check_figure(path: Path | None) -> Path | None:
    """Before anything is read or trained for it."""
    from fairtrial.report.plots import figure_kind

    if path is not None:
        figure_kind(path)
    return path


Figure = Annotated[Path | None, Option(help="Draw it (.png, .svg, .pdf).", metavar="FILE", callback=check_figure)]


def draw_figure(result: Result, path: Path | None, json: bool = False) -> None:
    if path is not None:
        from fairtrial.report.plots import write_figure

        write_figure(result, path)
        if not json:
            print(f"figure: {path}")


@command(
    "train",
    api.train,
    "Train",
    "train lm --data novel.txt --steps 500",
    arguments=["task"],
    fields=[*DURATION, *COLUMNS],
    optional=["task"],
)
def train(
    call: Call,
    resume: Annotated[
        Path | None, Option("--resume", help="Continue the stopped or killed trial in this folder.", metavar="RECORD")
    ] = None,
    ignore_changes: Annotated[
        bool, Option("--ignore-changes", help="With --resume: accept other torch, threads, code or plugins.")
    ] = False,
    print_recipe: Annotated[
        bool, Option("--print-recipe", help="Print the recipe as TOML, every field with its meaning, and exit.")
    ] = False,
    json: Events = False,
) -> None:
    given = call.given
    if resume is not None:
        if extra := [*(name for name in given if name not in ("seed", "reuse", "options", "plugins")), *call.fields]:
            raise BadInput(f"--resume continues a record as it is: it takes no {', '.join(extra)}")
        resume_record(resume, ignore_changes, given.get("plugins", ()), given["options"], json)
        return
    if "task" not in given:
        raise BadInput("no task was given", "fairtrial train lm, fairtrial train classify, or a recipe file (TOML)")
    recipe = api.recipe_of(given["task"], given.get("data"), given.get("recipe"), call.fields)
    if print_recipe:
        if "budget" in given:
            recipe = api.in_budget(recipe, given["budget"], call.fields, lambda event: None)
        print(recipe.to_toml(), end="")
    else:
        run_with_screen(call, json, recipe)


def resume_record(record: Path, ignore_changes: bool, plugins: Any, options: api.RunOptions, json: bool) -> None:
    opened = Record.open(record)
    if opened.complete:
        opened.tidy()
        event = Ended(opened.result.steps, opened.result, opened.baseline)
        print(dumps(event_json(event)) if json else f"{record} is already finished; see: fairtrial show {record}")
        return
    from fairtrial.cli.screen import open_screen

    with open_screen(load_recipe(record / "recipe.toml"), json) as on_event, asking_to_stop() as stop:
        listening = replace(options, on_event=on_event, stop=stop)
        api.resume(record, ignore_changes=ignore_changes, plugins=plugins, options=listening)


def run_with_screen(call: Call, json: bool, recipe: Recipe | None = None) -> Any:
    """Run a trial of this recipe, or a study, and show its progress; Ctrl-C saves and tells how to continue."""
    from fairtrial.cli.screen import open_screen, open_study_screen

    screen: AbstractContextManager[Callable[[Any], None]]
    screen = open_study_screen(json) if recipe is None else open_screen(recipe, json)
    with screen as on_event, asking_to_stop() as stop:
        return call(options=replace(call.given["options"], on_event=on_event, stop=stop))


@command(
    "finetune",
    api.finetune,
    "Train",
    "finetune --encoder minilm --data reviews.tsv --epochs 3",
    fields=[*DURATION, *COLUMNS],
)
def finetune(call: Call, json: Events = False) -> None:
    run_with_screen(call, json, built_in_recipe("finetune", "classify"))


@command("tune", api.tune, "Train", "tune lm --data novel.txt --out tuned", arguments=["task"],
         fields=[*DURATION, *COLUMNS])  # fmt: skip
def tune(call: Call) -> None:
    from fairtrial.cli.screen import open_study_screen

    with open_study_screen(False) as on_event, asking_to_stop() as stop:
        tuned = call(options=replace(call.given["options"], on_event=on_event, stop=stop))
    print(tuned)


def asking_to_stop() -> AbstractContextManager[Callable[[], bool]]:
    """Ctrl-C and SIGTERM request a stop after the current step, with everything saved; a second one stops at once."""

    def say() -> None:
        print("stopping (press again to stop at once)", file=sys.stderr)

    return stopping(on_request=say, at_once=Stopped)


@command("export", Run.export, "Look inside", "export runs/my-run --to hf")
def export(
    call: Call,
    record: Annotated[Path, Argument(help="The folder of a finished record.")],
    to: Annotated[str, Option(help="'hf': a folder that `transformers` loads.")] = "hf",
) -> None:
    from fairtrial.pretrained.export import export_record

    one_of("--to", to, ("hf",))
    out = call.given.get("out")
    done = export_record(Record.open(record), Path(out) if out is not None else sibling(record, "hf"))
    loader = f"transformers.{done.auto_class}.from_pretrained({str(done.folder)!r})"
    print(f"{done.folder}: {done.architecture}; load it with {loader}")
    if not done.whole:
        print("only the encoder was exported: no architecture of `transformers` has this pooling or activation")


@command(
    "study",
    api.study,
    "Judge",
    "study --data novel.txt --variants learned rope alibi --seeds 5",
    arguments=["source"],
    fields=[*DURATION, *COLUMNS],
)
def study(call: Call, figure: Figure = None, json: Events = False) -> None:
    listing = call.given["options"].list_jobs
    if figure is not None and (call.given.get("dry_run") or listing):
        raise BadInput("there is no verdict to draw", "leave out --figure")
    if listing and not json:
        print(*call(quiet=True).jobs, sep="\n")  # nothing else: `... --list-jobs | parallel`
    else:
        draw_figure(run_with_screen(call, json), figure, json)


@command("demo", api.demo, "Judge", "demo --out demo")
def demo(call: Call, json: Events = False) -> None:
    run_with_screen(call, json)


@command("verdict", api.verdict, "Judge", "verdict studies/my-study --format latex", arguments=["results"])
def verdict(
    call: Call,
    form: Annotated[
        str, Option("--format", help="text, markdown or latex (fits one column of a paper).", metavar="FORMAT")
    ] = "text",
    every: Annotated[
        bool,
        Option(
            "--all", help="All tables: also contamination, test reuse, audits, exploratory comparisons and the search."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        Option(help="Write a page to open in a browser, one file that needs no network.", metavar="FILE.html"),
    ] = None,
    fail_on: Annotated[
        str | None,
        Option(
            help="Exit with 10 if any variant is 'worse', 'undecided' (or worse), or 'not-better'.", metavar="VERDICT"
        ),
    ] = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """With --fail-on a variant that is not comparable fails, too."""
    if fail_on is not None:
        one_of("--fail-on", fail_on, tuple(FAIL_ON))
    judged = call()
    show_verdict(judged, call.given["results"], form, every, out, json)
    draw_figure(judged, figure, json)
    if fail_on is not None and any(each.verdict in FAIL_ON[fail_on] for each in judged.comparisons):
        sys.exit(10)


FAIL_ON = {
    "worse": ("worse", "not_comparable"),
    "undecided": ("worse", "not_comparable", "undecided"),
    "not-better": ("worse", "not_comparable", "undecided", "equivalent"),
}


def show_verdict(judged: Verdict, results: Sequence[str], form: str, every: bool, out: Path | None, json: bool) -> None:
    if out is not None:
        page = write_page(judged, results, out)
        facts = {"page": str(page), "bytes": page.stat().st_size}
        print(dumps(facts) if json else f"open this page: {page.resolve()}")
        return
    if json:
        print(dumps(judged.to_json()))
        return
    one_of("--format", form, ("text", "markdown", "latex"))
    print(judged.render({"text": "terminal"}.get(form, form), every=every))


def write_page(judged: Verdict, results: Sequence[str], out: Path | None) -> Path:
    """The page of a study, which has more than its verdict, or of results."""
    from fairtrial.results.study import Study

    if len(results) == 1 and api.is_study(Path(results[0])):
        return Study(Path(results[0])).write_page(out)
    return judged.write_page(out or f"{judged.name}-report.html")


@command("verify", api.verify, "Judge", "verify submissions/* --data reviews.tsv", arguments=["records"])
def verify(call: Call, json: Json = False) -> None:
    """Exits with 1 if a claim is false."""
    verified = call(*call.given.pop("records"), quiet=json)
    print(dumps([record.to_json() for record in verified.records]) if json else verified)
    sys.exit(int(verified.false))


@command("grade", api.grade, "Judge", "grade submissions --baseline learned.csv", arguments=["folder"])
def grade(
    call: Call,
    lower_is_better: Annotated[bool, Option("--lower-is-better", help="Less of the metric is better.")] = False,
    json: Json = False,
) -> None:
    graded = call(quiet=json, **({"higher_is_better": False} if lower_is_better else {}))
    out = call.given.get("out") or sibling(Path(call.given["folder"]), "grades")
    print(
        "\n".join(map(dumps, graded.rows())) if json else f"{graded}\n\nwritten to {out}: grades.html, grades.csv ..."
    )


@command("power", api.power, "Judge", "power --seeds 5 --items 750 --spread 0.7")
def power(call: Call, figure: Figure = None, json: Json = False) -> None:
    planned = call()
    print(dumps(planned.to_json()) if json else planned)
    draw_figure(planned, figure, json)


@command("audit", api.audit, "Judge", "audit alibi", arguments=["target"])
def audit(call: Call, data: Annotated[str | None, Option("--data", hidden=True)] = None, json: Json = False) -> None:
    """Exits with 1 if a check fails. To audit a data set, see `fairtrial data audit`."""
    if data is not None:
        raise BadInput("this audits a network, not data", f"to audit data: fairtrial data audit --data {data}")
    target, model, scorer = (call.given.get(name) for name in ("target", "model", "scorer"))
    if sum(each is not None for each in (target, model, scorer)) != 1:
        hint = "fairtrial audit rope, audit RECORD, audit --model FILE.py:build, or audit --scorer FILE.py:score"
        named = any(each is not None for each in (target, model, scorer))
        raise BadInput("give only one of TARGET, --model and --scorer" if named else "nothing to audit was given", hint)
    if model is None and ("task" in call.given or call.fields):
        raise BadInput("--task and --set apply to --model only")
    audited = call(quiet=json)
    if json:
        print(dumps(audited.to_json()))
    else:
        print(f"leak audit of {audited}")
        if target is not None and os.path.isdir(target):
            print(f"written to {Path(target) / 'passport.json'}")
    sys.exit(int(not audited.passed))


@command("data audit", api.audit_data, "Data", "data audit --data reviews.tsv", fields=COLUMNS)
def audit_data(call: Call, json: Json = False) -> None:
    """Exits with 1 if a check is red."""
    audited = call(quiet=json)
    print("\n".join(map(dumps, audited.to_json().values())) if json else audited)
    sys.exit(int(audited.level == "red"))


@command(
    "data baseline", api.baseline, "Data", "data baseline --data reviews.tsv", fields=COLUMNS, deprecated=["baseline"]
)
def baseline(call: Call, json: Json = False) -> None:
    scored = call(quiet=json)
    print("\n".join(map(dumps, scored.to_json()["tasks"].values())) if json else scored)


@command(
    "data clean",
    api.clean,
    "Data",
    "data clean --data reviews/ --out reviews-clean",
    fields=COLUMNS,
    deprecated=["clean"],
)
def clean(call: Call, json: Json = False) -> None:
    result = call(quiet=json)
    if json:
        print(dumps(unstructure(result)))
        return
    for note in result.notes:
        print(f"note: {note}")
    for name, file in result.files.items():
        why = ", ".join(f"{count:,} {reason}" for reason, count in file.dropped.items()) or "nothing dropped"
        gone = "" if file.kept or not file.documents else ", so it is left out"
        print(f"{name}: {file.kept:,} of {file.documents:,} documents kept ({why}){gone}")
    print(f"cleaned copy: {result.out}  (see: fairtrial data audit --data {result.out})")


@command("parts", api.catalogue, "Look inside", "parts alibi --figure alibi.svg", arguments=["name"])
def parts(call: Call, figure: Figure = None, json: Json = False) -> None:
    if figure is not None and "name" not in call.given:
        raise BadInput("nothing to plot", "name a part: fairtrial parts alibi --figure alibi.svg")
    listed = call()
    print(dumps([asdict(entry) for entry in listed.entries]) if json else listed)
    draw_figure(listed, figure, json)


RecordFolder = Annotated[Path, Argument(help="The folder of a finished record.", metavar="RECORD")]


@command("show", api.show, "Look inside", "show runs/my-run --figure curves.png", arguments=["records"])
def show(
    call: Call,
    form: Annotated[
        str, Option("--format", help="text, markdown, latex or csv (with every step of the curves).", metavar="FORMAT")
    ] = "text",
    figure: Figure = None,
    json: Json = False,
) -> None:
    one_of("--format", form, ("text", "markdown", "latex", "csv"))
    shown = call()
    if json and len(shown.listed) == 1 and not shown.listed[0].problem:
        record = shown.listed[0].record
        table = loads(dumps(to_table(record.recipe)), parse_constant=lambda name: "inf")  # as TOML has it, JSON has not
        whole = {"recipe": table, "trial": unstructure(record.trial)}
        whole["result"] = unstructure(record.result) if record.complete else None
        print(
            dumps(whole | {"events": list(map(event_json, record.events())), "baseline": unstructure(record.baseline)})
        )
        draw_figure(shown, figure, json)
        return
    draw_figure(shown, figure, json or form != "text")
    print("\n".join(map(dumps, shown.rows())) if json else shown if form == "text" else shown.render(form))
    if "html" in call.given and not json:
        print(f"page: {call.given['html']}")


@command(
    "look", Run.look, "Look inside", 'look runs/my-run "My fellow Americans, we will rebuild."', arguments=["texts"]
)
def look(call: Call, record: RecordFolder, file: TextFile = None, plugins: With = None, figure: Figure = None) -> None:
    """With --figure all maps go into that file; a page is written only where --out names its folder."""
    texts = call.given.pop("texts", None)
    given = read_texts(texts, file) if texts or file is not None else []
    if figure is None:
        call.given.setdefault("out", sibling(record, "look"))
    looked = call(api.load(record, plugins=plugins or []), given)
    print(looked)
    draw_figure(looked, figure)


@command(
    "inspect params",
    api.parameters,
    "Look inside",
    "inspect params runs/my-run",
    arguments=["target"],
    fields=COLUMNS,
    deprecated=["params"],
)
def params(
    call: Call,
    kind: Annotated[str, Option("--format", help="text, markdown, latex or csv (parameters only).")] = "text",
    json: Json = False,
) -> None:
    one_of("--format", kind, ("text", "markdown", "latex", "csv"))
    from fairtrial.report.render import render

    cost = call()
    described = cost.describe()
    if kind == "csv":  # the parameters only
        described = replace(described, tables=described.tables[:1])
    print(dumps(cost.to_json()) if json else render(described, "terminal" if kind == "text" else kind))


@command(
    "inspect length", Run.lengths, "Look inside", "inspect length runs/my-lm --times 1,2,4,8", deprecated=["length"]
)
def length(call: Call, record: RecordFolder, plugins: With = None, json: Json = False) -> None:
    from fairtrial.run import factors_of

    factors_of(call.given["times"])  # before torch is imported
    run = api.load(record, "lm", plugins=plugins or [])
    scored = call(run)
    print("\n".join(map(dumps, scored.rows())) if json else scored)


@command(
    "inspect errors",
    Run.errors,
    "Look inside",
    "inspect errors runs/my-run --html errors.html",
    deprecated=["errors"],
)
def errors(call: Call, record: RecordFolder, plugins: With = None, json: Json = False) -> None:
    run = api.load(record, "classify", plugins=plugins or [])
    result = call(run)
    print(dumps(result.to_json()) if json else result)
    if "html" in call.given and not json:
        print(f"page: {call.given['html']}")


@command("explore", api.explore, "Look inside", "explore studies/my-study", arguments=["folder"])
def explore(call: Call) -> None:
    host = call.given["host"]
    if host not in ("127.0.0.1", "localhost", "::1"):
        notice(f"listening on {host}: anyone who can reach it and knows the address can read this folder, unencrypted")
    with call() as explorer:
        print(f"exploring {explorer.folder}\nopen {explorer.url}\nCtrl-C stops it", flush=True)
        explorer.wait()


@command("doctor", api.doctor, "Train", "doctor")
def doctor(call: Call, json: Json = False) -> None:
    """Exits with 1 if something is wrong."""
    found = call(quiet=json)
    print(dumps(found.to_json()) if json else found)
    sys.exit(int(not found.passed))


@command(
    "inspect predict",
    Run.predict,
    "Look inside",
    'inspect predict runs/my-run "That is in America\'s interest."',
    arguments=["texts"],
    optional=["texts"],
    deprecated=["predict"],
)
def predict(call: Call, record: RecordFolder, file: TextFile = None, plugins: With = None, json: Json = False) -> None:
    given = read_texts(call.given.pop("texts", None), file)
    run = api.load(record, "classify", plugins=plugins or [])
    names = call.given.pop("names", None) or (run.labels if json else None)  # machines compare answers with labels
    result = call(run, given, names=names)
    if json:
        print("\n".join(map(dumps, result.to_json())))
        return
    print(result)


@command(
    "inspect surprisal",
    Run.surprisal,
    "Look inside",
    'inspect surprisal runs/my-lm "Our children will pay the future."',
    arguments=["texts"],
    optional=["texts"],
    deprecated=["surprisal"],
)
def surprisal(
    call: Call,
    record: RecordFolder,
    file: TextFile = None,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per sentence, and one for the set.")] = False,
) -> None:
    given = read_texts(call.given.get("texts"), file)
    run = api.load(record, "lm", plugins=plugins or [])
    result = run.surprisal(given)
    if json:
        for text in result.texts:
            row = {"text": text.text, "perplexity": text.perplexity, "nll": text.nll, "counted": text.counted}
            print(dumps(row | {"tokens": [asdict(token) for token in text.tokens]}))
        print(dumps({"perplexity": result.perplexity, "counted": result.counted, "notices": result.notices}))
        return
    print(result)


@command(
    "inspect generate",
    Run.generate,
    "Look inside",
    'inspect generate runs/my-lm "My fellow Americans" --temperature 0.8',
    arguments=["prompt"],
    deprecated=["generate"],
)
def generate(
    call: Call,
    record: RecordFolder,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per text.")] = False,
) -> None:
    check_utf8(call.given["prompt"], "the prompt")
    run = api.load(record, "lm", plugins=plugins or [])
    generation = call(run)
    if json:
        for sample in generation.samples:
            print(dumps(asdict(sample) | {"temperature": call.given["temperature"], "notices": generation.notices}))
        return
    for text in generation.notices:
        notice(text)
    print("\n".join(sample.text for sample in generation.samples))


@command("puzzle", solve_puzzle, "Look inside", "puzzle average 0 1", arguments=["ask", "words"])
def puzzle(call: Call, figure: Figure = None, json: Json = False) -> None:
    result = call()
    print(dumps(result.to_json()) if json else result)
    draw_figure(result, figure, json)


@command("mcp", tools.mcp, "Judge", "mcp")
def mcp(call: Call) -> None:
    call()


# the gate


def print_gate(shown: Gate, json: bool) -> None:
    """And exit with the decision: 0 keep, 10 discard, 11 more."""
    print(dumps(shown.to_json()) if json else shown)
    sys.exit(0 if shown.answer is None else shown.answer.exit_code)


@command("gate show", actions.gate, "Judge", "gate show ideas.jsonl --out page.html", arguments=["ledger"])
def gate_show(
    call: Call,
    json: Json = False,
    out: Annotated[Path | None, Option(help="Write a page to open in a browser.", metavar="FILE.html")] = None,
) -> None:
    """Exits with 0 (keep), 10 (discard) or 11 (one more pair)."""
    shown = call()
    if out is not None:
        from fairtrial.report.page import result_page
        from fairtrial.report.page import write_page as write

        print(f"open this page: {write(out, lambda: result_page(shown.describe())).resolve()}")
    print_gate(shown, json)


@command("gate new", actions.gate_new, "Judge", "gate new ideas.jsonl --metric val_loss --incumbent base",
         arguments=["ledger"])  # fmt: skip
def gate_new(
    call: Call,
    lower_is_better: Annotated[bool, Option("--lower-is-better", help="Less of the metric is better.")] = False,
    json: Json = False,
) -> None:
    shown = call(**({"higher_is_better": False} if lower_is_better else {}))
    print(dumps(shown.to_json()) if json else shown)


@command("gate add", actions.gate_add, "Judge", "gate add ideas.jsonl --candidate muon --seed 4 --score 3.2791",
         arguments=["ledger"])  # fmt: skip
def gate_add(call: Call, json: Json = False) -> None:
    """Exits with 0 (keep), 10 (discard) or 11 (one more pair)."""
    for name in ("scores", "incumbent_scores"):
        if name in call.given:
            call.given[name] = numbers_by_seed(call.given[name])
    print_gate(call(), json)


@command("gate run", actions.gate_run, "Judge", "gate run ideas.jsonl --candidate rope+swiglu", arguments=["ledger"])
def gate_run(call: Call, json: Json = False) -> None:
    """Exits with 0 (keep), 10 (discard) or 11 (one more pair)."""
    print_gate(call(), json)


@command("gate next", actions.gate_next, "Judge", "gate next ideas.jsonl", arguments=["ledger"])
def gate_next(call: Call) -> None:
    print(*call(), sep="\n")


@command("gate confirm", actions.gate_confirm, "Judge", "gate confirm ideas.jsonl --pairs 5", arguments=["ledger"])
def gate_confirm(call: Call, json: Json = False) -> None:
    print_measured(call, json)


@command("gate final", actions.gate_final, "Judge", "gate final ideas.jsonl --pairs 5", arguments=["ledger"])
def gate_final(call: Call, json: Json = False) -> None:
    print_measured(call, json)


@command("gate self-test", actions.gate_self_test, "Judge", "gate self-test ideas.jsonl", arguments=["ledger"])
def gate_self_test(call: Call, json: Json = False) -> None:
    tested = call()
    print(dumps(tested.to_json()) if json else tested)


def print_measured(call: Call, json: bool) -> None:
    for name in ("scores", "first_scores"):
        if name in call.given:
            call.given[name] = numbers_by_seed(call.given[name])
    shown = call()
    print(dumps(shown.to_json()) if json else shown)


def numbers_by_seed(given: dict[str, str]) -> dict[int, float]:
    try:
        return {int(seed): float(score) for seed, score in given.items()}
    except ValueError:
        raise BadInput(f"seeds and scores must be numbers: {given}", "write 4=3.2791") from None
