"""What `lockstep train` says of how good a net is, from outside, and what people do with it next.

usage: train_report_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import csv
import io
import pathlib
import re
import resource
import signal
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest, h5py, np

LINE = """
[net]
hidden = []
[data]
file = "table.csv"
inputs = ["a", "b"]
targets = ["y", "z"]
[training]
optimiser = "lbfgs"
iterations = 40
[method]
precision = "f64"
[output]
file = "line"
"""


class TableTest(ToolTest):
    """Tables as people have them: columns of text, of dates, and more than a training uses."""

    def setUp(self):
        super().setUp()
        a, b = np.random.default_rng(2).uniform(-1, 1, (2, 50))
        self.write("table.csv", ",note,b,a,y,z\n" + "".join(
            f'{i},"row {i}, good",{q:.4f},{p:.4f},{2 * round(p, 4) - round(q, 4) + 1:.4f},{round(q, 4):.4f}\n'
            for i, (p, q) in enumerate(zip(a, b))))
        self.write("line.toml", LINE)

    def test_columns_of_text_are_passed_over_and_named_where_they_are_used(self):
        self.succeed("train", "line.toml", "-q")
        self.write("note.toml", LINE.replace('["a", "b"]', '["a", "note"]'))
        self.fail_with('table.csv:2, column note: found "row 0, good", expected a finite number; name a column of numbers',
                       "train", "note.toml", "--output", "other")

    def test_numbers_that_float32_rounds_away_are_named(self):
        self.write("far.csv", "day,y,z\n" + "".join(f"{2460000 + i / 50},{i % 7 / 7},{i % 3}\n" for i in range(50)))
        far = LINE.replace("table.csv", "far.csv").replace('["a", "b"]', '["day", "y"]')
        self.write("f32.toml", far.replace('"f64"', '"f32"'))
        self.assertIn("float32 rounds away what is to be learned from day (2.5e+06 +- 0.29): take off what all have in "
                      'common, or set precision = "f64" in [method]', self.succeed("train", "f32.toml"))
        self.write("f64.toml", far)
        self.assertNotIn("rounds away", self.succeed("train", "f64.toml", "--overwrite"))
        evaluate = "evaluate", "line.h5", "--input", "far.csv", "--output", "z.csv", "--overwrite"
        done = self.run_tool(*evaluate)
        self.assertEqual(done.stderr, "lockstep: note: float32 has 4 steps within what input day was trained on: "
                         "--precision f64\n")
        self.assertEqual(self.run_tool(*evaluate, "--precision", "f64").stderr, "")

    def test_float64_is_advised_where_rounding_ended_a_training(self):
        noise = np.random.default_rng(3).normal(size=50)
        self.write("noisy.csv", "a,y\n" + "".join(f"{i / 50},{i / 25 + e:.4f}\n" for i, e in enumerate(noise)))
        noisy = (LINE.replace("table.csv", "noisy.csv").replace('["a", "b"]', '["a"]').replace('["y", "z"]', '["y"]')
                 .replace("iterations = 40", "iterations = 300"))
        said = ('note: the last phase ended where steps win no more than float32 rounds: to go on from there, set '
                'precision = "f64" in [method]\n')
        self.write("f64.toml", noisy)
        self.assertNotIn("float32 rounds", self.succeed("train", "f64.toml"))
        single = noisy.replace('"f64"', '"f32"')
        self.write("f32.toml", single)
        self.assertIn(said, self.succeed("train", "f32.toml", "--overwrite"))
        self.write("few.toml", single.replace("iterations = 300", "iterations = 1"))
        self.assertNotIn("float32 rounds", self.succeed("train", "few.toml", "--overwrite"))
        # The last phase is what counts.
        phase = '[[phase]]\noptimiser = "{}"\niterations = {}\n'
        head, rest = single.split("[training]")
        two = head + phase.format("lbfgs", 300) + phase.format("adam", 2) + rest[rest.index("[method]"):]
        self.write("two.toml", two)
        self.assertNotIn("float32 rounds", self.succeed("train", "two.toml", "--overwrite"))

    def test_trajectories_may_be_told_apart_by_names(self):
        t = np.linspace(0, 1, 6)
        self.write("runs.csv", "run,t,x\n" + "".join(f"{run},{s},{np.exp(-s)}\n" for run in ("A1", "B7") for s in t))
        self.write("runs.toml", '[net]\nhidden = []\n[data]\nfile = "runs.csv"\ntrajectory = "run"\ntime = "t"\n'
                   'states = ["x"]\n[training]\niterations = 2\n[output]\nfile = "runs"\n')
        self.assertIn("2 trajectories of 6 points", self.succeed("train", "runs.toml"))

    def test_a_net_is_evaluated_on_named_columns(self):
        self.succeed("train", "line.toml", "-q")
        self.write("x.csv", "b;who;a\n0.5;me;0.25\n-0.5;you;0\n0;them;7\n")
        out = self.succeed("evaluate", "line.h5", "--input", "x.csv", "--output", "y.csv", "--precision", "f64")
        self.assertIn("1 of them outside the training range", out)
        lines = (self.folder / "y.csv").read_text().splitlines()
        self.assertEqual(lines[0], "y,z,outside_range")
        made = np.array([[float(field) for field in line.split(",")] for line in lines[1:]])
        np.testing.assert_allclose(made, [[1, 0.5, 0], [1.5, -0.5, 0], [15, 0, 1]], atol=1e-6)
        self.succeed("evaluate", "line.h5", "--input", "x.csv", "--output", "y.h5", "--precision", "f64")
        with h5py.File(self.folder / "y.h5") as file:
            np.testing.assert_array_equal(file["output"][()], made[:, :2])  # text of shortest digits reads back
            self.assertEqual(list(file["outside_range"][()]), [0, 0, 1])

    def test_what_a_table_lacks_for_an_evaluation_is_named(self):
        self.succeed("train", "line.toml", "-q")
        self.write("x.csv", "A,b\n1,2\n")
        self.fail_with('x.csv: found no column "a", an input of line.h5, expected a column called as each input',
                       "evaluate", "line.h5", "--input", "x.csv", "--output", "y.csv")
        self.write("x.csv", "a,b\n1,2\n9,9\n")
        self.fail_with("x.csv:2: found an input outside the range", "evaluate", "line.h5", "--input", "x.csv",
                       "--output", "y.csv", "--guard", "stop")
        self.assertFalse((self.folder / "y.csv").exists())

    def test_a_guard_that_saw_few_states_says_so(self):
        self.succeed("train", "line.toml", "-q")
        problem = '[rhs]\nmodel = "line.h5"\n[ensemble]\ninitial_state = [0.1, 0.1]\n[time]\nspan = [0, 0.01]\nsave = %d\n'
        for points, guard, seen in ((1, "flag", True), (20, "flag", True), (21, "flag", False), (1, "stop", False)):
            self.write("problem.toml", problem % points)
            out = self.succeed("solve", "problem.toml", "--guard", guard, "--output", "s.h5", "--overwrite")
            self.assertEqual("excursions from the training range in between are not seen; take guard = \"stop\"" in out, seen)

    def test_units_are_of_columns_that_are_used(self):
        self.write("units.toml", LINE.replace("[training]", 'units = { a = "K", note = "m" }\n[training]'))
        self.fail_with('found "note", expected one of a, b, y, z', "train", "units.toml")


class ReportTest(ToolTest):
    """Two relaxations and an oscillator with noise, of which the third trajectory is the worst."""
    STARTS = (0.5, 1.5, 1.0, 0.8, 1.2)
    TRAIN = """
