#!/usr/bin/env python3
"""Training of a neural ODE against JAX with a reverse sweep by hand and diffrax, one iteration at a time, in one run.

Net 3-100-3 tanh as right-hand side, Lorenz trajectories t 0..1 at 101 times, u0 = (1, 0, 0), with several trajectories
plus normal noise of 0.1; mean over trajectories of the sum of squared differences; Tsit5, Adam with rate 0.01, float32.
All start from the same weights, so that all take about the same steps: Glorot's, or those of --start trained.

    python3 benchmarks/neural_train_vs_peers.py --trajectories 1
    python3 benchmarks/neural_train_vs_peers.py --trajectories 1024 --start trained --iterations 20
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import pairing

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--trajectories", type=int, default=1)
parser.add_argument("--start", choices=["random", "trained"], default="random")
parser.add_argument("--iterations", type=int, default=100)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--steps", default="fixed,adaptive")
parser.add_argument("--peers", default="", help="substrings of peer names, comma separated (default all)")
args = parser.parse_args()
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(args.threads)
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads:])
if args.threads == 1:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"

import numpy as np

M, N = args.trajectories, 101
TIMES = np.arange(N) / 100.0
ROOT = pairing.ROOT
TRAINED = os.path.join(ROOT, "examples", "lorenz", "lorenz_tanh_3_100_3.safetensors")


def initial_states():
    states = np.array([1.0, 0, 0]) + 0.1 * np.random.default_rng(1).standard_normal((M, 3))
    states[0] = 1.0, 0.0, 0.0
    return states


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, value in tensors.items():
        data = np.ascontiguousarray(value, "<f4").tobytes()
        header[name] = dict(dtype="F32", shape=list(value.shape), data_offsets=[len(body), len(body) + len(data)])
        body += data
    # As examples/lorenz names what a file of weights cannot say.
    header["__metadata__"] = {"activations": "tanh,linear"}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    return {name: np.frombuffer(data[8 + length:][slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def start_weights():
    if args.start == "trained":
        return read_safetensors(TRAINED)
    random = np.random.default_rng(0)
    limit = np.sqrt(6 / 103)
    draw = lambda *shape: random.uniform(-limit, limit, shape).astype(np.float32)
    return {"0.weight": draw(100, 3), "0.bias": np.zeros(100, np.float32),
            "2.weight": draw(3, 100), "2.bias": np.zeros(3, np.float32)}


STATES, WEIGHTS = initial_states(), start_weights()

A = [[0.161], [-0.008480655492356989, 0.335480655492357],
     [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
     [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
     [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
     [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774]]
E = [-0.00178001105222577714, -0.0008164344596567469, 0.007880878010261995, -0.1447110071732629,
     0.5823571654525552, -0.45808210592918697, 1 / 66]
# Rows p_j1 .. p_j4 of the interpolant sum_m p_jm theta^m.
P = np.array([[1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216], [0.0, 0.1317, -0.2234, 0.1017],
              [0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253],
              [0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902],
              [0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
              [0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661], [0.0, 1.5, -4.0, 2.5]])


def weighted(coefficients, stages):
    return sum(c * k for c, k in zip(coefficients, stages))


def jax_by_hand(all_data, adaptive, tile=None, max_steps=256):
    """(loss, gradient) with a reverse sweep written out: y and k1..k7 of each step are kept, steps are constants.

    `tile` trajectories are taken at a time, each group until its slowest one is done; None: all at once.
    """
    import jax
    import jax.numpy as jnp
    batch = tile or M
    groups = jnp.asarray(all_data).reshape(-1, batch, N, 3)
    tol, ts = 1e-6, jnp.asarray(TIMES, jnp.float32)

    def field(y, p):
        return jnp.tanh(y @ p["0.weight"].T + p["0.bias"]) @ p["2.weight"].T + p["2.bias"]

    def step(p, y, k1, h):
        ks = [k1]
        for row in A[:5]:
            ks.append(field(y + h * weighted(row, ks), p))
        y1 = y + h * weighted(A[5], ks)
        return y1, ks + [field(y1, p)]

    rms = lambda v: jnp.sqrt(jnp.mean(v * v, -1))

    def first_step(p, y, k1):
        scale = tol + tol * jnp.abs(y)
        d0, d1 = rms(y / scale), rms(k1 / scale)
        h0 = 0.01 * d0 / d1
        d2 = rms((field(y + h0[:, None] * k1, p) - k1) / scale) / h0
        return jnp.minimum(100 * h0, (0.01 / jnp.maximum(d1, d2)) ** 0.2)

    def solve_fixed(p, y0):
        h = jnp.float32(0.01)

        def one(carry, _):
            y1, ks = step(p, *carry, h)
            return (y1, ks[6]), (carry[0], jnp.stack(ks, 1))
        (last, _), (ys, ks) = jax.lax.scan(one, (y0, field(y0, p)), None, length=N - 1)
        hs = jnp.full(ys.shape[:2], h)
        return jnp.concatenate([ys, last[None]]), N - 1, (hs, ys, ks), None

    def solve_adaptive(p, y0):
        def attempt(carry):
            i, t, h, y, k1, (rt, rh, ry, rk) = carry
            h = jnp.where(t < 1, jnp.minimum(h, 1 - t), 0)
            y1, ks = step(p, y, k1, h[:, None])
            error = h[:, None] * weighted(E, ks) / (tol + tol * jnp.maximum(jnp.abs(y), jnp.abs(y1)))
            norm = rms(error)
            ok = (norm <= 1) & (t < 1)
            record = (rt.at[i].set(t), rh.at[i].set(jnp.where(ok, h, 0)), ry.at[i].set(y),
                      rk.at[i].set(jnp.stack(ks, 1)))
            factor = jnp.clip(0.9 * jnp.maximum(norm, 1e-10) ** -0.2, 0.2, 10.0)
            t = jnp.where(ok, jnp.where(h >= 1 - t, 1.0, t + h), t)
            return (i + 1, t, h * jnp.where(jnp.isfinite(norm), factor, 0.2), jnp.where(ok[:, None], y1, y),
                    jnp.where(ok[:, None], ks[6], k1), record)
        record = (jnp.full((max_steps, batch), jnp.inf), jnp.zeros((max_steps, batch)),
                  jnp.zeros((max_steps, batch, 3)), jnp.zeros((max_steps, batch, 7, 3)))
        k1 = field(y0, p)
        n, *_, (rt, rh, ry, rk) = jax.lax.while_loop(
            lambda c: (c[0] < max_steps) & jnp.any(c[1] < 1), attempt,
            (0, jnp.zeros(batch), first_step(p, y0, k1), y0, k1, record))
        ends = jnp.where(rh > 0, jnp.where(rh >= 1 - rt, 1.0, rt + rh), rt)
        at = jnp.minimum(jax.vmap(lambda column: jnp.searchsorted(column, ts), 1, 1)(ends), max_steps - 1)
        lane = jnp.arange(batch)[None]
        h = rh[at, lane]
        s = jnp.where(h > 0, (ts[:, None] - rt[at, lane]) / jnp.where(h > 0, h, 1), 0)
        powers = jnp.stack([s, s**2, s**3, s**4], -1)
        weights = h[..., None] * (powers @ jnp.asarray(P.T, jnp.float32))
        return ry[at, lane] + jnp.einsum("tbs,tbsd->tbd", weights, rk[at, lane]), n, (rh, ry, rk), (at, weights)

    def group_gradient(p, data):
        ys, n, (rh, ry, rk), where = (solve_adaptive if adaptive else solve_fixed)(p, data[:, 0])
        difference = ys - data.swapaxes(0, 1)
        g = 2 * difference / M
        if where is None:
            gy, gys, gks = g[-1], g[:-1], None
        else:
            at, weights = where
            lane = jnp.arange(batch)[None]
            gy = jnp.zeros_like(data[:, 0])
            gys = jnp.zeros_like(ry).at[at, lane].add(g)
            gks = jnp.zeros_like(rk).at[at, lane].add(weights[..., None] * g[:, :, None])

        def pull(x, bar, gp):
            by_x, by_p = jax.vjp(field, x, p)[1](bar)
            return by_x, jax.tree.map(jnp.add, gp, by_p)

        def reverse(j, carry):
            gy, gk_end, gp = carry
            i = n - 1 - j
            h, y = rh[i][:, None], ry[i]
            took = h > 0
            ks = [rk[i, :, s] for s in range(7)]
            gk = [jnp.zeros_like(y) if gks is None else gks[i, :, s] for s in range(7)]
            gx, gp = pull(y + h * weighted(A[5], ks), jnp.where(took, gk[6] + gk_end, 0), gp)
            g = jnp.where(took, gy + gx, 0)
            out = g
            for s in range(6):
                gk[s] = gk[s] + h * A[5][s] * g
            for s in range(5, 0, -1):
                gx, gp = pull(y + h * weighted(A[s - 1], ks), gk[s], gp)
                out = out + gx
                for q in range(s):
                    gk[q] = gk[q] + h * A[s - 1][q] * gx
            return jnp.where(took, out, gy) + gys[i], jnp.where(took, gk[0], gk_end), gp
        gy, gk, gp = jax.lax.fori_loop(0, n, reverse, (gy, jnp.zeros_like(gy), jax.tree.map(jnp.zeros_like, p)))
        return jnp.sum(difference**2) / M, pull(data[:, 0], gk, gp)[1], n

    def value_and_gradient(p):
        if tile is None:
            return group_gradient(p, groups[0])
        value, g, n = jax.lax.map(lambda data: group_gradient(p, data), groups)
        return jnp.sum(value), jax.tree.map(lambda v: jnp.sum(v, 0), g), jnp.max(n)
    return value_and_gradient, jax.__version__


def diffrax_gradient(data, adaptive):
    import diffrax
    import jax
    import jax.numpy as jnp
    ts, data = jnp.asarray(TIMES, jnp.float32), jnp.asarray(data)
    controller = diffrax.PIDController(rtol=1e-6, atol=1e-6) if adaptive else diffrax.StepTo(ts)

    def solve(p, y0):
        field = lambda t, y, p: p["2.weight"] @ jnp.tanh(p["0.weight"] @ y + p["0.bias"]) + p["2.bias"]
        solution = diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, None, y0, args=p,
                                       stepsize_controller=controller, saveat=diffrax.SaveAt(ts=ts),
                                       adjoint=diffrax.RecursiveCheckpointAdjoint(), max_steps=4096)
        return solution.ys, solution.stats["num_steps"]

    def loss(p):
        ys, n = jax.vmap(solve, (None, 0))(p, data[:, 0])
        return jnp.sum((ys - data) ** 2) / M, jnp.max(n)

    def value_and_gradient(p):
        (value, n), g = jax.value_and_grad(loss, has_aux=True)(p)
        return value, g, n
    return value_and_gradient, diffrax.__version__


def adam(value_and_gradient):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(p, m, v, i):
        value, g, n = value_and_gradient(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        update = lambda p, m, v: p - 0.01 * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.999**i)) + 1e-8)
        return jax.tree.map(update, p, m, v), m, v, value, n
    return step


def time_peer(value_and_gradient):
    import jax
    import jax.numpy as jnp
    step = adam(value_and_gradient)
    p = {k: jnp.asarray(v) for k, v in WEIGHTS.items()}
    m = v = jax.tree.map(jnp.zeros_like, p)
    t = time.perf_counter()
    jax.block_until_ready(step(p, m, v, 1.0))
    compile_s = time.perf_counter() - t
    samples, steps = [], []
    for i in range(args.iterations):
        t = time.perf_counter()
        p, m, v, value, n = jax.block_until_ready(step(p, m, v, i + 1.0))
        samples.append(time.perf_counter() - t)
        steps.append(int(n))
    return dict(unit="ms/iteration", best=pairing.rounded(min(samples) * 1e3),
                median=pairing.rounded(statistics.median(samples) * 1e3), repeats=args.iterations,
                compile_s=pairing.rounded(compile_s), steps_mean=float(np.mean(steps)), loss_at=args.iterations,
                loss=float(value))


def lorenz_data():
    """DOP853 at 1e-12 on all trajectories as one system, in float32 [M, 101, 3]."""
    from scipy.integrate import solve_ivp

    def field(t, u):
        x, y, z = u.reshape(3, M)
        return np.concatenate([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
    solution = solve_ivp(field, (0, 1), STATES.T.ravel(), t_eval=TIMES, method="DOP853", rtol=1e-12, atol=1e-12)
    return np.ascontiguousarray(solution.y.reshape(3, M, N).transpose(1, 2, 0)).astype(np.float32)


def ours(steps):
    with tempfile.TemporaryDirectory() as folder:
        model, states = os.path.join(folder, "start.safetensors"), os.path.join(folder, "states")
        write_safetensors(model, WEIGHTS)
        STATES.astype("<f8").tofile(states)
        done = subprocess.run([os.path.join(ROOT, "build", "bin", "neural_train_bench"), "--model", model,
                               "--initial-states", states, "--steps", steps, "--iterations", str(args.iterations),
                               "--threads", str(args.threads)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"neural_train_bench: {done.stderr.strip()}")
        return json.loads(done.stdout)


rows = []
DATA = lorenz_data() if pairing.importable("scipy") else None
for steps in args.steps.split(","):
    peers = [("lockstep", None), ("jax by hand", jax_by_hand), ("diffrax", diffrax_gradient)]
    if M % 64 == 0:
        peers.append(("jax in tiles", lambda data, adaptive: jax_by_hand(data, adaptive, tile=64)))
    for name, make in peers:
        if make is not None and (DATA is None or not pairing.wanted(args.peers, name)):
            continue
        if make is None:
            row = ours(steps)
        elif pairing.importable(*(["jax", "diffrax"] if name == "diffrax" else ["jax"])):
            function, version = make(DATA, steps == "adaptive")
            row = dict(version=version, **time_peer(function))
        else:
            continue
        row = dict(workload=f"neural_train_{steps}", peer=name, size=M, threads=args.threads, start=args.start, **row)
        rows.append(row)
        print(json.dumps(row), flush=True)
print(f"\n{'workload':24} {'trajectories':>12} {'peer':14} {'best ms':>10} {'ratio':>7} {'median ms':>10} {'ratio':>7}")
for row in rows:
    base = next(r for r in rows if r["workload"] == row["workload"] and r["peer"] == "lockstep")
    print(f"{row['workload']:24} {M:12} {row['peer']:14} {row['best']:10.4g} {row['best'] / base['best']:7.2f} "
          f"{row['median']:10.4g} {row['median'] / base['median']:7.2f}")
