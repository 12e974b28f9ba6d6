"""Everyone can use every view: judged by axe-core, with the keyboard alone, on a phone and on a projector."""

from __future__ import annotations

from typing import Any

import pytest
from client import until

VIEWS = {  # address -> what is there once it is shown
    "/": "td a",
    "/playground?a=lm&b=classify": "[data-side=b] .maps canvas",
    "/playground?a=study/trials/classify/rope/seed-0&b=classify&b0=1": "[data-side=b] .maps canvas",
    "/playground?a=nothing": ".problem",
    "/parts?part=alibi": "figure svg",
    "/puzzles": ".plane .key",
    "/puzzles?ask=average&wanted=0,5": ".chip.red",
}
OTHER_SCREENS = [("dark", 1280), ("light", 390), ("light", 2560)]
# all that can be used and seen now; what is inside a closed <details> has no boxes
USABLE = """() => [...document.querySelectorAll('button, a[href], input, select, textarea, summary, [tabindex="0"]')]
  .filter((node) => !node.disabled && node.checkVisibility())
  .map((node, at) => { node.dataset.usable = at; return node.outerHTML.slice(0, 160); })"""
FOCUSED = """() => {
  const node = document.activeElement, ring = getComputedStyle(node.querySelector('circle') || node);
  const shown = node.matches('body') || ring.outlineStyle !== 'none' || parseFloat(ring.strokeWidth) >= 4;
  return [node.dataset.usable ?? null, shown];
}"""


def visit(page: Any, view: str, ready: str) -> None:
    page.goto(page.evaluate("location.origin") + view)
    page.wait_for_selector(ready)
    shown: list[str] = []
    until(lambda: still(page, shown))


def still(page: Any, shown: list[str]) -> bool:
    """Whether the page has not changed for a moment."""
    page.wait_for_timeout(200)
    shown.append(page.evaluate("document.querySelector('main').innerHTML"))
    return shown[-2:-1] == shown[-1:]


def violations(page: Any) -> list[str]:
    found = AXE().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:160]} {node['any'][:1]}" for each in found for node in each["nodes"]]


def AXE() -> Any:  # noqa: N802
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe: pip install -e '.[dev]'")
    return axe.Axe()


def widest(page: Any) -> int:
    return page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize(
    ("theme", "width"),
    [("light", 1280), ("dark", 390), *(pytest.param(*each, marks=pytest.mark.slow) for each in OTHER_SCREENS)],
)
def test_every_view_is_for_everyone(open_page: Any, study: str, theme: str, width: int) -> None:
    """The keyboard reaches all of it, nothing is cut, and axe finds nothing."""
    page = open_page("/", width, theme)
    for view, ready in VIEWS.items():
        visit(page, view, ready)
        if theme == "light":
            walk(page, view)
        assert widest(page) <= width, view
        for details in page.locator("details").all():
            details.evaluate("(node) => { node.open = true; }")
        assert violations(page) == [], view
        if theme == "dark":
            for other in (768, 2560):
                page.set_viewport_size({"width": other, "height": 900})
                assert widest(page) <= other, view
            page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("document.querySelector('.brand').style.color = '#777'")  # the control: axe sees the page
    page.evaluate("document.querySelector('header button').textContent = ''")
    assert {each.partition(":")[0] for each in violations(page)} >= {"color-contrast", "button-name"}


def walk(page: Any, view: str) -> None:
    """From one thing to the next with the tabulator: all that can be used is reached, and the focus can be seen."""
    usable = page.evaluate(USABLE)
    assert len(usable) >= 8
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached: set[str] = set()
    for _ in range(2 * len(usable)):
        at, shown = page.evaluate(FOCUSED)
        if at is None:
            break
        assert shown, usable[int(at)]
        reached.add(at)
        page.keyboard.press("Tab")
    assert [each for number, each in enumerate(usable) if str(number) not in reached] == [], view


def test_axe_finds_nothing_in_what_a_person_opens(open_page: Any, study: str) -> None:
    page = open_page("/", 1280, "dark")
    visit(page, "/playground?a=lm", ".maps canvas")
    page.locator(".surprisal button").nth(2).focus()
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_timeout(400)  # it fades in
    assert violations(page) == []
    visit(page, "/playground?a=classify", ".maps canvas")
    page.locator("[role=application]").focus()
    page.keyboard.press("ArrowDown")
    assert violations(page) == []
    visit(page, "/parts?part=window", "figure svg")
    page.locator("summary").first.click()
    assert violations(page) == []


def test_nothing_moves_for_those_who_ask(open_page: Any) -> None:
    """What begins to move is counted as it begins: a look at a moment may come too late."""
    for wish in ("no-preference", "reduce"):
        page = open_page("/", reduced_motion=wish)
        page.wait_for_selector("td a")
        page.evaluate("""() => { window.moves = 0;
            for (const kind of ["transitionrun", "animationstart"])
                document.addEventListener(kind, () => window.moves++, true); }""")
        page.get_by_role("button", name="Copy link").click()
        page.wait_for_selector("#said.on")
        if wish == "no-preference":
            until(lambda page=page: page.evaluate("window.moves") > 0)
        else:  # two frames after the change nothing has begun
            frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(window.moves))))"
            assert page.evaluate(frames) == 0
