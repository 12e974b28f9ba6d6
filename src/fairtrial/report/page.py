"""Pages as single HTML files that load nothing, by one base template; `study_page` makes a study's."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from fairtrial.description import (
    MISSING,
    Cell,
    Chart,
    Curve,
    Description,
    IntervalChart,
    IntervalRow,
    LineChart,
    Table,
    row,
)
from fairtrial.disk import write_text
from fairtrial.errors import BadInput
from fairtrial.formatting import few_digits
from fairtrial.recipe import to_table, write_recipe
from fairtrial.record import Record
from fairtrial.report.plots import svg
from fairtrial.report.render import as_latex, as_markdown
from fairtrial.results import verdict_tables as tables
from fairtrial.results.records import curves_of, loss_curve, mean_curve
from fairtrial.results.sentences import counted
from fairtrial.results.study import StudyFiles
from fairtrial.results.values import Question, TaskVerdict, Verdict
from fairtrial.stored import TrialInfo

HERE = Path(__file__).parent


def render(page: str, title: str, **values: object) -> str:
    """The template `page`.html, with the style of all pages, and `page`.css and `page`.js where they exist."""
    style, script = (
        "".join(path.read_text(encoding="utf-8") for name in names if (path := HERE / name).is_file())
        for names in (("page.css", f"{page}.css"), (f"{page}.js",))
    )
    frame = {"page": page, "title": title, "style": style, "script": script, "policy": policy(style, script)}
    return environment().get_template(f"{page}.html").render(frame, **values)


def write_page(page: Path | str, made: Callable[[], str]) -> Path:
    """A page is HTML and is named so. `made` is called once its name is known to be right."""
    page = Path(page)
    if page.suffix.lower() not in (".html", ".htm"):
        what = (
            f"a page is written as .html, not as {page.suffix}"
            if page.suffix
            else f"a page needs a name in .html: {page}"
        )
        raise BadInput(what, f"name it {page.with_suffix('.html')}; a browser prints it as PDF")
    write_text(page, made())
    return page


def policy(style: str, script: str) -> str:
    """A Content-Security-Policy: our own style and script by their hashes, nothing else, and nothing from a network.
    Style attributes are not allowed."""
    allowed = (f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (style, script))
    return "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'".format(*allowed)


def fragment(description: Description) -> str:
    """A result for a notebook's output: like a page, but without its head and without scripts, and in light colours,
    since a notebook's theme is not the system's."""
    template = environment().get_template("fragment.html")
    drawn = re.sub(r"\n\s*\n+", "\n", template.render(description=description))
    used = {name for names in re.findall(r'class="([^"]*)"', drawn) for name in names.split()}
    style = " ".join(rule for classes, rule in fragment_rules() if classes <= used)
    own = f"fairtrial-{sha256(style.encode()).hexdigest()[:8]}"  # a style holds for all of a notebook
    return f'<div class="{own}"><style>.{own} {{ {style} }}</style>{drawn}</div>'


@cache
def fragment_rules() -> list[tuple[set[str], str]]:
    """The pages' style, rule by rule, with the classes that a rule is about: a notebook stores only what it needs."""
    style = "".join((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "study.css"))
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    style = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)  # of other screens, themes and paper
    style = re.sub(r"(?m)^(:root|body)(?= )", "&", style).replace("color-scheme: light dark", "color-scheme: light")
    own = "&, & .study { max-width: 60rem; margin: 0; padding: .2rem .6rem; } h3 { margin-top: 1rem; }"
    own += " .words { max-width: 24rem; } .table { background: none; }"
    own += " .charts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }"
    style = f"{' '.join(style.split())} {own}"
    # on another page the root's size is another
    style = re.sub(r"(\d*\.?\d+)rem\b", lambda size: f"{16 * float(size[1]):g}px", style)
    rules = re.findall(r"[^{}]+\{[^{}]*\}", style)
    return [
        (set(re.findall(r"\.([a-z_][\w-]*)", re.sub(r":not\([^)]*\)", "", rule.split("{")[0]))), rule) for rule in rules
    ]


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "minus": minus,
        "number": lambda value, form: MISSING if value is None else form.format(value),
        "svg": lambda chart: Markup(svg(chart)),
        "markdown": lambda table: "\n".join(as_markdown(table)),
        "latex": lambda table: "\n".join(as_latex(table)),
    }
    return made


