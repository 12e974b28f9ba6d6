"""End to end: `fairtrial train classify --recipe course` against one plain PyTorch script, in one run.

    python benchmarks/course.py                # 15 epochs each, taking turns; FAIRTRIAL_DATA holds speeches/
    python benchmarks/course.py --epochs 2     # a short try

The script (`--script` runs it alone) is what a student of that class hands in: NLTK's words looked up in `__getitem__`,
one module for each head, all sentences padded to 32, train and test scored after every epoch. Same layers, sizes,
optimizer and data. (Its splitter is `NLTKWordTokenizer`, which `word_tokenize` calls after cutting into sentences.)
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BATCH, LENGTH, WIDTH, HEADS, LAYERS, HIDDEN, CLASSES = 16, 32, 64, 2, 4, 100, 3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=15)
    options.add_argument("--rounds", type=int, default=1, help="turns of each")
    options.add_argument("--data", type=Path, default=Path(os.environ.get("FAIRTRIAL_DATA", ".")) / "speeches")
    options.add_argument("--script", action="store_true", help="run the plain script alone")
    asked = options.parse_args()
    if asked.script:
        plain_script(asked.data, asked.epochs)
        return
    times: dict[str, list[tuple[float, float]]] = {"plain script": [], "fairtrial": []}  # passed, of the processor
    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory() as workspace:
            of = ["--data", str(asked.data), "--epochs", str(asked.epochs)]
            script = [sys.executable, __file__, "--script", *of]
            our = [sys.executable, "-m", "fairtrial", "train", "classify", "--recipe", "course", *of]
            for name, command in {"plain script": script, "fairtrial": [*our, "--out", f"{workspace}/record"]}.items():
                begun, before = time.perf_counter(), os.times()
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                passed, after = time.perf_counter() - begun, os.times()
                used = after.children_user + after.children_system - before.children_user - before.children_system
                times[name].append((passed, used))
                accuracy = re.findall(r"^ *test +([\d.]+%)", said, re.M)[-1]
                print(f"{name:<13} {passed:6.1f} s ({used:.1f} of the processor), test {accuracy}", flush=True)
    theirs, ours = (np.median(times[name], axis=0) for name in ("plain script", "fairtrial"))
    whole, processor = theirs / ours
    told = f"fairtrial is {whole:.2f}x as fast ({processor:.2f}x by the processor's time)"
    print(f"{asked.epochs} epochs, end to end: {told}")


def plain_script(folder: Path, epochs: int) -> None:
    import torch
    from nltk.tokenize import NLTKWordTokenizer
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(0)
    torch.set_num_threads(1)  # slower with more, at this size
    tokenize = NLTKWordTokenizer().tokenize
    text = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("train_CLS.tsv", "train_LM.txt"))
    vocabulary = {"<pad>": 0, "<unk>": 1}
    for line in text.splitlines():
        for word in tokenize(line.split("\t")[-1]):
            vocabulary.setdefault(word, len(vocabulary))

    class Speeches(Dataset):
        def __init__(self, path: Path) -> None:
            lines = path.read_text(encoding="utf-8").splitlines()
            self.samples = [line.split("\t") for line in lines if line.strip()]

        def __len__(self) -> int:
            return len(self.samples)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
            label, sentence = self.samples[index]
            ids = [vocabulary.get(word, 1) for word in tokenize(sentence)]
            return torch.tensor(ids, dtype=torch.long), torch.tensor(int(label))

    def collate(batch):
        data, labels = zip(*batch, strict=True)
        padded = nn.utils.rnn.pad_sequence(data, batch_first=True)[:, :LENGTH]
        return F.pad(padded, (0, LENGTH - padded.shape[1])), torch.stack(labels)

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.key, self.query, self.value = (nn.Linear(WIDTH, WIDTH // HEADS, bias=False) for _ in range(3))

        def forward(self, x, real):
            scores = self.query(x) @ self.key(x).transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
            scores = scores.masked_fill(~real[:, None, :], float("-inf"))
            return scores.softmax(-1) @ self.value(x)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList(Head() for _ in range(HEADS))
            self.project = nn.Linear(WIDTH, WIDTH)
            self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, x, real):
            normed = self.norm1(x)
            x = x + self.project(torch.cat([head(normed, real) for head in self.heads], -1))
            return x + self.feed_forward(self.norm2(x))

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(len(vocabulary), WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))

        def forward(self, ids):
            real = ids != 0
            x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x, real)
            x = self.norm(x) * real[..., None]
            return self.head(x.sum(1) / real.sum(1, keepdim=True))

    @torch.no_grad()
    def accuracy(model, loader) -> float:
        model.eval()
        right = total = 0
        for ids, labels in loader:
            right += (model(ids).argmax(1) == labels).sum().item()
            total += len(labels)
        model.train()
        return right / total

    train, test = (
        DataLoader(Speeches(folder / name), batch_size=BATCH, collate_fn=collate, shuffle=name.startswith("train"))
        for name in ("train_CLS.tsv", "test_CLS.tsv")
    )
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for ids, labels in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(ids), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: train {accuracy(model, train):.1%}", flush=True)
        print(f"test {accuracy(model, test):.1%}", flush=True)


if __name__ == "__main__":
    main()
