"""The code base stays readable: small files, telling names, nothing unsafe, nothing from a network."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FOLDERS = ("src", "docs", "tests", "benchmarks", "examples", "research")
PATTERNS = (*(f"{folder}/**/*" for folder in FOLDERS), "*.md", "*.toml", "Makefile")
TEXTS = [
    path
    for pattern in PATTERNS
    for path in ROOT.glob(pattern)
    if path.is_file() and path.suffix in (".py", ".md", ".toml", ".html", ".css", "")
]  # fmt: skip


def test_names_say_something() -> None:
    for path in SOURCES:
        assert path.stem not in {"utils", "helpers", "common", "misc", "base", "manager"}


def test_nothing_is_unpickled_or_evaluated() -> None:
    for path in SOURCES:
        uses = r"torch\.load\(|yaml\.load\(|(?<![\w.])eval\(|(?<![\w.])exec\("
        unsafe = re.compile(uses + r"|(?:import|from) +c?[pP]ickle|\b(?:un)?pickle(?:r)?\.")
        assert not unsafe.search(path.read_text()), path


def test_every_file_says_what_it_is_for() -> None:
    for path in SOURCES:
        assert path.read_text().startswith('"""')


def text_calls(source: str) -> set[str]:
    """What a file reads or writes as text without saying the encoding, or with the line ends of the system."""
    found = set()
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        method = isinstance(call.func, ast.Attribute)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = {each.arg for each in call.keywords}
        modes = {each.value for each in call.args if isinstance(each, ast.Constant)} & {"r", "w", "a", "x", "r+", "w+"}
        opens = name == "open" and (modes or (not method and len(call.args) < 2))
        runs = name in ("run", "Popen", "check_output") and "text" in given
        silent = (opens or runs or (method and name == "read_text")) and "encoding" not in given
        if silent or (method and name == "write_text") or (opens and modes - {"r", "r+"}):
            found.add(f"line {call.lineno}: {name}")
    return found


def test_files_are_utf8_with_the_same_line_ends_on_every_system() -> None:
    """Text is read with its encoding, and written by `fairtrial.disk` alone, which adds no line ends of Windows."""
    assert {path: calls for path in SOURCES if (calls := text_calls(path.read_text()))} == {}
    for bad in ("open(p)", "p.open('w')", "p.read_text()", "p.write_text(t, encoding='utf-8')", "run(c, text=True)"):
        assert text_calls(bad), bad


def test_no_page_asks_the_network() -> None:
    for path in (ROOT / "src").rglob("*.html"):
        assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", path.read_text())


def test_no_path_of_one_machine_stands_in_the_repo() -> None:
    for path in TEXTS:
        assert not re.search(r"(^|[^a-zA-Z.])/(work|root|home)/", path.read_text(encoding="utf-8")), path


def test_the_map_names_nothing_that_is_not_there() -> None:
    package = ROOT / "src" / "fairtrial"
    for name in re.findall(r"`([a-z_/]+\.py)`", (ROOT / "docs" / "map.md").read_text()):
        assert (package / name).is_file() or (ROOT / name).is_file(), f"docs/map.md names {name}"


def test_no_template_asks_for_a_name_that_every_dictionary_answers() -> None:
    """`each.copy` is the method, which is always true; `each["copy"]` is the fact."""
    methods = [
        name for name in dir(dict) if not name.startswith("_") and name not in ("items", "get", "keys", "values")
    ]
    asked = re.compile(rf"\b\w+\.({'|'.join(methods)})\b(?!\()")
    for path in (ROOT / "src" / "fairtrial").rglob("*.html"):
        inside = " ".join(re.findall(r"{[{%](.*?)[%}]}", path.read_text(), re.DOTALL))
        assert not asked.findall(inside), path.name
