"""Forward-mode differentiation: the tangent that comes out is that of the gradient's own Jacobian."""
import unittest
import warnings

import torch
from torch.autograd import forward_ad
from torch.nn.utils.rnn import PackedSequence

import hdetach
from peers import DEVICE, TestCase, leaf, make_input, tensors


class ForwardMode(TestCase):
    def inner(self, a, b):
        return sum((x.detach().double() * y.detach().double()).sum().item() for x, y in zip(a, b))

    def check(self, run, arguments):
        """<v, J u> by forward mode is <J^T v, u> by reverse mode, whatever the scales."""
        leaves = [argument.detach().requires_grad_() for argument in arguments]
        out = run(*leaves)
        v = [torch.randn_like(value) for value in out]
        u = [torch.randn_like(value) for value in leaves]
        gradients = torch.autograd.grad(out, leaves, v)
        want = self.inner(gradients, u)
        for frozen in (True, False):
            given = leaves if not frozen else [argument.detach() for argument in arguments]
            for mode in (torch.enable_grad, torch.no_grad):
                with mode(), forward_ad.dual_level(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    duals = [forward_ad.make_dual(*pair) for pair in zip(given, u)]
                    parts = [forward_ad.unpack_dual(value) for value in run(*duals)]
                got = self.inner([part.tangent for part in parts], v)
                # Two sums of thousands of products in float32; a lost tangent gives 0.
                self.assertLess(abs(got - want), 1e-4 * (1 + abs(want)), (frozen, mode))
                self.assertClose([part.primal for part in parts], out, "output")

    def sizes(self, steps=7, batch=3, width=4, hidden=8):
        shapes = ((steps, batch, width), (batch, hidden), (batch, hidden), (4 * hidden, width),
                  (4 * hidden, hidden), (4 * hidden,), (4 * hidden,))
        return [leaf(*shape).detach() * 0.5 for shape in shapes]

    def test_op(self):
        h_scale = torch.tensor([1.0, 0.0, 1.0, 0.5, 0.0, 1.0, 1.0], device=DEVICE)
        c_scale = torch.rand(7, 3, device=DEVICE)
        lengths = torch.tensor([7, 2, 5])
        for named in ({}, {"h_scale": h_scale}, {"h_scale": h_scale, "c_scale": c_scale},
                      {"lengths": lengths}):
            self.check(lambda *a, named=named: hdetach.lstm(*a, **named), self.sizes())

    def test_module_with_tangents_in_its_input_alone(self):
        module = hdetach.LSTM(4, 8, 2, bidirectional=True, detach=0.5, device=DEVICE)
        scales = module.draw_scales(7, 3)
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        self.check(lambda x: tensors(module(x, scales=scales)), [leaf(7, 3, 4)])

    def test_cell(self):
        cell = hdetach.LSTMCell(4, 8, device=DEVICE)
        self.check(lambda x, h, c: cell(x, (h, c)), [leaf(3, 4), leaf(3, 8), leaf(3, 8)])

    def test_packed(self):
        for kind in ("unsorted", "sorted"):
            packed, _ = make_input(kind, 6, 3, 4, torch.float32)
            module = hdetach.LSTM(4, 8, bidirectional=True, device=DEVICE).requires_grad_(False)
            tangent = torch.randn_like(packed.data)
            data = packed.data.detach().requires_grad_()
            out = module(PackedSequence(data, *packed[1:]))
            flat = [out[0].data, *out[1]]
            v = [torch.randn_like(value) for value in flat]
            want = self.inner(torch.autograd.grad(flat, [data], v), [tangent])
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(packed.data.detach(), tangent)
                got = module(PackedSequence(dual, *packed[1:]))
                tangents = [forward_ad.unpack_dual(part).tangent for part in (got[0].data, *got[1])]
            self.assertLess(abs(self.inner(tangents, v) - want), 1e-4 * (1 + abs(want)))

    def test_packed_tangents_keep_their_gradient(self):
        """Reverse mode over forward mode: the tangent that comes out depends on the one put in."""
        packed, _ = make_input("unsorted", 6, 3, 4, torch.float32)
        module = hdetach.LSTM(4, 8, device=DEVICE).requires_grad_(False)
        u = torch.randn_like(packed.data).requires_grad_()
        data = packed.data.detach().requires_grad_()
        out = module(PackedSequence(data, *packed[1:]))
        flat = [out[0].data, *out[1]]
        v = [torch.randn_like(value) for value in flat]
        want = torch.autograd.grad(flat, [data], v)  # J^T v, the gradient of <v, J u> by u
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(packed.data.detach(), u)
            got = module(PackedSequence(dual, *packed[1:]))
            tangents = [forward_ad.unpack_dual(part).tangent for part in (got[0].data, *got[1])]
            self.assertClose(torch.autograd.grad(tangents, [u], v), want, "gradient of the tangent")

    def test_packed_refuses_both_modes_at_once(self):
        packed, _ = make_input("unsorted", 6, 3, 4, torch.float32)
        module = hdetach.LSTM(4, 8, device=DEVICE)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(packed.data.detach(), torch.randn_like(packed.data))
            with self.assertRaisesRegex(RuntimeError, "forward-mode"):
                module(PackedSequence(dual, *packed[1:]))

    def test_tangents_that_arrive_in_the_backward_pass(self):
        """A tangent in a head behind the module: forward mode over reverse mode."""
        scales = ([(torch.arange(12, device=DEVICE) % 3 > 0).float()], [])
        for kind in ("dense", "packed", "two"):
            modules = [hdetach.LSTM(4, 8, device=DEVICE)]
            if kind == "two":
                modules.append(hdetach.LSTM(8, 8, device=DEVICE))
            x = make_input("unsorted", 12, 3, 4, torch.float32)[0] if kind == "packed" else leaf(
                12, 3, 4)
            head, u = leaf(8, 1).detach(), leaf(8, 1).detach()
            parameters = [p for module in modules for p in module.parameters()]

            def loss(w):
                out = x
                for module in modules:
                    out = module(out, scales=scales)[0]
                out = out.data if isinstance(out, PackedSequence) else out
                return (out @ w).tanh().sum()

            # d/ds of the gradient at head + s u, by reverse mode over reverse mode.
            w = head.clone().requires_grad_()
            gradient = torch.autograd.grad(loss(w), parameters, create_graph=True)
            v = [torch.randn_like(part) for part in gradient]
            product = sum((a * b).sum() for a, b in zip(gradient, v))
            want = self.inner(torch.autograd.grad(product, [w]), [u])
            with forward_ad.dual_level(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = torch.autograd.grad(loss(forward_ad.make_dual(head, u)), parameters)
                parts = [forward_ad.unpack_dual(part) for part in found]
            self.assertClose([part.primal for part in parts],
                             [part.detach() for part in gradient], "gradient")
            got = self.inner([part.tangent for part in parts], v)
            self.assertLess(abs(got - want), 1e-4 * (1 + abs(want)), kind)

    def test_transforms_are_right_or_refused(self):
        """Right with float64; in float32 a transform could take a kernel for a constant."""
        func = getattr(torch, "func", None)  # torch 2, which refuses every transform of a kernel
        if func is None:
            try:
                import functorch as func
            except ImportError:
                self.skipTest("neither torch.func nor functorch")
        module = hdetach.LSTM(4, 8, device=DEVICE)
        x, u = leaf(6, 3, 4).detach(), leaf(6, 3, 4).detach()

        def loss(y):
            return module(y)[0].square().sum()

        def check_first_derivatives():
            given = x.clone().requires_grad_()
            self.assertClose([func.grad(loss)(x)], torch.autograd.grad(loss(given), [given]),
                             "gradient")
            out, pullback = func.vjp(lambda y: module(y)[0], x)
            v = torch.randn_like(out)
            want = torch.autograd.grad(module(given)[0], [given], v)
            self.assertClose([pullback(v)[0].detach()], want, "vjp")

        if hasattr(torch, "func"):
            with self.assertRaises(RuntimeError):
                func.grad(loss)(x)
            with self.assertRaises(RuntimeError):
                func.vjp(lambda y: module(y)[0], x)
        else:
            check_first_derivatives()
        with self.assertRaises(RuntimeError):
            func.jvp(func.grad(loss), (x,), (u,))
        with self.assertRaises(RuntimeError):
            func.grad(lambda y: (func.grad(loss)(y) * u).sum())(x)
        module, x, u = module.double(), x.double(), u.double()
        check_first_derivatives()
        forward = func.jvp(func.grad(loss), (x,), (u,))[1]
        reverse = func.grad(lambda y: (func.grad(loss)(y) * u).sum())(x)
        self.assertClose([forward], [reverse], "second derivative")

    @unittest.skipUnless(hasattr(torch, "func"), f"torch {torch.__version__} has no torch.func")
    def test_func_jvp(self):
        arguments = self.sizes()
        u = [torch.randn_like(value) for value in arguments]
        leaves = [argument.detach().requires_grad_() for argument in arguments]
        out = hdetach.lstm(*leaves)
        v = [torch.randn_like(value) for value in out]
        want = self.inner(torch.autograd.grad(out, leaves, v), u)
        with torch.no_grad():
            _, tangents = torch.func.jvp(lambda *a: hdetach.lstm(*a), tuple(arguments), tuple(u))
        self.assertLess(abs(self.inner(tangents, v) - want), 1e-4 * (1 + abs(want)))
