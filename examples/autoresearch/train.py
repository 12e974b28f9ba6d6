"""A small language model of characters, and its training: what an agent changes. Prints the validation loss.

python train.py --seed 3 --text speeches.txt
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

CONTEXT = 3
WIDTH = 24
HIDDEN = 48
STEPS = 150
BATCH = 64
LEARNING_RATE = 0.001
BETAS = (0.9, 0.999)
WEIGHT_DECAY = 0.0
DROPOUT = 0.0
CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz.,'-"


class Model(nn.Module):
    """Predicts a character from the CONTEXT characters that end before it (Bengio and others, 2003)."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, WIDTH)
        self.hidden = nn.Linear(CONTEXT * WIDTH, HIDDEN)
        self.out = nn.Linear(HIDDEN, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # [batch, time] -> [batch, time, vocabulary]
        seen = F.pad(ids, (CONTEXT - 1, 0))
        windows = self.embed(seen.unfold(1, CONTEXT, 1)).flatten(2)  # [batch, time, context * width]
        return self.out(F.dropout(self.hidden(windows).tanh(), DROPOUT, self.training))


def build(vocabulary: int, length: int, classes: int, seed: int) -> Model:
    """For `fairtrial audit --model train.py:build`."""
    return Model(vocabulary)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--text", required=True)
    given = options.parse_args()
    with open(given.text, encoding="utf-8") as file:
        text = [CHARACTERS.find(letter) for letter in file.read().lower()]
    ids = torch.tensor([number for number in text if number >= 0])
    train, validation = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]  # the same for every seed

    torch.manual_seed(given.seed)
    torch.set_num_threads(1)
    model = Model(len(CHARACTERS))
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, BETAS, weight_decay=WEIGHT_DECAY)
    for _ in range(STEPS):
        starts = torch.randint(len(train) - 33, (BATCH,)).unsqueeze(1)
        rows = train[starts + torch.arange(33)]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    with torch.no_grad():
        rows = validation[: len(validation) // 33 * 33].view(-1, 33)[:600]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    print(f"val_loss: {loss.item():.5f}")


if __name__ == "__main__":
    main()
