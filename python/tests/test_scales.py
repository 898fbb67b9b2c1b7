"""Given scales, the gradients are those of the paper's loop with .detach()."""
import itertools

import torch

import hdetach
from peers import DEVICE, TestCase, detach_loop, gradients, leaf, loop_stack, make_input, pair

STEPS, BATCH, INPUTS, HIDDEN = 9, 4, 5, 12


def random_scales(entries, per_sample, kind):
    """Zeros and ones, or anything in between, for every layer and direction."""
    shape = (STEPS, BATCH) if per_sample else (STEPS,)
    scales = [torch.rand(shape, device=DEVICE) for _ in range(entries)]
    return [scale.ge(0.4).float() for scale in scales] if kind == "mask" else scales


class GivenScales(TestCase):
    def compare(self, module, scales, dtype):
        entries = module.num_layers * (2 if module.bidirectional else 1)
        x = leaf(STEPS, BATCH, INPUTS, dtype=dtype)
        hx = tuple(leaf(entries, BATCH, HIDDEN, dtype=dtype) for _ in range(2))
        leaves = [x, *hx, *module.parameters()]
        got = module(x, hx, scales=scales, return_cells=True)
        want = loop_stack(module, x, hx, scales)
        self.assertClose(got, want, "output")
        found = gradients(got, leaves)
        self.assertClose(found, gradients(want, leaves), "gradient")
        plain = gradients(module(x, hx, scales=([], []), return_cells=True), leaves)
        self.assertFalse(torch.equal(plain[-1], found[-1]), "the scales steered nothing")

    def test_paths_and_shapes(self):
        cases = itertools.product(("h", "c", "both"), (False, True), ("mask", "any"), (False, True))
        for path, per_sample, kind, both_ways in cases:
            with self.subTest(path=path, per_sample=per_sample, kind=kind, both_ways=both_ways):
                module = hdetach.LSTM(INPUTS, HIDDEN, 2, bidirectional=both_ways, device=DEVICE)
                entries = 4 if both_ways else 2
                scales = tuple(random_scales(entries, per_sample, kind) if path in (name, "both")
                               else [] for name in ("h", "c"))
                self.compare(module, scales, torch.float32)

    def test_float64(self):
        module = hdetach.LSTM(INPUTS, HIDDEN, 2, bias=False, device=DEVICE, dtype=torch.float64)
        self.compare(module, (random_scales(2, True, "any"), random_scales(2, False, "mask")),
                     torch.float64)

    def test_none_means_ones(self):
        module = hdetach.LSTM(INPUTS, HIDDEN, 2, device=DEVICE)
        mask = random_scales(1, False, "mask")[0]
        x = leaf(STEPS, BATCH, INPUTS)
        ones = torch.ones(STEPS, device=DEVICE)
        got = gradients(module(x, scales=([None, mask], [])), [x, *module.parameters()])
        want = gradients(module(x, scales=([ones, mask], [ones, ones])), [x, *module.parameters()])
        self.assertSame(got, want)

    def test_forward_bits_do_not_depend_on_scales(self):
        module = hdetach.LSTM(INPUTS, HIDDEN, 2, detach=0.5, device=DEVICE)
        x = leaf(STEPS, BATCH, INPUTS)
        want = module(x, scales=([], []))
        for _ in range(3):
            self.assertSame(module(x), want)

    def test_damping_is_the_mean_of_all_masks(self):
        """Corollary 1: the gradient averaged over all masks is that of scales 1 - detach."""
        module = hdetach.LSTM(2, 3, device=DEVICE, dtype=torch.float64)
        x = leaf(4, 2, 2, dtype=torch.float64)
        total, probability = None, 0.0
        for mask in itertools.product((0.0, 1.0), repeat=4):
            weight = 0.25 ** mask.count(0.0) * 0.75 ** mask.count(1.0)
            grads = gradients(module(x, scales=([torch.tensor(mask, device=DEVICE)], [])),
                              list(module.parameters()))
            part = [weight * grad for grad in grads]
            total = part if total is None else [a + b for a, b in zip(total, part)]
            probability += weight
        self.assertAlmostEqual(probability, 1.0)
        damped = hdetach.LSTM.from_torch(module, detach=0.25, mode="damp")
        self.assertClose(total, gradients(damped(x), list(module.parameters())))

    def test_packed_with_scales_for_each_row(self):
        """A packed batch against its sequences one by one, each with its own column of scales."""
        for kind, both_ways in itertools.product(("packed", "unsorted", "full"), (False, True)):
            with self.subTest(kind=kind, both_ways=both_ways):
                module = hdetach.LSTM(INPUTS, HIDDEN, 2, bidirectional=both_ways, device=DEVICE)
                entries = 4 if both_ways else 2
                scales = (random_scales(entries, True, "any"), random_scales(entries, True, "mask"))
                packed, rows = make_input(kind, STEPS, BATCH, INPUTS)
                hx = tuple(leaf(entries, BATCH, HIDDEN) for _ in range(2))
                output, (h_n, c_n), cells = module(packed, hx, scales=scales, return_cells=True)
                padded, _ = torch.nn.utils.rnn.pad_packed_sequence(output)
                cell, _ = torch.nn.utils.rnn.pad_packed_sequence(cells[1])
                got, want = [], []
                for b, row in enumerate(rows):
                    steps = row.size(0)
                    got += [padded[:steps, b], h_n[:, b], c_n[:, b], cell[:steps, b]]
                    alone = loop_stack(module, row[:, None], [state[:, b:b + 1] for state in hx],
                                       [[s[:steps, b] for s in part] for part in scales])
                    want += [part[:, 0] for part in (alone[0], *alone[1], alone[2][1])]
                leaves = [*rows, *hx, *module.parameters()]
                self.assertClose(got, want, "output")
                self.assertClose(gradients(got, leaves), gradients(want, leaves), "gradient")

    def test_draw_is_what_the_loop_gets(self):
        """forward() with a draw equals forward() with the same draw as scales."""
        for options in ({}, {"path": "cell"}, {"per_sample": True}, {"layers_policy": "separate"},
                        {"mode": "damp"}):
            with self.subTest(**options):
                module = hdetach.LSTM(INPUTS, HIDDEN, 2, detach=0.5, device=DEVICE, **options)
                x = leaf(STEPS, BATCH, INPUTS)
                torch.manual_seed(3)
                got = gradients(module(x), list(module.parameters()))
                torch.manual_seed(3)
                scales = module.draw_scales(STEPS, BATCH)
                want = gradients(module(x, scales=scales), list(module.parameters()))
                self.assertSame(got, want)
                hx = (torch.zeros(2, BATCH, HIDDEN, device=DEVICE),) * 2
                loop = loop_stack(module, x, hx, scales)
                self.assertClose(got, gradients(loop[:2], list(module.parameters())))

    def test_batch_first_and_unbatched(self):
        peer, ours = pair(input_size=INPUTS, hidden_size=HIDDEN, batch_first=True)
        scales = (random_scales(1, True, "any"), [])
        x = leaf(BATCH, STEPS, INPUTS)
        output, _, cells = ours(x, scales=scales, return_cells=True)
        zeros = torch.zeros(1, BATCH, HIDDEN, device=DEVICE)
        want = loop_stack(ours, x.transpose(0, 1), (zeros, zeros), scales)
        self.assertClose([output, cells[0]], [want[0].transpose(0, 1), want[2][0].transpose(0, 1)])
        alone, (h_n, _), cells = ours(x[0], return_cells=True,
                                      scales=([scales[0][0][:, 0]], []))
        self.assertClose([alone, cells[0]], [output[0], want[2][0][:, 0]])
        self.assertEqual(h_n.shape, (1, HIDDEN))

    def test_cell(self):
        for scales in ((torch.tensor(0.0), None), (None, torch.tensor(0.3)),
                       (torch.tensor([1.0, 0.0, 0.5]), torch.tensor([0.0, 1.0, 1.0]))):
            scales = tuple(None if scale is None else scale.to(DEVICE) for scale in scales)
            cell = hdetach.LSTMCell(5, 8, device=DEVICE)
            x, h, c = leaf(3, 5), leaf(3, 8), leaf(3, 8)
            got = cell(x, (h, c), scales=scales)
            weights = list(cell.parameters())
            want = detach_loop(x[None], h, c, weights,
                               *(None if scale is None else scale[None] for scale in scales))
            want = [part[0] for part in want]
            self.assertClose(got, want)
            self.assertClose(gradients(got, [x, h, c, *weights]),
                             gradients(want, [x, h, c, *weights]))
