#!/usr/bin/env python3
"""From the shell to a trained iteration and back: the whole run of `lockstep train` with one iteration of the Lorenz net.

Process start, reading the training file and the data, one iteration (forward, gradient, Adam), writing model, checkpoint
and loss curve, exit. Prints a JSON line with the least and the median time; fails above --at-most milliseconds.

    python3 benchmarks/train_start_up.py
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "lockstep"))
parser.add_argument("--repeats", type=int, default=20)
parser.add_argument("--at-most", type=float, default=50, help="milliseconds that the least time may take")
args = parser.parse_args()

TRAIN = """
[net]
hidden = [100]
[data]
file = "lorenz.csv"
time = "t"
states = ["x", "y", "z"]
[method]
rtol = 1e-6
atol = 1e-6
[training]
rate = 0.01
iterations = 1
[run]
threads = 1
[output]
file = "net"
"""


def lorenz_rows():
    """101 points on t = 0..1 from (1, 0, 0), by the classical Runge-Kutta method."""
    def field(u):
        return (10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2])

    def moved(u, h, k):
        return tuple(x + h * d for x, d in zip(u, k))
    u, h = (1.0, 0.0, 0.0), 1e-3
    for i in range(1001):
        if i % 10 == 0:
            yield ",".join(map(str, (i / 1000,) + u))
        a = field(u)
        b = field(moved(u, h / 2, a))
        c = field(moved(u, h / 2, b))
        d = field(moved(u, h, c))
        u = tuple(x + h / 6 * (p + 2 * q + 2 * r + s) for x, p, q, r, s in zip(u, a, b, c, d))


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "lorenz.csv"), "w") as file:
        file.write("\n".join(["t,x,y,z", *lorenz_rows()]) + "\n")
    with open(os.path.join(folder, "train.toml"), "w") as file:
        file.write(TRAIN)
    times = []
    for _ in range(args.repeats):
        begin = time.perf_counter()
        done = subprocess.run([args.tool, "train", "train.toml", "--overwrite", "-q"], cwd=folder)
        times.append(time.perf_counter() - begin)
        if done.returncode != 0:
            sys.exit(f"{args.tool} train failed")
best = min(times) * 1e3
print(json.dumps(dict(workload="train_start_up", best=round(best, 2), median=round(statistics.median(times) * 1e3, 2),
                      unit="ms/run", repeats=args.repeats)))
if best > args.at_most:
    sys.exit(f"the least time is above {args.at_most} ms")
