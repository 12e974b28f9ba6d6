"""One page about all parts, in Markdown: passport, definition, paper, options, drawing. `fairtrial parts --page`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.look.catalogue import Entry
from fairtrial.look.draw import image
from fairtrial.look.portray import portray
from fairtrial.passport.finding import FAIL, Finding
from fairtrial.passport.run import audit
from fairtrial.passport.subject import plans_of_part, subject_of
from fairtrial.passport.text import HEADER, KINDS, markdown_row

HEAD = """# Parts: every architecture idea as one small file

This page is made by `fairtrial parts --page docs/parts.md`; do not edit it. Each drawing is measured on the untrained
part in a decoder with 4 heads at 24 positions (pools in an encoder). How to add yours: [add-a-part.md](add-a-part.md).
"""
PASSPORTS = """
## Passports

Does it cheat? Each part alone, at the default shape, in an encoder and in a decoder, by the checks of
`fairtrial audit PART`.
"""


def write_page(path: Path, entries: Sequence[Entry], tell: Callable[[str], None] = lambda line: None) -> None:
    """The page, and the drawings in a folder beside it of the same name."""
    drawings, passports = path.with_suffix(""), {}
    with disk_errors(drawings):
        drawings.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        tell(entry.name)
        passports[entry.name] = audit_part(entry.name)
        pictures = portray(entry.name, causal="pool" not in entry.verbs)
        write_bytes(drawings / f"{entry.name}.svg", image(pictures, entry.name, "svg"))
    write_text(path, page_text(entries, passports, drawings.name))


def audit_part(name: str) -> list[Finding]:
    return [finding for plan in plans_of_part(name) for finding in audit(subject_of(plan))]


def page_text(entries: Sequence[Entry], passports: Mapping[str, Sequence[Finding]], drawings: str) -> str:
    table = ["| part | what it does | uses | claims |", "|---|---|---|---|"]
    table += [
        f"| [`{entry.name}`](#{entry.name}) | {entry.line} | {listed(entry.verbs)} | {listed(entry.claims)} |"
        for entry in entries
    ]
    rows = [markdown_row(name, findings) for name, findings in passports.items()]
    sections = [section(entry, passports[entry.name], drawings) for entry in entries]
    return "\n".join([HEAD, *table, PASSPORTS, HEADER, *rows, "", "## One by one", "", *sections])


def section(entry: Entry, findings: Sequence[Finding], drawings: str) -> str:
    lines = [f"### {entry.name}", "", entry.definition, ""]
    lines += [f"Paper: {', '.join(f'<{paper}>' for paper in entry.papers)}", ""] if entry.papers else []
    options = [f"- {name} = {default}" for name, default in entry.options.items()]
    lines += ["Options:", "", *options, ""] if options else []
    lines += [entry.options_help, ""] if entry.options_help else []
    failed = [finding for finding in findings if finding.verdict == FAIL]
    lines += ["It fails its passport:", "", *map(failure, failed), ""] if failed else []
    return "\n".join([*lines, f"![what {entry.name} does]({drawings}/{entry.name}.svg)", ""])


def failure(finding: Finding) -> str:
    return f"- {finding.id} {finding.name} ({KINDS[finding.task]}): {finding.meaning}"


def listed(words: Sequence[str]) -> str:
    return ", ".join(words) or "nothing"
