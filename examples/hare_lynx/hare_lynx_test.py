"""The example's commands, and what its page says of their results.

usage: hare_lynx_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from tool_test import ToolTest, TOOL, h5py, np

# SciPy's curve_fit on the same data and unknowns: testdata/curve_fit_covariance.py.
CURVE_FIT = {"birth": (0.481199033, 0.0350879991), "hunt": (0.0248317606, 0.00163800143),
             "growth": (0.0275329505, 0.00209289952), "death": (0.926018343, 0.0731132183)}


class HareLynx(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        for name in ("train.toml", "system.toml", "forecast.toml", "pelts.csv"):
            shutil.copy(HERE / name, self.folder)

    def test_the_rates_and_their_errors_are_those_of_curve_fit_and_of_the_page(self):
        said = self.succeed("train", "train.toml")
        page = (HERE / "README.md").read_text()
        for line in said[said.index("parameter "):said.index("pelts_rhs.h5")].strip().splitlines():
            self.assertIn("    " + line.rstrip() + "\n", page)
        with h5py.File(self.path("pelts_rhs.h5")) as file:
            table = file["metadata"].attrs["training_parameters"]
            table = (table.decode() if isinstance(table, bytes) else table).splitlines()
        self.assertEqual(table[0], "name,value,standard_error,lower,upper,correlation_birth,correlation_hunt,"
                         "correlation_growth,correlation_death")
        found = {name: [float(x) for x in numbers] for name, *numbers in (line.split(",") for line in table[1:])}
        # Where L-BFGS ends the rates are good to 1e-6 of their errors' hundredfold; solves here keep 1e-6.
        for name, (value, error) in CURVE_FIT.items():
            self.assertAlmostEqual(found[name][0], value, delta=1e-3 * error)
            self.assertAlmostEqual(found[name][1], error, delta=1e-3 * error)
        self.assertIn("training_parameters", self.succeed("info", "pelts_rhs.h5"))
        self.succeed("solve", "forecast.toml", "--quiet")
        with h5py.File(self.path("forecast.h5")) as file:
            hare = file["state"][0, :, 0]
        self.assertIn(f"{hare[-1]:.0f} thousand hares", page)

    def test_the_built_in_system_gives_the_same_rates_and_continues_with_the_same_bits(self):
        said = self.succeed("train", "system.toml")
        for line in ("alpha        0.481 +- 0.035", "delta      0.0275 +- 0.0021"):
            self.assertIn(line, said)
        with h5py.File(self.path("system_checkpoint.h5")) as file:
            whole = file["best_parameters"][:].tobytes()
        text = self.path("system.toml").read_text().replace('file = "system"', 'file = "again"\ncheckpoint_every = 0')
        self.write("system.toml", text)
        process = subprocess.Popen([str(TOOL), "train", "system.toml", "-q"], cwd=self.folder)
        time.sleep(0.05)
        process.kill()
        process.wait()
        self.succeed("train", "system.toml", "--resume", "-q")
        with h5py.File(self.path("again_checkpoint.h5")) as file:
            self.assertEqual(file["best_parameters"][:].tobytes(), whole)
        made = self.path("again_rhs.toml").read_text()
        self.assertIn("[rhs]\nsystem = \"lotka_volterra\"\n\n[ensemble]\nparameters = [0.4811", made)
        self.write("solve.toml", made + 'initial_state = [34.9, 3.86]\n[time]\nspan = [0, 20]\nsave = 21\n[method]\n'
                   'precision = "f64"\n[output]\nfile = "solved.h5"\n')
        self.succeed("solve", "solve.toml", "--quiet")
        rows = [line for line in self.path("pelts.csv").read_text().splitlines() if line[0].isdigit()]
        hares = np.array([float(row.split(",")[1]) for row in rows])
        with h5py.File(self.path("solved.h5")) as file:
            rms = np.sqrt(np.mean((file["state"][0, :, 0] - hares) ** 2))
        self.assertAlmostEqual(rms, 4.24, delta=0.1)
        # Called as the system's components, they must have their order.
        self.write("pelts.csv", self.path("pelts.csv").read_text().replace("hare,lynx", "predator,prey"))
        self.write("system.toml", text.replace('["hare", "lynx"]', '["predator", "prey"]').replace("units", "#"))
        self.fail_with('states: found "predator" where lotka_volterra has "prey"', "train", "system.toml", "--overwrite")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
