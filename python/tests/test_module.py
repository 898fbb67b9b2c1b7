"""What a user of torch.nn.LSTM expects of the module: names, copies, conversion."""
import copy
import io
import pickle

import torch
from torch import nn

import hdetach
from peers import DEVICE, TestCase, leaf, pair
from test_draws import replica


class Tagger(nn.Module):
    """A model of somebody else's."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.encoder = nn.LSTM(6, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.cells = nn.ModuleList([nn.LSTMCell(16, 8)])
        self.twin = self.encoder
        self.head = nn.Linear(8, 3)

    def forward(self, words):
        states, _ = self.encoder(self.embed(words))
        return self.head(self.cells[0](states[:, -1])[0])


class Module(TestCase):
    def test_attributes_and_initial_weights(self):
        options = dict(num_layers=2, bias=False, batch_first=True, dropout=0.1, bidirectional=True)
        torch.manual_seed(4)
        peer = nn.LSTM(5, 8, **options)
        torch.manual_seed(4)
        ours = hdetach.LSTM(5, 8, detach=0.5, **options)
        for name in nn.LSTM.__constants__:
            self.assertEqual(getattr(ours, name), getattr(peer, name), name)
        self.assertSame(list(ours.parameters()), list(peer.parameters()))
        self.assertEqual([name for name, _ in ours.named_parameters()],
                         [name for name, _ in peer.named_parameters()])

    def test_repr(self):
        options = {"num_layers": 2, "bias": False, "batch_first": True}
        self.assertEqual(repr(hdetach.LSTM(5, 8, **options)), repr(nn.LSTM(5, 8, **options)))
        self.assertEqual(repr(hdetach.LSTMCell(5, 8)), repr(nn.LSTMCell(5, 8)))
        self.assertEqual(repr(hdetach.LSTM(5, 8, detach=0.25, path="cell", mode="damp",
                                           layers_policy="separate", per_sample=True)),
                         "LSTM(5, 8, detach=0.25, path=cell, mode=damp, per_sample=True, "
                         "layers_policy=separate)")
        self.assertEqual(repr(hdetach.LSTMCell(5, 8, detach=0.25)), "LSTMCell(5, 8, detach=0.25)")

    def test_state_dict_both_ways(self):
        peer, ours = nn.LSTM(5, 8, 2, bidirectional=True), hdetach.LSTM(5, 8, 2, bidirectional=True)
        for source, target in ((peer, ours), (hdetach.LSTM(5, 8, 2, bidirectional=True), peer)):
            target.load_state_dict(source.state_dict(), strict=True)
            self.assertSame(list(target.parameters()), list(source.parameters()))
        nn.LSTMCell(5, 8).load_state_dict(hdetach.LSTMCell(5, 8, detach=0.5).state_dict())

    def test_copies(self):
        x = leaf(4, 2, 5)
        for module in (hdetach.LSTM(5, 8, 2, detach=0.5, path="cell", device=DEVICE),
                       hdetach.LSTM(5, 8, 2, detach=0.5, device=DEVICE,
                                    generator=torch.Generator().manual_seed(1))):
            buffer = io.BytesIO()
            torch.save(module, buffer)
            buffer.seek(0)
            options = {"weights_only": False} if torch.__version__ >= "2" else {}
            for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)),
                          torch.load(buffer, **options)):
                self.assertEqual(repr(other), repr(module))
                self.assertSame(other(x), module(x))
                self.assertIsNot(other.weight_hh_l0, module.weight_hh_l0)
                other(x)[0].sum().backward()
                self.assertIsNone(module.weight_hh_l0.grad)
                self.assertIsNotNone(other.weight_hh_l0.grad)
        cell = hdetach.LSTMCell(5, 8, detach=0.5, generator=torch.Generator(), device=DEVICE)
        for other in (copy.deepcopy(cell), pickle.loads(pickle.dumps(cell))):
            self.assertSame(other(x[0]), cell(x[0]))

    def test_replicas_use_their_own_weights(self):
        module = hdetach.LSTM(5, 8, device=DEVICE)
        made = replica(module)
        for name, _ in module.named_parameters():
            setattr(made, name, torch.zeros_like(getattr(module, name)))
        self.assertEqual(made(leaf(4, 2, 5))[0].abs().max().item(), 0.0)
        self.assertNotEqual(module(leaf(4, 2, 5))[0].abs().max().item(), 0.0)

    def test_double_and_back(self):
        module = hdetach.LSTM(5, 8, device=DEVICE).double()
        self.assertEqual(module(leaf(4, 2, 5, dtype=torch.float64))[0].dtype, torch.float64)
        module.float()
        self.assertEqual(module(leaf(4, 2, 5))[0].dtype, torch.float32)

    def test_parameters_may_be_replaced(self):
        module = hdetach.LSTM(5, 8, device=DEVICE)
        module.weight_hh_l0 = nn.Parameter(torch.zeros_like(module.weight_hh_l0))
        peer = nn.LSTM(5, 8, device=DEVICE)
        peer.load_state_dict(module.state_dict())
        x = leaf(4, 2, 5)
        self.assertClose(module(x), peer(x))
        if hasattr(torch, "func"):
            zeros = {name: torch.zeros_like(value) for name, value in module.named_parameters()}
            output, _ = torch.func.functional_call(module, zeros, (x,))
            self.assertEqual(output.abs().max().item(), 0.0)

    def test_accumulates_over_two_backwards(self):
        module = hdetach.LSTM(5, 8, device=DEVICE)
        output, _ = module(leaf(4, 2, 5))
        output.sum().backward(retain_graph=True)
        once = module.weight_ih_l0.grad.clone()
        output.sum().backward()
        self.assertSame(module.weight_ih_l0.grad, 2 * once)

    def test_from_and_to_torch(self):
        peer, _ = pair(input_size=5, hidden_size=8, num_layers=2, bias=False, batch_first=True,
                       bidirectional=True, dropout=0.0)
        peer.eval()
        peer.weight_ih_l0.requires_grad_(False)
        state = torch.get_rng_state()
        ours = hdetach.LSTM.from_torch(peer, detach=0.25)
        self.assertTrue(torch.equal(state, torch.get_rng_state()), "the conversion drew weights")
        self.assertFalse(ours.training)
        self.assertEqual(ours.detach, 0.25)
        back = ours.to_torch()
        self.assertIs(type(back), nn.LSTM)
        for name, parameter in peer.named_parameters():
            self.assertIs(getattr(ours, name), parameter)
            self.assertIs(getattr(back, name), parameter)
        x = leaf(2, 4, 5)
        self.assertClose(ours(x), peer(x))
        self.assertClose(back(x), peer(x))
        cell = nn.LSTMCell(5, 8, bias=False)
        self.assertIs(hdetach.LSTMCell.from_torch(cell, detach=0.5).to_torch().weight_hh,
                      cell.weight_hh)

    def test_convert_a_model(self):
        model = Tagger()
        words = torch.randint(20, (2, 7))
        want, names = model(words), list(model.state_dict())
        parameters = list(model.parameters())
        self.assertIs(hdetach.convert(model, detach=0.25, layers_policy="separate"), model)
        self.assertIsInstance(model.encoder, hdetach.LSTM)
        self.assertIs(model.twin, model.encoder)
        self.assertEqual((model.encoder.detach, model.cells[0].detach), (0.25, 0.25))
        self.assertEqual(list(model.state_dict()), names)
        self.assertTrue(all(a is b for a, b in zip(model.parameters(), parameters)))
        self.assertClose(model(words), want)
        hdetach.restore(model)
        self.assertEqual((type(model.encoder), type(model.cells[0])), (nn.LSTM, nn.LSTMCell))
        self.assertSame(model(words), want)
        self.assertIsInstance(hdetach.convert(nn.LSTM(2, 3)), hdetach.LSTM)

    def test_one_row_and_one_step(self):
        peer, ours = pair(input_size=5, hidden_size=8)
        x = leaf(1, 1, 5)
        self.assertClose(ours(x), peer(x))
