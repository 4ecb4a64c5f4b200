#!/usr/bin/env python3
"""All pairs of README.md's table on one CPU, one after another, as rows of one results file.

    build/peers/bin/python benchmarks/all_vs_peers.py benchmarks/results/paired-CPU-DATE.json --about "which machine"

Takes some 15 minutes, on a machine that has nothing else to do. What a script prints is shown as it comes; only whole
scripts are kept, so that one that is stopped may be run again with --only.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = {  # name: arguments
    "wide": "mlp_vs_peers.py --workloads ocean --sizes 1,16,4096,65536,1048576",
    "narrow": "mlp_vs_peers.py --workloads lorenz,chain,peaks --sizes 4096",
    "qlknn": "mlp_vs_peers.py --workloads qlknn --sizes 256,1000",
    "lorenz": "lorenz_vs_peers.py --peers heyoka,by-hand --max-call 4",
    "neural": "neural_vs_peers.py --peers by-hand,tile,vmap --max-call 12",
    "train": "neural_train_vs_peers.py --trajectories 1",
    "train_many": "neural_train_vs_peers.py --trajectories 1024 --start trained --iterations 10",
    "train_random": "neural_train_vs_peers.py --trajectories 1024 --iterations 20 --steps adaptive",
    "regression": "regression_vs_peers.py --peers jax",
}


def rows_of(arguments):
    """The rows that a script prints; None where it fails."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=os.path.dirname(HERE))
    rows = []
    for line in process.stdout:
        print(line, end="", flush=True)
        if line.startswith("{"):
            rows.append(json.loads(line))
    return rows if process.wait() == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--about", help="the machine, in words: kept as the first row")
    parser.add_argument("--only", default=",".join(SCRIPTS), help=f"of {','.join(SCRIPTS)}")
    parser.add_argument("--budget", default="0.7", help="seconds of repeats a row, where a script takes it")
    args = parser.parse_args()
    kept = json.loads(args.results.read_text()) if args.results.exists() else []
    if args.about:
        kept = [{"about": args.about}] + [row for row in kept if "about" not in row]
    failed = False
    for name in args.only.split(","):
        script, *arguments = shlex.split(SCRIPTS[name])
        if not script.startswith("neural_train"):
            arguments += ["--budget", args.budget]
        start = time.monotonic()
        rows = rows_of([os.path.join(HERE, script), *arguments])
        print(f"== {name}: {time.monotonic() - start:.0f} s" + ("" if rows is not None else ", failed"), flush=True)
        if rows is None:
            failed = True
            continue
        kept += rows
        args.results.write_text("[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
