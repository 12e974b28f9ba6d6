"""Data and recipes out of a grammar, most of them with a mistake in them: read as they were written, or refused with a
sentence; no traceback, no hang."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from campaign import SEED, Tally, sized
from fairtrial.data.readers import read
from fairtrial.recipe import Data, fingerprint, load_recipe, write_recipe
from tiny import TINY

pytestmark = pytest.mark.slow
pytest_plugins = ("workspaces",)
LONG = 60.0  # seconds of this process; more is a hang
WORDS = (
    'we will go home über naïve 日本 🙂 it\'s "so" a,b <b>x</b> \\n 50% e\u0301 ﬁn \u2028 -- { } [ ] # = ; $x'.split(
        " "
    )
)
LABELS = ["good", "bad", "Ünsure", "0", "1", "true", "-3", "a b", "<i>", "'"]
TEXTS, TARGETS = ("text", "Sentence", "content", "review"), ("label", "Class", "target", "topic")


@dataclass
class Source:
    """A folder of data, and what reading it must give; `rows` is None where that is not known any more."""

    folder: Path
    path: Path
    rows: list[tuple[str, str]] | None
    headless: bool = False  # which column is the label has to be guessed, which may be refused
    story: list[str] = field(default_factory=list)


def make_rows(rng: random.Random) -> list[tuple[str, str]]:
    labels = rng.sample(LABELS, rng.randint(2, 4))
    count = rng.choice([4, 8, 20, 60])
    rows = [(rng.choice(labels), " ".join(rng.choices(WORDS, k=rng.randint(1, 12))).strip()) for _ in range(count)]
    rows = [(label, text) for label, text in rows if text]
    return [*zip(labels, ("we go", "we will go", "go home", "we"), strict=False), *rows]


def table_text(rows: list[tuple[str, str]], rng: random.Random, comma: bool, source: Source) -> str:
    names = [rng.choice(TARGETS), rng.choice(TEXTS)]
    cells: list[list[str]] = [names, *([label, text.replace("\t", " ")] for label, text in rows)]
    source.headless = rng.random() < 0.3
    if rng.random() < 0.5:
        cells = [row[::-1] for row in cells]
    if not source.headless and rng.random() < 0.4:
        cells = [[*row, "group" if at == 0 else str(at % 5)] for at, row in enumerate(cells)]
    cells = cells[1:] if source.headless else cells
    if not comma:
        return "".join("\t".join(row) + "\n" for row in cells)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])).writerows(cells)
    return out.getvalue()


def write_source(rng: random.Random, folder: Path) -> Source:
    rows, kind = make_rows(rng), rng.choice(["tsv", "tsv", "csv", "csv", "jsonl", "classes"])
    source = Source(folder, folder / f"data.{kind}", rows, story=[kind])
    if kind == "classes":
        source.path = folder / "data"
        by_label: dict[str, list[str]] = {}
        for label, text in rows:
            by_label.setdefault(label, []).append(text)
        for label, texts in by_label.items():
            (source.path / label).mkdir(parents=True)
            for number, text in enumerate(texts):
                (source.path / label / f"{number:03}.txt").write_text(text, encoding="utf-8")
        source.rows = [(label, text) for label in sorted(by_label) for text in by_label[label]]
        return source
    if kind == "jsonl":
        text = "".join(json.dumps({"text": text, "label": label}, ensure_ascii=rng.random() < 0.5) + "\n"
                       for label, text in rows)  # fmt: skip
    else:
        text = table_text(rows, rng, kind == "csv", source)
    content = text.encode()
    if rng.random() < 0.2:
        content = b"\xef\xbb\xbf" + content
    if rng.random() < 0.3:
        content = content.replace(b"\n", rng.choice([b"\r\n", b"\r"]))
    source.path.write_bytes(content + rng.choice([b"", b"\n", b"\n\n  \n"]))
    return source


def a_file(source: Source, rng: random.Random) -> Path:
    return rng.choice(sorted(path for path in source.folder.rglob("*") if path.is_file()))


def edit_bytes(edit: Callable[[bytes, int, random.Random], bytes]) -> Callable[[Source, random.Random], None]:
    def run(source: Source, rng: random.Random) -> None:
        path = a_file(source, rng)
        content = path.read_bytes()
        path.write_bytes(edit(content, rng.randrange(len(content) + 1), rng))

    return run


def edit_line(edit: Callable[[bytes, random.Random], bytes]) -> Callable[[Source, random.Random], None]:
    def run(source: Source, rng: random.Random) -> None:
        path = a_file(source, rng)
        lines = path.read_bytes().split(b"\n")
        at = rng.randrange(len(lines))
        lines[at] = edit(lines[at], rng)
        path.write_bytes(b"\n".join(lines))

    return run


def make_special(source: Source, rng: random.Random) -> None:
    path = a_file(source, rng)
    path.unlink()
    kind = rng.choice(["folder", "pipe", "loop", "dangling", "zero"])
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/null")
    else:
        path.symlink_to(path if kind == "loop" else path.with_name("nothing"))


def rename(source: Source, rng: random.Random) -> None:
    path = a_file(source, rng)
    name = rng.choice([b"a\xff.tsv", b"train\x1b[31m.tsv", b".tsv", b"x" * 250, b"t.xyz", b"-rf.tsv", b"a\nb.csv"])
    target = os.path.join(os.fsencode(path.parent), name)
    os.rename(os.fsencode(path), target)
    if source.path == path:
        source.path = Path(os.fsdecode(target))


def split_files(source: Source, rng: random.Random) -> None:
    """A folder of splits, some of which do not fit."""
    content, suffix = (source.path.read_bytes(), source.path.suffix) if source.path.is_file() else (b"a\tb c\n", ".tsv")
    home = source.folder / "splits"
    home.mkdir()
    for name in rng.sample(["train", "dev", "valid", "test", "extra"], rng.randint(1, 4)):
        (home / f"{name}{rng.choice([suffix, suffix, '.tsv', '.csv', '.jsonl'])}").write_bytes(content)
    source.path = home


def swap_label(line: bytes, rng: random.Random) -> bytes:
    return (
        rng.choice([b"\t", b",", b"x\t\tz", b'{"text": 1, "label": []}', b'{"text": "\\ud800", "label": "a"}']) + line
    )


MISTAKES: dict[str, Callable[[Source, random.Random], None]] = {
    "flipped bit": edit_bytes(lambda text, at, rng: flip(text, at, rng)),
    "cut": edit_bytes(lambda text, at, rng: text[:at]),
    "bytes put in": edit_bytes(
        lambda text, at, rng: text[:at] + rng.choice([b"\0", b"\xff", b"\xc3", b'"', b"\t", b",", b"\x1b[2J", b"\\",
                                                      b"\xed\xa0\x80", b"{", b"}" * 50, b"\n\n", b"\x85"]) + text[at:]
    ),
    "doubled": edit_bytes(lambda text, at, rng: text + text),
    "first line gone": edit_bytes(lambda text, at, rng: text.partition(b"\n")[2]),
    "other encoding": edit_bytes(
        lambda text, at, rng: text.decode(errors="replace").encode(rng.choice(["utf-16", "utf-16-le", "latin-1",
                                                                               "utf-7"]), errors="replace")
    ),
    "packed": edit_bytes(lambda text, at, rng: gzip.compress(text, mtime=0)),
    "empty": edit_bytes(lambda text, at, rng: rng.choice([b"", b" ", b"\n" * 30, b"\xef\xbb\xbf"])),
    "other line": edit_line(swap_label),
    "line gone": edit_line(lambda line, rng: b""),
    "long line": edit_line(lambda line, rng: line + b"x" * rng.choice([70_000, 1_100_000])),
    "long number": edit_line(lambda line, rng: b"9" * rng.choice([400, 5_000]) + b"\t" + line),
    "deep": edit_line(lambda line, rng: rng.choice([b"[", b'{"a":']) * 100_000),
    "special file": make_special,
    "name": rename,
    "splits": split_files,
}  # fmt: skip


def flip(text: bytes, at: int, rng: random.Random) -> bytes:
    if not text:
        return text
    changed = bytearray(text)
    changed[at % len(text)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def judge(tally: Tally, where: str, ask: Callable[[], Any]) -> Any:
    """What a command says; None where it did what no command may do."""
    started = time.process_time()
    try:
        said = ask()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        tally.failed(where, "".join(traceback.format_exception(error)[-3:]))
        return None
    if time.process_time() - started > LONG:
        tally.failed(where, f"it took {time.process_time() - started:.0f} s")
        return None
    if said.code not in (0, 2, 4) or "Traceback" in said.err or "\x1b" in said.out + said.err:
        tally.failed(where, f"exit {said.code}: {said.err[-800:]}")
        return None
    if said.code and not said.err.startswith(("fairtrial: ", "note", "Usage")) and "\nfairtrial: " not in said.err:
        tally.failed(where, f"no reason is told: {said.err[-300:]!r}")
        return None
    return said


def test_data_out_of_a_grammar(fairtrial: Callable[..., Any], tmp_path: Path, capsys: Any) -> None:
    tally = Tally("data inputs")
    settings = [f"--set={each}" for each in (*TINY, "training.duration=1 steps")]
    for number in range(sized(2000)):
        rng = random.Random(f"{SEED} data {number}")
        folder = tmp_path / str(number)
        folder.mkdir()
        source = write_source(rng, folder)
        for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
            mistake = rng.choice(list(MISTAKES))
            source.story.append(mistake)
            source.rows = None
            try:
                MISTAKES[mistake](source, rng)
            except (OSError, IndexError):  # a second mistake may find nothing that it could hurt
                continue
        where = f"data {number}: {', '.join(source.story)}"
        words: list[object] = ["params", "default", "--task", rng.choice(["classify", "classify", "lm"])]
        if number % 10 == 0:
            words = ["train", rng.choice(["classify", "lm"]), *settings, "--out", folder / "record"]
        elif number % 10 == 1:
            words = ["baseline", "--task", rng.choice(["classify", "lm"])]
        said = judge(tally, where, lambda words=words, source=source: fairtrial(*words, "--data", source.path))
        if said is None:
            continue
        if source.rows is not None and (problem := misread(source)):
            tally.failed(where, problem)
            continue
        tally.refused() if said.code else tally.survived()
    with capsys.disabled():
        tally.close()


def misread(source: Source) -> str:
    """Data without a mistake are read as they were written, to the letter."""
    from fairtrial.errors import BadInput

    try:
        corpus = read(Data(source=str(source.path)), "classify")
    except BadInput as error:
        unclear = "unclear which column" in error.what or "looks like a label" in error.what
        return "" if source.headless and unclear else f"refused: {error.what}"
    found = [(document.label, document.text) for document in corpus.train]
    wanted = [(label.strip(), text.strip()) for label, text in source.rows or []]
    if found == wanted or (source.headless and found == [(text, label) for label, text in wanted]):
        return ""
    wrong = next((pair for pair in zip(found, wanted, strict=False) if pair[0] != pair[1]), (len(found), len(wanted)))
    return f"read otherwise than written: {wrong}"


SCALARS = ["-1", "0", "1", "2", "3", "8", "16", "0.5", "1e-3", "1e308", "-0.0", "nan", "inf", "1_000_000_000",
           "9" * 30, "9" * 400, "9" * 5000, "true", "false", '""', '"x"', '"rope"', '"none"', '"adam"', '"3 epochs"',
           '"2 steps"', '"-1 steps"', '"1e9 epochs"', '"\\u001b[31m"', '"../../x"', "[]", "[1]", '["rope"]', "{}",
           '["rope", "alibi"]', '[{name = "window", size = 2}]', '[{name = "window", size = -1}]', "{a = 1}",
           '[{name = "rope", base = "x"}]', '["rpoe"]', '["pool-mean"]', "1979-05-27", "0x10", "'''x'''", "[[[[[]]]]]",
           '"\\ud800"', "\u2028", "@"]  # fmt: skip
LINES = ["[shape]", "[[parts]]", "[unknown]", "x = 1", "= 1", '"" = 2', "a.b.c = 3", "layers = 1", "\x00", "\ufeff",
         "[shape", '"', "#" * 1000, "[" * 5000, "a = {" * 500, "é = 1"]  # fmt: skip


def write_bad_recipe(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        kind = rng.random()
        if kind < 0.65:
            fields = [number for number, line in enumerate(lines) if "=" in line and line[:1] not in "#["]
            if not fields:
                continue
            at = rng.choice(fields)
            lines[at] = f"{lines[at].partition('=')[0]}= {rng.choice(SCALARS)}"
        elif kind < 0.8:
            lines.insert(at, rng.choice(LINES))
        elif kind < 0.9:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        else:
            del lines[at]
            lines = lines or [""]
    return "\n".join(lines) + "\n"


def test_recipes_out_of_a_grammar(
    fairtrial: Callable[..., Any], course: Path, tmp_path: Path, capsys: Any, tiny_recipe: Callable[..., Any]
) -> None:
    tally, path = Tally("recipes"), tmp_path / "recipe.toml"
    texts = [write_recipe(tiny_recipe(task, "training.duration=2 steps")) for task in ("classify", "lm", "mlm")]
    for number in range(sized(1000)):
        rng = random.Random(f"{SEED} recipe {number}")
        text = write_bad_recipe(rng, rng.choice(texts))
        path.write_bytes(text.encode(errors="surrogatepass"))
        words: list[object] = ["params", path, "--data", course]
        if number % 3 == 0:
            words = ["train", path, "--data", course, "--steps", 1, "--out", tmp_path / f"run-{number}"]
        where = f"recipe {number} ({words[0]})"
        said = judge(tally, where, lambda words=words: fairtrial(*words))
        if said is None:
            path.rename(tmp_path / f"failed-{number}.toml")
        elif said.code:
            tally.refused()
        else:
            found = load_recipe(path)
            again = tmp_path / "again.toml"
            again.write_text(write_recipe(found))
            if fingerprint(load_recipe(again)) == fingerprint(found):
                tally.survived()
            else:
                tally.failed(where, "written again, it is another recipe")
    with capsys.disabled():
        tally.close()
