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

# The arguments and results of every op, as str(schema) prints them.
SCHEMAS = {
    "lstm": (
        "Tensor x, Tensor h0, Tensor c0, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None, Tensor? h_scale=None, Tensor? c_scale=None, Tensor? lengths=None",
        "(Tensor h, Tensor c)"),
    "lstm_cell": (
        "Tensor x, Tensor h, Tensor c, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
        "Tensor? b_hh=None, Tensor? h_scale=None, Tensor? c_scale=None",
        "(Tensor h, Tensor c)"),
    "lstm_stack": (
        "Tensor input, Tensor? h0, Tensor? c0, Tensor[] weights, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, Tensor[] h_scale, Tensor[] c_scale, "
        "Tensor? batch_sizes=None, Tensor? sorted_indices=None, bool return_cells=False",
        "(Tensor output, Tensor h_n, Tensor c_n, Tensor[] cells)"),
    "lstm_forward": (
        "Tensor x, Tensor h0, Tensor c0, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, "
        "Tensor? lengths, bool keep_gates, str kernel_name=\"\"",
        "(Tensor h, Tensor c, Tensor gates)"),
    "lstm_backward": (
        "Tensor? dh, Tensor? dc, Tensor x, Tensor h0, Tensor c0, Tensor w_ih, Tensor w_hh, "
        "Tensor? b_ih, Tensor? b_hh, Tensor? h_scale, Tensor? c_scale, Tensor? lengths, Tensor h, "
        "Tensor c, Tensor gates, bool[7] wanted, str kernel_name=\"\"",
        "(Tensor dx, Tensor dh0, Tensor dc0, Tensor dw_ih, Tensor dw_hh, Tensor db_ih, "
        "Tensor db_hh)"),
    "sample_scales": (
        "int steps, int batch, int layers, float detach, str path, str mode, str layers_policy, "
        "bool per_sample, int seed, int drawn",
        "(Tensor[] h_scale, Tensor[] c_scale, int drawn)"),
    "kernels": ("", "str[]"),
    "active_kernel": ("", "str"),
    "last_forward": ("", "str"),
    "last_backward": ("", "(str kernel, int recurrent_products)"),
}


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
    for name, (arguments, results) in SCHEMAS.items():
        schema = str(getattr(torch.ops.hdetach, name).default._schema)
        assert schema == f"hdetach::{name}({arguments}) -> {results}", schema


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


def stack(peer, x, h0, c0, scales=(), **packed):
    return torch.ops.hdetach.lstm_stack(
        x, h0, c0, peer._flat_weights, peer.bias, peer.num_layers, 0.0, True, peer.bidirectional,
        list(scales), [], **packed)


def check_stack():
    torch.manual_seed(0)
    peer = torch.nn.LSTM(2, 5, num_layers=2, bidirectional=True)
    x, h0, c0 = torch.randn(4, 3, 2), torch.randn(4, 3, 5), torch.randn(4, 3, 5)
    want, (want_h, want_c) = peer(x, (h0, c0))
    output, h_n, c_n, cells = stack(peer, x, h0, c0, return_cells=True)
    for got, value in ((output, want), (h_n, want_h), (c_n, want_c)):
        torch.testing.assert_close(got, value, rtol=1e-5, atol=1e-6)
    assert [cell.shape for cell in cells] == [output.shape] * 2
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 3, 1]))
    want, _ = peer(packed, (h0, c0))
    output, _, _, cells = stack(peer, packed.data, h0, c0, batch_sizes=packed.batch_sizes)
    torch.testing.assert_close(output, want.data, rtol=1e-5, atol=1e-6)
    assert cells == []

    peer.requires_grad_(False)
    traced = torch.jit.trace(lambda x: stack(peer, x, h0, c0, [torch.zeros(4)] * 4)[0], x)
    assert str(traced.graph).count("hdetach::lstm_stack(") == 1
    assert torch.equal(traced(2 * x), stack(peer, 2 * x, h0, c0)[0])


def check_tracing():
    """The graph that torch.compile makes holds one op forward and one backward a layer."""
    from torch.fx.experimental.proxy_tensor import make_fx

    torch.manual_seed(0)
    peer = torch.nn.LSTM(2, 5, num_layers=2)
    x, h0, scale = torch.randn(4, 3, 2), torch.zeros(2, 3, 5), torch.tensor([1.0, 0.0, 0.5, 1.0])

    def step(x, h0, scale, *weights):
        output, _, c_n, _ = torch.ops.hdetach.lstm_stack(
            x, h0, h0, list(weights), True, 2, 0.0, True, False, [scale] * 2, [])
        return (output,) + torch.autograd.grad(output.square().sum() + c_n.sum(), weights)

    args = (x, h0, scale, *peer._flat_weights)
    graph = make_fx(step, tracing_mode="fake")(*args)
    names = [str(node.target) for node in graph.graph.nodes if "hdetach" in str(node.target)]
    for name in ("lstm_forward", "lstm_backward"):
        assert sum(f"hdetach.{name}" in text or name in text for text in names) == 2, names
    assert len(names) == 4, names
    for got, want in zip(graph(*args), step(*args)):
        assert torch.equal(got, want)
    bare = [tensor.detach().to("meta").requires_grad_() for tensor in args]
    for got, want in zip(step(*bare), step(*args)):
        assert got.shape == want.shape and got.is_meta


def check_autocast():
    args = make_inputs(torch.float32)
    want = torch.ops.hdetach.lstm(args[0].bfloat16().float(), *args[1:])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.nn.functional.linear(args[1], args[4]).dtype == torch.bfloat16
        got = torch.ops.hdetach.lstm(args[0].bfloat16(), *args[1:])
    assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])


def check_info():
    lines = [line.split("\t") for line in torch.ops.hdetach.kernels()]
    assert lines[-1] == ["reference", "both", "yes", ""], lines
    assert all(len(line) == 4 and (line[2] == "yes") == (line[3] == "") for line in lines), lines
    active = torch.ops.hdetach.active_kernel()
    assert active in [line[0] for line in lines if line[2] == "yes"]
    args = make_inputs(torch.float32)
    torch.ops.hdetach.lstm(*args)[0].sum().backward()
    assert torch.ops.hdetach.last_forward() == active
    if active != "reference":
        assert torch.ops.hdetach.last_backward() == (active, 4 * 3)  # steps and rows


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
                  check_script, check_stack, check_tracing, check_autocast, check_info,
                  check_error):
        check()
        print(f"{check.__name__}: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
