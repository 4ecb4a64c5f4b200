#!/usr/bin/env python3
"""A surface learned by a 2-20-5-1 relu net, as peaks.cpp does it, from Python.

    PYTHONPATH=build/python python3 examples/peaks/peaks.py [--quick] [--draw peaks.png]
"""
import argparse

import numpy as np

import lockstep

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--quick", action="store_true", help="fewer points and epochs")
parser.add_argument("--draw", help="a picture of the net's surface and its loss")
args = parser.parse_args()

side, epochs = (40, 500) if args.quick else (200, 2000)
axis = np.linspace(-3, 3, side)
x, y = np.meshgrid(axis, axis)
z = (3 * (1 - x) ** 2 * np.exp(-x**2 - (y + 1) ** 2) - 10 * (x / 5 - x**3 - y**5) * np.exp(-x**2 - y**2)
     - np.exp(-(x + 1) ** 2 - y**2) / 3)

training = lockstep.train(x=np.stack([x.ravel(), y.ravel()], axis=1), y=z.ravel(), inputs=["x", "y"], targets=["z"],
                          hidden=[20, 5], activation="relu", iterations=epochs, seed=3,
                          rate=0.08, schedule="cosine", warm_up=epochs // 10)
print(training)
points = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)
fit = training.model(points).reshape(side, side)
print(f"root mean square error {np.sqrt(np.mean((fit - z) ** 2)):.3f} of a surface from {z.min():.1f} to {z.max():.1f}")
assert training.loss < np.var(z)

if args.draw:
    import matplotlib.pyplot as plt

    figure, (surface, curve) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    figure.colorbar(surface.pcolormesh(axis, axis, fit), ax=surface)
    lockstep.plot.loss(training, curve)
    figure.savefig(args.draw, dpi=150)
