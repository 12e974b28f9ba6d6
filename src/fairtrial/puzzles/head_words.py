"""Hand-made heads in words and pictures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairtrial.disk import disk_errors, write_bytes
from fairtrial.figure import figure_bytes, our_look
from fairtrial.look.draw import SHADES, shade
from fairtrial.model.network import LanguageModel, count_parameters
from fairtrial.puzzles.head_check import Check, check_head, random_words, run, spelled
from fairtrial.puzzles.heads import DESIGNS, build_head
from fairtrial.puzzles.words import wrapped

SHOWN = 20  # tokens of the sequence that is shown


@dataclass(frozen=True)
class Show:
    """One hand-made network: its story, a sequence it read, its maps and its check."""

    name: str
    story: str
    network: LanguageModel
    words: list[str]
    predicted: list[str]
    maps: list[list[list[float]]]  # layer query key
    check: Check

    def plain(self) -> dict[str, Any]:
        shape = self.network.body.shape
        return {
            "head": self.name,
            "layers": shape.layers,
            "width": shape.width,
            "parameters": count_parameters(self.network),
            "words": self.words,
            "predicted": self.predicted,
            "maps": self.maps,
            "check": {**asdict(self.check), "passed": self.check.passed},
        }


def show_head(name: str, words: int = 8, places: int = 24, sequences: int = 200, seed: int = 0) -> Show:
    design = DESIGNS.find(name)
    network = build_head(name, words, places)
    ids = random_words(design, words, places, 1, seed)
    predicted, maps = run(network, ids)
    shown = slice(0, SHOWN)
    return Show(
        name,
        design.story,
        network,
        spelled(design, ids[0].tolist())[shown],
        spelled(design, predicted[0].tolist())[shown],
        [layer[0][shown, shown].tolist() for layer in maps],
        check_head(name, network, words, sequences, seed),
    )


def show_lines(show: Show) -> list[str]:
    shape, check = show.network.body.shape, show.check
    lines = [
        f"{show.name}: {shape.layers} layer{'s' if shape.layers > 1 else ''}, one head each, width {shape.width}",
        "",
    ]
    lines += wrapped([show.story])
    for layer, rows in enumerate(show.maps):
        told = f"the map of layer {layer + 1}: " if len(show.maps) > 1 else "its map: "
        lines += ["", f"{told}queries go down, keys go across ({SHADES[0]} none, {SHADES[-1]} all)"]
        lines.append("    " + "".join(f"{word:<2}" for word in show.words))
        for number, (word, row) in enumerate(zip(show.words, rows, strict=True)):
            cells = "".join(shade(weight, 0.0, 1.0) * 2 for weight in row[: number + 1])
            lines.append(f"{word:<3} {cells}")
    verdict = "passed" if check.passed else "FAILED"
    return [
        *lines,
        "",
        f"read  {' '.join(show.words)}",
        f"says  {' '.join(show.predicted)}",
        "",
        f"Checked on {check.tokens:,} tokens of random sequences: "
        f"the right word {check.right_words:.2%}, the right place {check.right_places:.2%},",
        f"weight on the right place {check.mean_weight:.4f} on average, {check.least_weight:.4f} at least: {verdict}.",
    ]


def show_picture(show: Show, kind: str) -> bytes:
    """The maps with the words beside them, as PNG or SVG."""
    import matplotlib
    import numpy as np
    from matplotlib.figure import Figure

    with our_look():
        figure = Figure(figsize=(0.8 + 4.6 * len(show.maps), 4.9), layout="constrained", dpi=120)
        figure.suptitle(f"{show.name}, written by hand")
        axes = np.atleast_1d(figure.subplots(1, len(show.maps)))
        for layer, (axis, rows) in enumerate(zip(axes, show.maps, strict=True)):
            weights = np.array(rows)
            weights[np.triu_indices(len(weights), 1)] = np.nan
            colours = matplotlib.colormaps["Blues"].with_extremes(bad="0.93")
            shown = axis.imshow(weights, cmap=colours, vmin=0, vmax=1)
            ticks = range(len(show.words))
            axis.set(xticks=ticks, xticklabels=show.words, yticks=ticks, yticklabels=show.words)
            axis.set(xlabel="key", ylabel="query", title=f"layer {layer + 1}" if len(show.maps) > 1 else "weights")
        figure.colorbar(shown, ax=list(axes), shrink=0.7)
        return figure_bytes(figure, kind)


def write_head_files(show: Show, folder: Path, kind: str) -> list[Path]:
    """The map, and the network's weights."""
    from safetensors.torch import save

    stem = show.name.replace(" ", "-")
    picture, weights = folder / f"{stem}.{kind}", folder / f"{stem}.safetensors"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_bytes(picture, show_picture(show, kind))
    write_bytes(weights, save(show.network.state_dict()))
    return [picture, weights]
