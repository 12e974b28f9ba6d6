"""Pages made of text that wants to run: names, labels, sentences, files, errors. In a browser, with and without the
policy that would stop it, nothing runs, nothing is loaded, and no element is there that our templates do not have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import pytest

from campaign import Tally
from fairtrial.recipe import write_recipe
from tiny import make_tiny

pytestmark = pytest.mark.slow
RUN = "document.documentElement.dataset.ran=1"
PAYLOADS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</title></style></textarea><script>{RUN}</script>",
    f'"><img src=x onerror="{RUN}">',
    f"'><svg onload={RUN}>",
    f'" autofocus tabindex=1 onfocus={RUN} x="',
    f"<iframe srcdoc='<script>parent.{RUN}</script>'>",
    f"<a href=javascript:{RUN}>",
    "<base href=http://127.0.0.1:9/>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x>",
    "<meta http-equiv=refresh content=0;url=http://127.0.0.1:9/>",
    "<style>*{display:none}</style>",
    "]]><!--",
    "{{7*7}}{% for x in () %}${7*7}",
    "\\u003cscript\\u003e&lt;script&gt;&#x3c;script>",
    "\u202egnp.exe\u2028\u0085",
]
FORBIDDEN = r"<(iframe|base|link|object|embed|img|form|a href=.?javascript)\b|http-equiv=.?refresh|127\.0\.0\.1:9"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, str]]:
    """Opens a page: its document after all scripts, and what the browser complained of."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser here")
    workspace = tmp_path_factory.mktemp("browser")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    flags += [
        "--enable-logging=stderr",
        "--v=0",
        f"--user-data-dir={workspace / 'profile'}",
        "--virtual-time-budget=2000",
    ]

    def visit(page: str) -> tuple[str, str]:
        (workspace / "page.html").write_text(page, encoding="utf-8")
        words = [program, *flags, "--dump-dom", f"file://{workspace / 'page.html'}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=1800)
        return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)

    return visit


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every kind of page, made by our own commands of data and recipes in which every name is a payload."""
    from fairtrial.engines import InProcess
    from fairtrial.inspection.heads import look, write_look
    from fairtrial.record import Listed
    from fairtrial.report.page import result_page, write_study_page
    from fairtrial.results.records import Records
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.run import run_study
    from fairtrial.study.tables import study_from
    from fairtrial.trial import load, run_trial

    workspace = tmp_path_factory.mktemp("pages")
    data = workspace / f"data {PAYLOADS[4]}".replace("/", "")
    data.mkdir()
    labels = [PAYLOADS[0], PAYLOADS[3], PAYLOADS[13]]
    plain = [text.replace("\u2028", " ").replace("\u0085", " ") for text in PAYLOADS]
    lines = [f"{labels[at % 3]}\twe will go {plain[at % len(plain)]} {at}\n" for at in range(60)]
    (data / "train.tsv").write_text("".join(lines))
    (data / "test.tsv").write_text("".join(line.replace("we will", "they may") for line in lines[:30]))
    speeches = workspace / "course"
    speeches.mkdir()
    (speeches / "train_CLS.tsv").write_text("".join(lines))
    (speeches / "test_CLS.tsv").write_text("".join(lines[:20]))
    text = "".join(line.partition("\t")[2] for line in lines)
    (speeches / "train_LM.txt").write_text(text)
    (speeches / f"test_LM_{PAYLOADS[3]}.txt".replace("/", "")).write_text(text[:900])

    name = f"name={json.dumps(PAYLOADS[2])}"
    classify = run_trial(make_tiny("classify", data, name), 0, workspace / f"run {PAYLOADS[5]}".replace("/", ""))
    language = run_trial(make_tiny("lm", speeches, name), 0, workspace / "lm")
    found: dict[str, str] = {
        "show": result_page(
            Records((Listed(classify), Listed(language))).describe_all(PAYLOADS[1]), [classify, language]
        ),
        "errors": result_page(import_module("fairtrial.inspection.classifier").errors(load(classify)).describe()),
    }
    for record, given in ((classify, [PAYLOADS[0], f"we will {PAYLOADS[3]}"]), (language, [PAYLOADS[1]])):
        seen = look(load(record), given, 0, 0)
        out = workspace / f"look-{record.recipe.task}"
        page = write_look(seen, record, out, "svg").page
        found[f"look {record.recipe.task}"] = page.read_text()

    (workspace / "recipe.toml").write_text(write_recipe(make_tiny("classify", data, name)))
    variants: dict[str, Any] = {"learned": {"parts": ["learned"]}, "rope": {"parts": ["rope"]}}
    table = {"recipe": str(workspace / "recipe.toml"), "name": PAYLOADS[3], "tasks": ["classify"], "seeds": 2}
    table |= {"variants": variants, "sentence": f"we will {PAYLOADS[0]}"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("fairtrial.audit.run"), "RepeatedRuns", lambda plans: nullcontext())
        run_study(study_from(table), workspace / "study", InProcess())
        row = {"task": "classify", "variant": "rope", "seed": 9, "error": " ".join(PAYLOADS)}
        StudyFolder(workspace / "study").add_failure(row)
        run_study(study_from(table), workspace / "study", InProcess())
    found["report"] = write_study_page(workspace / "study").read_text()
    return found


def test_nothing_runs(pages: dict[str, str], browser: Callable[[str], tuple[str, str]], capsys: Any) -> None:
    tally = Tally("hostile pages")
    for name, page in pages.items():
        told = sum(escaped in page for escaped in ("&lt;script&gt;", "\\u003cscript", "&lt;img"))
        bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        assert bare != page
        for kind, content in (("as it is", page), ("without its policy", bare)):
            where = f"{name}, {kind}"
            document, complaints = browser(content)
            shown = re.sub(r"<(script|style)\b.*?</\1>", "", document, flags=re.S)
            tags = " ".join(re.findall(r"<[a-z][^>]*>", shown))
            if "data-ran" in document:
                tally.failed(where, "the canary ran")
            elif wrong := re.search(FORBIDDEN, tags):
                tally.failed(where, f"an element of a stranger: {tags[wrong.start() - 50 : wrong.end() + 50]}")
            elif complaints:
                tally.failed(where, f"the browser complains: {complaints}")
            elif not told or "</html>" not in document:
                tally.failed(where, "no payload is on the page: this proves nothing")
            else:
                tally.survived()
    with capsys.disabled():
        tally.close()


def test_the_canary_runs_where_it_may(pages: dict[str, str], browser: Callable[[str], tuple[str, str]]) -> None:
    """A control: put into a page as it is, each payload that can run does, unless the page has its policy."""
    page = pages["show"]
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    for payload in PAYLOADS[:4]:
        hurt = payload if payload.startswith("<") else f'<p title="{payload}'
        assert "data-ran" in browser(bare.replace("</body>", f"{hurt}</body>"))[0], payload
        assert "data-ran" not in browser(page.replace("</body>", f"{hurt}</body>"))[0], payload


def test_our_own_script_runs_under_its_policy(pages: dict[str, str], browser: Callable[[str], tuple[str, str]]) -> None:
    document, complaints = browser(pages["look classify"])
    assert re.search(r'<h3 id="which">Layer 0, head 0', document)
    assert not complaints
