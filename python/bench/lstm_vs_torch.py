"""A training step of hdetach.LSTM against torch.nn.LSTM, and packed against padded sequences.

    PYTHONPATH=python HDETACH_LIBRARY=build/libhdetach.so \
        python3 python/bench/lstm_vs_torch.py [--device cuda] [--cases copy300 ...] [--json FILE]

A training step is forward, a loss and backward with gradients for the weights, no optimizer. Both
libraries run in this process, in turn, on the same input. On a GPU steps are queued ahead and timed
by events over a block of them, so that the host's part counts where it is the slower one. There
nn.LSTM is cuDNN's, in float32 as hdetach's ("torch") and as PyTorch has it by default, with products
rounded to tf32 ("torch tf32"). Gradients are compared before anything is timed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import hdetach

CASES = {  # T, B, I, H
    "copy100": (120, 100, 10, 128),
    "copy300": (320, 100, 10, 128),
    "mnist": (784, 100, 1, 100),
    "caption": (20, 128, 512, 512),
}
DETACH = (0.0, 0.25, 0.5)
PACKED = {  # T, B, I, H; lengths are drawn in 1..T
    "cpu": [(100, 64, 64, 128)],
    "cuda": [(100, 64, 64, 128), (400, 128, 64, 256)],  # the host is slower, and the GPU is
}


def timer(device, cpu_time):
    """A function that times `count` calls of a step: seconds of one."""
    clock = time.process_time if cpu_time else time.perf_counter

    def on_host(step, count):
        start = clock()
        for _ in range(count):
            step()
        return (clock() - start) / count

    def on_gpu(step, count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / count

    return on_gpu if device.type == "cuda" else on_host


def measure(steps, device, args):
    """Median milliseconds of each step function, run in turn: {name: ms}."""
    seconds, taken = timer(device, args.cpu_time), {name: [] for name in steps}
    counts = {}
    for name, step in steps.items():  # warms up; a block of GPU steps takes some milliseconds
        step(), step()
        one = seconds(step, 2)
        counts[name] = max(1, min(200, round(0.02 / one))) if device.type == "cuda" else 1
    repeats, start = 0, time.perf_counter()
    while repeats < 5 or (time.perf_counter() - start < args.seconds and repeats < 200):
        for name, step in steps.items():
            taken[name].append(seconds(step, counts[name]))
        repeats += 1
    return {name: 1e3 * statistics.median(values) for name, values in taken.items()}


def training_step(module, x, weight):
    """One forward and backward pass; the gradients are left in the parameters."""
    parameters = list(module.parameters())

    def step():
        output = module(x)[0]
        data = output if isinstance(output, torch.Tensor) else output.data
        for parameter in parameters:
            parameter.grad = None
        (data * weight).sum().backward()
    return step


def with_tf32(step):
    def rounded():
        torch.backends.cudnn.allow_tf32 = True
        step()
        torch.backends.cudnn.allow_tf32 = False
    return rounded


def gradients(module, step):
    step()
    return [parameter.grad.clone() for parameter in module.parameters()]


def compare(ours, theirs, x, weight, bound):
    """The largest difference of their gradients, as part of the largest entry."""
    got, want = (gradients(module, training_step(module, x, weight)) for module in (ours, theirs))
    error = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(got, want))
    if not error <= bound:
        sys.exit(f"hdetach and torch differ by {error:.1e} in a gradient: no timing is printed")
    return error


def dense(name, device, args):
    steps, batch, inputs, hidden = CASES[name]
    torch.manual_seed(1)
    theirs = nn.LSTM(inputs, hidden, device=device)
    modules = {f"hdetach {detach:g}": hdetach.LSTM(inputs, hidden, detach=detach, device=device)
               for detach in DETACH}
    for module in modules.values():
        module.load_state_dict(theirs.state_dict())
    x = torch.randn(steps, batch, inputs, device=device)
    weight = torch.randn(steps, batch, hidden, device=device) / (steps * batch)
    error = compare(modules["hdetach 0"], theirs, x, weight, 1e-3)
    runs = {key: training_step(module, x, weight) for key, module in modules.items()}
    runs["torch"] = training_step(theirs, x, weight)
    if device.type == "cuda":
        runs["torch tf32"] = with_tf32(runs["torch"])
    ms = measure(runs, device, args)
    row = {"case": name, "T": steps, "B": batch, "I": inputs, "H": hidden, "error": error, "ms": ms,
           "torch_over_hdetach": {key: ms["torch"] / ms[key] for key in modules}}
    print(f"{name:8} T={steps} B={batch} I={inputs} H={hidden}: " + ", ".join(
        f"{key} {value:.3g} ms" for key, value in ms.items())
        + f"; torch / hdetach at detach 0.25: {row['torch_over_hdetach']['hdetach 0.25']:.2f}")
    return row


def packed(name, sizes, device, args):
    """Packed against padded sequences of T steps: 'ragged' ones, or 'full' ones, all of T."""
    steps, batch, inputs, hidden = sizes
    torch.manual_seed(1)
    lengths = torch.randint(1 if name == "ragged" else steps, steps + 1, (batch,))
    lengths[0] = steps
    x = torch.randn(steps, batch, inputs, device=device)
    ragged = pack_padded_sequence(x, lengths, enforce_sorted=False)
    theirs = nn.LSTM(inputs, hidden, device=device)
    ours = hdetach.LSTM(inputs, hidden, device=device)
    ours.load_state_dict(theirs.state_dict())
    weight = torch.randn(steps, batch, hidden, device=device) / (steps * batch)
    rows = torch.randn(ragged.data.size(0), hidden, device=device) / (steps * batch)
    error = compare(ours, theirs, ragged, rows, 1e-3)
    ms = measure({"hdetach padded": training_step(ours, x, weight),
                  "hdetach packed": training_step(ours, ragged, rows),
                  "torch padded": training_step(theirs, x, weight),
                  "torch packed": training_step(theirs, ragged, rows)}, device, args)
    ratio = {name: ms[f"{name} packed"] / ms[f"{name} padded"] for name in ("hdetach", "torch")}
    share = 100 * lengths.float().mean() / steps
    print(f"{name:8} T={steps} B={batch} I={inputs} H={hidden}, {share:.0f}% of the steps exist: "
          + ", ".join(f"{key} {value:.3g} ms" for key, value in ms.items())
          + f"; packed / padded: hdetach {ratio['hdetach']:.2f}, torch {ratio['torch']:.2f}")
    return {"case": f"packed {name}", "T": steps, "B": batch, "I": inputs, "H": hidden,
            "error": error, "rows": ragged.data.size(0), "ms": ms, "packed_over_padded": ratio}


def cpu_name():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else "unknown CPU"


def commit():
    asked = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe",
                            "--always", "--dirty", "--abbrev=12"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True)
    return asked.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seconds", type=float, default=5.0, help="timing of each case")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cpu-time", action="store_true",
                        help="CPU time instead of wall time, for a busy machine and one thread")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as one JSON line")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.allow_tf32 = False
    device = torch.device(args.device)
    machine = torch.cuda.get_device_name() if device.type == "cuda" else cpu_name()
    clock = "CPU time" if args.cpu_time else "wall time"
    print(f"{machine}, {args.threads} threads, {clock}, torch {torch.__version__}, "
          f"commit {commit()}")
    rows = [dense(name, device, args) for name in args.cases]
    rows += [packed(name, sizes, device, args) for sizes in PACKED[device.type]
             for name in ("ragged", "full")]
    record = {"device": device.type, "machine": machine, "threads": args.threads, "clock": clock,
              "torch": torch.__version__, "hdetach": hdetach.__version__, "commit": commit(),
              "rows": rows}
    if args.json:
        with open(args.json, "a") as file:
            file.write(json.dumps(record) + "\n")
    print(json.dumps(record))


if __name__ == "__main__":
    main()
