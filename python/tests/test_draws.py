"""The draw: seeded, from the generator asked for, and only where something is steered."""
import copy
import pickle

from unittest import mock

import torch
from torch.utils.checkpoint import checkpoint

import hdetach
from peers import DEVICE, TestCase, gradients, leaf


def generator(seed=5, device="cpu"):
    return torch.Generator(device).manual_seed(seed)


def rng_state():
    return torch.cuda.get_rng_state(DEVICE) if DEVICE.type == "cuda" else torch.get_rng_state()


class Draws(TestCase):
    def drawn(self, module, steps=64, batch=3):
        return torch.stack([part for part in module.draw_scales(steps, batch)[0]])

    def train(self, **options):
        """The parameters after three updates."""
        module = hdetach.LSTM(4, 8, 2, detach=0.5, dropout=0.2, device=DEVICE, **options)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
        x = torch.linspace(-1, 1, 10 * 3 * 4, device=DEVICE).view(10, 3, 4)
        for _ in range(3):
            optimizer.zero_grad()
            module(x)[0].square().sum().backward()
            optimizer.step()
        return list(module.parameters())

    def test_seeded_run_is_reproducible(self):
        runs = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            runs.append(self.train())
        self.assertSame(runs[0], runs[1])
        self.assertFalse(torch.equal(runs[0][0], runs[2][0]))

    def test_seeded_run_with_a_generator(self):
        runs = []
        for seed in (1, 1, 2):
            torch.manual_seed(0)
            runs.append(self.train(generator=generator(seed)))
        self.assertSame(runs[0], runs[1])
        self.assertFalse(torch.equal(runs[0][0], runs[2][0]))

    def test_each_pass_draws_anew(self):
        module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE)
        self.assertFalse(torch.equal(self.drawn(module), self.drawn(module)))
        x = leaf(30, 2, 4)
        first, second = (gradients(module(x), [x])[0] for _ in range(2))
        self.assertFalse(torch.equal(first, second))

    def test_nothing_is_drawn_where_nothing_is_random(self):
        x = leaf(5, 2, 4)
        for options, train in (({}, True), ({"detach": 0.5}, False),
                               ({"detach": 0.5, "mode": "damp"}, True)):
            for module in (hdetach.LSTM(4, 8, device=DEVICE, **options),
                           hdetach.LSTMCell(4, 8, device=DEVICE, **options)):
                module.train(train)
                before = rng_state()
                module(x if isinstance(module, hdetach.LSTM) else x[0])
                self.assertTrue(torch.equal(before, rng_state()), (options, train))
        module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE)
        module(x)
        self.assertFalse(torch.equal(before, rng_state()), "a draw that moved no generator")

    def test_given_scales_draw_nothing(self):
        module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE)
        x = leaf(5, 2, 4)
        before = rng_state()
        module(x, scales=([], []))
        self.assertTrue(torch.equal(before, rng_state()))

    def test_a_generator_leaves_the_default_alone(self):
        module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE, generator=generator())
        before = rng_state()
        first = self.drawn(module)
        self.assertTrue(torch.equal(before, rng_state()))
        want = torch.empty(1, 64).bernoulli_(0.5, generator=generator())
        self.assertEqual(first.device.type, DEVICE.type)
        self.assertSame(first.cpu(), want)  # a CPU generator: the same draws on every device

    def test_the_share_of_blocked_steps(self):
        for detach in (0.0, 0.1, 0.5, 1.0):
            module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE, per_sample=True)
            module.detach = detach  # annealed
            h_scale, c_scale = module.draw_scales(500, 40)
            self.assertEqual(c_scale, [])
            if detach == 0.0:
                self.assertEqual(h_scale, [])
                continue
            self.assertEqual(set(h_scale[0].flatten().tolist()) - {0.0, 1.0}, set())
            # Of 20,000 draws: five standard deviations are at most 0.018.
            self.assertLessEqual(abs(1 - h_scale[0].mean().item() - detach), 0.018)
            if detach == 1.0:
                self.assertEqual(h_scale[0].sum().item(), 0)

    def test_layers_paths_and_shapes(self):
        both = {"num_layers": 2, "bidirectional": True, "detach": 0.5, "device": DEVICE}
        h_scale, c_scale = hdetach.LSTM(4, 8, **both).draw_scales(50, 3)
        self.assertEqual((len(h_scale), c_scale, h_scale[0].shape), (4, [], (50,)))
        for scale in h_scale[1:]:
            self.assertSame(scale, h_scale[0])
        apart = hdetach.LSTM(4, 8, layers_policy="separate", path="cell", per_sample=True, **both)
        h_scale, c_scale = apart.draw_scales(50, 3)
        self.assertEqual((h_scale, len(c_scale), c_scale[0].shape), ([], 4, (50, 3)))
        self.assertFalse(torch.equal(c_scale[0], c_scale[1]))
        self.assertFalse(torch.equal(c_scale[0][:, 0], c_scale[0][:, 1]))
        h_scale, _ = hdetach.LSTM(4, 8, mode="damp", **both).draw_scales(50, 3)
        self.assertSame(h_scale[3].cpu(), torch.full((50,), 0.5))

    def test_generator_state_survives_copies(self):
        module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE, generator=generator())
        self.drawn(module)
        copies = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
        want = self.drawn(module)
        for other in copies:
            self.assertIsNot(other.generator, module.generator)
            self.assertSame(self.drawn(other), want)
        module.eval()
        module(leaf(5, 2, 4))
        module.train()
        self.assertSame(self.drawn(module), self.drawn(copies[0]))

    def test_replicas_share_the_generator(self):
        """DataParallel makes replicas anew for every pass: their draws must not repeat."""
        module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE, generator=generator())
        first, second = (self.drawn(replica(module)) for _ in range(2))
        self.assertFalse(torch.equal(first, second))

    def checkpointed(self, module, reentrant, **named):
        """The gradients of the input and the weights with and without a checkpoint, same seed."""
        x = leaf(30, 2, 4)
        leaves = [x, *module.parameters()]
        found = []
        for run in (lambda x: module(x, **named)[0],
                    lambda x: checkpoint(lambda y: module(y, **named)[0], x,
                                         use_reentrant=reentrant)):
            torch.manual_seed(3)
            for parameter in leaves:
                parameter.grad = None
            run(x).square().sum().backward()
            found.append([parameter.grad for parameter in leaves])
        return found

    def test_checkpoint_repeats_the_default_draw(self):
        for reentrant in (True, False):
            module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE)
            plain, recomputed = self.checkpointed(module, reentrant)
            self.assertSame(plain, recomputed)

    def test_checkpoint_refuses_a_second_draw(self):
        for reentrant in (True, False):
            for module in (hdetach.LSTM(4, 8, detach=0.5, device=DEVICE, generator=generator()),
                           hdetach.LSTMCell(4, 8, detach=0.5, device=DEVICE,
                                            generator=generator())):
                x = leaf(30, 4)
                out = checkpoint(lambda y: module(y)[0], x, use_reentrant=reentrant)
                state = module.generator.get_state()
                with self.assertRaisesRegex(RuntimeError, "(?s)checkpoint.*generator=None"):
                    out.sum().backward()
                self.assertSame(state, module.generator.get_state())
                module(x)[0].sum().backward()  # and nothing is left behind

    def test_checkpoint_takes_torchs_own_generator(self):
        own = torch.cuda.default_generators[0] if DEVICE == "cuda" else torch.default_generator
        for reentrant in (True, False):
            module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE, generator=own)
            plain, recomputed = self.checkpointed(module, reentrant)
            self.assertSame(plain, recomputed)

    def test_checkpoint_with_scales_drawn_outside(self):
        module = hdetach.LSTM(4, 8, detach=0.5, device=DEVICE, generator=generator())
        for reentrant in (True, False):
            plain, recomputed = self.checkpointed(module, reentrant,
                                                  scales=module.draw_scales(30, 2))
            self.assertSame(plain, recomputed)

    def test_a_cpu_generator_is_refused_in_a_captured_graph(self):
        """Without a GPU: what torch says of a capture is put in its mouth."""
        from hdetach._policy import draw_keep_from
        drawn = generator()
        state = drawn.get_state()
        with mock.patch("torch.cuda.is_current_stream_capturing", return_value=True):
            with self.assertRaisesRegex(RuntimeError, "(?s)every replay.*generator=None"):
                draw_keep_from(drawn, [3], 0.5, torch.device("cuda"))
            draw_keep_from(drawn, [3], 0.5, torch.device("cpu"))
        self.assertFalse(torch.equal(state, drawn.get_state()))

    def test_cell_draws(self):
        cell = hdetach.LSTMCell(4, 8, detach=0.5, device=DEVICE)
        drawn = [cell.draw_scales(3)[0].item() for _ in range(200)]
        self.assertEqual(set(drawn), {0.0, 1.0})
        self.assertLess(abs(sum(drawn) / 200 - 0.5), 0.18)  # five standard deviations
        rows = hdetach.LSTMCell(4, 8, detach=0.5, per_sample=True, path="cell", device=DEVICE)
        none, scale = rows.draw_scales(50)
        self.assertEqual((none, scale.shape), (None, (50,)))
        self.assertEqual(set(scale.tolist()), {0.0, 1.0})
        blocked = hdetach.LSTMCell(4, 8, detach=1.0, device=DEVICE)
        x, h, c = leaf(3, 4), leaf(3, 8), leaf(3, 8)
        gradient = torch.autograd.grad(blocked(x, (h, c))[1].sum(), h)[0]
        self.assertEqual(gradient.abs().max().item(), 0.0)


