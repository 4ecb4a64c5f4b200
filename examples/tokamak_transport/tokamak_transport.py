"""Heat transport in a tokamak from Python: the equations of tokamak_transport.cpp, the net asked in place on NumPy arrays.

    python examples/tokamak_transport/tokamak_transport.py --draw tokamak.png     # needs matplotlib
"""
import argparse
import pathlib
import time

import numpy as np

import lockstep

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("model", nargs="?", default=str(HERE.parents[1] / "testdata/qlknn_7_11_tanh_10_133x5_8.safetensors"))
parser.add_argument("--cells", type=int, default=64)
parser.add_argument("--end", type=float, default=0.5, help="seconds")
parser.add_argument("--dt", type=float, default=1e-3, help="seconds")
parser.add_argument("--implicit", action="store_true", help="by Newton's method, in steps that grow from --dt")
parser.add_argument("--draw", help="picture of the profiles")
parser.add_argument("--quick", action="store_true", help="32 cells, steps of 2 ms")
args = parser.parse_args()
if args.quick:
    args.cells, args.dt = 32, 2e-3

CHARGE, PROTON, ELECTRON = 1.602176634e-19, 1.67262192e-27, 9.1093837e-31
KEV = 1e3 * CHARGE
R, A, B = 3.0, 1.0, 3.0             # m, m, T
ION = 2 * PROTON                    # deuterium
POWER = {"ions": 6e6, "electrons": 4e6}  # W
EDGE, T_EDGE = 0.95, 0.5            # r/a, keV
LEAST, ADDED = 0.2, 20.0            # m2/s: by collisions; for stability, taken away again


def density(x):
    return 6e19 * (1 - 0.35 * x * x)


def safety_factor(x):
    return 1 + 2.2 * x * x


h = EDGE * A / args.cells
middle = (np.arange(args.cells) + 0.5) * h
outer = (np.arange(args.cells) + 1.0) * h   # each cell's outer face; the last is the edge
area = 4 * np.pi**2 * R * outer
volume = 2 * np.pi**2 * R * (outer**2 - (outer - h)**2)
n_cell, n_face, x = density(middle / A), density(outer / A), outer / A
shape = np.exp(-(middle / A / 0.3)**2) * volume
heating = {name: power * shape / shape.sum() for name, power in POWER.items()}

net = lockstep.load(args.model)
features = net.inputs[0]["features"]
lowest, highest = (np.array([feature[end] for feature in features]) for end in ("minimum", "maximum"))


def collision_time(n, t):
    """Of electrons, s; t in keV (Wesson, Tokamaks, section 14.5)."""
    return 1.09e16 * t**1.5 / (n * 17)


def on_faces(t):
    """Value (keV) and slope (keV/m) at each cell's outer face."""
    return np.append((t[:-1] + t[1:]) / 2, T_EDGE), np.append((t[1:] - t[:-1]) / h, (T_EDGE - t[-1]) / (h / 2))


def fluxes(state):
    """W/m2 through each cell's outer face: QLKNN's turbulence, in gyro-Bohm units, and collisions."""
    (ti, slope_i), (te, slope_e) = on_faces(state["ions"]), on_faces(state["electrons"])
    q, peaking = safety_factor(x), R / A * 6e19 * 0.7 * x / n_face
    bounce = q * R / (outer / R)**1.5 / np.sqrt(te * KEV / ELECTRON)
    asked = np.column_stack([-R * slope_i / ti, -R * slope_e / te, peaking, peaking, q, 4.4 * x * x / q, x, ti / te,
                             np.log10(bounce / collision_time(n_face, te)), np.ones_like(x)])
    answers = net(np.clip(asked, lowest, highest))
    itg, tem, etg = (np.maximum(answers[:, i], 0) for i in (0, 2, 5))
    t = ti * KEV
    unit = n_face * t / A * np.sqrt(ION) * t**1.5 / ((CHARGE * B)**2 * A)
    return {"ions": unit * (itg + tem * answers[:, 3]) - n_face * LEAST * KEV * slope_i,
            "electrons": unit * (itg * answers[:, 1] + tem + etg) - n_face * LEAST * KEV * slope_e}


