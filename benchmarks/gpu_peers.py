"""Timings of other libraries on an NVIDIA GPU, for gpu_verdict: nets, and ensembles of ODE solves.

    python gpu_peers.py > rows.jsonl                      # everything that fits in 300 s
    python gpu_peers.py --only neural,lorenz/jax          # some workloads or peers
    python gpu_peers.py --platform cpu --quick            # smoke test without a GPU, < 2 min

Prints one JSON object a line: workload, peer, version, device, precision, size, unit, best, median, repeats,
compile_s (first call less a later one) and, where it applies, errors and step counts. Data stay on the device, every
case is warmed up, times are taken by CUDA events (torch) or around block_until_ready (jax); short calls are timed in
loops. The rows that a question of gpu_questions.cpp needs come first; what does not fit into --total seconds is named
in a last row with `skipped`, for another run that is given these rows (--kept) to do.

Precision: float32 is true float32 (no TF32), tf32 allows TensorFloat-32 products, bf16 holds weights and activations
in bfloat16, float64 says so.

The parent process imports none of the libraries. torch and jax live in one worker process each; rows go to them one at
a time, a worker that exceeds --row-limit or dies is replaced, and the row gets an `error`. Only numpy is required; rows
whose library is missing are left out, with one `error` row for each missing library.
"""
import argparse
import json
import os
import select
import signal
import subprocess
import sys
import time

from gpu_peers_data import MAIN, NETS, short


def plan(quick):
    """List of rows, most important first: dicts with workload, peer, library, needs, size and the case's values."""
    rows = []

    def add(workload, peer, size, needs=(), **case):
        library = "torch" if peer.startswith(("torch", "triton")) else "jax"
        extra = ("diffrax", "equinox") if peer.startswith("diffrax") else ()
        rows.append(dict(workload=workload, peer=peer, size=size, library=library,
                         needs=(library,) + extra + tuple(needs), case=case))

    def mlp(peers, net, sizes, precision="float32"):
        for n in sizes:
            for peer in peers:
                add("mlp", peer, n, net=net, precision=precision)

    both = ["torch-graph-addmm-relu", "jax-jit", "torch-graph", "torch-eager"]
    big = [4096] if quick else [1048576]
    neural = 1000 if quick else 100000
    for peer in ("diffrax-tsit5-vmap", "jax-handwritten-tsit5", "diffrax-tsit5-batched"):
        add("neural", peer, neural, precision="float32", tol=1e-6)
    add("lorenz", "triton-handwritten-rk4", 256 if quick else 8388608, precision="float32", tol=None)
    for peer in ("jax-handwritten-rk4-unroll10", "jax-handwritten-rk4"):
        add("lorenz", peer, 1024 if quick else 8388608, precision="float32", tol=None)
    mlp(both, MAIN, big)
    ensemble = 1024 if quick else 524288
    for tol in ((1e-6,) if quick else (1e-6, 1e-8, 1e-3)):
        for peer in ("jax-handwritten-tsit5", "diffrax-tsit5-vmap"):
            add("lorenz", peer, ensemble, precision="float64", tol=tol)
    for precision in ("bf16", "tf32"):
        mlp(["torch-graph-addmm-relu", "jax-jit"], MAIN, big, precision)
    if not quick:
        add("neural", "diffrax-tsit5-vmap", 1000000, precision="float32", tol=1e-6)
        add("neural", "jax-handwritten-tsit5", 1000000, precision="float32", tol=1e-6)
    mlp(["torch-compile"], MAIN, big)
    for peer in ("torch-graph-handwritten-tsit5", "jax-handwritten-tsit5", "diffrax-tsit5-vmap"):
        add("neural", peer, neural, precision="float32", tol=None)
    mlp(both, MAIN, [1] if quick else [4096, 256, 1])
    for net in list(NETS)[1:]:
        mlp((both[:1] if "relu" in net else []) + ["jax-jit", "torch-graph"], net, big)
    if not quick:
        mlp(both, MAIN, [65536, 4194304])
        mlp(["torch-compile-max-autotune"], MAIN, big)
    return rows


