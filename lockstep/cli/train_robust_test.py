"""`lockstep train` with loss = "huber": the page's example, glitches, restarts, what is refused.

usage: train_robust_test.py LOCKSTEP [unittest arguments]
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
from tool_test import TOOL, ToolTest, h5py

PAGE = (ROOT / "docs" / "training.md").read_text()
SECTION = PAGE[PAGE.index("### Glitches\n"):PAGE.index("## What is written\n")]


def block(opening):
    return re.search(rf"```{opening}\n(.*?)```", SECTION, re.DOTALL).group(1)


def printed():
    """What the page shows of the output."""
    return [line[4:] for line in SECTION.splitlines() if line.startswith("    ") and line.strip()]


class TrainRobustTest(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        self.write("cuvette.csv", block(""))
        self.write("cuvette.toml", block("toml"))

    def state_of(self, name):
        with h5py.File(self.path(name)) as file:
            return {key: file[key][()].tobytes() for key in ("parameters", "best_parameters", "curve/loss")}

    def estimates(self, out):
        return {name: (float(value), float(error))
                for name, value, error in re.findall(r"^(\w+) +(\S+) \+- (\S+) ", out, re.MULTILINE)}

    def test_the_page_shows_what_is_printed(self):
        out = self.succeed("train", "cuvette.toml").splitlines()
        lines = printed()
        self.assertGreater(len(lines), 6)
        for line in lines:
            self.assertIn(line, out)
        info = self.succeed("info", "cuvette_rhs.h5")
        self.assertIn("sum of Huber's losses", info)
        self.assertIn(next(line for line in lines if line.startswith("Huber's loss")), info)
        explained = self.succeed("train", "cuvette.toml", "--explain")
        self.assertIn("errors of measurements count by their size alone beyond 1.345 errors, taken to be of A ", explained)

    def test_rates_are_found_where_squares_are_drawn_away(self):
        robust = self.estimates(self.succeed("train", "cuvette.toml"))
        for name, truth in {"k": 0.25, "rest": 0.1}.items():
            value, error = robust[name]
            self.assertLess(abs(value - truth), 3 * error)
            self.assertLess(error, 0.05 * truth)
        self.write("squares.toml", block("toml").replace('loss = "huber"', 'loss = "squared"'))
        out = self.succeed("train", "squares.toml", "--output", "squares")
        found = {name: float(value) for name, value in re.findall(r"^(\w+) = (\S+) \(from ", out, re.MULTILINE)}
        self.assertGreater(max(abs(found[name] - robust[name][0]) / robust[name][1] for name in found), 10)

    def test_free_starts_and_stated_errors_stand_up_to_a_glitch_at_the_start(self):
        text = block("toml").replace('"recommended"', '"noisy"').replace(
            "[method]", "sigma = { A = 0.005 }\nabsolute_sigma = true\n[method]")
        self.write("cuvette.csv", block("").replace("0,1.000", "0,3.000"))
        self.write("cuvette.toml", text)
        out = self.succeed("train", "cuvette.toml")
        self.assertIn("errors by Gauss-Newton and Huber's formula from 21 numbers and their sigma, ", out)
        self.assertRegex(out, r"Huber's loss, threshold 1\.345 sigma: \d+ of 21 numbers of the training data beyond, farthest A "
                              r"at t = 13 \(2\.59e\+03 sigma\), A at t = 0 \(\S+ sigma\), A at t = 6 ")
        for name, truth in {"k": 0.25, "rest": 0.1}.items():
            value, error = self.estimates(out)[name]
            self.assertLess(abs(value - truth), 3 * error)

    def test_a_training_goes_on_under_its_own_loss_alone(self):
        text = block("toml").replace('phases = "recommended"', "iterations = 4000\nrate = 0.01")
        self.write("cuvette.toml", text + "checkpoint_every = 0\n")
        self.succeed("train", "cuvette.toml", "--output", "whole")
        process = subprocess.Popen([str(TOOL), "train", "cuvette.toml", "-q", "--output", "again"], cwd=self.folder,
                                   stderr=subprocess.DEVNULL)
        while not self.path("again_checkpoint.h5").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        process.kill()
        process.wait()
        self.assertFalse(self.path("again_rhs.h5").exists())
        self.succeed("train", "cuvette.toml", "--output", "again", "--resume", "--threads", "2")
        self.assertEqual(self.state_of("again_checkpoint.h5"), self.state_of("whole_checkpoint.h5"))
        for line, names in (('loss = "squared"', "loss"), ('loss = "huber"\nhuber_threshold = 2', "huber_threshold")):
            self.write("other.toml", text.replace('loss = "huber"', line))
            message = self.fail_with("", "train", "other.toml", "--output", "whole", "--resume")
            self.assertRegex(message.stderr, rf"options.*{names} = ")

    def test_what_is_wrong_is_told(self):
        text = block("toml")
        for old, new, message in (
                ('loss = "huber"', 'loss = "mean_huber"',
                 'training.loss: found "mean_huber", a loss of regressions, expected a loss for a neural ODE'),
                ('loss = "huber"', "huber_threshold = 2", "found huber_threshold without loss = \"huber\""),
                ('loss = "huber"', 'loss = "huber"\nhuber_threshold = -1',
                 "training.huber_threshold: found -1, expected a number greater than 0")):
            self.write("wrong.toml", text.replace(old, new))
            self.fail_with(message, "train", "wrong.toml")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
