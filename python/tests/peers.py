"""What the tests compare with: torch.nn.LSTM, and the paper's algorithm as a loop in Python."""
import os
import unittest

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import hdetach

DEVICE = torch.device(os.environ.get("HDETACH_TEST_DEVICE", "cpu"))
# cuDNN would otherwise round the inputs of its products to 11 bits.
torch.backends.cudnn.allow_tf32 = False
# Two LSTMs that sum in another order. Sums of up to a thousand terms: about 30 roundings of 2^-24.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


class TestCase(unittest.TestCase):
    """A seeded test with comparisons of nested tensors."""

    def setUp(self):
        torch.manual_seed(0)

    def assertClose(self, got, want, what="", tolerance=None):
        """The error is within the tolerance of the largest entry (of 1 where all are smaller)."""
        if isinstance(want, PackedSequence):
            self.assertTrue(torch.equal(got.batch_sizes, want.batch_sizes), what)
            for left, right in zip(got[2:], want[2:]):
                self.assertTrue(left is right or torch.equal(left, right), what)
            got, want = got.data, want.data
        if isinstance(want, (tuple, list)):
            self.assertEqual(len(got), len(want), what)
            for index, (left, right) in enumerate(zip(got, want)):
                self.assertClose(left, right, f"{what}[{index}]", tolerance)
            return
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), what)
        bound = (tolerance or TOLERANCE[want.dtype]) * max(1.0, want.abs().max().item())
        self.assertLessEqual((got - want).abs().max().item(), bound, what)

    def assertSame(self, got, want, what=""):
        """Bit for bit."""
        if isinstance(want, PackedSequence):
            got, want = got.data, want.data
        if isinstance(want, (tuple, list)):
            for index, (left, right) in enumerate(zip(got, want)):
                self.assertSame(left, right, f"{what}[{index}]")
            return
        self.assertTrue(torch.equal(got, want), what)


def leaf(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype, device=DEVICE).requires_grad_()


def pair(detach=0.0, dtype=torch.float32, **options):
    """An nn.LSTM and an hdetach.LSTM with parameters of their own and of the same values."""
    peer = nn.LSTM(dtype=dtype, device=DEVICE, **options)
    ours = hdetach.LSTM(dtype=dtype, device=DEVICE, detach=detach, **options)
    ours.load_state_dict(peer.state_dict())
    return peer, ours


def make_input(kind, steps, batch, size, dtype=torch.float32, batch_first=False):
    """(input, leaves): 'batched', 'unbatched', or packed: 'packed' (sorted), 'unsorted', or 'full'
    (unsorted, and every sequence has all steps)."""
    if kind == "batched":
        x = leaf(*((batch, steps) if batch_first else (steps, batch)), size, dtype=dtype)
        return x, [x]
    if kind == "unbatched":
        x = leaf(steps, size, dtype=dtype)
        return x, [x]
    least = steps if kind == "full" else 1
    lengths = [steps] + torch.randint(least, steps + 1, (batch - 1,)).tolist()
    lengths = sorted(lengths, reverse=True) if kind == "packed" else lengths[::-1]
    leaves = [leaf(length, size, dtype=dtype) for length in lengths]
    return pack_sequence(leaves, enforce_sorted=kind == "packed"), leaves


def tensors(result):
    """The tensors of an LSTM's result, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, PackedSequence):
        return [result.data]
    return [tensor for part in result for tensor in tensors(part)]


def gradients(result, leaves, keep=True):
    """Of a loss that weighs every entry of the result differently.

    The graph is kept unless told: two LSTMs may share the part that packs their input.
    """
    loss = 0
    for index, tensor in enumerate(tensors(result)):
        count = torch.arange(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
        loss = loss + (tensor.flatten() * torch.cos(count + index)).sum()
    return torch.autograd.grad(loss, leaves, retain_graph=keep)


def detach_loop(x, h, c, weights, h_scale=None, c_scale=None):
    """One layer of the paper's algorithm, as written: x [T, B, I] -> h, c, both [T, B, H].

    A scale s passes that part of the gradient: s * h + (1 - s) * h.detach().
    """
    w_ih, w_hh = weights[:2]
    bias = sum(weights[2:]) if len(weights) > 2 else 0

    def passed(state, scale, t):
        if scale is None:
            return state
        part = scale[t].to(state.dtype)
        part = part[:, None] if part.dim() == 1 else part
        return part * state + (1 - part) * state.detach()

    all_h, all_c = [], []
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + passed(h, h_scale, t) @ w_hh.t() + bias
        i, f, g, o = gates.chunk(4, dim=1)
        c = f.sigmoid() * passed(c, c_scale, t) + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        all_h.append(h)
        all_c.append(c)
    return torch.stack(all_h), torch.stack(all_c)


def loop_stack(module, x, hx, scales):
    """`detach_loop` over the layers and directions of `module`: what forward returns, and cells."""
    directions = 2 if module.bidirectional else 1
    h_n, c_n, cells = [], [], []
    for layer in range(module.num_layers):
        h_layer, c_layer = [], []
        for direction in range(directions):
            entry = layer * directions + direction
            order = (lambda t: t.flip(0)) if direction else (lambda t: t)
            h, c = detach_loop(order(x), hx[0][entry], hx[1][entry], module.all_weights[entry],
                               *(part[entry] if part else None for part in scales))
            h_n.append(h[-1])
            c_n.append(c[-1])
            h_layer.append(order(h))
            c_layer.append(order(c))
        x = torch.cat(h_layer, -1)
        cells.append(torch.cat(c_layer, -1))
    return x, (torch.stack(h_n), torch.stack(c_n)), cells
