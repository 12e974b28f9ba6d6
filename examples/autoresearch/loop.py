"""An agent's loop, with the gate as its judge: change train.py, train, keep or discard. Here the proposals are a list;
put your agent in its place.

python loop.py speeches.txt ideas.jsonl
"""

import re
import subprocess
import sys
from pathlib import Path

import fairtrial as ft

SOURCE = Path(__file__).with_name("train.py")
PROPOSALS = [  # name, what it changes, old text, new text
    ("nothing", "a comment only", '"""A small', '"""A very small'),
    ("decay", "a little weight decay", "WEIGHT_DECAY = 0.0", "WEIGHT_DECAY = 0.001"),
    ("rate", "learning rate 0.001 -> 0.004", "LEARNING_RATE = 0.001", "LEARNING_RATE = 0.004"),
    ("betas", "the second beta 0.99", "BETAS = (0.9, 0.999)", "BETAS = (0.9, 0.99)"),
    ("dropout", "a little dropout", "DROPOUT = 0.0", "DROPOUT = 0.02"),
    ("future", "reads one character more, on the right", "(CONTEXT - 1, 0)", "(CONTEXT - 2, 1)"),
    ("narrow", "embeddings of width 23", "WIDTH = 24", "WIDTH = 23"),
    ("context", "reads 5 characters instead of 3", "CONTEXT = 3", "CONTEXT = 5"),
    ("decay2", "less weight decay", "WEIGHT_DECAY = 0.0", "WEIGHT_DECAY = 0.0001"),
    ("sigmoid", "another squashing function", ".tanh()", ".mul(2).sigmoid()"),
]


def train(files: list[Path], seed: int, text: str) -> list[float]:
    """Validation losses, trained side by side."""
    commands = [[sys.executable, str(file), "--seed", str(seed), "--text", text] for file in files]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    return [float(re.findall(r"val_loss: ([\d.]+)", each.communicate()[0])[-1]) for each in running]


def main(text: str, ledger: str) -> None:
    files = {"train": SOURCE}
    gate = ft.gate_new(
        ledger, "val_loss", incumbent="train", margin=0.005
    )  # smaller gains, as of betas, are not worth it
    for name, description, old, new in PROPOSALS:
        source = files[gate.incumbent].read_text(encoding="utf-8")
        files[name] = Path(ledger).with_name(f"{name}.py")
        files[name].write_text(source.replace(old, new), encoding="utf-8")
        gate = ft.gate_add(
            ledger, name, description=description, source=files[name], audit=f"{files[name]}:build"
        )  # the leak audit comes before any training
        while gate.answer == "more":
            seed = gate.next_seed
            ours, theirs = train([files[name], files[gate.incumbent]], seed, text)
            gate = ft.gate_add(ledger, name, seed=seed, score=ours, incumbent_score=theirs)
        print(gate.sentence, flush=True)
    print("\n" + str(gate))


if __name__ == "__main__":
    main(*sys.argv[1:])
