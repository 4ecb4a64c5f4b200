"""The example's commands, and what its page says of their results.

usage: house_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import csv
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from tool_test import ToolTest, h5py, np

FILES = ("weather.csv", "heating.csv", "room.csv")


class House(ToolTest):
    def setUp(self):
        super().setUp()
        for name in ("train.toml", "insulated.toml", "sun.csv", *FILES):
            shutil.copy(HERE / name, self.folder)

    def test_the_measurements_are_the_scripts(self):
        again = self.path("again")
        pathlib.Path(again).mkdir()
        subprocess.run([sys.executable, HERE / "make_measurements.py", again], check=True)
        for name in FILES:
            made, measured = (np.genfromtxt(path, delimiter=",", skip_header=1)
                              for path in (pathlib.Path(again) / name, self.path(name)))
            self.assertTrue(np.allclose(made, measured, rtol=0, atol=1.01e-2), name + " up to the last digit written")

    def test_rates_and_glass_are_found(self):
        said = self.succeed("train", "train.toml")
        page = (HERE / "README.md").read_text()
        for line in said[said.index("parameter  "):].splitlines():
            if re.match("parameter|losses|heating|errors by|error over|training", line):
                self.assertIn("    " + line.rstrip() + "\n", page)
        for name, truth in (("losses", 0.08), ("heating", 1.6)):
            low, high = map(float, re.search(rf"{name} .* ([\d.]+) to ([\d.]+)", said).groups())
            self.assertLess(low, truth)
            self.assertGreater(high, truth)
        self.succeed("evaluate", "house.h5", "--input", "sun.csv", "--output", "glass_found.csv")
        with open(self.path("sun.csv")) as suns, open(self.path("glass_found.csv")) as found:
            rows = [(float(a["sun"]), float(b["y0"])) for a, b in zip(csv.DictReader(suns), csv.DictReader(found))]
        for sun, share in rows[1:]:
            self.assertLess(abs(share - 1.2 / (1 + np.exp((sun - 0.5) / 0.06))), 0.035)
        row = "| found | " + " | ".join(f"{abs(share):.2f}" for _, share in rows[1:])
        self.assertIn(row + " |", page)

    def test_the_measured_house_is_among_those_of_other_walls(self):
        self.succeed("train", "train.toml", "--quiet")
        self.assertIn("steps end at 157 times at which the right-hand side jumps or bends",
                      self.succeed("explain", "insulated.toml"))
        self.succeed("solve", "insulated.toml", "--quiet")
        room = np.genfromtxt(self.path("room.csv"), delimiter=",", skip_header=1)
        with h5py.File(self.path("insulated.h5")) as file:
            np.testing.assert_array_equal(file["time"][:], room[:, 0])
            fifth = file["state"][4, :, 0]
        # Five deviations of the measurements' noise, of 0.05 K.
        self.assertLess(np.abs(fifth - room[:, 1]).max(), 0.25)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
