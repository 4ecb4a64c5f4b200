"""`lockstep train` with [[resets]]: what is found, what is written for solves, resumed runs, what is refused by name.

usage: train_resets_test.py LOCKSTEP [unittest arguments]
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

G, E, NOISE = 9.81, 0.8, 0.02
BALL = """[rhs.equations]
x = "v"
v = "-g"
[rhs.parameters]
g = { start = 8, positive = true, unit = "m/s^2" }
e = { start = 0.6, min = 0, max = 1 }
[data]
file = "ball.csv"
time = "t"
trajectory = "ball"
states = ["x", "v"]
[[resets]]
component = "x"
direction = "falling"
to = { x = 0, v = "-e * v" }
[method]
precision = "f64"
[training]
phases = "recommended"
[output]
file = "fit"
overwrite = true
"""
# A house whose heater switches at thresholds that are to be found, as its rates are; nobody looked at the switch.
HOUSE = """[rhs.equations]
T = "-loss * (T - 10) + heat * on"
on = "0"
[rhs.parameters]
loss = { start = 0.15, positive = true }
heat = { start = 2, positive = true }
low = { start = 18.5 }
high = { start = 21.5 }
[data]
file = "house.csv"
time = "t"
states = ["T", "on"]
starts = { on = 0 }
[[resets]]
function = "T - low"
direction = "falling"
to = { on = 1 }
[[resets]]
function = "T - high"
direction = "rising"
to = { on = 0 }
[method]
precision = "f64"
[training]
phases = "recommended"
[output]
file = "house"
overwrite = true
"""
TRUE_HOUSE = {"loss": 0.1, "heat": 3, "low": 19, "high": 21}


def flown(x, v, times):
    """Heights and speeds of a ball thrown from x at the speed v."""
    states, start = [], 0
    for t in times:
        while t > start + (flight := (v + np.sqrt(v * v + 2 * G * x)) / G):
            start, x, v = start + flight, 0, E * (G * flight - v)
        h = t - start
        states.append((x + v * h - G / 2 * h * h, v - G * h))
    return np.array(states)


class TrainResetsTest(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        random, times = np.random.default_rng(5), np.arange(61) * 0.03
        rows = ["ball,t,x,v"]
        for ball in range(4):
            states = flown(1 + 0.2 * ball, 0.3 * ball, times)
            for k, (t, (x, v)) in enumerate(zip(times.tolist(), states.tolist())):
                rows.append(f"{ball},{t!r},{x + (k > 0) * NOISE * random.normal()!r}," + (f"{v!r}" if k == 0 else ""))
        self.write("ball.csv", "\n".join(rows) + "\n")

    def train(self, *changes, text=BALL, flags=()):
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.write("train.toml", text)
        return self.succeed("train", "train.toml", *flags)

    def intervals(self, out):
        """{name: (estimate, lower, upper)} of the report."""
        found = re.findall(r"^(\w+) +([-\d.e]+) \+- \S+(?: \S+)? +([-\d.e]+) to ([-\d.e]+)", out, re.M)
        return {name: tuple(map(float, numbers)) for name, *numbers in found}

    def test_gravity_and_restitution_are_found_from_heights(self):
        out = self.train()
        self.assertNotIn("note:", out)
        self.assertIn("4 trajectories of 61 points, 240 of 488 numbers missing, 1 reset\n", out)
        found = self.intervals(out)
        for name, truth, size in (("g", G, 0.05), ("e", E, 0.003)):
            estimate, lower, upper = found[name]
            self.assertTrue(lower < truth < upper and abs(estimate - truth) < size, out)
        self.assertNotIn("not at the least sum", out)
        # Errors of training and validation data are the noise.
        out = self.train(("[[resets]]", "validation = 0.25\n[[resets]]"))
        for kind in ("training", "validation"):
            rms = float(re.search(rf"^{kind} +x +(\S+)", out, re.M)[1])
            self.assertLess(abs(rms / NOISE - 1), 0.2, out)
        self.assertTrue(self.path("fit_fit.png").exists())
        with h5py.File(self.path("fit_rhs.h5")) as file:
            self.assertEqual("1 reset: x = 0, v = -e * v where x falls through 0", file["metadata"].attrs["training_resets"])

    def test_the_pages_example_is_what_it_says(self):
        page = (ROOT / "docs/training.md").read_text().split("\n## Bounces, spikes, switches\n", 1)[1]
        out = self.train(text=page.split("```toml\n", 1)[1].split("```", 1)[0])
        self.assertLess(abs(self.intervals(out)["e"][0] - E), 0.003)
        self.assertIn('model = "bounce_rhs.h5"', self.path("bounce_rhs.toml").read_text())

    def test_what_is_written_begins_a_problem_file(self):
        self.train()
        self.write("flight.toml", self.path("fit_rhs.toml").read_text() + """[ensemble]
