"""An existing model of torch.nn.LSTMs, trained with h-detach from here on.

    python3 convert.py
"""
import torch
from torch import nn

import hdetach


class Tagger(nn.Module):  # somebody else's model, unchanged
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.encoder = nn.LSTM(32, 64, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(128, 5)

    def forward(self, words):  # [B, T] -> [B, T, 5]
        return self.head(self.encoder(self.embed(words))[0])


torch.manual_seed(1)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters())
checkpoint = model.state_dict()
words, tags = torch.randint(100, (8, 20)), torch.randint(5, (8, 20))
before = model(words)

hdetach.convert(model, detach=0.25)  # in place; the optimizer and checkpoints go on working
print(model.encoder)
model.load_state_dict(checkpoint)
print(f"outputs differ by {(model(words) - before).abs().max():.1e}")
for update in range(20):
    loss = nn.functional.cross_entropy(model(words).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss after 20 updates: {loss:.3f}")

hdetach.restore(model)  # a plain torch model again, for those who deploy it
print(model.encoder)
