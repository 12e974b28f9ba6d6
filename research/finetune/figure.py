"""The figure of docs/finetune.md, out of two studies of `fairtrial replicate --fine-tuning` (`sst2-classify` and
`sst2-classify-tuned`): what a learning rate does to each optimizer, and what is left of the difference when each has
its own.

    python benchmarks/optimizer_figure.py AT_ONE_RATE TUNED docs/finetune/optimizers.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

from fairtrial.record import Record
from fairtrial.report.plots import figure_bytes, our_look

COLOURS = {"AdamW": "#1f5fa8", "Adagrad": "#c25a1a", "SGD": "#3a8a3a"}


def main(at_one_rate: Path, tuned: Path, out: Path) -> None:
    found = json.loads((tuned / "search.json").read_text())
    rates = [each["training.learning_rate"] for each in found["tries"]]
    with our_look({"axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8.4, 3.2), dpi=120, facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.2, 1), sharey=True)
        for name, colour in COLOURS.items():
            row = found["tasks"]["classify"]["variants"][name.lower()]
            left.plot(rates, row["scores"], marker="o", color=colour, label=name)
            for place, study in enumerate((at_one_rate, tuned)):
                seeds = sorted((study / "trials" / "classify" / name.lower()).glob("seed-*"))
                scores = [100 * Record.open(each).result["tests"]["test"]["accuracy"] for each in seeds]
                across = place + 0.16 * (list(COLOURS).index(name) - 1)
                right.plot([across] * len(scores), scores, "o", color=colour, alpha=0.45, markersize=4)
                right.plot([across - 0.06, across + 0.06], [sum(scores) / len(scores)] * 2, color=colour, linewidth=2)
        left.set(xscale="log", xlabel="learning rate", ylabel="accuracy, %", title="Validation, one seed")
        left.set_xticks(rates, [f"{rate:g}" for rate in rates])
        left.minorticks_off()
        left.axhline(50, color="0.8", zorder=0)
        left.legend(frameon=False)
        right.axhline(50, color="0.8", zorder=0)
        right.set(
            xticks=(0, 1), xticklabels=("all at 5e-5", "each at its own"), title="Test, five seeds and their mean"
        )
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(figure_bytes(figure, out.suffix[1:]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
