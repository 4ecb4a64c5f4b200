"""How long systems of many equations take: a reaction, diffusion and advection on a ring of cells, each an equation.

    many_equations.py [--cells 300 1400 5000] [--without-training]

For each number of cells, in seconds: building the equations; the first solve, in which they are compiled; the first
gradient of a loss (Solution.vjp) and a later one; a training of two parameters, 3 iterations and their standard errors.
The second line after each says by how much more than the number of cells that grew, as a power: 1 is linear.
"""
import argparse
import math
import time
import warnings

import numpy as np

import lockstep


def ring(cells):
    def rate(i):
        left, here, right = f"u{(i - 1) % cells}", f"u{i}", f"u{(i + 1) % cells}"
        return f"D * ({left} - 2 * {here} + {right}) - c * {here} * ({right} - {left}) + r * {here} * (1 - {here})"

    return {f"u{i}": rate(i) for i in range(cells)}


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def seconds(cells, trains):
    parameters = {"D": 0.2, "c": 0.1, "r": 0.5}
    u0 = 0.5 + 0.4 * np.sin(2 * np.pi * np.arange(cells) / cells)
    found = {}
    found["equations"], model = timed(lambda: lockstep.equations(ring(cells), parameters=parameters))
    found["first solve"], solution = timed(lambda: lockstep.solve(model, u0, (0, 2), 11, precision="f64"))
    slopes = np.ones_like(solution.state)
    found["first vjp"], _ = timed(lambda: solution.vjp(slopes))
    again = lockstep.solve(model, u0, (0, 2), 11, precision="f64")
    found["next vjp"], _ = timed(lambda: again.vjp(slopes))

    if not trains:
        return found
    trained = {"D": {"start": 0.25}, "r": {"start": 0.4}, "c": 0.1}
    phases = [{"optimiser": "lbfgs", "iterations": 3}]
    data = {"t": solution.time, "u": solution.state, "equations": ring(cells), "parameters": trained}
    found["training"], _ = timed(lambda: lockstep.train(**data, phases=phases, precision="f64"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="+", default=[300, 1400, 5000])
    parser.add_argument("--without-training", dest="trains", action="store_false")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    before = None
    for count in arguments.cells:
        found = seconds(count, arguments.trains)
        print(f"{count:6,} equations: " + ", ".join(f"{what} {took:.2f}" for what, took in found.items()), flush=True)
        if before is not None:
            powers = (f"{what} {math.log(took / before[1][what]) / math.log(count / before[0]):.1f}"
                      for what, took in found.items())
            print(f"{'':>7}grew as cells to the " + ", ".join(powers), flush=True)
        before = count, found


if __name__ == "__main__":
    main()
