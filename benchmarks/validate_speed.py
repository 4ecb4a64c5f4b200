#!/usr/bin/env python3
"""How fast `lockstep validate` reads: makes a pair of result files (cached, for they were just written), times the
comparison and prints GB/s over both files, with the program's peak memory.

    /usr/bin/python3 benchmarks/validate_speed.py                 2 x 1.3 GB of float32, in build/validate_speed
    /usr/bin/python3 benchmarks/validate_speed.py --million 0.1   smaller

Needs h5py and numpy. The folder is removed at the end.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import time

import h5py
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROBLEM = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = {trajectories}
initial_state = {{ normal = {{ mean = [1, 1, 25], std = 5 }} }}
[time]
span = [0, {end}]
save = 101
[method]
{method}
precision = "{precision}"
"""
CASES = {  # name: what fills PROBLEM, and the part of --million
    "float32, regular": (dict(end=1, method='name = "rk4"\ncontrol = "fixed"\ndt = 0.01', precision="f32"), 1),
    "float64, chaotic": (dict(end=45, method='name = "tsit5"\nrtol = 1e-6\natol = 1e-6', precision="f64"), 0.3),
}


def best_of(repeats, command):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
        times.append(time.perf_counter() - started)
        if code != 0:
            sys.exit(f"{' '.join(command)}: exit code {code}, expected 0 (they agree)")
    return min(times)


def round_otherwise(path):
    """Every state after the first save point moves to the next number, as another program's rounding might."""
    with h5py.File(path, "r+") as file:
        state = file["state"]
        for first in range(0, len(state), 20_000):
            rows = state[first:first + 20_000]
            rows[:, 1:] = np.nextafter(rows[:, 1:], rows.dtype.type(np.inf))
            state[first:first + 20_000] = rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--million", type=float, default=1, help="millions of trajectories (default 1)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "lockstep"))
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "validate_speed"))
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    os.makedirs(args.folder)
    try:
        print("| files | question | GB | s | GB/s |\n|---|---|---|---|---|")
        for name, (fields, part) in CASES.items():
            problem, a, b, c = (os.path.join(args.folder, n) for n in ("problem.toml", "a.h5", "b.h5", "c.h5"))
            with open(problem, "w") as file:
                file.write(PROBLEM.format(trajectories=max(1, round(args.million * part * 1e6)), **fields))
            subprocess.run([args.tool, "solve", problem, "--certificate", "-q", "-o", a, "--overwrite"], check=True)
            shutil.copy(a, b)
            gigabytes = 2 * os.path.getsize(a) / 1e9
            for question, flags, change in (("same bits", [], False), ("verdict", [], True),
                                            ("verdict as JSON", ["--json"], True)):
                if change and not os.path.exists(c):
                    os.rename(b, c)
                    round_otherwise(c)
                command = [args.tool, "validate", a, c if change else b, *flags]
                if not flags:
                    command.append("-q")
                seconds = best_of(args.repeats, command)
                print(f"| {name} | {question} | {gigabytes:.2f} | {seconds:.2f} | {gigabytes / seconds:.1f} |", flush=True)
            for path in (a, c):
                os.remove(path)
    finally:
        shutil.rmtree(args.folder, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\nlargest program's memory, solving included: {peak:.0f} MB")


if __name__ == "__main__":
    main()