def minus(text: str) -> Markup:
    """A true minus sign before digits, as a hyphen is hard to see in a column; no line ends inside an interval."""
    text = re.sub(r"(?<![\w-])-(?=\d)", "−", str(escape(text)))
    return Markup(re.sub(r" \[([^\[\],]{1,12}), ([^\[\],]{1,12})\]", " [\\1,\u00a0\\2]", text))


def result_page(description: Description, records: Sequence[Record] = ()) -> str:
    """A description as a page. `records`: whose recipes are shown in full."""
    recipes = [(record, write_recipe(record.recipe)) for record in records]
    return render("result", description.title, description=description, recipes=recipes)


def environment_line(trial: TrialInfo) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in asdict(trial.environment).items() if value not in ("", None))
    return f"code {trial.code}; {machine}"


LOSS_POINTS = 60
CURVES = {"nats": ("Training loss", "nats per answer"), "accuracy": ("Accuracy on {} during training", "share")}


def write_study_page(folder: Path, page: Path | None = None) -> Path:
    """`report.html` in the study's folder, unless another page is named."""
    study = StudyFiles.open(folder)
    study.check_unchanged()
    return write_page(page or folder / "report.html", lambda: study_page(study))


def write_verdict_page(verdict: Verdict, page: str | Path) -> Path:
    """A verdict without its study: of results from elsewhere."""
    return write_page(page, lambda: study_page(StudyFiles(Path(page).parent, verdict)))


def study_page(study: StudyFiles) -> str:
    verdict = study.verdict
    page = render(
        "study",
        verdict.name or study.folder.resolve().name,
        description=describe_study(study),
        reference=verdict.baseline,
        counts=counts_line(study),
        recipes=recipe_facts(study, verdict.baseline),
        environments=list(dict.fromkeys(map(environment_line, study.trials()))),
        study_text=study.study_text,
        results=verdict.results,
        checkpoints=any(each.question == Question.CHECKPOINTS for each in verdict.comparisons),
    )
    return re.sub(r"\n\s*\n+", "\n", page)


def describe_study(study: StudyFiles) -> Description:
    """The verdict in sentences, then each task."""
    sections = [describe_task(study, name, task) for name, task in study.verdict.tasks.items()]
    return replace(tables.first_screen(study.verdict), title="", sections=sections)


def describe_task(study: StudyFiles, name: str, task: TaskVerdict) -> Description:
    about = [tables.strides_of(task).strip()] if tables.strides_of(task) else []
    if task.vocabularies_differ:
        about.append("Losses of different vocabularies are about different tokens: read each curve by itself.")
    made = [maker(task) for maker in tables.MAIN + tables.FURTHER]
    shown = [replace(each, title=each.title[:1].upper() + each.title[1:]) for each in made if each is not None]
    charts: list[Chart] = []
    if task.comparisons:
        title = f"Difference from {task.baseline}"
        charts.append(tables.comparison_chart(task.comparisons, title, lambda name: tables.named(task, name).stamped))
    charts += [*score_charts(task), *curve_charts(study, name, task)]
    return Description(about, shown, tables.task_title(name), charts)


def counts_line(study: StudyFiles) -> str:
    """`3 variants, 8 seeds, 2 tasks, 48 trials`."""
    tasks, look = study.verdict.tasks.values(), study.verdict.look
    variants = len({name for task in tasks for name in task.scores})
    seeds = max((len(task.seeds) for task in tasks), default=0)
    counts = [(variants, "variant"), (seeds, "seed"), (len(tasks), "task"), (len(list(study.trials())), "trial")]
    line = ", ".join(counted(count, noun) for count, noun in counts if count)
    return line if look is None else f"{line}; an interim look at {look.seeds} seeds"


