#!/usr/bin/env python3
"""Firing rates of three kinds of Izhikevich's neurons over the current, and how they fire.

    PYTHONPATH=build/python python3 examples/neurons/neurons.py [--quick] [--draw neurons.png]     # needs matplotlib
"""
import argparse
import time
import warnings

import numpy as np

import lockstep

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--quick", action="store_true", help="fewer neurons")
parser.add_argument("--draw", help="a picture of both")
args = parser.parse_args()

KINDS = {"regular spiking": {"a": 0.02, "b": 0.2, "c": -65, "d": 8},
         "chattering": {"a": 0.02, "b": 0.2, "c": -50, "d": 2},
         "fast spiking": {"a": 0.1, "b": 0.2, "c": -65, "d": 2}}
REST = [-70.0, -14.0]  # without a current
warnings.filterwarnings("ignore", "float32 holds u still")  # of neurons that stay at rest
neuron = lockstep.equations({"v": "0.04 * v^2 + 5 * v + 140 - u + current", "u": "a * (b * v - u)"},
                            parameters=["a", "b", "c", "d", "current"])
spike = {"component": "v", "value": 30, "direction": "rising", "to": {"v": "c", "u": "u + d"}}

count = 200 if args.quick else 10_000
currents = np.linspace(0, 20, count)
rates, spikes, curves = {}, {}, {}
for kind, values in KINDS.items():
    start = time.perf_counter()
    solution = lockstep.solve(neuron, REST, (0, 2000), parameters={**values, "current": {"linspace": [0, 20]}},
                              trajectories=count, resets=spike, keep_events=True)
    seconds = time.perf_counter() - start
    spikes[kind] = events = solution.events
    late = events.time >= 1000
    rates[kind] = np.bincount(events.trajectory[late], minlength=count)  # in a second, after one
    curves[kind] = lockstep.solve(neuron, REST, (0, 200), 4001, parameters={**values, "current": 10}, resets=spike)
    assert (solution.status == 0).all()
    print(f"{kind}: {len(events.time):,} spikes of {count:,} neurons in {seconds:.2f} s; from a current of "
          f"{currents[rates[kind] > 0][0]:.2f} on; {rates[kind][np.searchsorted(currents, 10)]:.0f} Hz at 10, "
          f"{rates[kind][-1]:.0f} Hz at 20")

if args.draw:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplot_mosaic([[kind, f"{kind} raster", "rates"] for kind in KINDS], figsize=(12, 5.5))
    for color, kind in enumerate(KINDS):
        last = color == len(KINDS) - 1
        axes[kind].plot(curves[kind].time, curves[kind]["v"][0], color=f"C{color}", linewidth=0.8)
        axes[kind].set(title=kind, ylabel="v (mV)", ylim=(-85, 35))
        early = spikes[kind].time < 200
        raster = axes[f"{kind} raster"]
        raster.plot(spikes[kind].time[early], currents[spikes[kind].trajectory[early]], ",", color=f"C{color}")
        raster.set(ylabel="current", xlim=(0, 200), ylim=(0, 20))
        axes["rates"].plot(currents, rates[kind], color=f"C{color}", label=kind)
        for panel in (axes[kind], raster):
            panel.tick_params(labelbottom=last)
    axes[kind].set_xlabel("time (ms), current 10")
    raster.set_xlabel("time (ms) of each spike")
    axes["rates"].set(xlabel="current", ylabel="spikes in a second", xlim=(0, 20), ylim=(0, None))
    axes["rates"].legend()
    figure.tight_layout()
    figure.savefig(args.draw, dpi=90)
    print(f"drew {args.draw}")
