"""`lockstep train` on equations: the page's examples, killed and resumed, and what comes of them in `solve`.

usage: train_equations_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import re
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tool_test import ToolTest, TOOL, h5py, np


def example(heading):
    """The training file under this heading of the page."""
    page = (ROOT / "docs" / "training.md").read_text()
    return re.search(r"```toml\n(.*?)```", page[page.index(f"# {heading}\n"):], re.DOTALL).group(1)


def solved(f, u, times, steps=20):
    """Classical Runge-Kutta; 20 steps an interval leave 1e-7 of states here."""
    states = [np.array(u, float)]
    for begin, end in zip(times[:-1], times[1:]):
        u, h = states[-1], (end - begin) / steps
        for _ in range(steps):
            a = f(u)
            b = f(u + h / 2 * a)
            c = f(u + h / 2 * b)
            u = u + h / 6 * (a + 2 * b + 2 * c + f(u + h * c))
        states.append(u)
    return np.array(states)


def hunt(u):
    return np.array([1.1 * u[0] - 0.4 * u[0] * u[1], 0.1 * u[0] * u[1] - 0.4 * u[1]])


def masses(u):
    x, v = u[:3], u[3:]
    pulls = (x[1:] - x[:-1] - 1) * 4
    return np.concatenate([v, np.append(pulls, 0) - np.append(0, pulls) - 0.3 * v * abs(v) + 1])


class TrainEquationsTest(ToolTest):
    silent = False

    def csv(self, name, columns, times, states):
        rows = [",".join(["t"] + columns)] + [",".join(repr(float(x)) for x in (t, *u)) for t, u in zip(times, states)]
        self.write(name, "\n".join(rows) + "\n")

    def state_of(self, name):
        with h5py.File(self.path(name)) as file:
            return {key: file[key][()].tobytes() for key in ("parameters", "best_parameters", "curve/loss")}

    def solution(self, model, start, end, points):
        self.write("problem.toml", f'[rhs]\nmodel = "{model}"\nguard = "ignore"\n[ensemble]\n'
                   f'initial_state = {[float(x) for x in start]}\n[time]\nspan = [0, {end}]\nsave = {points}\n[method]\n'
                   'precision = "f64"\n[output]\nfile = "solved.h5"\n')
        self.succeed("solve", "problem.toml", "-q", "--overwrite")
        with h5py.File(self.path("solved.h5")) as file:
            return file["state"][0]

    def test_the_pages_parameters_are_found_and_solved_with(self):
        times = np.linspace(0, 10, 41)
        states = solved(hunt, [10, 5], times)
        self.csv("measured.csv", ["prey", "predator"], times, states)
        self.write("train.toml", example("Parameters of equations"))
        out = self.succeed("train", "train.toml")
        self.assertIn("a, b, c, 3 parameters, f64; 1 trajectory of 41 points", out)
        found = {name: float(value) for name, value in re.findall(r"^([abc]) = (\S+) \(from ", out, re.MULTILINE)}
        # The solves' tolerance of 1e-6 is what states and parameters are good to, but for the size of the latter's effect.
        for name, value in {"a": 1.1, "b": 0.4, "c": 0.1}.items():
            self.assertAlmostEqual(found[name], value, delta=1e-5)
        self.assertFalse(self.path("fit.h5").exists())
        np.testing.assert_allclose(self.solution("fit_rhs.h5", [10, 5], 10, 41), states, atol=1e-4)
        # The same numbers, typed into the equations.
        text = example("Parameters of equations")
        for name, value in found.items():
            text = re.sub(rf"^{name} = {{.*$", f"{name} = {value!r}", text, flags=re.MULTILINE)
        rhs = text[:text.index("[data]")]
        by_model = self.solution("fit_rhs.h5", [10, 5], 10, 41)
        self.write("typed.toml", rhs + self.path("problem.toml").read_text().split('guard = "ignore"\n')[1])
        self.succeed("solve", "typed.toml", "-q", "--overwrite")
        with h5py.File(self.path("solved.h5")) as file:
            self.assertEqual(file["state"][0].tobytes(), by_model.tobytes())
        idle = re.sub(r"^(a = .*)$", r"\1\nidle = 3", example("Parameters of equations"), count=1, flags=re.MULTILINE)
        self.write("idle.toml", idle)
        out = self.succeed("train", "idle.toml", "--output", "idle")
        self.assertIn("idle is read by nothing: no equation, definition, event or reset names it", out)
        self.write("typed.toml", self.path("typed.toml").read_text().replace("b = ", "b = { start = 1 } # "))
        self.fail_with("rhs.parameters.b: found a parameter to be trained", "solve", "typed.toml")
        # Of several input ports each has a dataset: the one at fault is named.
        for port, column in (("u", "predator"), ("p", "b")):
            with h5py.File(self.path("x.h5"), "w") as file:
                file["u"], file["p"] = np.ones((2, 2)), np.ones((2, 4))
                file[port][1, 1] = 1e39
            self.fail_with(f"x.h5:/{port}, row 1, column {column}: found 1e+39, expected a number that fits in float32",
                           "evaluate", "fit_rhs.h5", "--input", "x.h5", "--output", "y.h5", "--guard", "ignore")

    def test_predators_seen_later_are_followed_back_to_their_start(self):
        times = np.linspace(0, 10, 41)
        noise = np.random.default_rng(1).standard_normal((41, 2))
        truth = solved(hunt, [10, 5], times)
        states = truth + 0.1 * noise
        states[:8, 1] = np.nan
        rows = ["t,prey,predator"] + [f"{t!r},{x!r},{'' if np.isnan(y) else repr(float(y))}"
                                      for t, (x, y) in zip(times.tolist(), states.tolist())]
        self.write("measured.csv", "\n".join(rows) + "\n")
        text = example("Parameters of equations")
        self.write("train.toml", text.replace('"noisy"', '"recommended"', 1))
        self.fail_with('measured.csv:2, component predator: found NaN, expected a complete state, from which the '
                       'trajectory starts; train the starts as well, by phases = "noisy"', "train", "train.toml")
        self.write("train.toml", text)
        out = self.succeed("train", "train.toml", "--threads", "1")
        self.assertIn("8 of 82 numbers missing", out)
        self.assertIn("errors by Gauss-Newton from 74 numbers", out)
        self.assertIn("5 unknowns, starts among them", out)
        self.assertNotIn("not at the least", out)
        for name, value in {"a": 1.1, "b": 0.4, "c": 0.1}.items():
            found, error = re.search(rf"^{name} +(\S+) \+- (\S+) ", out, re.MULTILINE).groups()
            self.assertLess(abs(float(found) - value), 4 * float(error))  # 1 in 5,000 fits would lie further away
            self.assertLess(float(error), 0.01 * value)
        self.succeed("train", "train.toml", "--threads", "2", "--output", "again", "-q")
        self.assertEqual(self.state_of("again_checkpoint.h5"), self.state_of("fit_checkpoint.h5"))

    def test_the_pages_store_is_found_under_measured_rain(self):
        hours = np.arange(0, 97.0)
        rain = np.where(np.random.default_rng(2).random(97) < 0.2, 3.0, 0.0)
        self.csv("weather.csv", ["rain"], hours, rain[:, None])
        # Straight lines from hour to hour: x' = rain(t) - k x^1.5 over one of them at a time.
        states = [np.array([4.0])]
        for i in range(96):
            pour = lambda s: rain[i] + (rain[i + 1] - rain[i]) * s
            steps, x = 20, states[-1]
            for j in range(steps):
                h, s = 1 / steps, j / steps
                f = lambda s, x: pour(s) - 0.07 * np.maximum(x, 0) ** 1.5
                a = f(s, x)
                b = f(s + h / 2, x + h / 2 * a)
                c = f(s + h / 2, x + h / 2 * b)
                x = x + h / 6 * (a + 2 * b + 2 * c + f(s + h, x + h * c))
            states.append(x)
        self.csv("level.csv", ["store"], hours, np.array(states))
        text = example("Measured inputs")
        self.write("train.toml", text)
        out = self.succeed("train", "train.toml", "--threads", "1")
        # Steps that end at every hour meet the states to 1e-6.
        self.assertAlmostEqual(float(re.search(r"^k = (\S+) \(from ", out, re.MULTILINE).group(1)), 0.07, delta=1e-6)
        self.assertNotIn("note:", out)
        self.succeed("train", "train.toml", "--threads", "2", "--output", "again", "-q")
        self.assertEqual(self.state_of("again_checkpoint.h5"), self.state_of("store_checkpoint.h5"))
        steps = text.replace('columns = "rain"', 'columns = "rain", interpolation = "previous"')
        self.write("steps.toml", steps)
        self.assertNotIn("note:", self.succeed("train", "steps.toml", "--output", "steps"))
        phases = "".join(f'[[phase]]\noptimiser = "adam"\niterations = 2\ndt = {dt}\n' for dt in (0.5, 0.7, 0.9, 3))
        self.write("steps.toml", steps.replace('[training]\nphases = "recommended"\n', phases))
        said = self.succeed("train", "steps.toml", "--output", "more_steps")
        self.assertEqual(re.findall(r"the right-hand side jumps at \d+, within a fixed step of (\S+),", said), ["0.7", "0.9"])
        self.assertIn("steps of 3 may pass over what rain does within 1: take dt = 1 or less", said)
        self.write("problem.toml", '[rhs]\nmodel = "store_rhs.h5"\n[ensemble]\ninitial_state = [4]\n[time]\n'
                   'span = [0, 96]\nsave = 97\n[method]\nprecision = "f64"\ndt = 0.5\n[output]\nfile = "solved.h5"\n')
        self.succeed("solve", "problem.toml", "-q")
        with h5py.File(self.path("solved.h5")) as file:
            np.testing.assert_allclose(file["state"][0], states, atol=1e-5)
        # Other rain is another right-hand side.
        self.csv("weather.csv", ["rain"], hours, rain[:, None] + 1)
        self.fail_with("expected the same net", "train", "train.toml", "--resume")

    def test_the_pages_epidemic_starts_at_parameters(self):
        times = np.arange(31.0)
        truth = solved(lambda u: np.array([-6e-4 * u[0] * u[1], 6e-4 * u[0] * u[1] - 0.2 * u[1]]), [995, 5], times)
        infected = truth[:, 1:] + 6 * np.random.default_rng(1).standard_normal((31, 1))
        self.csv("infected.csv", ["I"], times, infected)
        text = example("Starts that were not measured")
        self.write("train.toml", text)
        out = self.succeed("train", "train.toml", "--threads", "1")
        for name, value, most in [("beta", 0.6, 0.02), ("gamma", 0.2, 0.005), ("I0", 5, 1)]:
            found, error = re.search(rf"^{name} +(\S+) \+- (\S+) ", out, re.MULTILINE).groups()
            self.assertLess(abs(float(found) - value), 4 * float(error))  # 1 in 5,000 fits would lie further away
            self.assertLess(float(error), most)
        self.assertRegex(out, "errors by Gauss-Newton from 31 numbers, deviation .*, 3 unknowns\n")
        self.succeed("train", "train.toml", "--threads", "2", "--output", "again", "-q")
        self.assertEqual(self.state_of("again_checkpoint.h5"), self.state_of("epidemic_checkpoint.h5"))
        again = self.succeed("train", "train.toml", "--output", "again", "--resume")
        self.assertIn("I0 = ", again)
        # A number where one is the start is no measurement and needs no sigma; the size of all others' errors is 6.
        rows = self.path("infected.csv").read_text().replace("t,I", "t,I,S,sigma_I").splitlines()
        rows = [rows[0]] + [f"{row},{990 if i == 0 else ''},6" for i, row in enumerate(rows[1:])]
        self.write("weighed.csv", "\n".join(rows) + "\n")
        weighed = text.replace("infected.csv", "weighed.csv").replace('"N - I0"', "995")
        self.write("weighed.toml", weighed.replace("[method]", 'sigma = { I = "sigma_I" }\n[method]', 1))
        out = self.succeed("train", "weighed.toml", "--output", "weighed")
        self.assertRegex(out, "31 of 62 numbers missing")
        self.assertRegex(out, "from 31 numbers and their sigma, reduced chi-square .*, 3 unknowns\n")
        for starts, message in [('{ S = "N - S", I = "I0" }', 'starts.S, column 5: found "S", expected numbers or N, beta, gamma, I0; starts are'),
                                ('{ S = 995 }', 'train the starts as well'),
                                ('{ T = 995 }', 'starts.T: found "T", expected one of the states'),
                                ('{ S = { start = 9 } }', 'name a parameter: S = "S0" here'),
                                ('9', 'expected a table of numbers or expressions of parameters')]:
            self.write("train.toml", re.sub(r"starts = {.*}", f"starts = {starts}", text))
            if starts == '{ S = 995 }':
                self.csv("infected.csv", ["I"], times, np.where(times[:, None] == 0, np.nan, infected))
            self.fail_with(message, "train", "train.toml", "--overwrite")

    def test_the_pages_nets_continue_with_the_same_bits_and_threads_do_not_change_them(self):
        times = np.linspace(0, 4, 41)
        states = solved(masses, [0, 0.6, 2.5, 0.5, 0, -1], times)
        self.csv("masses.csv", ["x1", "x2", "x3", "v1", "v2", "v3"], times, states)
        text = example("Several calls, several nets")
        self.write("train.toml", text)
        out = self.succeed("train", "train.toml", "--threads", "1")
        self.assertIn("force 1-8-1 tanh, friction 1-4-1 tanh, g, 39 parameters, f64", out)
        self.assertIn("\nmasses_force.h5, masses_force.safetensors\nmasses_friction.h5, masses_friction.safetensors\n"
                      "masses_rhs.h5\n", out)
        whole = self.state_of("masses_checkpoint.h5")
        self.write("train.toml", text + "checkpoint_every = 0\n")
        for wait in (0.05, 0.1):
            process = subprocess.Popen([str(TOOL), "train", "train.toml", "--resume", "-q", "--output", "again"],
                                       cwd=self.folder)
            time.sleep(wait)
            process.kill()
            process.wait()
        self.succeed("train", "train.toml", "--resume", "-q", "--output", "again", "--threads", "2")
        self.assertEqual(self.state_of("again_checkpoint.h5"), whole)
        self.assertLess(float(re.search(r"result: .* (\S+)\n", out).group(1)), 0.01)
        np.testing.assert_allclose(self.solution("masses_rhs.h5", states[0], 4, 41), states, atol=0.1)
        with h5py.File(self.path("masses_force.h5")) as force:
            self.assertEqual(force["inputs/name"][0], b"x2 - x1 ...")

    def test_small_units_have_small_tolerances_which_the_files_state(self):
        times = np.linspace(0, 6, 31)
        self.csv("small.csv", ["x"], times, 1e-6 * np.exp(-0.5 * times)[:, None])
        text = ('[rhs.equations]\nx = "-k * x"\n[rhs.parameters]\nk = { start = 1 }\n[data]\nfile = "small.csv"\n'
                'time = "t"\nstates = ["x"]\n[method]\nprecision = "f64"\n%s[[phase]]\noptimiser = "lbfgs"\n'
                'iterations = 40\n[output]\nfile = "small"\n')
        self.write("train.toml", text % "")
        report = self.succeed("train", "train.toml")
        # Solves and data are the same function but for rtol = 1e-6.
        self.assertAlmostEqual(float(re.search(r"k = (\S+) \(from 1\)", report).group(1)), 0.5, delta=1e-6)
        with h5py.File(self.path("small_rhs.h5")) as file:
            self.assertEqual(file["metadata"].attrs["training_atol"], "1e-12")
        self.succeed("train", "train.toml", "--resume")
        self.write("train.toml", text % "atol = 1e-6\n")
        self.fail_with("atol", "train", "train.toml", "--resume")

    def test_nets_that_are_kept_count_for_a_resumed_run(self):
        times = np.linspace(0, 1, 11)
        self.csv("decay.csv", ["u"], times, np.exp(-times)[:, None])
        text = ('[net]\nhidden = []\n[data]\nfile = "decay.csv"\ntime = "t"\nstates = ["u"]\n[method]\ndt = 0.1\n'
                '[training]\noptimiser = "lbfgs"\niterations = 20\n')
        self.write("kept.toml", text + '[rhs.equations]\nu = "net(u)"\n[output]\nfile = "kept"\n')
        self.succeed("train", "kept.toml", "-q")
        kept = self.path("kept.h5").read_bytes()
        beside = text + ('[rhs]\nmodels = { known = "kept.h5" }\n[rhs.equations]\nu = "2 * known(u) + net(u)"\n[output]\n'
                         'file = "rest"\n')
        self.write("rest.toml", beside)
        out = self.succeed("train", "rest.toml")
        self.assertLess(float(re.search(r"result: .* (\S+)\n", out).group(1)), 1e-6)
        self.assertEqual(self.path("kept.h5").read_bytes(), kept)
        # net has learnt what is known once too often, with the other sign: u' = -u, up to the last digits of float32.
        with h5py.File(self.path("rest.h5")) as rest, h5py.File(self.path("kept.h5")) as file:
            self.assertAlmostEqual(rest["layers/0/weight"][0, 0], -file["layers/0/weight"][0, 0], delta=1e-2)
        self.succeed("train", "rest.toml", "--resume", "-q")
        self.write("kept.toml", self.path("kept.toml").read_text().replace("iterations = 20", "iterations = 1"))
        self.succeed("train", "kept.toml", "-q", "--overwrite")
        self.fail_with("net", "train", "rest.toml", "--resume")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
