"""What PyTorch 2, onnxruntime and a GPU add. Each test says what it lacks where it cannot run."""
import importlib.util
import io
import itertools
import unittest
import warnings

import torch
from torch import nn

import hdetach
from peers import DEVICE, TestCase, gradients, leaf, make_input, tensors


def has(name):
    return importlib.util.find_spec(name) is not None


class Model(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.lstm = hdetach.LSTM(5, 8, device=DEVICE, **options)
        self.head = nn.Linear(self.lstm.hidden_size * (2 if self.lstm.bidirectional else 1), 3,
                              device=DEVICE)

    def forward(self, x, scales=None):
        output, (h_n, c_n) = self.lstm(x, scales=scales)
        return torch.relu(self.head(output)), h_n, c_n


@unittest.skipUnless(hasattr(torch, "compile"), f"torch {torch.__version__} has no torch.compile")
class Compile(TestCase):
    def setUp(self):
        super().setUp()
        torch._dynamo.reset()

    def compare(self, model, *args, backend="aot_eager", **named):
        x = leaf(6, 3, 5)
        leaves = [x, *model.parameters()]
        compiled = torch.compile(model, fullgraph=True, backend=backend)
        want, got = model(x, *args, **named), compiled(x, *args, **named)
        self.assertClose(got, want, "output")
        # A compiled backward pass reuses the memory of its graph, and refuses to keep it.
        self.assertClose(gradients(got, leaves, keep=False), gradients(want, leaves), "gradient")
        return compiled

    def test_plain(self):
        self.compare(Model())

    def test_layers_both_ways_batch_first(self):
        self.compare(Model(num_layers=2, bidirectional=True, batch_first=True, bias=False))

    def test_inductor(self):
        self.compare(Model(num_layers=2), backend="inductor")

    def test_eval_mode_and_no_grad(self):
        model = Model(detach=0.5).eval()
        compiled = self.compare(model)
        with torch.no_grad():
            x = torch.randn(6, 3, 5, device=DEVICE)
            self.assertClose(compiled(x), model(x))

    def test_policies_without_chance(self):
        for options in ({"detach": 1.0}, {"detach": 0.5, "mode": "damp"},
                        {"detach": 1.0, "path": "cell"}):
            with self.subTest(**options):
                torch._dynamo.reset()
                self.compare(Model(**options))

    def test_given_scales(self):
        scale = torch.tensor([1, 0, 1, 0.5, 0, 1], device=DEVICE)
        self.compare(Model(), scales=([scale], []))
        self.compare(Model(), scales=([scale.cpu()], []))

    def test_draws(self):
        """The compiled draw is a draw: zeros and ones, anew in every pass, repeated by the seed."""
        model = Model(detach=0.5)
        for backend in ("aot_eager", "inductor"):
            torch._dynamo.reset()
            compiled = torch.compile(model, fullgraph=True, backend=backend)
            x, runs = leaf(40, 3, 5), []
            for seed in (1, 1, 2):
                torch.manual_seed(seed)
                runs.append(gradients(compiled(x), [x], keep=False)[0])
            self.assertSame(runs[0], runs[1])
            self.assertFalse(torch.equal(runs[0], runs[2]))
            self.assertClose(compiled(x), model(x))  # the forward pass does not depend on it

    def test_another_length(self):
        model = Model(detach=1.0)
        compiled = self.compare(model)
        for steps in (9, 4, 17):
            x = leaf(steps, 2, 5)
            self.assertClose(gradients(compiled(x), [x], keep=False), gradients(model(x), [x]))

    def test_cell(self):
        cell = hdetach.LSTMCell(5, 8, detach=1.0, device=DEVICE)
        x, h, c = leaf(3, 5), leaf(3, 8), leaf(3, 8)
        got = torch.compile(cell, fullgraph=True, backend="aot_eager")(x, (h, c))
        self.assertClose(gradients(got, [x, h, c], keep=False),
                         gradients(cell(x, (h, c)), [x, h, c]))

    def test_opcheck(self):
        from torch.library import opcheck
        sizes = ((4, 3, 2), (3, 5), (3, 5), (20, 2), (20, 5), (20,), (20,))
        for grad in (False, True):
            arguments = [leaf(*size).detach().requires_grad_(grad) for size in sizes]
            scale = torch.tensor([1.0, 0.0, 1.0, 0.5], device=DEVICE)
            opcheck(torch.ops.hdetach.lstm.default, (*arguments, scale),
                    test_utils=("test_schema", "test_faketensor"))


class Onnx(TestCase):
    def written(self, model, x):
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own, about other batch sizes
            try:
                hdetach.export_onnx(model, (x,), file)
            except Exception as error:
                if not has("onnx") and "onnx" in str(error):
                    self.skipTest(f"torch {torch.__version__} wants the package onnx: {error}")
                raise
        return file.getvalue()

    def test_standard_operator(self):
        model = Model(num_layers=2, bidirectional=True, detach=0.5)
        written = self.written(model, torch.randn(6, 3, 5, device=DEVICE))
        # Field 4 of a node, its op_type, of length 4.
        self.assertEqual(written.count(b"\x22\x04LSTM"), 2, "one LSTM node for each layer")
        self.assertNotIn(b"hdetach::", written)
        self.assertIsInstance(model.lstm, hdetach.LSTM)  # the model itself is left alone
        self.assertTrue(model.training)

    @unittest.skipUnless(has("onnxruntime"), "there is no onnxruntime here")
    def test_round_trip(self):
        import onnxruntime
        for options in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}):
            model = Model(detach=0.5, **options)
            x = torch.randn(6, 3, 5, device=DEVICE)
            session = onnxruntime.InferenceSession(self.written(model, x),
                                                   providers=["CPUExecutionProvider"])
            got = session.run(None, {session.get_inputs()[0].name: x.cpu().numpy()})
            want = model.eval()(x)
            self.assertClose([torch.from_numpy(part) for part in got],
                             [part.cpu() for part in want])


