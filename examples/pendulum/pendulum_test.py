"""The example's commands, and what its page says of their results.

usage: pendulum_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import csv
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from tool_test import ToolTest, h5py, np


class Pendulum(ToolTest):
    def setUp(self):
        super().setUp()
        for name in ("train.toml", "swing.toml", "measured.csv", "rates.csv"):
            shutil.copy(HERE / name, self.folder)

    def test_the_measurements_are_the_scripts(self):
        subprocess.run([sys.executable, HERE / "make_measurements.py", self.path("again.csv")], check=True)
        again, measured = (np.genfromtxt(self.path(name), delimiter=",", skip_header=1)
                           for name in ("again.csv", "measured.csv"))
        self.assertTrue(np.allclose(again, measured, rtol=0, atol=1.01e-4), "up to the last digit written")

    def test_the_drag_is_found_and_its_range_is_known(self):
        said = self.succeed("train", "train.toml")
        page = (HERE / "README.md").read_text()
        table = said[said.index("error over"):said.index("worst:")].strip().splitlines()
        for line in table:
            self.assertIn("    " + line.rstrip() + "\n", page)
        self.succeed("evaluate", "drag.h5", "--input", "rates.csv", "--output", "drag_found.csv")
        with open(self.path("rates.csv")) as rates, open(self.path("drag_found.csv")) as found:
            rows = [(float(a["rate"]), float(b["y0"]), int(b["outside_range"]))
                    for a, b in zip(csv.DictReader(rates), csv.DictReader(found), strict=True)]
        self.assertEqual(len(rows), 25)
        for rate, drag, outside in rows:
            if abs(rate) <= 3.5:
                self.assertLess(abs(drag - 0.3 * rate - 0.15 * rate * abs(rate)), 0.09)
            self.assertEqual(outside, rate < -4.54 or rate > 4.12)
        row = "| found | " + " | ".join(f"{drag:.2f}" for rate, drag, _ in rows if rate % 1 == 0 and abs(rate) <= 5)
        self.assertIn(row + " |", page)
        self.succeed("solve", "swing.toml", "--quiet")
        with h5py.File(self.path("swing.h5")) as file:
            self.assertEqual(int((file["status"][:] == 5).sum()), 3)
            self.assertTrue(np.isfinite(file["state"][:]).all())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
