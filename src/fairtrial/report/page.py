"""Pages as single HTML files that load nothing, by one base template; `study_page` makes a study's."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from fairtrial.description import MISSING, Description
from fairtrial.disk import write_text
from fairtrial.errors import BadInput
from fairtrial.recipe import write_recipe
from fairtrial.record import Record
from fairtrial.report.plots import svg
from fairtrial.report.render import as_latex, as_markdown
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
