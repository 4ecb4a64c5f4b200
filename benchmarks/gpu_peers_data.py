"""What the peers on a GPU have in common: nets, initial states, references in numpy, Tsit5, timing, rows."""
import json
import os
import statistics
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SIGMA, BETA = 10.0, 8.0 / 3.0
NETS = {"ocean_32_128_128_31_relu": ([32, 128, 128, 31], "relu"),
        "lorenz_3_100_3_tanh": ([3, 100, 3], "tanh"),
        "peaks_2_20_5_1_relu": ([2, 20, 5, 1], "relu"),
        "qlknn_10_133x5_8_tanh": ([10, 133, 133, 133, 133, 133, 8], "tanh")}
MAIN = "ocean_32_128_128_31_relu"


# --- data and references, numpy only ---------------------------------------------------
def make_net(widths, seed=0, bias=0.1):
    """Glorot-uniform weights [in, out] and small biases, float32."""
    rng = np.random.default_rng(seed)
    layers = []
    for a, b in zip(widths[:-1], widths[1:]):
        limit = np.sqrt(6.0 / (a + b))
        w = rng.uniform(-limit, limit, (b, a)).astype(np.float32)
        layers.append((np.ascontiguousarray(w.T), rng.uniform(-bias, bias, b).astype(np.float32)))
    return layers


def numpy_mlp(layers, act, x):
    h = x.astype(np.float64)
    for i, (w, b) in enumerate(layers):
        h = h @ w.astype(np.float64) + b
        if i + 1 < len(layers):
            h = np.maximum(h, 0) if act == "relu" else np.tanh(h)
    return h


def numpy_rk4(f, y, times, substeps):
    """Classic RK4 in float64; returns the states at `times`."""
    out = [y]
    for t0, t1 in zip(times[:-1], times[1:]):
        h = (t1 - t0) / substeps
        for _ in range(substeps):
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return np.array(out)


def lorenz_numpy(rho):
    return lambda u: np.stack([SIGMA * (u[1] - u[0]), u[0] * (rho - u[2]) - u[1],
                               u[0] * u[1] - BETA * u[2]])


def members_checked(n, count=64):
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(int))


def lorenz_reference(n):
    """(members checked, their end states [k, 3]); 10,000 RK4 steps in float64."""
    at = members_checked(n)
    y0 = np.repeat(np.array([[1.0], [0], [0]]), len(at), 1)
    rho = np.linspace(0.0, 21.0, n)[at]
    return at, numpy_rk4(lorenz_numpy(rho), y0, np.array([0.0, 1.0]), 10000)[-1].T


def neural_weights():
    """The trained 3-100-3 net beside this folder if it is there, else a fixed random one."""
    path = os.path.join(HERE, "..", "examples", "lorenz", "lorenz_tanh_3_100_3.safetensors")
    if os.path.exists(path):
        with open(path, "rb") as f:
            data = f.read()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        tensors = {}
        for name, info in header.items():
            if name != "__metadata__":
                a, b = info["data_offsets"]
                tensors[name] = np.frombuffer(data[8 + size + a:8 + size + b],
                                              np.float32).reshape(info["shape"])
        return [(np.ascontiguousarray(tensors[f"{i}.weight"].T), tensors[f"{i}.bias"])
                for i in (0, 2)], os.path.basename(path)
    rng = np.random.default_rng(0)
    return [(rng.normal(0, 0.5, (3, 100)).astype(np.float32), np.zeros(100, np.float32)),
            (rng.normal(0, 0.3, (100, 3)).astype(np.float32), np.zeros(3, np.float32))], "random"


def neural_states(n):
    noise = np.random.default_rng(1).standard_normal((n, 3), np.float32) * np.float32(0.1)
    noise[:, 0] += 1
    return noise


def neural_reference(layers, y0):
    """(members checked, their states [101, k, 3]) by RK4 with 2000 steps in float64."""
    at = members_checked(len(y0), 16)
    return at, numpy_rk4(lambda y: numpy_mlp(layers, "tanh", y), y0[at].astype(np.float64),
                         np.linspace(0, 1, 101), 20)