def exchange(ti, te):
    """W to each cell's ions from its electrons, over the difference of their temperatures in keV."""
    return 3 * ELECTRON / ION * n_cell / collision_time(n_cell, te) * KEV * volume


def explicit_steps(state):
    """The net explicitly, the added diffusivity implicitly, and what that would have carried explicitly away again."""
    conductance = area * n_face * ADDED * KEV / np.append(np.full(args.cells - 1, h), h / 2)
    capacity = 1.5 * n_cell * KEV * volume / args.dt
    matrix = np.diag(capacity + conductance + np.append(0, conductance[:-1]))
    matrix -= np.diag(conductance[:-1], 1) + np.diag(conductance[:-1], -1)
    inverse = np.linalg.inv(matrix)

    def advance(t, q, sources):
        outward = area * q - conductance * (t - np.append(t[1:], T_EDGE))
        right = capacity * t + sources + np.append(0, outward[:-1]) - outward
        right[-1] += conductance[-1] * T_EDGE
        return inverse @ right

    for step in range(round(args.end / args.dt)):
        q = fluxes(state)
        ti, te = state["ions"], state["electrons"]
        from_electrons = exchange(ti, te) * (te - ti)
        state = {"ions": advance(ti, q["ions"], heating["ions"] + from_electrons),
                 "electrons": advance(te, q["electrons"], heating["electrons"] - from_electrons)}
        yield (step + 1) * args.dt, state


def flux_of_a_face():
    """fluxes() as equations that call the net, for one face: a model whose Jacobian knows the net's, and all around it.

    Components ti, si, te, se: temperatures and slopes of ions and electrons; the first and third answer with the fluxes.
    """
    asked = ["-R * si / ti", "-R * se / te", "peaking", "peaking", "q", "4.4 * x^2 / q", "x", "ti / te",
             "log10(bounces / te^2)", "1"]
    arguments = ", ".join(f"clamp({text}, {low!r}, {high!r})" for text, low, high in
                          zip(asked, lowest.tolist(), highest.tolist()))
    answers = {name: f"qlknn({arguments})[{i}]"
               for name, i in (("itg", 0), ("ratio_e", 1), ("tem", 2), ("ratio_i", 3), ("etg", 5))}
    return lockstep.equations(
        {"ti": "unit * ti^2.5 * (max(itg, 0) + max(tem, 0) * ratio_i) - collisions * si", "si": "0",
         "te": "unit * ti^2.5 * (max(itg, 0) * ratio_e + max(tem, 0) + max(etg, 0)) - collisions * se", "se": "0"},
        parameters=["x", "q", "peaking", "bounces", "unit", "collisions"],
        definitions={"R": repr(R), **answers}, models={"qlknn": net})


