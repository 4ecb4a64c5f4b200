"""The key `starts` of `lockstep train`: what is refused by name, what goes on, what is shown.

usage: train_starts_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tool_test import ToolTest, h5py, np

TAIL = """[method]
precision = "f64"
[training]
phases = "recommended"
[output]
file = "fit"
overwrite = true
"""
TRAIN = """[rhs.equations]
x = "-k * x"
[rhs.parameters]
k = { start = 0.5 }
a = { start = 1 }
[data]
file = "decay.csv"
time = "t"
states = ["x"]
starts = { x = "a" }
""" + TAIL
TWO = TRAIN.replace('x = "-k * x"', 'x = "-k * x"\ny = "-a * y"').replace('["x"]', '["x", "y"]')
NOISY = ('"recommended"', '"noisy"')


class TrainStartsTest(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        self.times = np.linspace(0, 2, 11)
        self.decay(self.times)

    def decay(self, times):
        self.write("decay.csv", "t,x\n" + "".join(f"{t},{0.2 * np.exp(-t)}\n" for t in times))

    def train(self, *changes, text=TRAIN):
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.write("train.toml", text)
        return self.succeed("train", "train.toml")

    def test_the_states_of_the_fit_are_written_where_it_found_their_starts(self):
        out = self.train(NOISY, ('starts = { x = "a" }\n', ""), ("a = { start = 1 }\n", ""))
        self.assertIn("\nfit_states.csv\n", out)
        rows = np.genfromtxt(self.folder / "fit_states.csv", delimiter=",", names=True)
        self.assertEqual(rows.dtype.names, ("trajectory", "t", "x"))
        np.testing.assert_allclose(rows["t"], self.times)
        np.testing.assert_allclose(rows["x"], 0.2 * np.exp(-self.times), rtol=1e-4)
        (self.folder / "fit_states.csv").unlink()
        out = self.train(('starts = { x = "a" }\n', ""), ("a = { start = 1 }\n", ""))
        self.assertNotIn("fit_states.csv", out)
        self.assertFalse((self.folder / "fit_states.csv").exists())

    def refuse(self, message, *changes, text=TRAIN, flags=()):
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.write("train.toml", text)
        self.fail_with(message, "train", "train.toml", *flags)

    def test_the_time_is_no_start(self):
        self.decay(self.times + 5)
        for start in ("2 * exp(-t)", "t"):
            self.refuse(f'data.starts.x: found the time t in "{start}", expected a number, or an expression of '
                        "parameters; starts hold at each trajectory's first time: write it as a number or a parameter",
                        ('x = "a"', f'x = "{start}"'))

    def test_a_step_to_where_there_is_no_start_is_shortened(self):
        out = self.train(('x = "a"', 'x = "sqrt(a)"'))
        self.assertRegex(out, r"k = (1|1\.0000\d*|0\.9999\d*) \(from 0\.5\)")
        self.assertRegex(out, r"a = (0\.04|0\.0400\d*|0\.0399\d*) \(from 1\)")
        self.refuse("iteration 0, train.toml:10: data.starts.x: found no finite number, expected a state to start "
                    "from; start its parameters elsewhere", ('x = "a"', 'x = "sqrt(a - 2)"'))
        self.refuse("data.starts.x: found no finite number", ('x = "a"', 'x = "sqrt(a - 2)"'), NOISY)

    def test_a_parameter_may_be_called_as_a_constant(self):
        """The first measurement of x counts: 11 numbers are compared, not 10."""
        for name in ("e", "pi", "start"):
            out = self.train(("a = {", f"{name} = {{"), ('x = "a"', f'x = "{name}"'))
            self.assertNotIn("missing", out)
            self.assertIn("from 11 numbers", out)
        out = self.train(('x = "a"', 'x = "e"'))  # a number: the measurement there does not count, and none misses
        self.assertNotIn("missing", out)
        self.assertIn("training    x  0.0707 ", out)  # that of 10 numbers

    def test_errors_say_starts_where_starts_are_unknown(self):
        noise = 0.01 * np.random.default_rng(1).standard_normal((11, 2))
        rows = [f"{t},{np.exp(-t) + p},{np.exp(-0.5 * t) + q}" for t, (p, q) in zip(self.times, noise)]
        self.write("decay.csv", "t,x,y\n" + "\n".join(rows) + "\n")
        for starts, among in [('{ x = "a", y = "a" }', ""), ("{ y = 1 }", ", starts among them")]:
            out = self.train(('{ x = "a" }', starts), NOISY, text=TWO)
            self.assertRegex(out, f"{3 if among else 2} unknowns{among}\n")

    def test_each_measurement_has_a_sigma_in_validation_data_too(self):
        """One run of eight has a y: whichever data it falls to, none is known of how good it is."""
        rows = ["run,t,x,y"]
        for run in range(8):
            rows += [f"{run},{t},{np.exp(-t)},{0.5 if run == 3 and t > 0 else ''}" for t in self.times]
        self.write("decay.csv", "\n".join(rows) + "\n")
        for seed in range(6):
            self.refuse("data.sigma: found none of y, expected one of each that was measured", ('{ x = "a" }', '{ y = 1 }'),
                        ('time = "t"', 'time = "t"\ntrajectory = "run"\nvalidation = 0.25\nsigma = { x = 0.05 }'),
                        text=TWO, flags=["--seed", seed])

    def test_hdf5_needs_no_dataset_of_a_state_that_starts_somewhere(self):
        with h5py.File(self.path("decay.h5"), "w") as file:
            file["t"] = self.times
            file["x"] = 0.2 * np.exp(-self.times)
        out = self.train(("decay.csv", "decay.h5"), ('{ x = "a" }', "{ y = 0 }"), ('"-k * x"', '"-k * x + 0 * y"'),
                         text=TWO)
        self.assertIn("11 of 22 numbers missing", out)
        self.assertRegex(out, r"k = (1|1\.0000\d*|0\.9999\d*) \(from 0\.5\)")
        self.refuse('found "y", which decay.h5 does not have', ("decay.csv", "decay.h5"), ('{ x = "a" }', "{ x = 0 }"), text=TWO)

    def test_rates_of_what_was_never_measured_are_found_over_whole_trajectories(self):
        """An epidemic of which the infected alone are known: segments would begin with any number of the others."""
        def change(u):
            infections = 0.5 * u[0] * u[1] / u.sum()
            return np.array([-infections, infections - 0.2 * u[1], 0.2 * u[1]])

        u, rows = np.array([0.99, 0.01, 0.0]), ["t,I"]
        for step in range(4001):  # of RK4, an error of 1e-9 beside the six digits written
            if step % 100 == 0:
                rows.append(f"{step // 100},{u[1]:.6f}")
            k = [change(u)]
            for length in (0.005, 0.005, 0.01):
                k.append(change(u + length * k[-1]))
            u = u + 0.01 / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
        self.write("epidemic.csv", "\n".join(rows) + "\n")
        self.write("train.toml", """[rhs.definitions]
