"""The copying task with h-detach, in 40 lines: remember 3 symbols over a delay.

    python3 copying.py [UPDATES]     # default 200: some seconds on a CPU, 99% right
"""
import sys

import torch
from torch import nn

import hdetach

DELAY, LENGTH, SYMBOLS, BATCH = 20, 3, 4, 64
BLANK, GO = SYMBOLS, SYMBOLS + 1


class Copier(nn.Module):
    def __init__(self, detach):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS + 2, 16)
        self.lstm = hdetach.LSTM(16, 64, detach=detach)  # the one line that differs from nn.LSTM
        nn.init.constant_(self.lstm.bias_ih_l0[64:128].detach(), 2.0)  # forget gates open
        self.head = nn.Linear(64, SYMBOLS)

    def forward(self, symbols):  # [T, B] -> [LENGTH, B, SYMBOLS]
        states, _ = self.lstm(self.embed(symbols))
        return self.head(states[-LENGTH:])


def batch():
    """Symbols, a delay of blanks, and a cue to repeat them: [T, B] and [LENGTH, B]."""
    symbols = torch.randint(SYMBOLS, (LENGTH, BATCH))
    blanks = torch.full((DELAY, BATCH), BLANK)
    return torch.cat([symbols, blanks, torch.full((LENGTH, BATCH), GO)]), symbols


def train(updates):
    torch.manual_seed(1)
    model = Copier(detach=0.25)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for update in range(1, updates + 1):
        x, target = batch()
        scores = model(x)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 50 == 0 or update == updates:
            right = (scores.argmax(-1) == target).float().mean()
            print(f"update {update}: loss {loss:.3f}, {100 * right:.0f}% of the symbols right")


if __name__ == "__main__":
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
