"""How far back the gradient reaches: plain, detached and damped, as an SVG picture.

    python3 gradient_plot.py [FILE]     # default gradients.svg; needs no plotting library

Shows the norm of d loss / d x[t] for a loss on the last step, averaged over draws.
"""
import math
import sys

import torch

import hdetach

STEPS, BATCH, INPUTS, HIDDEN, DRAWS = 60, 16, 8, 64, 40


def norms(**policy):
    """[T]: the norm of the gradient of the last output with respect to each input."""
    torch.manual_seed(1)
    lstm = hdetach.LSTM(INPUTS, HIDDEN, **policy)
    with torch.no_grad():
        lstm.bias_ih_l0[HIDDEN:2 * HIDDEN] = 2.0  # open forget gates: the cell path remembers
        lstm.weight_hh_l0.mul_(2)
    x = torch.randn(STEPS, BATCH, INPUTS, requires_grad=True)
    total = torch.zeros_like(x)
    for _ in range(DRAWS):
        output, _ = lstm(x)
        total += torch.autograd.grad(output[-1].sum(), x)[0]
    return (total / DRAWS).norm(dim=(1, 2)).tolist()


def picture(curves, width=640, height=360, left=60, bottom=40):
    """Curves over t with a logarithmic scale: {label: [value of each step]} -> SVG."""
    logs = {name: [math.log10(max(v, 1e-12)) for v in values] for name, values in curves.items()}
    low = math.floor(min(map(min, logs.values())))
    high = math.ceil(max(map(max, logs.values())))

    def place(t, value):
        x = left + (width - left - 20) * t / (STEPS - 1)
        return x, 20 + (height - 20 - bottom) * (high - value) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">'
             '<rect width="100%" height="100%" fill="white"/>']
    for power in range(low, high + 1):
        (x, y), (end, _) = place(0, power), place(STEPS - 1, power)
        parts.append(f'<path d="M{x} {y:.1f}H{end}" stroke="#ddd"/>'
                     f'<text x="{x - 8}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    for color, (name, values) in zip(("#444", "#0072b2", "#d55e00"), logs.items()):
        points = " ".join("{:.1f},{:.1f}".format(*place(t, v)) for t, v in enumerate(values))
        y = 36 + 16 * list(logs).index(name)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
                     f'<text x="{left + 12}" y="{y}" fill="{color}">{name}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">'
                 'step t of the input (the loss is on the last)</text></svg>')
    return "\n".join(parts)


if __name__ == "__main__":
    curves = {"plain": norms(), "h-detach 0.5": norms(detach=0.5),
              "damped by 0.5": norms(detach=0.5, mode="damp")}
    file = sys.argv[1] if len(sys.argv) > 1 else "gradients.svg"
    with open(file, "w") as out:
        out.write(picture(curves))
    for name, values in curves.items():
        print(f"{name:14} gradient at step 0: {values[0]:.2e}, at the last step: {values[-1]:.2e}")
    print(f"wrote {file}")