def replica(module):
    """As torch.nn.parallel.replicate makes it, on the same device."""
    made = module._replicate_for_data_parallel()
    for name, parameter in module.named_parameters():
        setattr(made, name, parameter.view_as(parameter))
    return made


class SampleScales(TestCase):
    """hdetach.sample_scales: the C++ library's own draw."""

    def test_depends_on_seed_and_counter_alone(self):
        whole, drawn = hdetach.sample_scales(40, detach=0.5, seed=9)
        self.assertEqual(drawn, 40)
        first, drawn = hdetach.sample_scales(25, detach=0.5, seed=9)
        rest, _ = hdetach.sample_scales(15, detach=0.5, seed=9, drawn=drawn)
        self.assertSame(torch.cat([first[0][0], rest[0][0]]), whole[0][0])
        other, _ = hdetach.sample_scales(40, detach=0.5, seed=10)
        self.assertFalse(torch.equal(other[0][0], whole[0][0]))

    def test_known_values(self):
        """The stream never changes: SplitMix64 of seed 1, as the C++ tests and the GPU draw it."""
        def uniform(seed, n):
            def mix(z):
                z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
                z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
                return z ^ (z >> 31)
            weyl = 0x9E3779B97F4A7C15
            return (mix((mix((seed + weyl) % 2**64) + n * weyl) % 2**64) >> 11) * 2.0**-53

        scales, _ = hdetach.sample_scales(30, detach=0.25, seed=1)
        want = [0.0 if uniform(1, n) < 0.25 else 1.0 for n in range(1, 31)]
        self.assertEqual(scales[0][0].tolist(), want)
        self.assertIn(0.0, want)

    def test_feeds_forward(self):
        module = hdetach.LSTM(4, 8, 2, device=DEVICE)
        scales, _ = hdetach.sample_scales(5, 2, layers=2, detach=0.5, per_sample=True, seed=1)
        x = leaf(5, 2, 4)
        here = tuple([scale.to(DEVICE) for scale in part] for part in scales)
        self.assertSame(gradients(module(x, scales=scales), [x]),
                        gradients(module(x, scales=here), [x]))
        nothing, drawn = hdetach.sample_scales(5, detach=0.0)
        self.assertEqual((nothing, drawn), (([], []), 0))