@unittest.skipUnless(DEVICE.type == "cuda", "not on a GPU (HDETACH_TEST_DEVICE=cuda)")
class Cuda(TestCase):
    def test_steps_do_not_wait(self):
        """A training step queues work and never waits for the GPU, wherever it draws."""
        inputs = [leaf(20, 3, 5)]
        for kind in ("packed", "unsorted", "full"):
            inputs.append(make_input(kind, 20, 3, 5)[0])
        for x, generator in itertools.product(
                inputs, (None, torch.Generator(), torch.Generator("cuda"))):
            module = hdetach.LSTM(5, 8, 2, bidirectional=True, detach=0.5, per_sample=True,
                                  device=DEVICE, generator=generator)
            on_host = ([torch.ones(20)] * 4, []) if generator is None else None

            def step():
                module(x, scales=on_host)
                output = tensors(module(x)[0])[0]
                output.sum().backward(inputs=list(module.parameters()))

            step()
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
            try:
                step()
            finally:
                torch.cuda.set_sync_debug_mode("default")

    def test_graph_capture(self):
        """A captured training step draws anew at every replay."""
        module = hdetach.LSTM(5, 8, detach=0.5, device=DEVICE)
        x = torch.randn(60, 3, 5, device=DEVICE)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                module.zero_grad(set_to_none=True)
                module(x)[0].sum().backward()
        torch.cuda.synchronize()
        module.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            module(x)[0].sum().backward()
        found = []
        for _ in range(2):
            graph.replay()
            torch.cuda.synchronize()
            found.append(module.weight_hh_l0.grad.clone())
        self.assertTrue(found[0].abs().sum() > 0)
        self.assertFalse(torch.equal(found[0], found[1]))

    def test_graph_capture_refuses_a_draw_on_the_host(self):
        """It would be frozen into the graph."""
        module = hdetach.LSTM(5, 8, detach=0.5, device=DEVICE, generator=torch.Generator())
        x = torch.randn(60, 3, 5, device=DEVICE)
        for given in (None, ([torch.ones(60)], [])):
            with self.assertRaisesRegex(RuntimeError, "(?s)every replay"):
                with torch.cuda.graph(torch.cuda.CUDAGraph()):
                    module(x, scales=given)
            torch.cuda.synchronize()
        module(x)[0].sum().backward()

    def test_moves_between_devices(self):
        module = hdetach.LSTM(5, 8)
        x = torch.randn(6, 3, 5)
        want = module(x)
        got = module.to(DEVICE)(x.to(DEVICE))
        self.assertClose([part.cpu() for part in got[1]], list(want[1]))
        self.assertClose(module.cpu()(x), want)

    def test_data_parallel(self):
        module = hdetach.LSTM(5, 8, detach=0.5, batch_first=True, device=DEVICE)
        x = leaf(4, 6, 5)
        output, _ = nn.DataParallel(module, [DEVICE.index or 0])(x)
        self.assertClose(output, module(x)[0])


@unittest.skipUnless(has("safetensors"), "there is no safetensors here")
class Safetensors(TestCase):
    def test_weights_of_the_program(self):
        """The program writes nn.LSTM's names, so its weights load as they are."""
        from safetensors.torch import load, save
        module = hdetach.LSTM(5, 8, 2)
        other = hdetach.LSTM(5, 8, 2)
        other.load_state_dict(load(save(module.state_dict())))
        self.assertSame(list(other.parameters()), list(module.parameters()))