[rhs.equations]
x = "v"
v = "-k * x"
[rhs.parameters]
k = { start = 3.5 }
[data]
file = "runs.csv"
trajectory = "run"
time = "t"
states = ["x", "v"]
validation = 0.4
units = { x = "mm", v = "mm/s", t = "s" }
[method]
precision = "f64"
rtol = 1e-9
atol = 1e-9
[[phase]]
optimiser = "lbfgs"
iterations = 20
[output]
file = "fit"
"""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)
        self.t = np.linspace(0, 2, 21)
        self.data = {}
        text = "run,t,x,v\n"
        for run, start in enumerate(self.STARTS):
            u = start * np.stack([np.cos(2 * self.t), -2 * np.sin(2 * self.t)], 1)
            u[1:] += (0.2 if run == 2 else 0.01) * random.standard_normal((20, 2))
            u = np.round(u, 6)
            self.data[run] = u
            text += "".join(f"{101 + run},{s:g},{x},{'' if run == 0 and i == 7 else v}\n"
                            for i, (s, (x, v)) in enumerate(zip(self.t, u)))
        self.data[0][7, 1] = np.nan
        self.write("runs.csv", text)
        self.write("train.toml", self.TRAIN)

    def rows(self, model):
        with h5py.File(self.folder / model) as file:
            text = file["metadata"].attrs["training_errors"]
        return list(csv.DictReader(io.StringIO(text)))

    def test_errors_are_those_of_a_solve_with_what_was_trained(self):
        out = self.succeed("train", "train.toml")
        self.write("solve.toml", f'[rhs]\nmodel = "fit_rhs.h5"\n[ensemble]\n'
                   f'initial_state = {[[start, 0.0] for start in self.STARTS]}\n[time]\nspan = [0, 2]\nsave = 21\n'
                   '[method]\nprecision = "f64"\nrtol = 1e-9\natol = 1e-9\n[output]\nfile = "solved.h5"\n')
        self.succeed("solve", "solve.toml", "-q")
        with h5py.File(self.folder / "solved.h5") as file:
            solved = file["state"][()]
            self.assertEqual(list(file["state"].attrs["component_units"]), ["mm", "mm/s"])
        rows = self.rows("fit_rhs.h5")
        self.assertEqual([(row["data"], row["name"], row["unit"]) for row in rows],
                         [("training", "x", "mm"), ("training", "v", "mm/s"),
                          ("validation", "x", "mm"), ("validation", "v", "mm/s")])
        error = np.abs(np.stack([self.data[run] for run in range(5)]) - solved)[:, 1:]
        for c, name in enumerate(("x", "v")):
            mine = [row for row in rows if row["name"] == name]
            self.assertEqual(sum(int(row["numbers"]) for row in mine), np.isfinite(error[..., c]).sum())
            squares = sum(float(row["rms"]) ** 2 * int(row["numbers"]) for row in mine)
            np.testing.assert_allclose(squares, np.nansum(error[..., c] ** 2), rtol=1e-6)
            self.assertAlmostEqual(max(float(row["largest"]) for row in mine), np.nanmax(error[..., c]), delta=1e-7)
            self.assertEqual({float(row["spread"]) for row in mine}, {float(mine[0]["spread"])})
        # What is printed is what is stored, and what `info` shows.
        lines = [line for line in out.splitlines() if "trajectory" in line and " mm" in line]
        self.assertEqual(len(lines), 4)
        told = self.succeed("info", "fit_rhs.h5")
        for line in lines:
            self.assertIn(line, told)
        # Trajectories are called as their column calls them.
        self.assertRegex(out, r"worst: .*(trajectory|,) 103 of the (training|validation) data \(\d\d %")
        self.assertTrue(all(re.search(r"trajectory 10[1-5], t = ", line) for line in lines), lines)
        self.assertIn("worst: ", told)

    def test_pictures_show_the_fit(self):
        out = self.succeed("train", "train.toml")
        self.assertIn("fit_loss.csv, fit_loss.png, fit_fit.png\n", out)
        self.assertEqual(struct.unpack(">II", (self.folder / "fit_fit.png").read_bytes()[16:24])[0], 1600)
        self.fail_with("fit", "train", "train.toml")  # nothing is replaced without being told
        self.write("fit_fit.png", "mine")
        for name in self.folder.glob("fit*"):
            if name.name != "fit_fit.png":
                name.unlink()
        self.fail_with("fit_fit.png", "train", "train.toml")

    def test_where_there_is_no_room_our_error_is_the_last_word(self):
        def limit(size):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        for size in (500, 4_000, 9_000, 14_000, 20_000):
            done = self.run_tool("train", "train.toml", "-q", "--overwrite", preexec_fn=lambda: limit(size))
            if done.returncode == 0:
                break
            lines = done.stderr.splitlines()
            self.assertEqual((done.returncode, len(lines)), (2, 1), done.stderr)
            self.assertRegex(lines[0], "^lockstep: error: fit")
            self.assertNotIn("errno", lines[0])
        self.assertGreater(size, 500)

    def test_a_regression_states_the_error_of_each_output(self):
        x = np.linspace(-1, 1, 60)
        self.write("table.csv", "x,up,down\n" + "".join(f"{a:.6f},{a * a:.6f},{-3 * a:.6f}\n" for a in x))
        self.write("table.toml", '[net]\nhidden = []\n[data]\nfile = "table.csv"\ninputs = ["x"]\n'
                   'targets = ["up", "down"]\nvalidation = 0.5\n[training]\noptimiser = "lbfgs"\niterations = 30\n'
                   '[method]\nprecision = "f64"\n[output]\nfile = "table"\n')
        out = self.succeed("train", "table.toml")
        rows = {(row["data"], row["name"]): row for row in self.rows("table.h5")}
        # A line explains nothing of a parabola and nearly all of another line.
        self.assertGreater(float(rows["validation", "up"]["rms"]), 0.2)
        self.assertLess(float(rows["validation", "down"]["rms"]), 0.05)
        self.assertRegex(out, r"\nvalidation  up .* x = -?[01]")
        self.assertIn("table_fit.png", out)


class CalledRangesTest(ToolTest):
    """Equations that call a net with a training range: a spring, -x, trained on -1 <= x <= 1."""

    def setUp(self):
        super().setUp()
        with h5py.File(self.folder / "spring.h5", "w") as file:
            file.attrs["lockstep_model"] = 1
            layer = file.create_group("layers/0")
            layer["weight"], layer.attrs["activation"] = [[-1.0]], "identity"
            file["inputs/name"], file["inputs/minimum"], file["inputs/maximum"] = ["x"], [-1.0], [1.0]

    def solve(self, call, *flags, **options):
        self.write("p.toml", f'[rhs]\nmodels = {{ spring = "spring.h5" }}\n[rhs.equations]\nx = "v"\nv = "{call}"\n'
                   '[ensemble]\ninitial_state = [[0.5, 0], [2, 0], [0.5, 2]]\n[time]\nspan = [0, 1]\nsave = 11\n'
                   '[method]\nprecision = "f64"\n[output]\nfile = "g.h5"\n')
        self.succeed("solve", "p.toml", "--overwrite", *flags, **options)
        with h5py.File(self.folder / "g.h5") as file:
            return file["state"][()], list(file["status"][()]), file["end_state"][()], file.attrs.get("guard")

    def test_inputs_that_are_components_are_watched(self):
        plain, status, _, guard = self.solve("spring(x)", "--guard", "ignore")
        self.assertEqual((status, guard), ([0, 0, 0], None))
        flagged, status, _, guard = self.solve("spring(x)")
        self.assertEqual((status, guard), ([0, 5, 5], "flag"))
        self.assertEqual(flagged.tobytes(), plain.tobytes())
        stopped, status, end, guard = self.solve("spring(x)", "--guard", "stop")
        self.assertEqual((status, guard), ([0, 5, 5], "stop"))
        self.assertTrue(np.isnan(stopped[1, 1:]).all())
        self.assertAlmostEqual(end[2, 0], 1, delta=1e-6)
        self.assertEqual(stopped[0].tobytes(), plain[0].tobytes())
        said = self.succeed("solve", "p.toml", "--overwrite")  # 0.5 cos 1 + 2 sin 1 at the end; 2 at a start
        self.assertIn("  outside_range: outside the training range, where a net's answers mean nothing: x, known from -1 to "
                      "1, in 2 trajectories, as far as 2\n", said)
        self.assertIn("  outside_range: ended at the bounds of x, known from -1 to 1, in 2 trajectories, as far as 2\n",
                      self.succeed("solve", "p.toml", "--overwrite", "--guard", "stop"))

    def test_the_stored_problem_has_the_guard_too(self):
        for guard in ("flag", "stop", "clamp"):
            self.solve("spring(x)", "--guard", guard)
            (self.folder / "a.h5").write_bytes((self.folder / "g.h5").read_bytes())
            with h5py.File(self.folder / "g.h5", "r+") as file:
                file["state"][0, 5, 0] = np.nextafter(file["state"][0, 5, 0], 1)
            done = self.run_tool("validate", "a.h5", "g.h5")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_clamped_call_leaves_the_range_of_the_equations_alone(self):
        """In the solve, and where validate solves again what the file has of it."""
        clamped, _, _, _ = self.solve("spring(x)", "--guard", "clamp")
        self.succeed("import", "p.toml", "-o", "whole.h5", "--range", "x=-0.1:0.1")
        problem = self.path("p.toml").read_text()
        self.write("w.toml", problem.replace(problem[:problem.index("[ensemble]")], '[rhs]\nmodel = "whole.h5"\n'))
        self.succeed("solve", "w.toml", "--overwrite", "--guard", "clamp")
        (self.folder / "a.h5").write_bytes((self.folder / "g.h5").read_bytes())
        with h5py.File(self.folder / "g.h5", "r+") as file:
            self.assertEqual(file.attrs["guard"], "clamp")
            self.assertEqual(file["state"][()].tobytes(), clamped.tobytes())
            file["state"][0, 5, 0] = np.nextafter(file["state"][0, 5, 0], 1)
        done = self.run_tool("validate", "a.h5", "g.h5")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_any_input_is_clamped_in_the_call_itself(self):
        plain, _, _, _ = self.solve("spring(x)", "--guard", "ignore")
        for call in ("spring(x)", "spring(0.5 * (x + x))"):
            clamped, status, _, guard = self.solve(call, "--guard", "clamp")
            self.assertEqual((status, guard), ([0, 0, 0], "clamp"))
            np.testing.assert_allclose(clamped[0], plain[0], rtol=1e-12)
            t = np.linspace(0, 1, 11)  # where x > 1 the force is that at 1
            np.testing.assert_allclose(clamped[1, :, 0], 2 - t**2 / 2, rtol=1e-6)

    def test_an_input_that_is_no_component_is_said_not_to_be_watched(self):
        self.silent = False
        _, status, _, guard = self.solve("spring(2 * x)")
        self.assertEqual((status, guard), ([0, 0, 0], None))
        done = self.run_tool("solve", "p.toml", "--overwrite")
        self.assertEqual(done.stderr, "lockstep: note: the training range of spring's input 2 * x is not watched: it is "
                         "no component or parameter\n")
        self.fail_with("stop with nets that read no component or parameter as it is", "solve", "p.toml", "--overwrite",
                       "--guard", "stop")

    def test_a_model_made_of_the_equations_has_the_ranges_of_its_nets(self):
        self.silent = False
        for call in ("spring(x)", "spring(2 * x)", "spring(x) + 0 * spring(v)"):
            written = {}
            for guard in ("flag", "clamp", "stop", "ignore"):
                if (call, guard) == ("spring(2 * x)", "stop"):
                    continue
                written[guard] = self.outcome(call, "p.toml", guard)
            self.succeed("import", "p.toml", "-o", "whole.h5")
            problem = self.path("p.toml").read_text()
            rhs = problem[:problem.index("[ensemble]")]
            self.write("w.toml", problem.replace(rhs, '[rhs]\nmodel = "whole.h5"\n'))
            for guard, expected in written.items():
                self.assertEqual(self.outcome(call, "w.toml", guard), expected, f"{call} {guard}")
            if call == "spring(2 * x)":
                self.fail_with("--guard: found stop with nets that read no component or parameter as it is, expected an "
                               "input that is one", "solve", "w.toml", "--overwrite", "--guard", "stop")
            (self.folder / "whole.h5").unlink()
        done = self.run_tool("validate", "g.h5", "g.h5")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def outcome(self, call, file, guard):
        """All that people see of a solve but the name of the right-hand side."""
        if file == "p.toml":
            self.solve(call)
        done = self.run_tool("solve", file, "--overwrite", "-o", "g.h5", *(["--guard", guard] if guard != "flag" else []))
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = [line for line in done.stdout.splitlines() if "success" in line or "outside" in line]
        with h5py.File(self.folder / "g.h5") as result:
            numbers = [result[name][()].tobytes() for name in ("state", "status", "end_state", "end_time")]
            if guard == "clamp" and file != "p.toml":
                self.assertIn("spring: inputs clamped, ", result.attrs["equations"])
            # Of its graph: bits and validation speak of the same right-hand side.
            return numbers, result.attrs.get("guard"), result.attrs["rhs_digest"], done.stderr, counts

    def test_info_and_evaluate_know_the_ranges_of_called_nets(self):
        self.silent = False
        self.solve("spring(x) + 0 * spring(v + v)")
        self.succeed("import", "p.toml", "-o", "whole.h5")
        out = self.succeed("info", "whole.h5")
        self.assertRegex(out, r"call +spring, input x, 1 feature\n  x +-, trained on -1 to 1\n")
        self.assertRegex(out, r"call +spring#2, input x, 1 feature\n  v \+ v +-, trained on -1 to 1\n")
        with h5py.File(self.path("in.h5"), "w") as file:
            file["input"] = [[0.5, 0.25], [2, 0.25]]
        evaluate = ("evaluate", "whole.h5", "--input", "in.h5", "--output", "out.h5", "--overwrite")
        answers = {}
        for guard in ("flag", "clamp", "ignore"):
            done = self.run_tool(*evaluate, "--guard", guard)
            self.assertEqual(done.returncode, 0, done.stderr)
            with h5py.File(self.path("out.h5")) as file:
                answers[guard] = file["output"][()]
                if guard != "ignore":
                    self.assertEqual(list(file["outside_range"]), [0, 1])
            self.assertEqual(done.stderr, "lockstep: note: the training range of spring's input x ... is not watched: it "
                             "is no input as it is\n" if guard == "flag" else "")
        np.testing.assert_array_equal(answers["flag"], answers["ignore"])
        np.testing.assert_array_equal(answers["flag"], [[0.25, -0.5], [0.25, -2]])
        np.testing.assert_array_equal(answers["clamp"], [[0.25, -0.5], [0.25, -1]])
        self.fail_with("row 1: found an input outside the range whole.h5 was trained on", *evaluate, "--guard", "stop",
                       "-q")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