def worker(args):
    """Reads row numbers from stdin, writes one JSON line for each to the original stdout."""
    try:  # die with the parent, also when it is killed
        import ctypes
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except Exception:
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the parent ends this process
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to stderr

    def tell(**message):
        out.write(json.dumps(message) + "\n")
        out.flush()
    try:
        if args.worker == "torch":
            from gpu_peers_torch import TorchPeers as Peers
        else:
            from gpu_peers_jax import JaxPeers as Peers
        peers = Peers(args)
    except BaseException as e:
        return tell(ready=False, error=f"{args.worker} cannot start: {describe(e)}"[:200])
    tell(ready=True, versions=peers.versions, device=peers.device_name)
    rows = plan(args.quick)
    for line in sys.stdin:
        row = rows[int(line)]
        try:
            peers.prepare(row)
            tell(result=getattr(peers, row["workload"])(row))
        except BaseException as e:
            error = describe(e)
            tell(result=dict(error=error))
        try:
            peers.clean()
        except BaseException as e:
            print(describe(e), file=sys.stderr)


def is_of(line, row):
    """Whether a line printed before is that row's, be it an error."""
    return all(line.get(k) == v for k, v in dict(row["case"], **{k: row[k] for k in ("workload", "peer", "size")}).items())


def describe(e):
    return f"{type(e).__name__}: {str(e).strip()}"[:200]


