"""With nothing to steer, outputs and every gradient are torch.nn.LSTM's, computed in float64: in
float32 cuDNN's own error is the larger one."""
import itertools
import random

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

import hdetach
from peers import DEVICE, TestCase, gradients, leaf, make_input, pair

SWITCHES = list(itertools.product((False, True), repeat=4))  # bias, batch_first, both ways, hx


def as_type(results, like):
    """`results` with the types of `like`."""
    if isinstance(results, (torch.Tensor, PackedSequence)):
        data = like.data if isinstance(like, PackedSequence) else like
        return results.to(data.dtype)
    return [as_type(result, other) for result, other in zip(results, like)]


class AgainstTorch(TestCase):
    def compare(self, dtype, kind, sizes, bias, batch_first, bidirectional, with_hx, layers):
        steps, batch, inputs, hidden = sizes
        peer, ours = pair(input_size=inputs, hidden_size=hidden, num_layers=layers, bias=bias,
                          batch_first=batch_first, bidirectional=bidirectional, dtype=dtype)
        x, leaves = make_input(kind, steps, batch, inputs, dtype, batch_first)
        hx = None
        if with_hx:
            states = (layers * (2 if bidirectional else 1), batch, hidden)
            hx = tuple(leaf(*states, dtype=dtype) for _ in range(2))
            if kind == "unbatched":
                hx = tuple(leaf(states[0], hidden, dtype=dtype) for _ in range(2))
            leaves = leaves + list(hx)
        self.compare_results(ours, peer, x, hx, leaves)

    def compare_results(self, ours, peer, x, hx, leaves):
        peer.double()
        got = ours(x, hx)
        want = peer(x.double(), None if hx is None else tuple(state.double() for state in hx))
        self.assertClose(got, as_type(want, got), "output")
        wanted = gradients(want, leaves + list(peer.parameters()))
        found = gradients(got, leaves + list(ours.parameters()))
        self.assertClose(found, as_type(wanted, found), "gradient")

    def grid(self, dtype):
        for kind in ("batched", "unbatched", "packed", "unsorted", "full"):
            choose = random.Random(kind)
            for layers, switches in itertools.product((1, 2), SWITCHES):
                sizes = [choose.randint(1, most) for most in (9, 6, 7, 20)]
                with self.subTest(kind=kind, layers=layers, switches=switches, sizes=sizes):
                    self.compare(dtype, kind, sizes, *switches, layers)

    def test_float32(self):
        self.grid(torch.float32)

    def test_float64(self):
        self.grid(torch.float64)

    def test_longer_and_wider(self):
        for sizes in ((40, 17, 33, 64), (25, 3, 1, 130), (7, 40, 12, 16)):
            for kind in ("batched", "unsorted"):
                with self.subTest(kind=kind, sizes=sizes):
                    self.compare(torch.float32, kind, sizes, True, False, True, True, 2)

    def test_more_lengths_than_one_launch_takes(self):
        for with_hx in (False, True):
            with self.subTest(with_hx=with_hx):
                self.compare(torch.float32, "unsorted", (30, 700, 3, 8), True, False, True,
                             with_hx, 1)

    def test_three_layers(self):
        self.compare(torch.float32, "batched", (6, 4, 5, 8), True, True, True, True, 3)

    def test_eval_mode_ignores_the_policy(self):
        peer, ours = pair(input_size=5, hidden_size=8, detach=1.0)
        ours.eval()  # and the peer not: cuDNN has no backward pass in eval mode
        x = leaf(6, 3, 5)
        self.compare_results(ours, peer, x, None, [x])

    def test_frozen_parameters_and_no_grad(self):
        peer, ours = pair(input_size=5, hidden_size=8)
        ours.weight_hh_l0.requires_grad_(False)
        x = leaf(6, 3, 5)
        ours(x)[0].sum().backward()
        self.assertIsNone(ours.weight_hh_l0.grad)
        self.assertIsNotNone(ours.weight_ih_l0.grad)
        with torch.no_grad():
            output, _ = ours(x)
        self.assertFalse(output.requires_grad)
        self.assertClose(output, peer(x)[0])

    def test_cell(self):
        for bias, batched, with_hx in itertools.product((False, True), repeat=3):
            with self.subTest(bias=bias, batched=batched, with_hx=with_hx):
                peer = nn.LSTMCell(5, 8, bias=bias, device=DEVICE)
                ours = hdetach.LSTMCell(5, 8, bias=bias, device=DEVICE)
                ours.load_state_dict(peer.state_dict())
                rows = (3,) if batched else ()
                x, h, c = leaf(*rows, 5), leaf(*rows, 8), leaf(*rows, 8)
                hx, leaves = ((h, c), [x, h, c]) if with_hx else (None, [x])
                got, want = ours(x, hx), peer(x, hx)
                self.assertClose(got, want)
                self.assertClose(gradients(got, leaves + list(ours.parameters())),
                                 gradients(want, leaves + list(peer.parameters())))

    def test_dropout_between_layers(self):
        ours = hdetach.LSTM(5, 8, num_layers=2, dropout=0.5, device=DEVICE)
        first, second = (hdetach.LSTM(size, 8, device=DEVICE) for size in (5, 8))
        for layer, single in enumerate((first, second)):
            for name, parameter in single.named_parameters():
                parameter.data.copy_(getattr(ours, name.replace("_l0", f"_l{layer}")))
        x = leaf(6, 3, 5)
        torch.manual_seed(7)
        got = ours(x)[0]
        torch.manual_seed(7)
        want = second(functional.dropout(first(x)[0], 0.5))[0]
        self.assertSame(got, want)
        ours.eval()
        self.assertSame(ours(x)[0], second(first(x)[0])[0])

    def test_dropout_draws_as_torch_does(self):
        if DEVICE.type != "cpu":
            self.skipTest("cuDNN draws its dropout in a way of its own")
        for kind in ("batched", "packed"):
            peer, ours = pair(input_size=5, hidden_size=8, num_layers=3, dropout=0.3)
            x, _ = make_input(kind, 6, 3, 5)
            torch.manual_seed(7)
            want = peer(x)
            torch.manual_seed(7)
            self.assertClose(ours(x), want)
