"""A recording of real commands in a terminal, as a moving SVG: `python docs/recording.py` writes images/minute.svg.

The commands run in a pseudo-terminal whose screen is read four times a second; waiting is shortened so that all fits
a minute. Every distinct line is drawn once and used by the frames that show it. With reduced motion the last frame
stays."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from html import escape
from itertools import pairwise
from pathlib import Path

import pyte

HERE = Path(__file__).resolve().parent
COLUMNS, ROWS, SECONDS = 100, 28, 60.0
LONGEST_WAIT = 1.2  # seconds that a screen may stand still, as recorded
SHORTEST = 0.3  # seconds that a frame is shown at least; those in between are left out
LINE, LETTER = 18, 8.4  # pixels
SMALL = "shape.width=32 shape.hidden=32 'training.duration=400 steps'"
COMMANDS = (
    "fairtrial audit rope",
    f"fairtrial study --task lm --variants learned rope --seeds 5 --set {SMALL} --out rotary",
)
COLOURS = {"green": "#7ee787", "red": "#ff7b72", "brown": "#e3b341", "cyan": "#79c0ff", "blue": "#79c0ff"}
Screen = tuple[tuple[tuple[str, str], ...], ...]  # lines of (text, colour)


def record(commands: tuple[str, ...], folder: Path) -> list[tuple[float, Screen]]:
    """What the screen showed, and when."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    frames: list[tuple[float, Screen]] = []
    begun = time.monotonic()

    def keep() -> None:
        now = lines_of(screen)
        if not frames or frames[-1][1] != now:
            frames.append((time.monotonic() - begun, now))

    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for command in commands:
        for letter in f"$ {command}\r\n":
            stream.feed(letter.encode())
            keep()
            time.sleep(0.03)
        main, side = pty.openpty()
        process = subprocess.Popen(
            command, shell=True, cwd=folder, env=environment, stdin=side, stdout=side, stderr=side, close_fds=True
        )
        os.close(side)
        while process.poll() is None or select.select([main], [], [], 0)[0]:
            if select.select([main], [], [], 0.25)[0]:
                try:
                    stream.feed(os.read(main, 65536))
                except OSError:  # the other side has closed
                    break
            keep()
        os.close(main)
        keep()
        if process.wait():
            sys.exit(f"{command} ended with {process.returncode}")
    return frames


def lines_of(screen: pyte.Screen) -> Screen:
    lines = []
    for row in range(ROWS):
        runs: list[tuple[str, str]] = []
        for column in range(COLUMNS):
            cell = screen.buffer[row][column]
            colour = COLOURS.get(cell.fg, "") or ("#ffffff" if cell.bold else "")
            if runs and runs[-1][1] == colour:
                runs[-1] = (runs[-1][0] + cell.data, colour)
            else:
                runs.append((cell.data, colour))
        runs[-1] = (runs[-1][0].rstrip(), runs[-1][1])
        lines.append(tuple(run for run in runs if run[0]))
    return tuple(lines)


def moments(frames: list[tuple[float, Screen]]) -> list[float]:
    """When each frame begins, in a minute that begins and ends with it; long waits are cut."""
    waits = [min(LONGEST_WAIT, after - before) for (before, _), (after, _) in pairwise(frames)]
    left = SECONDS - 4  # the last screen stands for as long
    scale = min(1.0, left / sum(waits))
    begins = [0.0]
    for wait in waits:
        begins.append(begins[-1] + wait * scale)
    return begins


def thinned(frames: list[tuple[float, Screen]]) -> tuple[list[float], list[Screen]]:
    """Few enough frames for a browser to play, and when each begins; the last one of the recording is kept."""
    begins: list[float] = []
    screens: list[Screen] = []
    for moment, (_, screen) in zip(moments(frames), frames, strict=True):
        if begins and moment - begins[-1] < SHORTEST:
            screens[-1] = screen
        else:
            begins.append(moment)
            screens.append(screen)
    return begins, screens


def draw(frames: list[tuple[float, Screen]]) -> str:
    known: dict[tuple[tuple[str, str], ...], int] = {}  # each distinct line, and its number
    begins, screens = thinned(frames)
    begins, last = [*begins, SECONDS], len(screens) - 1
    keys, groups = [], []
    for number, screen in enumerate(screens):
        numbered = [(row, known.setdefault(line, len(known))) for row, line in enumerate(screen) if line]
        uses = "".join(f'<use href="#l{name}" y="{row * LINE}"/>' for row, name in numbered)
        start, end = (100 * moment / SECONDS for moment in begins[number : number + 2])
        before = f"0%{{visibility:hidden}}{start:.3f}%{{visibility:visible}}" if number else "0%{visibility:visible}"
        after = f"{end:.3f}%,100%{{visibility:hidden}}" if number < last else "100%{visibility:visible}"
        keys.append(f"@keyframes k{number}{{{before}{after}}}")
        groups.append(f'<g style="animation-name:k{number}">{uses}</g>')
    lines = "".join(f'<text id="l{name}">{spans(line)}</text>' for line, name in known.items())
    width, height = COLUMNS * LETTER + 32, ROWS * LINE + 44
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">
<title>Real commands, shortened to a minute: {escape("; ".join(COMMANDS))}</title>
<style>
text{{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d0d7de;white-space:pre}}
g g{{visibility:hidden;animation:{SECONDS:.0f}s step-end infinite}}
{"".join(keys)}
@media (prefers-reduced-motion:reduce){{g g{{animation:none}}g g:last-child{{visibility:visible}}}}
</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g transform="translate(16 30)">{"".join(groups)}</g>
</svg>
"""


def spans(line: tuple[tuple[str, str], ...]) -> str:
    """Runs of one colour; each begins at its column, whatever the width of the letters."""
    found, column = [], 0
    for text, colour in line:
        fill = f' fill="{colour}"' if colour else ""
        found.append(
            f'<tspan x="{column * LETTER:.1f}" textLength="{len(text) * LETTER:.1f}"{fill}>{escape(text)}</tspan>'
        )
        column += len(text)
    return "".join(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as workspace:
        seen = record(COMMANDS, Path(workspace))
    (HERE / "images" / "minute.svg").write_text(draw(seen), encoding="utf-8")
