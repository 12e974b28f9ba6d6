"""The documentation as a site: `python docs/make_site.py [FOLDER]`. Pages open as files, search included, and load
nothing from a network. It needs only Markdown, Pygments and Jinja, so it outlives themes and site generators."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any

import jinja2
import markdown
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

HERE = Path(__file__).resolve().parent
ROOT, RESEARCH, ASSETS = HERE.parent, HERE.parent / "research", HERE / "theme"
OURS = ("*.md", "*.py", "*.jinja", "*.ipynb", "nav.json", "theme", "__pycache__")  # what is not copied as it is
EXTENSIONS = ["tables", "fenced_code", "codehilite", "toc", "attr_list", "sane_lists"]
SETTINGS = {"codehilite": {"guess_lang": False}, "toc": {"permalink": "#", "toc_depth": "2-3"}}


@dataclass(frozen=True)
class Page:
    title: str  # in the navigation
    section: str
    source: Path
    name: str  # on the site

    @property
    def up(self) -> str:
        return "../" * self.name.count("/")


def navigation() -> list[Page]:
    """Of `nav.json`: sections, each with titles and files. Every page must be in it."""
    sections = json.loads((HERE / "nav.json").read_text(encoding="utf-8"))
    pages = [
        Page(title, section, RESEARCH / name if section == "Findings" else HERE / name, site_name(name, section))
        for section, named in sections.items()
        for title, name in named.items()
    ]
    known = {page.source for page in pages}
    every = {*HERE.glob("*.md"), *HERE.glob("notebooks/*.ipynb"), *RESEARCH.rglob("*.md")}
    if known != every:
        raise SystemExit(f"nav.json and the pages differ: {sorted(map(str, known ^ every))}")
    return pages


def site_name(name: str, section: str = "") -> str:
    """A page as the site names it: those of research/ are findings."""
    name = re.sub(r"\.(md|ipynb)$", ".html", name.replace("README.md", "index.md"))
    return f"findings/{name}" if section == "Findings" else name


def text_of(page: Page) -> str:
    """Its Markdown. Links between docs/ and research/ lead to their places on the site; a line that is nothing but a
    link to a file of the repository's root is replaced by that file."""
    text = page.source.read_text(encoding="utf-8")
    if page.section == "Findings":
        text = re.sub(r"(?<=\]\()((?:\.\./)*)docs/", r"\1", text)
    text = re.sub(r"(?m)^\[(.+)\]\(\.\./\1\)$", lambda found: root_file(found[1]), text)
    return re.sub(r"(?<=\]\()\.\./research/", "findings/", text)


def root_file(name: str) -> str:
    """Below a heading of the page: Markdown without its title, a citation as BibTeX, anything else as it is."""
    text = (ROOT / name).read_text(encoding="utf-8").strip()
    if name.endswith(".md"):
        text = re.sub(r"(?m)^#(?=#)", "##", text.split("\n", 1)[1])
        return text.replace("](docs/", "](").replace("](research/", "](findings/")
    if name.endswith(".cff"):
        cited = dict(re.findall(r'(?m)^[ -]*([\w-]+): "?(.*?)"?$', text))
        fields = {"author": f"{{{cited['name']}}}", "title": cited["title"], "version": cited["version"]}
        fields["year"] = cited["date-released"][:4]
        text = "\n".join(["@software{fairtrial,", *(f"  {key:7} = {{{value}}}," for key, value in fields.items()), "}"])
    return f"```text\n{text}\n```"


def converted(text: str) -> tuple[str, list[Any]]:
    """HTML, and the headings as a tree."""
    made = markdown.Markdown(extensions=EXTENSIONS, extension_configs=SETTINGS)
    html = made.convert(text)
    return re.sub(r'(?<=href=")(?!\w+:)([^"#]*?)\.(?:md|ipynb)(?=[#"])', linked, html), made.toc_tokens


def linked(found: re.Match[str]) -> str:
    return f"{found[1].removesuffix('README')}{'index' if found[1].endswith('README') else ''}.html"


def notebook(path: Path) -> tuple[str, list[Any]]:
    parts, headings = [], []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            html, found = converted(source)
            parts.append(html)
            headings += found
        else:
            parts.append(highlight(source, get_lexer_by_name("python"), HtmlFormatter(cssclass="codehilite")))
            parts += (f'<div class="output">{shown(output)}</div>' for output in cell["outputs"])
    return "\n".join(parts), headings


def shown(output: dict[str, Any]) -> str:
    """The richest form of an output of a cell."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return "".join(data[kind])
    if "image/png" in data:
        png = base64.b64encode(base64.b64decode("".join(data["image/png"]))).decode()
        return f'<img alt="figure" src="data:image/png;base64,{png}">'
    return f"<pre>{escape(''.join(data.get('text/plain', '')))}</pre>"


def sections_of(html: str) -> Iterator[tuple[str, str, str]]:
    """Anchor, heading and words of each section, for the search."""
    html = re.sub(r"(?s)<(style|script|svg)\b.*?</\1>|<a class=\"headerlink\".*?</a>", "", html)
    pieces = re.split(r'<h[1-3] id="([^"]*)">(.*?)</h[1-3]>', html)
    for anchor, heading, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        yield anchor, plain(heading), plain(body)


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def build(out: Path) -> None:
    if out.exists():
        shutil.rmtree(out)
    shutil.copytree(HERE, out, ignore=shutil.ignore_patterns(*OURS))
    for path in RESEARCH.rglob("*"):
        if path.suffix == ".svg" or path.parent.name == "scripts":
            target = out / "findings" / path.relative_to(RESEARCH)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    for path in ASSETS.iterdir():
        if path.suffix != ".html":
            shutil.copyfile(path, out / path.name)
    light, dark = (HtmlFormatter(style=style).get_style_defs(".codehilite") for style in ("friendly", "github-dark"))
    dark = "\n".join(
        f':root[data-theme="dark"] {line}' for line in dark.splitlines() if line.startswith(".codehilite ")
    )
    (out / "code.css").write_text(f"{light}\n{dark}\n", encoding="utf-8")
    frame = jinja2.Environment(autoescape=True).from_string((ASSETS / "page.html").read_text(encoding="utf-8"))
    pages, index = navigation(), []
    for page in pages:
        html, headings = notebook(page.source) if page.source.suffix == ".ipynb" else converted(text_of(page))
        index += [(f"{page.name}#{anchor}", page.title, *rest) for anchor, *rest in sections_of(html)]
        headings = headings[0]["children"] if len(headings) == 1 else headings
        target = out / page.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(frame.render(page=page, pages=pages, body=html, headings=headings), encoding="utf-8")
    (out / "search_index.js").write_text(f"const INDEX = {json.dumps(index)};\n", encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1] if sys.argv[1:] else ROOT / "site")
    build(target)
    print(f"open {os.path.relpath(target)}/index.html")