initial_state = [[1, 0], [1.4, 0.6]]
[time]
span = [0, 1.8]
save = 61
[method]
precision = "f64"
[output]
file = "flight.h5"
""")
        out = self.succeed("solve", "flight.toml")
        self.assertIn("resets: 1 reset: x = 0, v = -e * v where x falls through 0", out)
        with h5py.File(self.path("flight.h5")) as file:
            for i, start in enumerate(((1, 0), (1.4, 0.6))):
                error = file["state"][i, :, 0] - flown(*start, np.arange(61) * 0.03)[:, 0]
                self.assertLess(np.sqrt(np.mean(error**2)), 0.01)
        # The result is data to train on where the training file says what the resets are.
        again = BALL.replace("ball.csv", "flight.h5").replace('time = "t"\ntrajectory = "ball"\nstates = ["x", "v"]\n', "")
        found = self.train(text=again)
        self.assertNotIn("note: v jumps", found)
        first = self.intervals(found)
        self.assertLess(abs(first["e"][0] - E), 0.003, found)
        before = again.index("[[resets]]")
        self.write("without.toml", again[:before] + again[again.index("[method]"):])
        self.fail_with("data.file: found a solve with 1 reset: x = 0, v = -e * v where x falls through 0, expected the "
                       "same [[resets]] in the training file", "train", "without.toml")

    def test_a_thermostat_is_found_from_temperatures(self):
        times, random = np.arange(0, 24, 0.1), np.random.default_rng(2)
        rate = {key: TRUE_HOUSE[key] for key in ("loss", "heat")}
        T, on, rows, now = 20.0, 0, [], 0.0
        for t in times:
            while True:  # to the next switch, or to t
                level = 10 + rate["heat"] / rate["loss"] * on
                edge = TRUE_HOUSE["high"] if on else TRUE_HOUSE["low"]
                wait = np.log((T - level) / (edge - level)) / rate["loss"]
                if now + wait > t:
                    break
                T, on, now = edge, 1 - on, now + wait
            T, now = level + (T - level) * np.exp(-rate["loss"] * (t - now)), t
            rows.append(f"{float(t)!r},{float(T + 0.05 * random.normal() * (t > 0))!r},")
        self.write("house.csv", "t,T,on\n" + "\n".join(rows) + "\n")
        out = self.train(text=HOUSE)
        found = self.intervals(out)
        for name, truth in TRUE_HOUSE.items():
            estimate, lower, upper = found[name]
            self.assertTrue(lower < truth < upper and upper - lower < 0.2 * truth, f"{name}: {out}")
        self.assertIn('function = "T - high"\ndirection = "rising"\nto = { on = "0" }', self.path("house_rhs.toml").read_text())

    def test_free_starts_and_float32_find_the_same(self):
        for changes in ([('"recommended"', '"noisy"')], [('precision = "f64"', 'precision = "f32"')]):
            found = self.intervals(self.train(*changes))
            self.assertLess(abs(found["e"][0] - E), 0.01)

    def test_speeds_wait_for_heights(self):
        text = self.path("ball.csv").read_text().splitlines()
        random, rows = np.random.default_rng(6), text[:1]
        for row in text[1:]:
            ball, t, x, v = row.split(",")
            states = flown(1 + 0.2 * int(ball), 0.3 * int(ball), [float(t)])
            rows.append(f"{ball},{t},{x},{v or states[0, 1] + 0.1 * random.normal()}")
        self.write("ball.csv", "\n".join(rows) + "\n")
        out = self.train()
        self.assertIn("(all states)", out)
        self.assertLess(abs(self.intervals(out)["e"][0] - E), 0.005, out)
        out = self.train(('phases = "recommended"', 'optimiser = "lbfgs"\niterations = 5'))
        self.assertIn("note: v jumps at resets: a measurement that", out)

    def test_a_net_learns_beside_resets(self):
        out = self.train(('v = "-g"', 'v = "-g + pull(v)"'), ("[data]", "[net.pull]\nhidden = [4]\n[data]"),
                         ("g = { start = 8, positive = true, unit = \"m/s^2\" }", "g = 9.81"))
        self.assertLess(abs(self.intervals(out)["e"][0] - E), 0.03)
        self.assertIn('model = "fit_rhs.h5"', self.path("fit_rhs.toml").read_text())

    def test_a_killed_training_goes_on_with_the_same_bits(self):
        text = BALL.replace("[output]", "[run]\nthreads = 2\n[output]").replace('"fit"', '"fit"\ncheckpoint_every = 0')
        self.train(text=text, flags=["--output", "whole"])
        process = subprocess.Popen([str(TOOL), "train", "train.toml", "--resume", "-q"], cwd=self.folder)
        time.sleep(0.03)
        process.kill()
        process.wait()
        self.succeed("train", "train.toml", "--resume", "-q", "--threads", "1")
        for ending in ("_loss.csv", "_rhs.toml"):
            whole = self.path("whole" + ending).read_text().replace("whole_rhs", "fit_rhs")
            self.assertEqual(self.path("fit" + ending).read_text(), whole)
        self.write("train.toml", text.replace("-e * v", "-e * v * 1"))
        self.fail_with("reset to v", "train", "train.toml", "--resume", "-q")

    def refuse(self, message, *changes):
        text = BALL
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.write("train.toml", text)
        self.fail_with(message, "train", "train.toml")

    def test_what_cannot_be_had_is_refused_by_name(self):
        fixed = "found fixed steps with resets, expected each trajectory's own adaptive steps, which end where it is reset"
        self.refuse("method.dt: " + fixed, ('"f64"', '"f64"\ndt = 0.01'))
        self.refuse("method.control: found common steps with resets", ('"f64"', '"f64"\ncontrol = "common"'))
        phase = '[[phase]]\noptimiser = "adam"\niterations = 5\ndt = 0.01'
        self.refuse("phase[0].dt: " + fixed, ('[training]\nphases = "recommended"', phase))
        self.refuse("resets[0].to.v: found a net in a reset that is trained",
                    ('"-e * v"', '"-e * pull(v)"'), ('v = "-g"', 'v = "-g + pull(v)"'),
                    ("[data]", "[net.pull]\nhidden = [4]\n[data]"))
        self.refuse('resets[0].to.e: found the parameter "e"', ("v = \"-e * v\"", "e = 1"))
        self.refuse("resets[0].too: found an unknown key", ("to = {", "too = {"))
        self.refuse("end the data before resets follow each other without end", ("start = 0.6", "start = 0.2"),
                    ('phases = "recommended"', 'optimiser = "lbfgs"\niterations = 5'))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
