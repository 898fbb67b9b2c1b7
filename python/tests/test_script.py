"""TorchScript: script and trace, saved and loaded."""
import io
import warnings
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import hdetach
from peers import DEVICE, TestCase, gradients, leaf


class Both(nn.Module):
    """Calls the module with a tensor and with a PackedSequence."""

    def __init__(self, **options):
        super().__init__()
        self.lstm = hdetach.LSTM(5, 8, device=DEVICE, **options)

    def forward(self, x: Tensor, packed: PackedSequence,
                hx: Optional[Tuple[Tensor, Tensor]] = None):
        output, (h_n, c_n) = self.lstm(x, hx)
        data, (h_m, c_m) = self.lstm(packed)
        return output, h_n, c_n, data.data, h_m, c_m


class Steered(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = hdetach.LSTM(5, 8, device=DEVICE)

    def forward(self, x: Tensor, scale: Tensor):
        h_scale: List[Optional[Tensor]] = [scale]
        c_scale: List[Optional[Tensor]] = []
        return self.lstm(x, scales=(h_scale, c_scale))[0]


class Cells(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.cell = hdetach.LSTMCell(5, 8, device=DEVICE, **options)

    def forward(self, x: Tensor):
        h, c = self.cell(x[0])
        for t in range(1, x.size(0)):
            h, c = self.cell(x[t], (h, c))
        return h, c


def reloaded(scripted):
    buffer = io.BytesIO()
    torch.jit.save(scripted, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def packed_input():
    return pack_sequence([torch.randn(length, 5, device=DEVICE) for length in (2, 4, 3)],
                         enforce_sorted=False)


class Script(TestCase):
    def test_dense_and_packed(self):
        for options in ({}, {"detach": 0.5},
                        {"num_layers": 2, "bidirectional": True, "bias": False}):
            with self.subTest(**options):
                model = Both(**options)
                x, packed = leaf(4, 2, 5), packed_input()
                model.eval()
                want = model(x, packed)
                scripted = torch.jit.script(model)
                for other in (scripted, reloaded(scripted)):
                    self.assertSame(other(x, packed), want)
                    self.assertSame(gradients(other(x, packed), [x]), gradients(want, [x]))

    def test_draws(self):
        """A scripted module draws what the eager one draws, in training alone."""
        for options in ({}, {"per_sample": True, "layers_policy": "separate", "num_layers": 2},
                        {"path": "cell"}, {"mode": "damp"}):
            with self.subTest(**options):
                model = Both(detach=0.5, **options)
                scripted = torch.jit.script(model)
                x, packed = leaf(20, 2, 5), packed_input()
                runs = []
                for module in (model, scripted, reloaded(scripted)):
                    torch.manual_seed(2)
                    runs.append(gradients(module(x, packed), [x]))
                self.assertSame(runs[1], runs[0])
                self.assertSame(runs[2], runs[0])
                scripted.eval()
                plain = gradients(scripted(x, packed), [x])
                self.assertFalse(torch.equal(plain[0], runs[0][0]))

    def test_detach_may_be_annealed(self):
        scripted = torch.jit.script(Both(detach=1.0))
        x, packed = leaf(6, 2, 5), packed_input()
        blocked = gradients(scripted(x, packed), [x])[0]
        scripted.lstm.detach = 0.0
        plain = gradients(scripted(x, packed), [x])[0]
        self.assertFalse(torch.equal(blocked, plain))

    def test_scales(self):
        model = Steered()
        scripted = torch.jit.script(model)
        x, scale = leaf(4, 2, 5), torch.tensor([1.0, 0.0, 0.5, 1.0], device=DEVICE)
        self.assertSame(gradients(scripted(x, scale), [x]), gradients(model(x, scale), [x]))
        with self.assertRaisesRegex(Exception, "99 entries"):
            scripted(x, torch.ones(99, device=DEVICE))

    def test_cell(self):
        for options in ({}, {"detach": 0.5}, {"detach": 0.5, "per_sample": True, "path": "cell"}):
            model = Cells(**options)
            scripted = torch.jit.script(model)
            x = leaf(12, 3, 5)
            torch.manual_seed(2)
            want = gradients(model(x), [x])
            for other in (scripted, reloaded(scripted)):
                torch.manual_seed(2)
                self.assertSame(gradients(other(x), [x]), want)

    def test_generator_is_refused(self):
        with self.assertRaisesRegex(ValueError, "set module.generator = None"):
            torch.jit.script(Both(generator=torch.Generator(), detach=0.5))

    def test_trace(self):
        for options in ({}, {"num_layers": 2, "bidirectional": True, "batch_first": True}):
            module = hdetach.LSTM(5, 8, device=DEVICE, **options)
            with warnings.catch_warnings():
                warnings.simplefilter("error", torch.jit.TracerWarning)
                traced = torch.jit.trace(module, leaf(4, 2, 5))
            for x in (leaf(4, 2, 5), leaf(7, 3, 5)):  # sizes are not frozen into the trace
                for other in (traced, reloaded(traced)):
                    self.assertSame(other(x), module(x))
                    self.assertSame(gradients(other(x), [x]), gradients(module(x), [x]))

    def test_trace_draws(self):
        for options in ({}, {"path": "cell", "layers_policy": "separate", "num_layers": 2},
                        {"per_sample": True}, {"mode": "damp"}):
            with self.subTest(**options):
                module = hdetach.LSTM(5, 8, detach=0.5, device=DEVICE, **options)
                traced = torch.jit.trace(module, leaf(4, 2, 5), check_trace=False)
                x = leaf(30, 2, 5)
                torch.manual_seed(2)
                want = gradients(module(x), [x])
                torch.manual_seed(2)
                self.assertSame(gradients(traced(x), [x]), want)
                again = gradients(traced(x), [x])
                self.assertEqual(torch.equal(again[0], want[0]), "mode" in options)

    def test_trace_of_given_scales(self):
        class Given(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = hdetach.LSTM(5, 8, 2, device=DEVICE)

            def forward(self, x, scale):
                return self.lstm(x, scales=([None, scale], []))[0]

        module, x = Given(), leaf(4, 2, 5)
        traced = torch.jit.trace(module, (x, torch.rand(4, device=DEVICE)))
        scale = torch.tensor([1.0, 0.0, 0.5, 1.0], device=DEVICE)
        self.assertSame(gradients(traced(x, scale), [x]), gradients(module(x, scale), [x]))

    def test_trace_of_a_packed_sequence(self):
        class Packs(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = hdetach.LSTM(5, 8, bidirectional=True, device=DEVICE)

            def forward(self, x, lengths):
                packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
                output, (h_n, _) = self.lstm(packed)
                return nn.utils.rnn.pad_packed_sequence(output)[0], h_n

        module, x = Packs(), leaf(6, 3, 5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", torch.jit.TracerWarning)  # packing keeps the batch size
            traced = torch.jit.trace(module, (x, torch.tensor([6, 2, 4])))
        for lengths in (torch.tensor([6, 2, 4]), torch.tensor([1, 5, 6])):
            self.assertSame(traced(x, lengths), module(x, lengths))

    def test_functions(self):
        scripted = torch.jit.script(hdetach.lstm)
        arguments = [leaf(4, 3, 2), leaf(3, 5), leaf(3, 5), leaf(20, 2), leaf(20, 5)]
        self.assertSame(scripted(*arguments), hdetach.lstm(*arguments))
