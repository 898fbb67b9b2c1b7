"""Autocast: an LSTM keeps float32 inside, whatever comes in."""
import torch

import hdetach
from peers import DEVICE, TestCase, gradients, leaf, make_input


class Autocast(TestCase):
    def low(self):
        return torch.autocast(DEVICE.type, torch.bfloat16)

    def test_low_precision_input(self):
        module = hdetach.LSTM(5, 8, 2, detach=0.5, device=DEVICE)
        x = torch.randn(6, 3, 5, device=DEVICE).bfloat16()
        scales = module.draw_scales(6, 3)
        want = module(x.float(), scales=scales)
        with self.low():
            got = module(x, scales=scales)
        self.assertEqual(got[0].dtype, torch.float32)
        self.assertSame(got, want)
        self.assertSame(gradients(got, list(module.parameters())),
                        gradients(want, list(module.parameters())))

    def test_float32_input_and_states(self):
        """Inside a product of float32 tensors autocast would round; here nothing is rounded."""
        module = hdetach.LSTM(5, 8, device=DEVICE)
        x, hx = leaf(6, 3, 5), (leaf(1, 3, 8), leaf(1, 3, 8))
        want = module(x, hx)
        with self.low():
            self.assertSame(module(x, hx), want)
            rounded = tuple(state.bfloat16() for state in hx)
            self.assertEqual(module(x, rounded)[0].dtype, torch.float32)

    def test_packed_and_cell(self):
        module = hdetach.LSTM(5, 8, device=DEVICE)
        packed, _ = make_input("unsorted", 6, 3, 5)
        want = module(packed)
        cell = hdetach.LSTMCell(5, 8, device=DEVICE)
        x = torch.randn(3, 5, device=DEVICE)
        with self.low():
            self.assertSame(module(packed), want)
            low = module(packed.to(torch.bfloat16))[0].data
            cast = cell(x.bfloat16())
        self.assertEqual(low.dtype, torch.float32)
        self.assertSame(cast, cell(x.bfloat16().float()))

    def test_double_stays_double(self):
        module = hdetach.LSTM(5, 8, device=DEVICE, dtype=torch.float64)
        x = leaf(6, 3, 5, dtype=torch.float64)
        want = module(x)
        with self.low():
            self.assertSame(module(x), want)

    def test_training_step(self):
        """Between two layers that autocast does round."""
        model = torch.nn.ModuleList([torch.nn.Linear(5, 6), hdetach.LSTM(6, 8, detach=0.25),
                                     torch.nn.Linear(8, 2)]).to(DEVICE)
        with self.low():
            hidden = model[0](torch.randn(6, 3, 5, device=DEVICE))
            self.assertEqual(hidden.dtype, torch.bfloat16)
            output = model[2](model[1](hidden)[0])
        output.float().square().sum().backward()
        for parameter in model.parameters():
            self.assertEqual(parameter.grad.dtype, torch.float32)
            self.assertTrue(parameter.grad.isfinite().all() and parameter.grad.abs().sum() > 0)

    def test_without_autocast_types_must_agree(self):
        with self.assertRaisesRegex(RuntimeError, "BFloat16"):
            hdetach.LSTM(5, 8, device=DEVICE)(torch.randn(6, 3, 5, device=DEVICE).bfloat16())
