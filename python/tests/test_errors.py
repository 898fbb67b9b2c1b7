"""Wrong arguments raise, with torch.nn.LSTM's message or a clearer one."""
import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import hdetach
from peers import DEVICE, TestCase, make_input, pair


class Errors(TestCase):
    def setUp(self):
        super().setUp()
        self.lstm = hdetach.LSTM(5, 8, 2, device=DEVICE)
        self.x = torch.randn(4, 3, 5, device=DEVICE)

    def raises(self, kind, words, call, *args, **named):
        with self.assertRaisesRegex(kind, words):
            call(*args, **named)

    def test_same_words_as_torch(self):
        peer, ours = pair(input_size=5, hidden_size=8, num_layers=2)
        state, short = torch.randn(2, 3, 8, device=DEVICE), torch.randn(1, 3, 8, device=DEVICE)
        flat = torch.randn(2, 8, device=DEVICE)
        for x, hx in ((torch.randn(4, 3, 6, device=DEVICE), None), (self.x, (flat, flat)),
                      (self.x[:, 0], (state, state))):
            with self.assertRaises(RuntimeError) as theirs:
                peer(x, hx)
            with self.assertRaises(RuntimeError) as mine:
                ours(x, hx)
            self.assertEqual(str(mine.exception), str(theirs.exception))
        for hx in ((short, state), (state, short)):
            with self.assertRaises(RuntimeError) as theirs:
                peer(self.x, hx)
            with self.assertRaises(RuntimeError) as mine:
                ours(self.x, hx)
            same = str(theirs.exception).replace("(", "[").replace(")", "]")
            self.assertEqual(str(mine.exception), same)

    def test_input(self):
        self.raises(ValueError, "2D or 3D, got 4D", self.lstm, self.x[None])
        self.raises(TypeError, "must be a Tensor or a PackedSequence, not list", self.lstm, [1, 2])
        self.raises(RuntimeError, "Double.*Float|Float.*Double", self.lstm, self.x.double())
        self.raises(RuntimeError, "step|length", self.lstm, self.x[:0])
        packed = PackedSequence(torch.randn(6, 5, device=DEVICE), torch.tensor([3, 2]))
        self.raises(RuntimeError, "batch_sizes", self.lstm, packed)
        wide = pack_sequence([torch.randn(3, 6, device=DEVICE)])
        self.raises(RuntimeError, "Expected 5, got 6", self.lstm, wide)

    def test_another_device(self):
        other = self.x.to("cpu" if DEVICE.type == "cuda" else "meta")
        self.raises((RuntimeError, NotImplementedError), "device|meta|cpu", self.lstm, other)

    def test_hx(self):
        self.raises(TypeError, r"hx must be a pair \(h_0, c_0\)", self.lstm, self.x,
                    torch.zeros(2, 3, 8))
        self.raises(TypeError, "or None, not tuple of 1", self.lstm, self.x,
                    (torch.zeros(2, 3, 8),))

    def test_scales(self):
        def given(*scales):
            return [scale.to(DEVICE) for scale in scales]

        ones = given(torch.ones(4), torch.ones(4))
        self.raises(ValueError, "list of 1 entries; it must have 2", self.lstm, self.x,
                    scales=(ones[:1], []))
        self.raises(TypeError, "pair of lists", self.lstm, self.x, scales=ones[0])
        self.raises(TypeError, "pair of lists", self.lstm, self.x, scales=(ones[0], ones[0]))
        self.raises(RuntimeError, "99 entries but x has T=4", self.lstm, self.x,
                    scales=(given(torch.ones(99), torch.ones(99)), []))
        self.raises(RuntimeError, "7 columns but x has B=3", self.lstm, self.x,
                    scales=(given(torch.ones(4, 7), torch.ones(4, 7)), []))
        for kind in ("packed", "unsorted", "full"):
            packed, _ = make_input(kind, 4, 3, 5)
            for columns in (2, 7):
                self.raises(RuntimeError, f"c_scale has {columns} columns but x has B=3", self.lstm,
                            packed, scales=([], given(*[torch.ones(4, columns)] * 2)))
        if DEVICE.type == "cpu":  # on a GPU, looking at the values would be waiting for it
            self.raises(RuntimeError, r"is 2; scales must be in \[0,1\]", self.lstm, self.x,
                        scales=(given(2 * torch.ones(4), torch.ones(4)), []))

    def test_policy(self):
        for make in (hdetach.LSTM, hdetach.LSTMCell):
            self.raises(ValueError, r"detach is 1.5; it must be in \[0, 1\]", make, 5, 8,
                        detach=1.5)
            self.raises(ValueError, "detach is nan", make, 5, 8, detach=float("nan"))
            self.raises(ValueError, "path is 'both'; it must be 'hidden' or 'cell'", make, 5, 8,
                        path="both")
            self.raises(ValueError, "mode is 'drop'", make, 5, 8, mode="drop")
            self.raises(TypeError, "generator is a int", make, 5, 8, generator=1)
            self.raises(TypeError, "detached", make, 5, 8, detached=0.5)
        self.raises(ValueError, "layers_policy is 'all'", hdetach.LSTM, 5, 8, layers_policy="all")
        self.raises(ValueError, "proj_size is 4; projections are not supported", hdetach.LSTM, 5, 8,
                    proj_size=4)
        self.lstm.detach = 2.0
        self.raises(ValueError, "detach is 2.0", self.lstm, self.x)
        self.raises(RuntimeError, "path is 'up'; it must be 'hidden' or 'cell'",
                    hdetach.sample_scales, 4, detach=0.5, path="up")

    def test_torchs_own_checks(self):
        self.raises(ValueError, "dropout should be a number in range", hdetach.LSTM, 5, 8,
                    dropout=2)
        with self.assertWarnsRegex(UserWarning, "num_layers greater than 1"):
            hdetach.LSTM(5, 8, dropout=0.5)

    def test_cell(self):
        cell = hdetach.LSTMCell(5, 8, device=DEVICE)
        x, h = torch.randn(3, 5, device=DEVICE), torch.randn(3, 8, device=DEVICE)
        self.raises(ValueError, "1D or 2D, got 3D", cell, x[None])
        self.raises(RuntimeError, "Expected 5, got 4", cell, x[:, :4])
        self.raises(RuntimeError, r"hidden\[0\] size \[3, 8\], got \[2, 8\]", cell, x, (h[:2], h))
        self.raises(RuntimeError, r"hidden\[1\] size \[3, 8\], got \[3, 7\]", cell, x,
                    (h, h[:, :7]))
        self.raises(RuntimeError, "one scale for the batch", cell, x, (h, h),
                    (torch.ones(1, 3, device=DEVICE), None))

    def test_conversion(self):
        take, take_cell = hdetach.LSTM.from_torch, hdetach.LSTMCell.from_torch
        self.raises(TypeError, "takes a torch.nn.LSTM, not GRU", take, nn.GRU(2, 3))
        self.raises(TypeError, "takes a torch.nn.LSTMCell", take_cell, nn.LSTM(2, 3))
        self.raises(ValueError, "proj_size is 2", take, nn.LSTM(2, 3, proj_size=2))
        bound = parametrizations.orthogonal(nn.LSTM(3, 3), "weight_hh_l0")
        self.raises(ValueError, "parametrized or pruned", take, bound)
        self.raises(TypeError, "ParametrizedLSTM is a subclass", hdetach.convert,
                    nn.Sequential(bound))
