#!/usr/bin/env python3
"""Targets that were stated for one core of Zen 5, and ours.

There, times are compared with times (--times). On another processor a target, times the fused multiply-add peak of a
Zen 5 core, is the number of multiply-adds that the core could have done meanwhile, and so is our time times the peak of
its machine. `ours/asked` is the ratio of the two: 1 or less meets the target. Reads the rows of results/*.json, or of the
files given, and prints Markdown:

    python3 benchmarks/peak_units.py [--times] [--into benchmarks/README.md]
"""
import argparse
import json
import os
import pathlib

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
FILES, FILES_THERE = ["paired-zen4-2026-11-24.json"], ["paired-zen5-2026-11-25.json"]
# GFLOP/s in float32 of the core that the targets are stated for: the percentages beside its times give 238 to 250,
# of which the lowest leaves the least time here. Half of it in float64.
PEAK_THERE = 238.0
BEGIN, BEGIN_TIMES, END = "<!-- peak_units.py -->\n", "<!-- peak_units.py --times -->\n", "<!-- end -->\n"
OCEAN, LORENZ_NET, CHAIN = "ocean_32_128_128_31_relu", "lorenz_3_100_3_tanh", "chain_4_32_16_4_tanh"
PEAKS, QLKNN = "peaks_2_20_5_1_relu", "qlknn_10_133x5_8_tanh"
EVALUATIONS = [("32-128-128-31 relu", OCEAN, 4096, 210), ("32-128-128-31 relu", OCEAN, 65536, 220),
               ("32-128-128-31 relu", OCEAN, 1048576, 220), ("32-128-128-31 relu", OCEAN, 16, 230),
               ("32-128-128-31 relu", OCEAN, 1, 550), ("3-100-3 tanh", LORENZ_NET, 4096, 20),
               ("4-32-16-4 tanh", CHAIN, 4096, 9), ("2-20-5-1 relu", PEAKS, 4096, 2.5),
               ("10-133x5-8 tanh", QLKNN, 256, 700), ("10-133x5-8 tanh", QLKNN, 1000, 700)]
SIZES = (65536, 1048576)
NETS = (10000, 100000)


def targets():
    """(work, unit, precision, asked, selection of rows, which figure)."""
    for name, workload, size, asked in EVALUATIONS:
        yield f"{name}, batch {size:,}", "ns", "f32", asked, dict(workload=workload, size=size), "best"
    for bound, asked in ((2.2e-5, 0.15), (3e-8, 0.25), (1e-12, 0.5)):
        for size in SIZES:
            yield (f"Lorenz equations, float64, error {bound:.0e}, {size:,}", "us", "f64", asked,
                   dict(workload="lorenz_f64_adaptive", size=size, bound=bound), "best")
    for work, workload, asked, sizes in (("Lorenz equations, 1,000 steps of RK4", "lorenz_f32_fixed", 0.6, SIZES),
                                         ("3-100-3 net, 100 steps of Tsit5", "neural_f32_fixed", 14, NETS),
                                         ("3-100-3 net, adaptive at 1e-6", "neural_f32_adaptive", 18, NETS)):
        for size in sizes:
            yield f"{work}, {size:,}", "us", "f32", asked, dict(workload=workload, size=size), "best"
    for name, steps, size, start, asked, which in (
            ("adaptive, 1 trajectory (median)", "adaptive", 1, "random", 0.03, "median"),
            ("100 steps, 1 trajectory", "fixed", 1, "random", 0.15, "best"),
            ("100 steps, 1,024 trajectories", "fixed", 1024, "trained", 28, "best"),
            ("adaptive, 1,024 trajectories, trained net", "adaptive", 1024, "trained", 45, "best"),
            ("adaptive, 1,024 trajectories, random weights (median)", "adaptive", 1024, "random", 6, "median")):
        yield (f"training a neural ODE, {name}", "ms", "f32", asked,
               dict(workload=f"neural_train_{steps}", size=size, start=start), which)
    for name, workload, size, asked in (("2-20-5-1 relu", "peaks", 40000, 0.3), ("2-20-5-1 relu", "peaks", 1000, 0.010),
                                        ("32-128-128-31 relu", "ocean", 4096, 2.8),
                                        ("32-128-128-31 relu", "ocean", 256, 0.18)):
        yield (f"training step, {name}, batch {size:,}", "ms", "f32", asked, dict(workload=workload, size=size), "best")


def fitting(row, selection):
    return all(row.get(key) == value for key, value in selection.items() if key != "bound") and \
        row.get("error", 0) <= selection.get("bound", float("inf")) and row.get("threads") == 1


def figures(number):
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def count(number):
    """1,234,567 as "1.23 M"."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{figures(number / size)} {unit}"
    return figures(number)


def compared(rows):
    """Of each target: (work, unit, precision, asked, ours, the best other's time, whose)."""
    for work, unit, precision, asked, selection, which in targets():
        found = [row for row in rows if fitting(row, selection)]
        mine = [row[which] for row in found if row["peer"] == "lockstep"]
        others = [(row[which], row["peer"]) for row in found if row["peer"] != "lockstep"]
        if mine and others:
            yield work, unit, precision, asked, min(mine), *min(others)


def table_of_times(rows):
    yield "| work, one core | asked | ours | ours/asked | best other | other/ours |"
    yield "|---|---|---|---|---|---|"
    for work, unit, _, asked, ours, best, name in compared(rows):
        yield (f"| {work} | {figures(asked)} {unit} | {figures(ours)} {unit} | {ours / asked:.2f} | "
               f"{name} {figures(best)} {unit} | {best / ours:.2f} |")


def table(rows):
    """The lines of the table in units of the machines."""
    peak = {p: max(r["best"] for r in rows if r["workload"] == f"fma_peak_{p}") for p in ("f32", "f64")}
    yield (f"Peak here {peak['f32']:.1f} GFLOP/s in float32, {peak['f64']:.1f} in float64; there {PEAK_THERE:.0f} and "
           f"{PEAK_THERE / 2:.0f}.\n")
    yield ("| work, one core | asked there | multiply-adds at peak | ours here | multiply-adds at peak | ours/asked "
           "| best other here | other/ours |")
    yield "|---|---|---|---|---|---|---|---|"
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
    for work, unit, precision, asked, ours, best, name in compared(rows):
        there = PEAK_THERE / (1 if precision == "f32" else 2)
        # 1e9 operations a second, two of them a multiply-add
        asked_units, our_units = (time * scale[unit] * rate * 1e9 / 2
                                  for time, rate in ((asked, there), (ours, peak[precision])))
        yield (f"| {work} | {figures(asked)} {unit} | {count(asked_units)} | {figures(ours)} {unit} | "
               f"{count(our_units)} | {our_units / asked_units:.2f} | {name} {figures(best)} {unit} | "
               f"{best / ours:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", nargs="*")
    parser.add_argument("--times", action="store_true", help="of rows measured on Zen 5")
    parser.add_argument("--into", type=pathlib.Path, help="file whose table is replaced, instead of printing")
    args = parser.parse_args()
    names = args.results or [os.path.join(FOLDER, name) for name in (FILES_THERE if args.times else FILES)]
    rows = [row for name in names for row in json.loads(pathlib.Path(name).read_text()) if "workload" in row]
    text = "\n".join(table_of_times(rows) if args.times else table(rows)) + "\n"
    if args.into is None:
        print(text, end="")
        return
    begin = BEGIN_TIMES if args.times else BEGIN
    before, _, rest = args.into.read_text().partition(begin)
    args.into.write_text(before + begin + text + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