new = "b * S * I / (S + I + R)"
[rhs.equations]
S = "-new"
I = "new - g * I"
R = "g * I"
[rhs.parameters]
b = { start = 1, min = 0.01, max = 5 }
g = { start = 0.05, min = 0.01, max = 5 }
[data]
file = "epidemic.csv"
time = "t"
states = ["S", "I", "R"]
starts = { S = 0.99, I = 0.01, R = 0 }
""" + TAIL)
        out = self.succeed("train", "train.toml")
        self.assertIn("\nphase 1 of 1 (whole trajectories): ", out)
        for name, value in (("b", 0.5), ("g", 0.2)):
            self.assertAlmostEqual(float(out.split(f"\n{name} = ")[1].split()[0]), value, delta=1e-4)

    def orbits(self, phase):
        """Three circular orbits, measured to a ten-millionth; an optimiser that remembers one step gets nowhere."""
        random, rows = np.random.default_rng(4), ["run,t,x,y,vx,vy"]
        for run, radius in enumerate((1, 1.1, 1.2)):
            for t in np.linspace(0, 25, 51):
                turn, speed = t * radius**-1.5, radius**-0.5
                exact = [radius * np.cos(turn), radius * np.sin(turn), -speed * np.sin(turn), speed * np.cos(turn)]
                rows.append(f"{run},{float(t)!r}," + ",".join(f"{x + 1e-7 * random.normal():.17g}" for x in exact))
        self.write("orbits.csv", "\n".join(rows) + "\n")
        self.write("train.toml", """[rhs.definitions]
