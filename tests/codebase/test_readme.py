"""What the README, the pages of the documentation and the example recipes promise, they do.

Every shell and Python block of every page is run, page by page, in a folder that holds what pages name
(`page_files.py`), on short trainings (`SHORTER`, `page_files.short`). What cannot be run here is in `NOT_RUN` and
`ELSEWHERE`, with the reason."""

from __future__ import annotations

import linecache
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from glob import glob
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import page_files
import pytest
import typer.main

from fairtrial.cli.main import app
from fairtrial.recipe import BUILT_IN, built_in_recipe, load_recipe, recipe_from, write_recipe
from sampling import cases

Call = Callable[..., Any]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL = {"fairtrial", "pip", "python", "make", "$"}  # what a line of an unmarked block begins with if it is to be typed

# what a page's block becomes here: the page itself says what a reader would type
SHORTER = {
    r"(--steps |\bsteps=)\d+": r"\g<1>3",
    r"(--seeds |\bseeds=)[2-5]\b": r"\g<1>2",
    r"(--seeds |\bseeds=)(\d\d|[6-9])\b": r"\g<1>3",
    r"--epochs \d+": "--epochs 1",
    r"(--budget \w+|--until-clear)": r"\g<1> --dry-run",  # they ask for many seeds where a trial is so short
    r"\b(generate|surprisal|length|look|params) RECORD": r"\g<1> runs/my-lm",
    r"\bRECORD\b": "runs/my-run",
    r"\bSTUDY\b": "studies/my-study",
}
SERVER = "serves until it is stopped: tests/explore"
SETS_UP = "downloads packages: tests/codebase/test_package.py installs the wheel"
NOT_RUN = {
    "make demo": SETS_UP,
    "make test": SETS_UP,
    "make explore": SETS_UP,
    'pip install "fairtrial[train]"': SETS_UP,
    "pip install 'fairtrial[explore]'": SETS_UP,
    "python -m venv .venv": SETS_UP,
    r".venv\Scripts\pip install -c constraints.txt -e .[train]": SETS_UP,
    r".venv\Scripts\fairtrial demo --out demo": SETS_UP,
    "fairtrial explore": SERVER,
    "fairtrial explore first": SERVER,
    "fairtrial explore studies/my-study": SERVER,
    "fairtrial explore my-study --port 8765 --no-browser": SERVER,
    "fairtrial train lm --data novel.txt --set training.device=cuda --set training.precision=bfloat16": "needs a GPU",
    "fairtrial study --data novel.txt --variants learned rope --set training.device=cuda:1": "needs two GPUs",
    "fairtrial study my-study --collect": "its trials run elsewhere: tests/study/test_study_command.py runs them",
    "fairtrial study --task order --data novel.txt --variants learned rope alibi none": (
        "the sentences of the tests' novel are too alike to be split: tests/data/test_probe_tasks.py splits one"
    ),
    "fairtrial finetune --encoder ./roberta-base --data sst2/ --epochs 5 --set batch=128 learning_rate=5e-5": (
        "needs the checkpoint: tests/pretrained reads small ones of that form"
    ),
}
ELSEWHERE = {
    "api.md": "tests/api/test_names.py runs the examples where they are written, in the docstrings",
    "puzzles.md": "tests/puzzles/test_puzzle_page.py runs its commands; its Python gives what it shows",
    "speed.md": "tests/trial/test_time_budget.py trains within a budget; benchmarks/quality.py takes an hour",
}
# the others take longer: `make test-slow`
FAST = {
    "README", "baselines", "contamination", "data", "look-tools", "own-results", "report",
    "verify",
}  # fmt: skip


MARKS = {name: [pytest.mark.second] if name == "README" else [] for name in FAST}


class Block(NamedTuple):
    kind: str  # sh, python, toml, or nothing: what is only shown
    text: str
    file: str | None  # "Save it as `fade.py`:" stands before it


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.S | re.M):
        kind, content = match.groups()
        if not kind and content.split()[0] in SHELL:
            kind = "sh"
        saved = re.search(r"[Ss]ave (?:it|this) as\s+`([^`]+)`[^`]*\Z", text[: match.start()])
        yield Block(kind, content, saved[1] if saved else None)


