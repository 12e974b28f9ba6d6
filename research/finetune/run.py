"""Fine-tuning MiniLM: how it is read, three optimizers compared twice, and what an encoder of one's own is worth."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

import fairtrial as ft
from pages import outcomes_of, records_section, save_figure, with_interval, write_sections

HERE = Path(__file__).parent
PRESIDENTS = (
    "truman eisenhower kennedy johnson-36 nixon ford carter reagan bush-41 clinton bush-43 obama trump biden"
).split()


def main() -> None:
    found = {
        "SST-2 with MiniLM": outcomes_of(HERE, "pooling", HERE / "finetune-sst2.toml", "sst2"),
        "Optimizers, compared twice": outcomes_of(HERE, "optimizers", HERE / "finetune-optimizers.toml", "sst2"),
        "What your own pretraining is worth": own_encoder(),
    }
    sections = {}
    for title, outcomes in found.items():
        if outcomes is not None:
            verdict = outcomes.verdict()
            sections[title] = verdict.to_markdown().partition("\n")[2]
            if title.startswith("Optimizers"):
                save_figure(draw(verdict), HERE / "optimizers.svg")
                sections[title] += "\n\n![test accuracy of each optimizer, at one rate and at its own](optimizers.svg)"
    write_sections(HERE / "README.md", sections | {"Records": records_section(found.values())})


def own_encoder() -> ft.Outcomes | None:
    """The encoder is trained first, unless the study is stored."""
    place = HERE / "runs" / "my-encoder"
    if not (HERE / "outcomes" / "pretraining.npz").is_file():
        if (place / "trial.json").is_file():
            ft.resume(place)
        else:
            ft.train("mlm", epochs=8, tied=True, presidents=PRESIDENTS, out=place)
    settings = {"baseline": "from scratch", "plugins": ()}
    text = (HERE / "pretraining.toml").read_text(encoding="utf-8").replace('"my-encoder"', f'"{place.as_posix()}"')
    study = HERE / "runs" / "pretraining.toml"
    study.parent.mkdir(exist_ok=True)
    study.write_text(text, encoding="utf-8")
    return outcomes_of(HERE, "pretraining", study, **settings)


def draw(verdict: ft.Verdict) -> Figure:
    (task,) = verdict.tasks.values()
    (name,) = task.sets
    figure = Figure(figsize=(6.5, 2.6), facecolor="white", layout="constrained")
    axis = figure.add_subplot()
    for y, sets in enumerate(task.scores.values()):
        score = sets[name]["all"].mean
        axis.plot([score.low, score.high], [y, y], "-", color="#2166ac", linewidth=2)
        axis.plot([score.estimate], [y], "o", color="#2166ac")
        axis.annotate(
            with_interval(score, sign=False), (score.estimate or 0, y), (0, 5), textcoords="offset points", fontsize=7
        )
    axis.set_yticks(range(len(task.scores)), list(task.scores))
    axis.set_xlabel("test accuracy, %")
    return figure


if __name__ == "__main__":
    main()
