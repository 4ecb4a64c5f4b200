"""What the *_vs_peers.py scripts share: options, pinning, timing, rows, and the table of ratios.

Import it and call `start()` before numpy or jax: thread counts are read when those libraries load.
Every row is a JSON line {workload, peer, version, size, threads, unit, best, median, repeats, error};
ours come from build/bin/ode_bench, run again beside each peer so that both see the same machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def start(description, sizes, program="ode_bench"):
    """Parses the command line and fixes every library's number of threads. Returns the options."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--threads", type=int, default=1, help="CPUs to use (default 1)")
    p.add_argument("--sizes", default=",".join(map(str, sizes)), help="ensemble sizes, comma separated")
    p.add_argument("--workloads", default="", help="substrings of workload names, comma separated (default all)")
    p.add_argument("--peers", default="", help="substrings of peer names, comma separated (default all)")
    p.add_argument("--budget", type=float, default=2.0, help="seconds of repeats a row (default 2)")
    p.add_argument("--max-call", type=float, default=20.0, help="skip rows predicted to take longer a call, in s")
    p.add_argument("--ours", default=os.path.join(ROOT, "build", "bin", program), help="our benchmark program")
    p.add_argument("--json", default="", help="add the rows to the array in this file")
    args = p.parse_args()
    args.sizes = [int(s) for s in args.sizes.split(",")]
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    # XLA sizes its thread pool by the CPUs the process may run on.
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < args.threads:
        p.error(f"--threads {args.threads}, but this process may use {len(allowed)} CPUs")
    os.sched_setaffinity(0, allowed[-args.threads:])
    if args.threads == 1:
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    return args


def one_thread_each():
    """For scripts that time calls from Python: one thread for every library. Before numpy and jax are imported."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"


def call_options(description):
    """The options of such scripts, to be parsed."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--budget", type=float, default=0.5, help="seconds of calls a row and turn (default 0.5)")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--workloads", default="", help="substrings of workload names, comma separated (default all)")
    p.add_argument("--json", default="", help="write the rows to this file")
    return p


