"""Finite differences in float64, first and second order. They hold with all scales 1."""
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.utils.rnn import PackedSequence

import hdetach
from peers import DEVICE, TestCase, leaf, make_input, tensors


class Gradcheck(TestCase):
    def check(self, module, x, hx, **named):
        data = x.data if isinstance(x, PackedSequence) else x
        names = [name for name, _ in module.named_parameters()]
        arguments = [data.detach().requires_grad_(), *hx, *module.parameters()]

        def run(data, h, c, *weights):
            for name, weight in zip(names, weights):
                delattr(module, name) if name in module._parameters else None
                object.__setattr__(module, name, weight)
            given = PackedSequence(data, *x[1:]) if isinstance(x, PackedSequence) else data
            return tuple(tensors(module(given, (h, c), **named)))

        self.assertTrue(gradcheck(run, arguments))
        # Random projections of the Jacobian: the whole of it takes seconds for each layer.
        self.assertTrue(gradgradcheck(run, arguments, fast_mode=True))

    def test_dense(self):
        module = hdetach.LSTM(2, 3, num_layers=2, bidirectional=True, device=DEVICE,
                              dtype=torch.float64)
        self.check(module, leaf(3, 2, 2, dtype=torch.float64),
                   [leaf(4, 2, 3, dtype=torch.float64) for _ in range(2)], return_cells=True)

    def test_packed(self):
        module = hdetach.LSTM(2, 3, bidirectional=True, device=DEVICE, dtype=torch.float64)
        packed, _ = make_input("unsorted", 4, 3, 2, torch.float64)
        self.check(module, packed, [leaf(2, 3, 3, dtype=torch.float64) for _ in range(2)])

    def test_cell(self):
        module = hdetach.LSTMCell(2, 3, device=DEVICE, dtype=torch.float64)
        self.check(module, leaf(2, 2, dtype=torch.float64),
                   [leaf(2, 3, dtype=torch.float64) for _ in range(2)])

    def test_functional_with_lengths(self):
        sizes = ((4, 3, 2), (3, 3), (3, 3), (12, 2), (12, 3), (12,), (12,))
        arguments = [leaf(*size, dtype=torch.float64) for size in sizes]
        lengths = torch.tensor([4, 1, 2])

        def run(*tensors):
            return hdetach.lstm(*tensors, lengths=lengths)

        self.assertTrue(gradcheck(run, arguments))
        self.assertTrue(gradgradcheck(run, arguments))

    def test_wrong_gradients_are_seen(self):
        """With a blocked step the gradient is not that of finite differences."""
        module = hdetach.LSTM(2, 3, device=DEVICE, dtype=torch.float64)
        x = leaf(3, 2, 2, dtype=torch.float64)
        scales = ([torch.tensor([1.0, 0.0, 1.0], device=DEVICE)], [])
        with self.assertRaisesRegex(RuntimeError, "Jacobian mismatch"):
            gradcheck(lambda x: module(x, scales=scales)[0], [x])