# --- Tsit5 (Tsitouras 2011): stages, error weights, dense output -----------------------
TSIT5_A = [
    [0.161],
    [-0.008480655492356989, 0.335480655492357],
    [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
    [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
    [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401,
     -0.028269050394068383],
    [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081,
     2.324710524099774]]
TSIT5_E = [-0.00178001105222577714, -0.0008164344596567469, 0.007880878010261995,
           -0.1447110071732629, 0.5823571654525552, -0.45808210592918697, 1 / 66]


def tsit5_dense(s):
    """Weights b1..b7 of y(t + s h) = y + h sum b_i(s) k_i."""
    return [-1.0530884977290216 * s * (s - 1.3299890189751412)
            * (s * s - 1.4364028541716351 * s + 0.7139816917074209),
            0.1017 * s * s * (s * s - 2.1966568338249754 * s + 1.2949852507374631),
            2.490627285651252793 * s * s * (s * s - 2.38535645472061657 * s + 1.57803468208092486),
            -16.54810288924490272 * s * s * (s - 1.21712927295533244) * (s - 0.61620406037800089),
            47.37952196281928122 * s * s * (s - 1.203071208372362603) * (s - 0.658047292653547382),
            -34.87065786149660974 * s * s * (s - 1.2) * (s - 2 / 3),
            2.5 * s * s * (s - 1) * (s - 0.6)]


def weighted(coefficients, ks):
    return sum(c * k for c, k in zip(coefficients, ks))


def advance(y, h, coefficients, ks):
    """y + h * sum c k, for an array or for a tuple of components."""
    if isinstance(y, tuple):
        return tuple(advance(c, h, coefficients, [k[i] for k in ks]) for i, c in enumerate(y))
    return y + h * weighted(coefficients, ks)


def tsit5_step(f, y, k1, h):
    """One step; returns the new state and k1..k7 (k7 is the next step's k1)."""
    ks = [k1]
    for row in TSIT5_A[:5]:
        ks.append(f(advance(y, h, row, ks)))
    y1 = advance(y, h, TSIT5_A[5], ks)
    return y1, ks + [f(y1)]


def rms(v, jnp):
    return jnp.sqrt(jnp.mean(v * v, -1))


def first_step(f, y, k1, tol, jnp):
    """Initial step of Hairer, Norsett and Wanner II.4 for order 5, one for each row of y."""
    scale = tol + tol * jnp.abs(y)
    d0, d1 = rms(y / scale, jnp), rms(k1 / scale, jnp)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    d2 = rms((f(y + h0[..., None] * k1) - k1) / scale, jnp) / h0
    top = jnp.maximum(d1, d2)
    h1 = jnp.where(top <= 1e-15, jnp.maximum(1e-6, 1e-3 * h0), (0.01 / top) ** 0.2)
    return jnp.minimum(100 * h0, h1)


def accept(y, y1, ks, h, tol, jnp):
    """(error norm <= 1, factor for the next step) with the usual I controller."""
    error = h[..., None] * weighted(TSIT5_E, ks)
    norm = rms(error / (tol + tol * jnp.maximum(jnp.abs(y), jnp.abs(y1))), jnp)
    factor = jnp.clip(0.9 * jnp.maximum(norm, 1e-10) ** -0.2, 0.2, 10.0)
    return norm <= 1, jnp.where(jnp.isfinite(norm), factor, 0.2)


# --- timing ----------------------------------------------------------------------------
class Clock:
    """Times calls until `budget` seconds are spent; at least one sample."""

    def __init__(self, args, samples_of):
        self.budget, self.samples_of = args.budget, samples_of

    def __call__(self, fn):
        """Returns (first call in s, best, median, repeats), per call."""
        first = self.samples_of(fn, 1)
        self.samples_of(fn, 1)
        once = self.samples_of(fn, 1)
        inner = max(1, min(1000, int(5e-3 / max(once, 1e-9))))
        samples, start = [once] if inner == 1 else [], time.perf_counter()
        while len(samples) < 500 and (time.perf_counter() - start < self.budget or not samples):
            samples.append(self.samples_of(fn, inner))
        return first, min(samples), statistics.median(samples), len(samples)


def torch_samples(torch):
    if not torch.cuda.is_available():
        return wall_samples(lambda out: None)

    def samples_of(fn, inner):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        wall = time.perf_counter()
        begin.record()
        for _ in range(inner):
            fn()
        end.record()
        torch.cuda.synchronize()
        wall = time.perf_counter() - wall
        # a first call that compiles does its work before it launches anything
        return max(begin.elapsed_time(end) / 1e3, wall if wall > 2 and inner == 1 else 0) / inner
    return samples_of


def wall_samples(wait):
    def samples_of(fn, inner):
        t0 = time.perf_counter()
        for _ in range(inner):
            out = fn()
        wait(out)
        return (time.perf_counter() - t0) / inner
    return samples_of


def figures(timing, unit, scale, **more):
    first, best, median, repeats = timing
    row = dict(unit=unit, best=float(f"{best * scale:.5g}"), median=float(f"{median * scale:.5g}"),
               repeats=repeats, compile_s=float(f"{max(first - best, 0):.3g}"), seconds=best)
    row.update(more)
    return row


def short(v):
    return float(f"{float(v):.3g}")


# --- what the rows say -----------------------------------------------------------------
def mlp_figures(timing, widths, n, more):
    flops = 2 * sum(a * b for a, b in zip(widths[:-1], widths[1:])) * n
    return figures(timing, "ns/eval", 1e9 / n, tflops=short(flops / timing[1] / 1e12), **more)


def lorenz_figures(timing, n, tol, error, steps):
    return figures(timing, "ms", 1e3, ns_per_trajectory=float(f"{timing[1] / n * 1e9:.4g}"),
                   max_abs_err=short(error), steps_mean=short(np.mean(steps)),
                   steps_max=int(np.max(steps)), stepping=f"adaptive {tol:g}" if tol else "fixed 1e-3")


def neural_figures(timing, n, tol, error, steps, source, **more):
    stepping = f"adaptive {tol:g}" if tol else "fixed 0.01"
    evaluations = 6 * float(np.mean(steps))
    return figures(timing, "us/trajectory", 1e6 / n, total_ms=short(timing[1] * 1e3),
                   ns_per_rhs_eval=short(timing[1] / n / evaluations * 1e9),
                   rhs_evals_per_trajectory=round(evaluations, 1), steps_max=int(np.max(steps)),
                   max_abs_err=short(error), weights=source, stepping=stepping, **more)
