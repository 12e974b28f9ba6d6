"""Two studies on the data of the five reports, and the reports' own setting, measured over several seeds."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import fairtrial as ft
from pages import find_data, outcomes_of, records_section, table, write_sections

HERE = Path(__file__).parent
SPEAKERS = {"Obama": "obama", "H. Bush": "hbush", "W. Bush": "wbush"}
SEEDS = range(1, 6)
CHOSEN = {"data.validation": 0.1, "training.keep": "best", "scoring.watch_test": False}


def main() -> None:
    classifier, model = HERE / "course-classifier.toml", HERE / "course-language-model.toml"
    found = [
        outcomes_of(HERE, "classifier", classifier, "speeches"),
        outcomes_of(HERE, "language-model", model, "speeches"),
        outcomes_of(HERE, "classifier-chosen", classifier, "speeches", **CHOSEN),
    ]
    titles = (
        "learned vs rope vs disentangled",
        "learned vs learned+window size=8 vs sinusoidal vs alibi",
        "The classifiers again, weights chosen on validation",
    )
    sections = {title: body(each) for title, each in zip(titles, found, strict=True) if each is not None}
    write_sections(HERE / "README.md", sections | {"Records": records_section(found)})
    if numbers := setting_numbers():
        write_sections(
            HERE / "setting.md",
            {
                "Classifier": classifier_section(numbers["classify"]),
                "Language model": model_section(numbers["lm"]),
            },
        )


def body(outcomes: ft.Outcomes) -> str:
    """A verdict without its title."""
    return outcomes.verdict().to_markdown().partition("\n")[2]


def setting_numbers() -> dict[str, list[dict[str, Any]]]:
    """Scores and curves of the recipe `course`, by task, one entry for each seed; trained unless they are stored."""
    stored, data = HERE / "outcomes" / "setting.json", find_data("speeches")
    if not stored.is_file():
        if data is None:
            return {}
        numbers: dict[str, list[dict[str, Any]]] = {"classify": [], "lm": []}
        for task, entries in numbers.items():
            for seed in SEEDS:
                place = HERE / "runs" / f"{task}-seed-{seed}"
                done = (place / "trial.json").is_file()
                run = ft.resume(place) if done else ft.train(task, data, recipe="course", seed=seed, out=place)
                curves = {each.name: each.points for each in run.curves}
                entries.append({"seed": seed, "metrics": run.metrics, "curves": curves})
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(json.dumps(numbers, default=vars), encoding="utf-8", newline="\n")
    return dict(json.loads(stored.read_text(encoding="utf-8")))


def classifier_section(entries: list[dict[str, Any]]) -> str:
    rows = []
    for entry in entries:
        test, scores = [value for _, value in entry["curves"]["test"]], entry["metrics"]["test"]
        train = entry["curves"]["train"][-1][1]
        rows.append([test[0], scores["accuracy"], scores["macro_f1"], max(test), train])
    cells = [[entry["seed"], *(f"{value:.1%}" for value in row)] for entry, row in zip(entries, rows, strict=True)]
    cells.append(["mean", *(f"{mean(column):.1%}" for column in zip(*rows, strict=True))])
    columns = ["seed", "before training", "last epoch", "macro-F1", "best epoch, picked on test", "train"]
    return f"15 epochs, batch 16. Test accuracy on all 750 sentences.\n\n{table(columns, cells)}"


def model_section(entries: list[dict[str, Any]]) -> str:
    windows, exact = [], []
    for entry in entries:
        tests = [entry["metrics"][name] for name in SPEAKERS.values()]
        windows.append([entry["curves"]["train"][-1][1], *(each["window_perplexity"] for each in tests)])
        exact.append([each["perplexity"] for each in tests])
    blocks = ["500 steps, batch 16. Perplexity over non-overlapping windows of 32 tokens:"]
    blocks.append(perplexities(entries, ["train", *SPEAKERS], windows))
    blocks.append("The same models scored exactly: every token of a test set once, with 32 tokens of context.")
    return "\n\n".join([*blocks, perplexities(entries, list(SPEAKERS), exact)])


def perplexities(entries: list[dict[str, Any]], columns: list[str], rows: list[list[float]]) -> str:
    cells = [[entry["seed"], *(f"{value:.1f}" for value in row)] for entry, row in zip(entries, rows, strict=True)]
    cells.append(["mean", *(f"{geometric_mean(column):.1f}" for column in zip(*rows, strict=True))])
    return table(["seed", *columns], cells)


if __name__ == "__main__":
    main()
