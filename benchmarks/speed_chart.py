#!/usr/bin/env python3
"""README.md's picture of speed: how many times as long as Lockstep the best other library takes, from a results file.

    python3 benchmarks/speed_chart.py benchmarks/results/paired-CPU-DATE.json docs/images/speed.png
"""
import argparse
import json
import pathlib
import subprocess

import peak_units

GROUPS = [  # (heading, colour, [(label, the work as peak_units.py names it)])
    ("evaluating nets", "#0072b2", [
        ("32-128-128-31 relu, batch 4,096", "32-128-128-31 relu, batch 4,096"),
        ("the same, 1M samples, theirs cut by hand", "32-128-128-31 relu, batch 1,048,576"),
        ("the same, one sample", "32-128-128-31 relu, batch 1"),
        ("3-100-3 tanh, batch 4,096", "3-100-3 tanh, batch 4,096"),
        ("2-20-5-1 relu, batch 4,096", "2-20-5-1 relu, batch 4,096"),
        ("10-133x5-8 tanh, batch 1,000", "10-133x5-8 tanh, batch 1,000")]),
    ("solving ensembles", "#d55e00", [
        ("Lorenz equations, error 2e-5", "Lorenz equations, float64, error 2e-05, 65,536"),
        ("the same, error 1e-12", "Lorenz equations, float64, error 1e-12, 65,536"),
        ("1,000 steps of RK4, float32", "Lorenz equations, 1,000 steps of RK4, 1,048,576"),
        ("3-100-3 net, 100 steps of Tsit5", "3-100-3 net, 100 steps of Tsit5, 10,000"),
        ("the same, adaptive, own step sizes", "3-100-3 net, adaptive at 1e-6, 10,000")]),
    ("training", "#009e73", [
        ("neural ODE, 1 trajectory", "training a neural ODE, adaptive, 1 trajectory (median)"),
        ("the same, 1,024 trajectories", "training a neural ODE, adaptive, 1,024 trajectories, trained net"),
        ("32-128-128-31 relu, batch 4,096", "training step, 32-128-128-31 relu, batch 4,096"),
        ("2-20-5-1 relu, 40,000 points", "training step, 2-20-5-1 relu, batch 40,000")]),
]
LIBRARIES = {"ort": "ONNX Runtime", "jax": "JAX"}
SCRIPT = """
set terminal pngcairo size 1600,{height} font "sans,19" linewidth 1.5
set output "{picture}"
set label 1 "{{/:Bold Time of the best other library over Lockstep's}}, one core of {machine}" at screen 0.02,0.965
set logscale x 2
set xrange [1:16]
set yrange [{lowest}:0.7]
set xtics ("1" 1, "2" 2, "4" 4, "8" 8) nomirror scale 0
unset ytics
set border 0
set grid xtics back linecolor "#dddddd" linewidth 0.7
set lmargin 40
set rmargin 2
set tmargin 2.5
set style fill solid noborder
$bars << END
{bars}
END
$headings << END
{headings}
END
plot $bars using (sqrt($2)):1:(1):2:($1-0.36):($1+0.36):3 with boxxyerror linecolor rgb variable notitle, \\
     $bars using (1):1:4 with labels right offset -0.8,0 notitle, \\
     $bars using 2:1:5 with labels left offset 0.6,0 textcolor rgb "#505050" notitle, \\
     $headings using (1):1:2 with labels right offset -0.8,0 notitle
"""


def ratios(rows):
    """By work: the time of the best other library over ours, and that library's name."""
    found_ratios = {}
    for work, _, _, _, selection, which in peak_units.targets():
        found = [row for row in rows if peak_units.fitting(row, selection)]
        mine = [row[which] for row in found if row["peer"] == "lockstep"]
        others = [(row[which], row["peer"].replace(" ", "-").split("-")[0]) for row in found if row["peer"] != "lockstep"]
        if mine and others:
            other, name = min(others)
            found_ratios[work] = other / min(mine), LIBRARIES.get(name, name)
    return found_ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--machine", default="an AMD Zen 5 server")
    args = parser.parse_args()
    found = ratios([row for row in json.loads(args.results.read_text()) if "workload" in row])
    bars, headings, y = [], [], 0.0
    for heading, colour, entries in GROUPS:
        headings.append(f'{y} "{{/:Bold {heading}}}"')
        y -= 1
        for label, work in entries:
            if work in found:
                ratio, other = found[work]
                bars.append(f'{y} {ratio:.3f} {int(colour[1:], 16)} "{label}" "{ratio:.1f}   {other}"')
                y -= 1
        y -= 0.4
    subprocess.run(["gnuplot"], check=True, text=True, input=SCRIPT.format(
        picture=args.picture, machine=args.machine, lowest=y + 0.4, height=int(190 - 42 * y), bars="\n".join(bars),
        headings="\n".join(headings)))


if __name__ == "__main__":
    main()
