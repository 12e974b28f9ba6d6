"""A page in Markdown and, in a folder of its name beside it, its figures. Frames of tables are in tables.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader

from fairtrial.disk import disk_errors, write_bytes, write_text
from fairtrial.report import environment

HERE = Path(__file__).parent
BY_HAND = "<!-- by hand: what follows is kept when the page is made again -->"


def write_markdown(path: Path, template: Path, pictures: Mapping[str, bytes], values: Mapping[str, Any]) -> Path:
    folder = path.with_suffix("")
    with disk_errors(path.parent):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in pictures.items():
        write_bytes(folder / name, content)
    loaded = environment().overlay(loader=FileSystemLoader([template.parent, HERE]), autoescape=False)
    text = loaded.get_template(template.name).render(values, pictures=pictures, folder=folder.name)
    made = re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"
    old = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    _, mark, kept = old.partition(BY_HAND)
    write_text(path, f"{made}\n{mark}{kept}" if mark else made)
    return path