r3 = "(x^2 + y^2)^1.5"
[rhs.equations]
x = "vx"
y = "vy"
vx = "-gm * x / r3"
vy = "-gm * y / r3"
[rhs.parameters]
gm = { start = 1.000005, scale = 1e-6 }
[data]
file = "orbits.csv"
trajectory = "run"
time = "t"
states = ["x", "y", "vx", "vy"]
sigma = { x = 1e-7, y = 1e-7, vx = 1e-7, vy = 1e-7 }
absolute_sigma = true
[method]
name = "vern9"
precision = "f64"
rtol = 1e-11
atol = 1e-11
[training]
optimiser = "lbfgs"
continuity = 1
history = 1
""" + phase + """
[output]
file = "fit"
overwrite = true
""")
        return self.succeed("train", "train.toml")

    def test_a_fit_ends_at_the_least_sum_of_squares_or_says_first_that_it_does_not(self):
        out = self.orbits("iterations = 40")
        lines = out.split("\ngm = ")[1].splitlines()
        self.assertTrue(lines[1].startswith("the fit has not converged, and so has no errors or intervals: "), out)
        for blames in ("+-", "sigma is too small", "the model does not describe"):
            self.assertNotIn(blames, out)
        out = self.orbits("iterations = 1000")
        self.assertRegex(out, r"phase 1 of 1: 5\d iterations")  # from the 50th on by least squares
        self.assertNotIn("converged", out)
        self.assertNotIn("not at the least", out)
        estimate, error = map(float, re.search(r"\ngm +(\S+) \+- (\S+)", out).groups())
        self.assertLess(abs(estimate - 1), 4 * error, out)

    def swing(self, measured, still=""):
        """Three swings of 61 points, their speeds where `measured` says so."""
        rows = ["run,t,x,v,c"]
        for run in range(3):
            for point in range(61):
                t, speed = 0.5 * point, 1 + 0.1 * run
                rows.append(f"{run},{t},{speed * np.sin(t):.17g},{f'{speed * np.cos(t):.17g}' if measured(point) else ''},"
                            f"{1 if still and point == 0 else ''}")
        self.write("swing.csv", "\n".join(rows) + "\n")
        self.write("train.toml", f"""[rhs.equations]
x = "v"
v = "-k * x"
{'c = "0"' if still else ""}
[rhs.parameters]
k = {{ start = 0.99 }}
[data]
file = "swing.csv"
trajectory = "run"
time = "t"
states = ["x", "v"{', "c"' if still else ""}]
""" + TAIL.replace("recommended", "noisy"))
        return self.succeed("train", "train.toml")

    def test_segments_begin_where_states_were_measured_behind_the_first_points(self):
        whole, cut = "\nphase 1 of 1 (whole trajectories): ", "\nphase 1 of 3 (segments of 5 intervals): "
        for measured, still, phases in [(lambda point: point == 0, "", whole),
                                        (lambda point: point in (0, 60), "", whole),  # a line between them
                                        (lambda point: point % 20 == 0, "", cut),
                                        (lambda point: True, "", cut),
                                        (lambda point: True, "a state that stands still", cut)]:
            out = self.swing(measured, still)
            self.assertIn(phases, out)
            self.assertAlmostEqual(float(out.split("\nk = ")[1].split()[0]), 1, delta=1e-5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