def implicit_steps(state):
    """All at the end of a step, by Newton's method, with the Jacobian of the net and all around it."""
    face, q = flux_of_a_face(), safety_factor(x)
    derivative = face.derivative("jacobian")  # by u and p
    p = np.column_stack([x, q, R / A * 6e19 * 0.7 * x / n_face,
                         q * R / (outer / R)**1.5 / np.sqrt(KEV / ELECTRON) * n_face * 17 / 1.09e16,
                         n_face * np.sqrt(ION) * KEV**2.5 / (CHARGE * B)**2 / A**2, n_face * LEAST * KEV])
    above = np.eye(args.cells, k=1)
    value, slope = (np.eye(args.cells) + above) / 2, (above - np.eye(args.cells)) / h  # of faces, from cells
    value[-1], slope[-1] = 0, 0
    slope[-1, -1] = -2 / h
    divergence = np.eye(args.cells) - np.eye(args.cells, k=-1)
    parts = slice(0, args.cells), slice(args.cells, 2 * args.cells)  # ions, electrons
    sources = np.concatenate([heating["ions"], heating["electrons"]])

    def at(t):
        (ti, si), (te, se) = on_faces(t[parts[0]]), on_faces(t[parts[1]])
        return {"u": np.column_stack([ti, si, te, se]), "p": p}

    def losses(t):
        """W from each cell: through its faces, less what it is given."""
        ti, te = t[parts[0]], t[parts[1]]
        q, given = face(at(t)), exchange(ti, te) * (te - ti)
        return np.concatenate([divergence @ (area * q[:, 0]) - given, divergence @ (area * q[:, 2]) + given]) - sources

    def jacobian(t):
        ti, te = t[parts[0]], t[parts[1]]
        by_face = derivative(at(t))["jacobian"].reshape(args.cells, 4, -1)
        matrix = np.zeros((2 * args.cells, 2 * args.cells))
        for row, out in zip(parts, (0, 2)):
            for column, of in zip(parts, (0, 2)):
                matrix[row, column] = divergence @ (area[:, None] * (by_face[:, out, of, None] * value +
                                                                     by_face[:, out, of + 1, None] * slope))
        by_ti = -exchange(ti, te)
        by_te = -by_ti * (1 - 1.5 * (te - ti) / te)
        for row, sign in zip(parts, (-1, 1)):
            matrix[row, parts[0]] += sign * np.diag(by_ti)
            matrix[row, parts[1]] += sign * np.diag(by_te)
        return matrix

    def newton(t, capacity):
        """The state at the end of a step, and the iterations; None where they do not get there."""
        new = t
        residual = losses(t)
        for iteration in range(12):
            if np.abs(residual).max() < 1e-6 * sources.max():
                return new, iteration
            new = new - np.linalg.solve(jacobian(new) + np.diag(capacity), residual)
            if (new < 0.1 * T_EDGE).any():
                return None
            residual = capacity * (new - t) + losses(new)
        return None

    t, when, dt = np.concatenate([state["ions"], state["electrons"]]), 0.0, args.dt
    while when < args.end * (1 - 1e-9):
        dt = min(dt, args.end - when)
        found = newton(t, np.tile(1.5 * n_cell * KEV * volume / dt, 2))
        if found is None:
            dt /= 3
            continue
        (t, iterations), when = found, when + dt
        dt *= 1.5 if iterations < 6 else 1
        yield when, {"ions": t[parts[0]], "electrons": t[parts[1]]}


start = T_EDGE + 0.5 * (1 - (middle / (EDGE * A))**2)
state = {"ions": start, "electrons": start}
shown = {0.0: state}
steps = 0
begin = time.perf_counter()
to_show = [0.04, 0.12, 0.3]  # of the whole time
for when, state in (implicit_steps if args.implicit else explicit_steps)(state):
    steps += 1
    if to_show and when >= to_show[0] * args.end:
        shown[when] = state
        to_show.pop(0)
seconds = time.perf_counter() - begin
shown[args.end] = state
lost = area[-1] * sum(q[-1] for q in fluxes(state).values())
print(f"{args.end:.2f} s: ions {state['ions'][0]:.2f} keV, electrons {state['electrons'][0]:.2f} keV on the axis")
assert abs(lost / sum(POWER.values()) - 1) < 1e-3 or args.end < 0.3
print(f"heating {sum(POWER.values()) / 1e6:.2f} MW, through the edge {lost / 1e6:.2f} MW")
print(f"{steps} steps of {args.cells} faces: {1e6 * seconds / steps:.0f} us a step")

if args.draw:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, name in zip(axes, POWER):
        for number, (when, profile) in enumerate(shown.items()):
            axis.plot(middle / A, profile[name], color=plt.cm.viridis(number / len(shown)), label=f"{when:.3g} s")
        axis.set(title=name, xlabel="r / a", ylim=(0, None))
    axes[0].set_ylabel("temperature (keV)")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(args.draw)
    print(f"drew {args.draw}")