def score_charts(task: TaskVerdict) -> Iterator[IntervalChart]:
    """For each test set, all variants and what needs no transformer, on the items that the verdict is on."""
    for name in tables.set_names(task):
        test_set = task.sets.get(name)
        subset = test_set.subset if test_set else "all"
        kinds = {
            each.variant: each.verdict.value
            for each in task.comparisons
            if (each.test_set, each.subset) == (name, subset)
        } | {task.baseline: "reference"}
        rows = []
        for cell, by_set, ours in tables.contenders(task):
            score = by_set.get(name, {}).get(subset)
            if score is None or score.mean.estimate is None:
                continue
            kind = "simple" if not ours else "not_comparable" if cell.stamp else kinds.get(cell.text, "unjudged")
            mean = score.mean
            rows.append(IntervalRow(cell.stamped, mean.estimate, mean.low, mean.high, score.by_seed, kind))
        if rows:
            count = test_set.count(subset) if test_set else None
            title = f"Scores on {name}, {subset} items" + ("" if count is None else f" ({few_digits(count)})")
            title += "; dots are seeds"
            yield IntervalChart(title, task.metric.name, tuple(rows))


def curve_charts(study: StudyFiles, name: str, task: TaskVerdict) -> list[LineChart]:
    """Loss and scores of all variants during training, one chart for each split that was scored."""
    found: dict[tuple[str, str], dict[str, list[Curve]]] = {}  # split and unit, variant
    records = study.records.get(name, {})
    for variant in dict.fromkeys([task.baseline, *task.scores, *records]):
        for record in records.get(variant, ()):
            events = record.events()
            for curve in (loss_curve(events, LOSS_POINTS), *curves_of(events)):
                shown = tables.named(task, variant).stamped
                found.setdefault((curve.name, curve.unit), {}).setdefault(shown, []).append(curve)
    drawn = []
    for (split, unit), by_variant in found.items():
        title, shown = CURVES.get(unit, ("Perplexity on {} during training", "windows, log scale"))
        log = unit not in CURVES
        curves = tuple(mean_curve(variant, seeds, log=log) for variant, seeds in by_variant.items())
        title = f"{title.format(split)}, mean and range over seeds"
        drawn.append(LineChart(title, shown, tuple(curve for curve in curves if curve.points), log=log))
    return [chart for chart in drawn if chart.curves]


def recipe_facts(study: StudyFiles, reference: str) -> list[dict[str, Any]]:
    """For each task: the full recipe of the reference variant, and where the others differ from it."""
    facts = []
    for task, variants in study.records.items():
        firsts = {name: trials[0] for name, trials in variants.items()}
        start = reference if reference in firsts else next(iter(firsts))
        base, trial = flat(to_table(firsts[start].recipe)), firsts[start].trial
        rows = []
        for name, record in firsts.items():
            own = flat(to_table(record.recipe))
            changed = [f"{key} = {own.get(key, 'absent')}" for key in {**base, **own} if own.get(key) != base.get(key)]
            variant = tables.named(study.verdict.tasks[task], name) if task in study.verdict.tasks else Cell(name)
            rows.append(row(variant, "; ".join(changed) or "nothing", record.trial.recipe))
        columns = ("variant", f"differs from {start} in", "fingerprint")
        table, recipe = Table("recipes", columns, tuple(rows), text_columns=3), write_recipe(firsts[start].recipe)
        told = {"cite": trial.cite, "notes": trial.notes, "data": sorted(trial.data.items())}
        facts.append({"task": task, "reference": start, "table": table, "recipe": recipe, **told})
    return facts


def flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """`training.batch` -> 16."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return found
