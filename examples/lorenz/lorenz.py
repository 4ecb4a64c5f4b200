#!/usr/bin/env python3
"""The Lorenz demo from Python: trajectories of the equations, a net trained on them, an ensemble solved with it.

    PYTHONPATH=build/python python3 examples/lorenz/lorenz.py [--quick] [--draw lorenz.png]
"""
import argparse
import time

import numpy as np

import lockstep

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--quick", action="store_true", help="a smaller ensemble")
parser.add_argument("--draw", help="a picture of the ensemble's spread")
args = parser.parse_args()

# Data: twenty trajectories around (1, 0, 0), nearly exact.
t = np.linspace(0, 1, 101)
data = lockstep.solve("lorenz", {"normal": {"mean": [1, 0, 0], "std": 0.15}}, (0, 1), t, trajectories=20,
                      method="dop853", rtol=1e-12, atol=1e-12, precision="f64")

# A net with 100 tanh units as du/dt.
start = time.perf_counter()
training = lockstep.train(t=t, u=data.state, hidden=[100], states=["x", "y", "z"], normalise="standard")
print(f"{training} in {time.perf_counter() - start:.2f} s")
assert training.loss < 5

# An ensemble among them; what leaves the training range is flagged.
trajectories = 500 if args.quick else 10_000
start = time.perf_counter()
ensemble = lockstep.solve(training.model, {"normal": {"mean": [1, 0, 0], "std": 0.1}}, (0, 1), t,
                          trajectories=trajectories)
print(f"{ensemble} in {time.perf_counter() - start:.3f} s")

# The Lorenz equations from the same states.
truth = lockstep.solve("lorenz", ensemble.initial_state, (0, 1), t)
distance = np.sqrt(np.mean((ensemble.state - truth.state) ** 2, axis=(0, 2)))
print(f"root mean square distance from the equations: {distance[50]:.3f} at t = 0.5, {distance[100]:.3f} at t = 1")
assert distance[50] < 0.5

if args.draw:
    lockstep.plot.spread(ensemble, "x").figure.savefig(args.draw, dpi=150)
