"""The example's commands, and what its page says of their results.

usage: phenobarbital_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import csv
import pathlib
import shutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from tool_test import ToolTest, h5py, np


def rows(name):
    lines = [line for line in (HERE / name).read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def least_squares():
    """Volume, clearance and their standard errors with doses that enter at once: a sum of exponentials."""
    doses, levels = {}, [row for row in rows("levels.csv") if row["level"]]
    for row in rows("doses.csv"):
        doses.setdefault(row["infant"], []).append((float(row["hour"]), float(row["change"])))
    measured = np.array([float(row["level"]) for row in levels])

    def found(volume, clearance):
        return np.array([sum(dose / volume * np.exp(-clearance / volume * (float(row["hour"]) - hour))
                             for hour, dose in doses[row["infant"]] if hour < float(row["hour"])) for row in levels])

    numbers = np.array([1.0, 0.005])
    for _ in range(20):  # Gauss and Newton's steps
        here = found(*numbers)
        jacobian = np.stack([(found(*(numbers * (1 + 1e-6 * (np.arange(2) == i)))) - here) / (1e-6 * numbers[i])
                             for i in range(2)], axis=1)
        numbers = numbers + np.linalg.lstsq(jacobian, measured - here, rcond=None)[0]
    deviation = np.sqrt(np.sum((measured - found(*numbers)) ** 2) / (len(measured) - 2))
    return numbers, deviation * np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))


class Phenobarbital(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        for name in ("train.toml", "forecast.toml", "doses.csv", "levels.csv"):
            shutil.copy(HERE / name, self.folder)

    def test_the_numbers_are_those_of_the_page_and_near_those_of_least_squares(self):
        said = self.succeed("train", "train.toml")
        page = (HERE / "README.md").read_text()
        for line in said[said.index("parameter "):said.index("worst: ")].strip().splitlines():
            self.assertIn("    " + line.rstrip() + "\n", page)
        with h5py.File(self.path("phenobarbital_rhs.h5")) as file:
            table = file["metadata"].attrs["training_parameters"]
            table = (table.decode() if isinstance(table, bytes) else table).splitlines()
        trained = [[float(x) for x in line.split(",")[1:3]] for line in table[1:]]
        numbers, errors = least_squares()
        self.assertIn(f"{numbers[0]:.3f} +- {errors[0]:.3f} and {numbers[1]:.5f} +- {errors[1]:.5f}", " ".join(page.split()))
        # What a quarter of an hour on the way changes is well below what the data know.
        for (value, error), number, other in zip(trained, numbers, errors):
            self.assertAlmostEqual(value, number, delta=0.25 * error)
            self.assertAlmostEqual(error, other, delta=0.05 * other)

        self.assertIn("20 changes of given, at t = 0 to 228", self.succeed("solve", "forecast.toml"))
        with h5py.File(self.path("forecast.h5")) as file:
            times, level = file["time"][:], file["state"][:, :, 1]
        before = level[:, times == 228]  # a save point at a dose holds the state before it
        self.assertIn(f"{before.mean():.0f} mg/L +- {before.std():.1f}", " ".join(page.split()))
        self.assertLess(level[:, -1].mean(), 20)
        self.assertEqual(self.run_tool("plot", "forecast.h5", "--kind", "spread").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