# --- parent ----------------------------------------------------------------------------
class Worker:
    """A worker process and the lines it writes."""

    def __init__(self, library, args):
        env = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false", PYTHONUNBUFFERED="1")
        env.pop("NVIDIA_TF32_OVERRIDE", None)  # it would overrule the precision of the rows
        if args.platform == "cpu":
            env.update(JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="", TRITON_INTERPRET="1")
        else:
            env.setdefault("JAX_PLATFORMS", "cuda")
        command = [sys.executable, os.path.abspath(__file__), "--worker", library,
                   "--platform", args.platform, "--budget", str(args.budget)]
        self.process = subprocess.Popen(command + ["--quick"] * args.quick, env=env, text=False,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.buffer = b""
        self.hello = None

    def send(self, index):
        self.process.stdin.write(b"%d\n" % index)
        self.process.stdin.flush()

    def read(self, seconds):
        """Next message; None when nothing came in time; raises EOFError if the worker died."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                raise EOFError(f"the {self.process.args[3]} process ended "
                               f"with status {self.process.wait()}")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Stopped(Exception):
    pass


def main(args):
    began = time.monotonic()
    left = lambda: args.total - (time.monotonic() - began)
    rows = list(enumerate(plan(args.quick)))
    keys = [k for k in args.only.split(",") if k]
    rows = [(i, r) for i, r in rows if not keys or any(k in r["workload"] + "/" + r["peer"] for k in keys)]
    if args.kept:
        with open(args.kept) as file:
            kept = [json.loads(line) for line in file]
        rows = [(i, r) for i, r in rows if not any(is_of(k, r) for k in kept)]
    if args.list:
        for _, r in rows:
            print(r["workload"], r["peer"], r["size"], json.dumps(r["case"]))
        return
    workers, skipped, missing, known, done = {}, [], set(), {}, 0

    def emit(**row):
        print(json.dumps(row), flush=True)

    def name(r):
        return f"{r['workload']}/{r['peer']}/{r['size']}/" + "/".join(str(v) for v in r["case"].values())

    def on_signal(number, _):
        raise Stopped(signal.Signals(number).name)
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)

    def ready(library):
        """The library's worker, started anew if needed; None if it cannot start."""
        if library in missing:
            return None
        w = workers.get(library) or workers.setdefault(library, Worker(library, args))
        if w.hello is None:
            try:
                w.hello = w.read(min(120, left())) or dict(ready=False, error="no answer in time")
            except EOFError as e:
                w.hello = dict(ready=False, error=str(e))
            if not w.hello["ready"]:
                missing.add(library)
                emit(workload="all", peer=library, error=w.hello["error"][:200])
                return None
            for module, version in w.hello["versions"].items():
                if version is None and module not in missing:
                    missing.add(module)
                    emit(workload="all", peer=module, error="cannot be imported")
        return w

    def remember(r, seconds):
        """Keep the time of one call at the largest size tried of this case."""
        key = name(dict(r, size=0))
        if r["size"] >= known.get(key, (0.0, 0))[1]:
            known[key] = seconds, r["size"]

    def predicted(r):
        """Seconds of one call as far as another size of the same case tells."""
        seconds, size = known.get(name(dict(r, size=0)), (0.0, r["size"]))
        if r["size"] < size:
            return seconds * r["size"] / size
        # small sizes are mostly launches: do not scale those up
        return seconds * max(1.0, r["size"] / max(size, 100000))

    why, position = None, 0
    try:
        for library in {r["library"] for _, r in rows}:
            workers[library] = Worker(library, args)  # both load at the same time
        for position, (i, r) in enumerate(rows):
            if left() < 3:
                why = f"--total {args.total:g} s is spent"
                skipped.append(name(r))
                continue
            w = ready(r["library"])
            if w is None or missing.intersection(r["needs"]):
                continue
            version = w.hello["versions"]["diffrax" if "diffrax" in r["needs"] else r["library"]]
            head = dict(workload=r["workload"], peer=r["peer"], version=version,
                        device=w.hello["device"], size=r["size"], **r["case"])
            if 4 * predicted(r) > args.row_limit:
                emit(**head, skipped=f"about {predicted(r):.3g} s for one call")
                continue
            start, limit = time.monotonic(), min(args.row_limit, max(left(), 1.0))
            try:
                w.send(i)
                answer = w.read(limit)
                error = None if answer else f"no result after {limit:.0f} s, stopped"
            except (EOFError, OSError) as e:
                answer, error = None, str(e)[:200] or "the worker died"
            if not answer and limit < args.row_limit:  # it did not have its time
                why = f"--total {args.total:g} s is spent"
                skipped.append(name(r))
                w.stop()
                del workers[r["library"]]
                continue
            if error:
                w.stop()
                del workers[r["library"]]
                if left() > 15:
                    workers[r["library"]] = Worker(r["library"], args)
                result = dict(error=error)
                remember(r, limit)
            else:
                result = answer["result"]
                if "seconds" in result:
                    remember(r, result.pop("seconds"))
            done += 1
            emit(**head, **result, row_s=short(time.monotonic() - start))
    except Stopped as e:
        why = f"stopped by {e}"
        skipped = [name(r) for _, r in rows[position:]]
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for w in workers.values():
            w.stop()
        emit(workload="summary", rows_done=done, seconds=short(time.monotonic() - began),
             note=why or "all rows were tried", skipped=skipped)


def options():
    p = argparse.ArgumentParser(description="timings of torch, jax and diffrax on an NVIDIA GPU")
    p.add_argument("--platform", choices=("gpu", "cpu"), default="gpu")
    p.add_argument("--quick", action="store_true", help="small sizes, < 2 minutes on two CPU cores")
    p.add_argument("--only", default="", help="comma separated substrings of workload/peer")
    p.add_argument("--total", type=float, default=300.0, help="seconds in all")
    p.add_argument("--budget", type=float, default=None,
                   help="seconds of repeats in one row (default 0.5, quick 0.1)")
    p.add_argument("--row-limit", type=float, default=60.0,
                   help="seconds after which a row is stopped, compilation included")
    p.add_argument("--kept", help="what an earlier run printed: those rows are left out")
    p.add_argument("--list", action="store_true", help="print the rows in order and leave")
    p.add_argument("--worker", choices=("torch", "jax"), help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.budget is None:
        args.budget = 0.1 if args.quick else 0.5
    return args


if __name__ == "__main__":
    arguments = options()
    worker(arguments) if arguments.worker else main(arguments)
