"""What a user reads, as a list, and the rules of it that a program can check. `python tests/codebase/test_english.py`
prints the list: every string of the package that is a phrase, with its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "fairtrial"
GENERATED = {"api.md", "commands.md", "parts.md", "recipe.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in GENERATED)]
LONGEST = 25  # words in a sentence
LONG_IN_DOCS = 45  # sentences of the pages that are longer than that; to be lowered with every page that is mended
LISTS = {  # of words that columns and metrics are known by
    ("data/probes.py", "id ids uid"),
    ("statistics/outcomes.py", "acc accuracy"),
    ("statistics/outcomes.py", "loss nll"),
}

# phrases that had to be read twice, and what is said instead
BANNED = {
    r"(is|are) not there\b": "missing, not found",
    r"will not do\b": "must be",
    r"\b(is|are|was) told\b": "the thing that happens",
    r"says? nothing of\b": "is not meaningful, does not show",
    r"by luck alone\b": "by chance",
    r"\bnot asked\b(?!: out of time)": "not tested",
    r"\bof which\b": "two sentences",
    r"\bnobody's\b": "no one's",
    r"\bnothing is paired\b": "compared as independent groups",
    r"\bthose very\b": "the same",
    r", as \w+ have it\b": "as in",
    r"\bpassport\b": "leak audit",
    r"\b[Gg]o(es)? on with\b": "continue",
    r"\bbegun\b": "started",
    r"\bbeside\b": "next to, with",
    r"\bowns\b": "overrides, has",
    r"\b[Mm]end(s|ed)?\b": "fix",
    r"\bcannot be had\b": "is not available",
    r"\b(is|are) (gone|asked by)\b": "missing, scored alone",
    r"\bbrings? (no|its own)\b": "has",
    r"\bnothing is known of\b": "nothing is known about",
    r"\btells? (the|apart)\b": "shows, predicts, distinguishes",
    r"\b(is|are) no (number|word|file|Python|record|study)\b": "is not a",
    r"\bwhat needs no\b": "models without",
    r"\bof a network of\b": "two sentences",
}
# one spelling of each term
TERMS = {
    r"\bdata ?set\b": "data, test set",
    r"\b[Ff]ine tun|\b[Ff]inetun(ed|ing)": "fine-tun",
    r"\bhyper-?parameter": "setting, learning rate",
}


class Phrase(NamedTuple):
    place: str
    line: int
    text: str


def phrases() -> Iterator[Phrase]:
    """Strings of three words and more; values within f-strings are `X`. Docstrings are for readers of the code."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(inner) for inner in ast.walk(node)} - {id(node)}
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text:
                yield Phrase(path.relative_to(SOURCE).as_posix(), node.lineno, text)


def prose(page: Path) -> str:
    """A page without code, tables and addresses."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    text = "\n".join(line for line in text.split("\n") if not line.startswith("|"))
    return re.sub(r"`[^`\n]*`", "X", re.sub(r"\]\([^)]*\)", "]", text))


def sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n- |\n\d\. |\n#+ ", text):
        yield from re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split()))


def test_messages_have_at_most_25_words_in_a_sentence() -> None:
    long = [
        f"{each.place}:{each.line}: {sentence}"
        for each in phrases()
        for sentence in sentences(each.text)
        if len(sentence.split()) > LONGEST
        and not any(each.place == file and begin in each.text for file, begin in LISTS)
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize(("pattern", "instead"), [*BANNED.items(), *TERMS.items()])
def test_phrases_that_had_to_be_read_twice_are_gone(pattern: str, instead: str) -> None:
    said = [f"{each.place}:{each.line}: {each.text}" for each in phrases() if re.search(pattern, each.text)]
    said += [
        f"{page.name}: {sentence}"
        for page in PAGES
        for sentence in sentences(prose(page))
        if re.search(pattern, sentence)
    ]
    assert not said, f"say {instead!r}:\n" + "\n".join(said)


def test_few_sentences_of_the_pages_are_long() -> None:
    long = [
        f"{page.name}: {sentence}"
        for page in PAGES
        for sentence in sentences(prose(page))
        if len(sentence.split()) > LONGEST
    ]
    assert len(long) <= LONG_IN_DOCS, "\n".join(long)


def test_the_rules_see_what_they_forbid(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\nThe file is not there. " + "word " * 26 + "\n\n- `of which` is code.\n")
    found = list(sentences(prose(page)))
    assert any(re.search(r"(is|are) not there\b", each) for each in found)
    assert max(len(each.split()) for each in found) == 26
    assert not any("of which" in each for each in found)
    assert {each.place for each in phrases()} >= {"errors.py", "cli/commands.py", "statistics/verdict.py"}


if __name__ == "__main__":
    for phrase in phrases():
        print(f"{phrase.place}:{phrase.line}: {phrase.text}")