def lines(block: Block) -> list[str]:
    """The commands of a shell block, without comments; where some follow a `$`, the other lines are output."""
    typed = [line.strip() for line in block.text.replace("\\\n", " ").splitlines()]
    if any(line.startswith("$ ") for line in typed):
        typed = [line.removeprefix("$ ") for line in typed if line.startswith("$ ")]
    typed = [re.sub(r"(^|\s+)#.*", "", line) for line in typed]
    return [each for line in typed for each in re.split(r"; (?=fairtrial )", line) if each]


def commands(page: Path) -> list[str]:
    return [line for block in blocks(page) if block.kind == "sh" for line in lines(block)]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M)


@pytest.fixture(scope="module")
def parser() -> Any:
    return typer.main.get_command(app)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_says_what_follows_before_pip_is_silent() -> None:
    for target, set_ups in {"demo": 1, "test": 2}.items():
        made = subprocess.run(["make", "-n", "-B", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        said = made.split('echo "set-up, once: ')
        assert len(said) == 1 + set_ups
        assert "pip install" not in said[0]
        assert all(re.match(r"[^\n]*\d GB[^\n]* minutes", each) for each in said[1:])


def test_the_tour_shows_every_command(parser: Any) -> None:
    shown = {line.split()[1] for line in commands(ROOT / "docs" / "tour.md")}
    known = {name for name, command in parser.commands.items() if not command.hidden}
    assert known - shown <= {"demo", "explore", "mcp"}, "told in sentences, or by the README"


# the changelog names commands of older versions
@cases("page", [*PAGES, *(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md")])
def test_the_commands_of_a_page_have_the_options_that_it_names(page: Path, parser: Any) -> None:
    """Those inside sentences, too."""
    inside = [" ".join(each.split()) for each in re.findall(r"`(fairtrial [a-z][^`]*)`", prose(page))]
    for line in [*commands(page), *inside]:
        words, command = shlex.split(line)[1:], parser
        if not line.startswith("fairtrial "):
            continue
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands or words[0].isupper(), line
            command = command.commands.get(words.pop(0), command)
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
        given = {word.split("=")[0] for word in words if word.startswith("--")}
        assert given <= known | {"--version"}, line


def test_links_lead_to_files() -> None:
    for page in (*PAGES, *ROOT.glob("*.md"), *(ROOT / "research").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose(page)):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.second
def test_the_site_is_built_and_asks_no_network(tmp_path: Path) -> None:
    """Every page is in the navigation. And every link and anchor of what was built leads somewhere."""
    pytest.importorskip("markdown", reason="pip install 'fairtrial[docs]'")
    command = [sys.executable, "docs/make_site.py", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*", page.read_text())
        assert not [each for each in loaded if "canonical" not in each], page.name
    assert broken_links(tmp_path / "site") == []
    about = (tmp_path / "site" / "project.html").read_text()
    assert all(each in about for each in ("@software{fairtrial,", "MIT License", "0.1.0", "What we ask of a change"))


def broken_links(site: Path) -> list[str]:
    """Of the built pages, to files and to anchors. Pages and notebooks alike."""
    texts = {page: re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page.read_text()) for page in site.rglob("*.html")}
    anchors = {page: set(re.findall(r'\b(?:id|name)="?([^"\s>]+)', text)) for page, text in texts.items()}
    found = []
    for page, text in texts.items():
        for quoted, bare in re.findall(r'<[a-z][^>]*?\s(?:href|src)=(?:"([^"]*)"|([^\s">]+))', text):
            link = unquote(unescape(quoted or bare))
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, anchor = link.partition("#")
            target = Path(os.path.normpath(site / name[1:] if name.startswith("/") else page.parent / name))
            target = target if name else page
            if not target.exists() or (anchor and anchor not in anchors.get(target, {anchor})):
                found.append(f"{page.relative_to(site)}: {link}")
    return found


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.html").write_text('<h1 id="top">One</h1><a class="x" href="deep/two.html#far">two</a>')
    wrong = '<a href="../one.md">a</a><a href="../one.html#bottom">b</a><img src=gone.png><a href="/lost.html">c</a>'
    right = '<a href="../one.html#top">a</a><a href="#far">b</a><a href=/one.html>c</a><a href="https://x.org/y">d</a>'
    (tmp_path / "deep" / "two.html").write_text(f"<h2 id=far>Two</h2>{right}{wrong}")
    found = [each.split(": ")[1] for each in broken_links(tmp_path)]
    assert found == ["../one.md", "../one.html#bottom", "gone.png", "/lost.html"]


def test_what_is_not_run_is_still_on_a_page_and_every_block_is_of_a_known_kind() -> None:
    shown = {line for page in PAGES for line in commands(page)}
    assert set(NOT_RUN) <= shown, "gone from the pages"
    assert set(ELSEWHERE) <= {page.name for page in PAGES}
    assert {page.stem for page in PAGES} >= FAST
    for reason in (*NOT_RUN.values(), *ELSEWHERE.values()):
        named = re.findall(r"(?:tests|benchmarks)/[\w/.]+\w", reason)
        assert all((ROOT / each).exists() for each in named), reason
    for page in PAGES:
        for block in blocks(page):
            assert block.kind in ("sh", "python", "toml", "text", ""), f"{page.name}: {block.kind}"
            assert block.kind or not re.search(r"^(fairtrial|\$ |>>> |import )", block.text, flags=re.M), page.name


def run_line(line: str, fairtrial: Call) -> None:
    """As a shell would: patterns become files, `>` writes one."""
    words = [each for word in shlex.split(line)[1:] for each in (sorted(glob(word)) if "*" in word else ()) or [word]]
    words, target = (words[:-2], words[-1]) if ">" in words else (words, None)
    done = fairtrial(*words)
    codes = (0, 1) if words[:2] == ["data", "audit"] else (0,)  # 1: the small data here may hold copies
    codes = (0, 10, 11) if words[0] == "gate" else codes  # the decision
    assert done.code in codes, f"{line}\n{done.out}\n{done.err}"
    assert done.out, line
    if target:
        Path(target).write_text(done.out)


def run_python(text: str, name: str, values: dict[str, Any]) -> None:
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # a part's source is looked up
    exec(compile(text, name, "exec"), values)


def shortened(text: str) -> str:
    for pattern, replacement in SHORTER.items():
        text = re.sub(pattern, replacement, text)
    return text


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`named/`, what pages name, and `short/`, what makes their trainings short."""
    workspace = tmp_path_factory.mktemp("pages")
    page_files.furnish(workspace, {block.file: block.text for page in PAGES for block in blocks(page) if block.file})
    return workspace


RUN = [
    page for page in PAGES if page.name not in ELSEWHERE and any(each.kind in ("sh", "python") for each in blocks(page))
]


@pytest.mark.usefixtures("audits_here", "plugins_leave")
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=MARKS.get(page.stem, [pytest.mark.slow])) for page in RUN]
)
def test_a_page_does_what_it_says(
    page: Path, furnished: Path, fairtrial: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block after another: later ones use what earlier ones have made."""
    monkeypatch.chdir(shutil.copytree(furnished / "named", tmp_path / "named"))
    values: dict[str, Any] = {"__name__": page.stem}
    with page_files.short(furnished / "short"):
        for number, block in enumerate(blocks(page)):
            if block.kind == "sh":
                for line in lines(block):
                    if line not in NOT_RUN:
                        run_line(shortened(line), fairtrial)
            elif block.kind == "python" and not block.file:
                run_python(shortened(block.text), f"<{page.name} {number}>", values)
            elif block.kind == "toml":
                tomllib.loads(block.text)


@cases("path", sorted([*(ROOT / "examples").glob("*.toml"), *BUILT_IN.glob("*.toml")]))
def test_recipes_load_and_survive_a_round_trip(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe_from(tomllib.loads(write_recipe(recipe))) == recipe


def test_the_course_recipe_is_the_reports_setting() -> None:
    for task, hidden in (("classify", 256), ("lm", 100)):
        recipe = built_in_recipe("course", task)
        assert (recipe.shape.layers, recipe.shape.heads, recipe.shape.width, recipe.shape.length) == (4, 2, 64, 32)
        assert (recipe.shape.hidden, recipe.training.batch, recipe.training.learning_rate) == (hidden, 16, 1e-3)


def test_the_ci_script_calls_the_readmes_test_command() -> None:
    assert "make test" in README
    assert "make demo" in README
    assert "\nmake test" in (ROOT / ".ci" / "run").read_text()