def time_workloads(workloads, args):
    """Of (name, a call that makes the calls by peer, "lockstep" among them): these take turns, and the least time of each
    is a row. JAX computes in float64 where it is asked to."""
    if importable("jax"):
        import jax
        jax.config.update("jax_enable_x64", True)
    rows = []
    for name, make in workloads:
        if not wanted(args.workloads, name):
            continue
        calls = make()
        for call in calls.values():
            call()
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(args.turns):
            for peer, call in calls.items():
                best[peer] = min(best[peer], time_call(call, args.budget)[0] * 1e6)
        for peer, us in best.items():
            rows.append(dict(workload=name, peer=peer, unit="us/call", best=rounded(us)))
            print(f"{name:36} {peer:20} {us:10.4g} us {us / best['lockstep']:7.2f}", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")


def wanted(filters, name):
    parts = [part for part in filters.split(",") if part]
    return not parts or any(part in name for part in parts)


def time_call(call, budget):
    """Seconds a call as (best, median, repeats); the caller has made the first call, which compiles."""
    samples = []
    begin = time.perf_counter()
    while True:
        t = time.perf_counter()
        call()
        samples.append(time.perf_counter() - t)
        if time.perf_counter() - begin > budget:
            return min(samples), statistics.median(samples), len(samples)


class Rows:
    """Collects rows, prints each as it is known, and the ratios at the end."""

    def __init__(self, args):
        self.args = args
        self.rows = []
        self.ours_missing = not os.access(args.ours, os.X_OK)
        if self.ours_missing:
            print(f"{args.ours} is not there: only peers are timed. To build it: cmake -S . -B build "
                  "-D LOCKSTEP_BENCHMARKS=ON && cmake --build build --target ode_bench", file=sys.stderr)

    def add(self, row):
        self.rows.append(row)
        print(json.dumps(row), flush=True)
        if self.args.json:
            earlier = []
            if os.path.exists(self.args.json):
                with open(self.args.json) as f:
                    earlier = json.load(f)
            with open(self.args.json, "w") as f:
                f.write("[\n" + ",\n".join(json.dumps(r) for r in earlier + [row]) + "\n]\n")

    def ours(self, workload, size):
        """Runs our benchmark program on one workload; it prints rows of its own."""
        if self.ours_missing:
            return
        command = [self.args.ours, "--workload", workload, "--size", str(size), "--threads", str(self.args.threads)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{' '.join(command)}: {done.stderr.strip()}", file=sys.stderr)
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                self.add({**json.loads(line), "peer": "lockstep"})

    def fma_peak(self):
        """Adds the peak of fused multiply-adds on this machine, in this run, as mlp_bench beside our program sees it."""
        program = os.path.join(os.path.dirname(self.args.ours), "mlp_bench")
        command = [program, "--benchmark_filter=/peaks_2_20_5_1_relu/rows/256/1/", "--benchmark_min_time=0.02",
                   "--benchmark_format=json"]
        if not os.access(program, os.X_OK):
            return
        done = subprocess.run(command, capture_output=True, text=True)
        best = {}
        for found in json.loads(done.stdout)["benchmarks"]:
            precision, target = found["name"].split("/")[:2]
            peak = found["gflops"] / found["percent_of_peak"] * 100
            best[precision] = max(best.get(precision, (0, "")), (peak, target))
        for precision, (peak, target) in best.items():
            self.add(dict(workload=f"fma_peak_{precision}", peer="lockstep", version=target, size=0, threads=1,
                          unit="GFLOP/s", best=rounded(peak)))

    def peer(self, workload, peer, version, size, call, error, **more):
        """Times one peer. `call` returns what `error` turns into the largest error of the result."""
        if not wanted(self.args.peers, peer):
            return
        smaller = [r for r in self.rows if (r["peer"], r["workload"]) == (peer, workload) and r["size"] < size]
        if smaller and smaller[-1]["best"] * size / 1e6 > self.args.max_call:
            print(f"{workload} {peer} {size}: skipped, a call would take about "
                  f"{smaller[-1]['best'] * size / 1e6:.0f} s", file=sys.stderr)
            return
        t = time.perf_counter()
        result = call()
        first = time.perf_counter() - t
        best, median, repeats = time_call(call, self.args.budget)
        self.add(dict(workload=workload, peer=peer, version=version, size=size, threads=self.args.threads,
                      unit="us/trajectory", best=rounded(best / size * 1e6), median=rounded(median / size * 1e6),
                      repeats=repeats, error=rounded(error(result)), first_call_s=rounded(first), **more))

    def table(self, targets=None):
        """Prints, for each workload and size, every peer's time over ours.

        `targets` maps a workload to error bounds: a program's time at a bound is that of its fastest row whose
        error keeps within it.
        """
        print(f"\n{'workload':26} {'error':>8} {'size':>8} {'peer':34} {'us a trajectory':>16} {'peer/ours':>10}")
        for workload, size in dict.fromkeys((r["workload"], r["size"]) for r in self.rows if r["size"] > 0):
            for bound in (targets or {}).get(workload, [None]):
                fitting = [r for r in self.rows if (r["workload"], r["size"]) == (workload, size)
                           and (bound is None or (r.get("error") is not None and r["error"] <= bound))]
                best = {}
                for r in fitting:
                    best[r["peer"]] = min(r["best"], best.get(r["peer"], r["best"]))
                for peer, value in sorted(best.items(), key=lambda item: item[1]):
                    ratio = f"{value / best['lockstep']:.2f}" if "lockstep" in best else "-"
                    shown = "" if bound is None else f"{bound:.0e}"
                    print(f"{workload:26} {shown:>8} {size:>8} {peer:34} {value:16.4g} {ratio:>10}")


def rounded(value):
    return float(f"{value:.4g}")


def importable(*names):
    """True when every module can be imported; otherwise says how to get it."""
    missing = []
    for name in names:
        try:
            __import__(name)
        except ImportError:
            missing.append(name)
    if missing:
        print(f"not installed, left out: {', '.join(missing)} (python3 -m pip install {' '.join(missing)})",
              file=sys.stderr)
    return not missing
