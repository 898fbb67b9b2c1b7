"""The library as Python meets it: load_library, schema, gradients, TorchScript.

Usage: load_library_test.py LIBHDETACH TORCH_VERSION. Exits with 77 (skipped) when this Python has no
torch, or one of another version than the library was built with.
"""
import sys
import tempfile

try:
    import torch
except ImportError:
    print("skipped: this Python has no torch")
    sys.exit(77)

LSTM_SCHEMA = (
    "hdetach::lstm(Tensor x, Tensor h0, Tensor c0, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
    "Tensor? b_hh=None, Tensor? h_scale=None, Tensor? c_scale=None, Tensor? lengths=None) -> "
    "(Tensor h, Tensor c)"
)


def make_inputs(dtype, steps=4, batch=3, inputs=2, hidden=3):
    torch.manual_seed(0)

    def leaf(*sizes):
        return (torch.randn(*sizes, dtype=dtype) * 0.5).requires_grad_()

    return (
        leaf(steps, batch, inputs),
        leaf(batch, hidden),
        leaf(batch, hidden),
        leaf(4 * hidden, inputs),
        leaf(4 * hidden, hidden),
        leaf(4 * hidden),
        leaf(4 * hidden),
    )


def check_schema():
    assert str(torch.ops.hdetach.lstm.default._schema) == LSTM_SCHEMA
    assert str(torch.ops.hdetach.lstm_cell.default._schema).startswith("hdetach::lstm_cell(Tensor x")


def check_against_nn_lstm():
    args = make_inputs(torch.float32, hidden=20)
    peer = torch.nn.LSTM(2, 20)
    with torch.no_grad():
        for parameter, value in zip(peer.parameters(), args[3:]):
            parameter.copy_(value)
    want, (_, last_c) = peer(args[0], (args[1][None], args[2][None]))
    h, c = torch.ops.hdetach.lstm(*args)
    # Two float32 LSTMs of four steps that round in different orders.
    torch.testing.assert_close(h, want, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(c[-1], last_c[0], rtol=1e-5, atol=1e-6)
    h.square().sum().backward()
    want.square().sum().backward()
    for parameter, ours in zip(peer.parameters(), args[3:]):
        torch.testing.assert_close(ours.grad, parameter.grad, rtol=1e-5, atol=1e-5)


def check_defaults():
    args = make_inputs(torch.float32)
    plain = torch.ops.hdetach.lstm(*args[:5])
    zeros = torch.zeros(12)
    explicit = torch.ops.hdetach.lstm(*args[:5], b_ih=zeros, b_hh=zeros, h_scale=torch.ones(4))
    for got, want in zip(plain, explicit):
        assert torch.equal(got, want)
    lengths = torch.tensor([4, 1, 2])
    h, c = torch.ops.hdetach.lstm(*args, lengths=lengths)
    assert h[1:, 1].eq(0).all() and c[2:, 2].eq(0).all() and h[3, 0].ne(0).all()


def check_gradients():
    args = make_inputs(torch.float64)
    assert torch.autograd.gradcheck(torch.ops.hdetach.lstm, args)
    assert torch.autograd.gradgradcheck(torch.ops.hdetach.lstm, args)
    lengths = torch.tensor([4, 1, 2])

    def ragged(*tensors):
        return torch.ops.hdetach.lstm(*tensors, lengths=lengths)

    assert torch.autograd.gradcheck(ragged, args)
    assert torch.autograd.gradgradcheck(ragged, args)


def check_script():
    @torch.jit.script
    def scripted(x, h0, c0, w_ih, w_hh, scale):
        h, c = torch.ops.hdetach.lstm(x, h0, c0, w_ih, w_hh, h_scale=scale)
        return h, c

    scale = torch.tensor([1.0, 0.0, 0.5, 1.0])
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        scripted.save(file.name)
        loaded = torch.jit.load(file.name)
    args = make_inputs(torch.float32)[:5]

    def run(function, *extra, **named):
        h, c = function(*args, *extra, **named)
        return (h, c) + torch.autograd.grad(h.sum() + c.sum(), args)

    want = run(torch.ops.hdetach.lstm, h_scale=scale)
    for function in (scripted, loaded):
        for got, value in zip(run(function, scale), want):
            assert torch.equal(got, value)
    plain = run(torch.ops.hdetach.lstm)
    assert torch.equal(plain[0], want[0]) and not torch.equal(plain[2], want[2])


def check_error():
    args = make_inputs(torch.float32)
    try:
        torch.ops.hdetach.lstm(*args, h_scale=torch.ones(99))
    except RuntimeError as error:
        assert "[lstm] h_scale has 99 entries but x has T=4 steps." in str(error), error
    else:
        raise AssertionError("a scale of the wrong size was accepted")


def main():
    library, built_with = sys.argv[1:]
    ours = built_with.split(".")[:2]
    if torch.__version__.split(".")[:2] != ours:
        print(f"skipped: torch {torch.__version__}, but the library was built with {built_with}")
        return 77
    torch.ops.load_library(library)
    for check in (check_schema, check_defaults, check_against_nn_lstm, check_gradients,
                  check_script, check_error):
        check()
        print(f"{check.__name__}: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
