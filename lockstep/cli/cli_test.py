"""The tool from outside: commands run as a user runs them, their files opened by h5py and xarray.

usage: cli_test.py LOCKSTEP MODEL.safetensors [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import fcntl
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ENDLESS, LORENZ, NetTest, TOOL, cpu_targets, h5py, np, safetensors


class Help(NetTest):
    def test_help_teaches_by_example(self):
        text = self.succeed("--help")
        for command in ("solve", "evaluate", "validate", "plot", "info", "explain"):
            self.assertIn(f"lockstep {command} ", text)
            help_text = self.succeed(command, "--help")
            self.assertIn("Examples:", help_text)
            self.assertIn(f"lockstep {command} ", help_text)
        self.assertIn("[rhs]", text)
        self.assertRegex(self.succeed("--version"), r"\Alockstep \d+\.\d+\.\d+\n\Z")

    def test_unknown_words_are_answered_with_the_nearest(self):
        self.fail_with('unknown command solv; did you mean "solve"?', "solv")
        self.fail_with('unknown flag --outptu; did you mean "--output"?', "solve", "lorenz.toml", "--outptu", "x.h5")
        self.fail_with("PROBLEM.toml is required", "solve")
        for flag, value, expected in (("--threads", "-1", "a whole number, 0 to 4096"), ("--rtol", "abc", "a number"),
                                      ("--trajectories", "0", "a whole number, 1 or more"),
                                      ("--seed", "1.5", "a whole number, 0 or more"),
                                      ("--seed", str(2**64), f"a whole number, 0 to {2**63 - 1}"),
                                      ("--precision", "f16", "one of f32, f64")):
            self.fail_with(f'{flag}: found "{value}", expected {expected}', "solve", "lorenz.toml", f"{flag}={value}")
        self.assertEqual(self.run_tool().returncode, 2)

    def test_a_long_flag_behind_one_dash_is_refused_with_a_hint(self):
        for word, meant in (("-overwrite", "--overwrite"), ("-output=x.h5", "--output=x.h5"), ("-quiet", "--quiet")):
            self.fail_with(f"{word}: found a flag of several letters behind one dash, expected two; write {meant}",
                           "solve", "lorenz.toml", word)
        self.assertEqual([path.name for path in self.folder.glob("*verwrite*")], [])
        self.succeed("solve", "lorenz.toml", "-overflow.h5", "-q")  # no flag: -o and a name
        self.assertTrue(self.path("verflow.h5").exists())


class Solve(NetTest):
    def test_stops_that_no_span_reaches_and_units_that_are_no_dates_are_told(self):
        def told(method, unit):
            self.write("told.toml", LORENZ.replace("save = 21", f'save = 21\nunit = "{unit}"') + f"[method]\n{method}\n")
            done = self.run_tool("solve", "told.toml", "--overwrite")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr
        self.assertEqual(told("stops = [0.5, 2]", "hours since 2026-01-01"), "")
        self.assertEqual(told("stops = [0.5, 2.5, 40]", "hours"), "lockstep: note: 2 stops of 3 lie outside the times from "
                                                                 "0 to 2, as 2.5: no step ends there\n")
        self.assertEqual(told("rtol = 1e-5", "hours since start"),
                         'lockstep: note: the unit of time "hours since start" has no date behind since: xarray opens such a '
                         'file with decode_times = False alone; write "hours", or a date as in "hours since 2026-01-01"\n')

    def test_the_file_has_the_documented_layout(self):
        out = self.succeed("solve", "lorenz.toml")
        self.assertRegex(out, r"\A100 trajectories: 100 success\n[\d,]+ steps accepted, [\d,]+ rejected, [\d,]+ evaluations")
        self.assertIn("lorenz.h5: ", out)
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertEqual(file["state"].shape, (100, 21, 3))
            self.assertEqual(file["state"].dtype, np.float32)
            self.assertEqual([name.decode() for name in file["component"][:]], ["x", "y", "z"])
            np.testing.assert_array_equal(file["time"][:], 2 * np.arange(21) / 20)
            np.testing.assert_array_equal(file["status"][:], 0)
            np.testing.assert_array_equal(file["end_time"][:], 2)
            np.testing.assert_array_equal(file["start_time"][:], 0)
            np.testing.assert_array_equal(file["state"][:, 0], file["initial_state"][:].astype(np.float32))
            np.testing.assert_array_equal(file["state"][:, -1], file["end_state"][:])
            np.testing.assert_allclose(file["parameters"][:], [10, 28, 8 / 3])
            self.assertEqual(file["committed"][()], 100)
            self.assertTrue((file["evaluations"][:] > 6 * file["accepted"][:]).all())
            self.assertEqual(list(file["status"].attrs["flag_values"]), list(range(7)))
            self.assertEqual(len(file["status"].attrs["flag_meanings"].split()), 7)
            attributes = dict(file.attrs)
        self.assertEqual(attributes["method"], "tsit5")
        self.assertEqual(attributes["rtol"], 1e-6)
        self.assertEqual(attributes["seed"], 3)
        self.assertEqual(attributes["command"], "lockstep solve lorenz.toml")
        self.assertRegex(attributes["problem_digest"], r"\A[0-9a-f]{32}\Z")
        for name in ("version", "rhs", "rhs_digest", "engine", "cpu_target", "threads", "seconds", "Conventions"):
            self.assertIn(name, attributes)

    def test_xarray_opens_the_file(self):
        try:
            import h5netcdf  # noqa: F401
            import xarray
        except ImportError as error:
            self.skipTest(f"{error}; install python3-xarray and python3-h5netcdf")
        self.succeed("solve", "lorenz.toml")
        with xarray.open_dataset(self.path("lorenz.h5"), engine="h5netcdf") as data:
            self.assertEqual(data.state.dims, ("trajectory", "time", "component"))
            self.assertEqual(data.state.sel(component="y", trajectory=5).shape, (21,))
            self.assertEqual(float(data.state.sel(time=2.0, component="z", trajectory=99)),
                             float(data.end_state.sel(component="z", trajectory=99)))
            self.assertEqual(list(data.component.values), ["x", "y", "z"])
            self.assertEqual(data.parameters.dims, ("parameter",))
            self.assertEqual(data.attrs["title"], "Lorenz 1963")
        self.write("own.toml", LORENZ.replace("span = [0, 2]", "span = { start = 0, end = { linspace = [1, 2] } }")
                   .replace("[time]", "parameters = { rho = { linspace = [0, 21] } }\n[time]"))
        self.succeed("solve", "own.toml", "--output", "own.h5")
        with xarray.open_dataset(self.path("own.h5"), engine="h5netcdf") as data:
            self.assertEqual(data.state.dims, ("trajectory", "save_point", "component"))
            self.assertEqual(data.time.dims, ("trajectory", "save_point"))
            self.assertIn("time", data.state.coords)
            self.assertEqual(float(data.time[-1, -1]), 2)
            self.assertEqual(float(data.time[0, -1]), 1)
            self.assertEqual(float(data.parameters.sel(parameter="rho")[-1]), 21)

    def test_flags_win_over_the_file(self):
        self.succeed("solve", "lorenz.toml", "--output", "a.h5", "--trajectories", "7", "--method", "rk4", "--dt", "0.01",
                     "--precision", "f64", "--seed", "4", "--threads", "1", "--device", "cpu", "--cpu-target", "scalar")
        with h5py.File(self.path("a.h5")) as file:
            self.assertEqual(file["state"].shape, (7, 21, 3))
            self.assertEqual(file["state"].dtype, np.float64)
            np.testing.assert_array_equal(file["accepted"][:], 200)
            self.assertEqual(file.attrs["method"], "rk4")
            self.assertEqual(file.attrs["dt"], 0.01)
            self.assertNotIn("rtol", file.attrs)
            self.assertEqual(file.attrs["threads"], 1)
            self.assertEqual(file.attrs["cpu_target"], "scalar")
            first = file["initial_state"][:]
        self.succeed("solve", "lorenz.toml", "--output", "b.h5", "--seed", "4")
        with h5py.File(self.path("b.h5")) as file:
            np.testing.assert_array_equal(file["initial_state"][:7], first)

    def test_state_has_the_same_bytes_whatever_the_machine(self):
        targets = cpu_targets()
        for problem in ("lorenz.toml", "net.toml"):
            states = {}
            for target in targets:
                for threads in (1, 3):
                    name = f"{target}_{threads}.h5"
                    self.succeed("solve", problem, "--output", name, "--overwrite", "--cpu-target", target,
                                 "--threads", threads, "--quiet")
                    with h5py.File(self.path(name)) as file:
                        states[name] = file["state"][:].tobytes()
            self.assertEqual(len(set(states.values())), 1, problem)
            self.assertIn("same bits", self.succeed("validate", "scalar_1.h5", f"{targets[-1]}_3.h5"))

    def test_openmps_variable_limits_the_threads(self):
        self.succeed("solve", "lorenz.toml", "--quiet", env={**os.environ, "OMP_NUM_THREADS": "1"})
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertEqual(file.attrs["threads"], 1)

    def test_a_hybrid_is_the_sum_of_its_parts(self):
        self.write("zero.safetensors", safetensors({"0.weight": np.zeros((3, 3)), "0.bias": np.zeros(3)}))
        self.write("hybrid.toml", LORENZ.replace("[ensemble]", 'model = "zero.safetensors"\nactivations = "identity"\n[ensemble]'))
        self.succeed("solve", "hybrid.toml", "--output", "hybrid.h5", "--quiet")
        self.succeed("solve", "lorenz.toml", "--quiet")
        with h5py.File(self.path("hybrid.h5")) as hybrid, h5py.File(self.path("lorenz.h5")) as lorenz:
            np.testing.assert_array_equal(hybrid["state"][:], lorenz["state"][:])

    def test_every_component_may_have_a_tolerance_of_its_own(self):
        self.write("each.toml", LORENZ + "[method]\natol = [1e-4, 1e-6, 1e-5]\n")
        self.succeed("solve", "each.toml", "--certificate", "--output", "each.h5")
        with h5py.File(self.path("each.h5")) as file:
            self.assertEqual(list(file.attrs["atol"]), [1e-4, 1e-6, 1e-5])
        self.succeed("solve", "each.toml", "--atol", "1e-6", "--output", "one.h5")
        self.succeed("solve", "--output", "flag.h5", "--atol", "1e-4,1e-6,1e-5", "lorenz.toml")
        self.assertIn("same bits", self.succeed("validate", "each.h5", "flag.h5"))
        self.fail_with("--atol[1]: found 0, expected a finite tolerance above 0", "solve", "lorenz.toml", "--output",
                       "new.h5", "--atol", "1e-4,0,1e-5")
        self.fail_with("--atol: found 2 numbers, expected one for all components", "solve", "lorenz.toml", "--output",
                       "new.h5", "--atol", "1e-4,1e-6")
        verdict = self.run_tool("validate", "each.h5", "one.h5")
        self.assertEqual(verdict.returncode, 2)
        self.assertIn("atol differs, 1e-04, 1e-06, 1e-05 and 1e-06", verdict.stdout + verdict.stderr)

    def test_an_event_ends_its_trajectory(self):
        self.write("event.toml", LORENZ + '[event]\ncomponent = "z"\nvalue = 20\ndirection = "rising"\n')
        out = self.succeed("solve", "event.toml", "--precision", "f64")
        self.assertIn("100 trajectories: 100 terminated", out)
        with h5py.File(self.path("lorenz.h5")) as file:
            # z rises by about 100 a unit of time there and the crossing is located to the rounding of time.
            np.testing.assert_allclose(file["end_state"][:, 2], 20, rtol=1e-10)
            self.assertTrue((file["end_time"][:] < 1).all())
            self.assertTrue(np.isnan(file["state"][:, -1]).all())

    def test_one_bad_trajectory_leaves_the_others_their_bits(self):
        rows = np.random.default_rng(1).normal(size=(40, 3))
        with h5py.File(self.path("u0.h5"), "w") as file:
            file["good"] = rows
            rows[17] = 1e30
            file["bad"] = rows
        for name in ("good", "bad"):
            self.write(f"{name}.toml", LORENZ.replace("trajectories = 100\n", "").replace(
                "{ normal = { mean = [1, 0, 0], std = 0.1 } }", f'{{ file = "u0.h5", dataset = "{name}" }}'))
            self.succeed("solve", f"{name}.toml", "--output", f"{name}.h5", "--quiet")
        with h5py.File(self.path("good.h5")) as good, h5py.File(self.path("bad.h5")) as bad:
            self.assertEqual(good["state"].shape[0], 40)
            others = np.arange(40) != 17
            np.testing.assert_array_equal(good["state"][:][others], bad["state"][:][others])
            np.testing.assert_array_equal(bad["status"][:][others], 0)
            self.assertIn(bad["status"][17], (2, 3))
            self.assertTrue(np.isnan(bad["state"][17, -1]).all())

    def test_what_ended_a_trajectory_early_is_explained(self):
        self.write("short.toml", LORENZ + "[method]\nmax_steps = 5\n")
        self.assertRegex(self.succeed("solve", "short.toml"),
                         r"\A100 trajectories: 100 too_many_steps\n  too_many_steps: raise method.max_steps, .*trajectory 0 came to "
                         r"t = .* in 5 steps, and all of it takes some \d+\n500 steps")
        # Decay with rate 1e6 towards cos(t): after a thousandth of a second nothing but stability limits the step.
        stiff = '''[rhs.equations]
x = "-1e6 * (x - cos(t))"
[ensemble]
initial_state = [0]
[time]
span = [0, 10]
[method]
precision = "f64"
name = "NAME"
max_steps = 3000
[output]
file = "stiff.h5"
'''
        other = r"take method rodas5p, which comes as far by \d+ evaluations and \d+ Jacobians in place of \d+,\d+ evaluations, or "
        for name in ("bs3", "tsit5", "vern9"):
            advice = other if name == "tsit5" else f"({other})?"
            self.write("stiff.toml", stiff.replace("NAME", name))
            self.assertRegex(self.succeed("solve", "stiff.toml", "--overwrite"),
                             r"too_many_steps: the problem is stiff: trajectory 0 came to t = 0.\d+ of 10 in 3,000 steps, and "
                             rf"tolerances ten times tighter need no more.*; {advice}raise method.max_steps to some "
                             r"\d+,\d+,000\n")
        self.write("stiff.toml", '[rhs]\nsystem = "robertson"\n[time]\nspan = [0, 1000]\n[method]\nmax_steps = 5000\n'
                                 '[output]\nfile = "stiff.h5"\n')
        self.assertIn("the problem is stiff", self.succeed("solve", "stiff.toml", "--overwrite"))
        # Its advice helps.
        self.write("stiff.toml", stiff.replace("NAME", "rodas5p"))
        self.assertIn(": 1 success", self.succeed("solve", "stiff.toml", "--overwrite"))
        # The Lorenz equations by the same methods: accuracy decides.
        for name in ("bs3", "tsit5", "vern9"):
            self.write("short.toml", LORENZ.replace("trajectories = 100", "trajectories = 1").replace("[0, 1]", "[0, 100]") +
                       f'[method]\nmax_steps = 300\nname = "{name}"\nprecision = "f64"\nrtol = 1e-9\natol = 1e-9\n')
            self.assertNotIn("stiff", self.succeed("solve", "short.toml", "--overwrite"))

    def test_what_makes_steps_many_besides_stiffness_is_told(self):
        decay = '''[rhs.equations]
x = "EQUATION"
s = "0"
[ensemble]
initial_state = [0, 1]
[time]
span = [0, 1000]
[output]
file = "many.h5"
[method]
precision = "f64"
max_steps = 3000
'''
        relay = "".join(f'[[resets]]\nfunction = "x {sign} 1e-3"\ndirection = "{way}"\nto = {{ s = "{slope}" }}\n'
                        for sign, way, slope in (("-", "rising", -1), ("+", "falling", 1)))
        came = r"trajectory 0 came to t = \d+(\.\d+)? of 1000 in 3,000 steps"
        raising = r"raise method\.max_steps to some \d+,\d+"
        says = "the problem says where steps end"
        for equation, more, told in (
                ("s - x", "max_step = 1e-3\n", rf"max_step makes the steps many: {came} of at most 0.001, and without max_step in "
                                               rf"\d+; give a longer one, or {raising}"),
                ("s - x", '[[impulses]]\ncomponent = "x"\nchange = 1\nevery = 0.005\n',
                 rf"{says}: {came}, (2,9\d\d|3,000) of which end at impulses; {raising}"),
                ("s - x", f"stops = {[0.005 * i for i in range(4000)]}\n",
                 rf"{says}: {came}, (2,9\d\d|3,000) of which end at stops, or where the right-hand side jumps or bends; {raising}"),
                ("if(t % 0.02 < 0.01, 1, 0) - x", "", rf"{says}: {came}, (2,9\d\d|3,000) of which end at stops, or where .*; take "
                                                      rf"stop_at_knots = false where .*, or {raising}"),
                ("s", relay, rf"{says}: {came}, \d,\d+ of which end at resets; set what resets switch at further apart, or {raising}")):
            with self.subTest(told):
                self.write("many.toml", decay.replace("EQUATION", equation) + more)
                out = self.succeed("solve", "many.toml", "--overwrite")
                self.assertRegex(out, told)
                self.assertNotIn("stiff", out)
        # Stops and a max_step that decide little leave what is stiff so.
        self.write("many.toml", decay.replace("EQUATION", "-1e6 * (x - cos(t))") + "max_step = 0.1\nstops = [1e-4, 2e-4]\n")
        self.assertIn("the problem is stiff", self.succeed("solve", "many.toml", "--overwrite"))

    def test_float32_that_makes_steps_many_is_told(self):
        self.write("year.toml", '[rhs.equations]\nx = "-0.1 * x + sin(2 * pi * t / 24)"\n[ensemble]\ninitial_state = [0]\n'
                                '[time]\nspan = [0, 8760]\nsave = 366\n[output]\nfile = "year.h5"\n')
        self.assertRegex(self.succeed("solve", "year.toml"),
                         r"too_many_steps: float32 is too coarse here: trajectory 0 came to t = \d+ of 8,?760 in 100,000 "
                         r"steps, and float64 in less than a third of them; take precision f64, or loosen the tolerances")
        self.assertIn(": 1 success", self.succeed("solve", "year.toml", "--precision", "f64", "--overwrite"))

    def test_fixed_steps_that_are_too_long_are_suspected_where_states_become_infinite(self):
        self.write("stiff.toml", '[rhs.equations]\nx = "-1000 * x"\n[ensemble]\ninitial_state = [1]\n'
                                 '[time]\nspan = [0, 100]\n[output]\nfile = "stiff.h5"\n')
        out = self.succeed("solve", "stiff.toml", "--method", "rk4", "--dt", "0.1")
        self.assertIn("became NaN or infinite; steps of 0.1 may be too long for rk4 to be stable: try dt = 0.05, or "
                      "tolerances in place of dt; trajectory 0 came to t = 0.5 of 100, from where a step led out of what is "
                      "finite; the largest there is x = 1.03029e+33\n", out)
        self.assertNotIn("stable", self.succeed("solve", "stiff.toml", "--method", "rk4", "--dt", "0.002", "--overwrite"))
        self.write("pole.toml", self.path("stiff.toml").read_text().replace("-1000 * x", "log(-x)"))
        out = self.succeed("solve", "pole.toml", "--overwrite")
        self.assertIn("became NaN or infinite; trajectory 0 came to t = 0 of 100, where dx/dt is no finite number\n", out)
        out = self.succeed("solve", "pole.toml", "--method", "rodas5p", "--dt", "0.1", "--overwrite")
        self.assertIn("steps of 0.1 may lead stages out of where it is finite: try dt = 0.05, or tolerances", out)

    def test_linearly_implicit_methods_take_a_gpu_only_where_it_is_named(self):
        self.write("stiff.toml", '[rhs]\nsystem = "robertson"\n[time]\nspan = [0, 40]\n[method]\nname = "rodas5p"\n'
                                 '[output]\nfile = "stiff.h5"\n')
        out = self.succeed("explain", "stiff.toml")
        self.assertIn("- engine cpu: linearly implicit methods take a GPU only where one is named: no card has timed "
                      "them\n", out)
        self.assertNotRegex(out, "CUDA|cuda|NVIDIA")

    def test_a_failing_pilot_and_steps_that_cannot_suffice_are_told_beforehand(self):
        self.write("short.toml", LORENZ + "[method]\nmax_steps = 5\n")
        self.assertIn("100 of the pilot's 100 trajectories failed: too_many_steps", self.succeed("explain", "short.toml"))
        self.write("fixed.toml", LORENZ + "[method]\ndt = 1e-9\n")
        self.fail_with("fixed.toml:14: method.dt: found 1e-09, which takes 2e+09 steps to the end, expected at most 100,000 "
                       "steps (method.max_steps)", "solve", "fixed.toml")
        self.fail_with("--dt: found 1.9e-05", "solve", "fixed.toml", "--dt", "1.9e-5")
        self.succeed("solve", "fixed.toml", "--dt", "2e-5", "--trajectories", "1")

    def test_more_save_points_than_any_disk_here_could_hold_are_refused_at_once(self):
        self.fail_solving("bad.toml:10: time.save: found 9,000,000,000,000 save points of 100 trajectories, 3.6 PB a "
                          "component, expected less than the disk holds", LORENZ.replace("save = 21", "save = 9e12"))

    def test_more_trajectories_than_memory_here_could_hold_are_refused_at_once(self):
        for count in ("9e15", "9223372036854775807"):
            self.fail_solving("bad.toml:5: ensemble.trajectories: found 9,", LORENZ.replace("= 100", f"= {count}"))
            self.fail_solving("trajectories, whose initial states take ", LORENZ.replace("= 100", f"= {count}"))

    def test_save_times_from_a_file_are_each_trajectorys_own(self):
        times = np.array([[0.5, 1.0], [0.25, 2.0]])
        with h5py.File(self.path("t.h5"), "w") as file:
            file["times"] = times
        self.write("own.toml", LORENZ.replace("save = 21", 'save = { file = "t.h5", dataset = "times" }'))
        self.succeed("solve", "own.toml", "--trajectories", "2")
        with h5py.File(self.path("lorenz.h5")) as file:
            np.testing.assert_array_equal(file["time"][:], times)

    def test_ensembles_and_save_times_come_from_csv(self):
        rows = np.random.default_rng(2).normal(size=(5, 4))
        self.write("u0.csv", "x;rho;y;z\n" + "".join(";".join(map(repr, map(float, row))) + "\n" for row in rows))
        self.write("t.csv", "time\n0\n0.5\n1.5\n")
        self.write("csv.toml", LORENZ.replace("trajectories = 100\n", "").replace(
            "{ normal = { mean = [1, 0, 0], std = 0.1 } }", '{ file = "u0.csv" }\nparameters = { file = "u0.csv" }').replace(
            "save = 21", 'save = { file = "t.csv" }'))
        self.succeed("solve", "csv.toml")
        with h5py.File(self.path("lorenz.h5")) as file:
            np.testing.assert_array_equal(file["initial_state"][:], rows[:, [0, 2, 3]])
            np.testing.assert_array_equal(file["parameters"][:, 1], rows[:, 1])
            np.testing.assert_array_equal(file["parameters"][:, 0], 10)
            np.testing.assert_array_equal(file["time"][:], [0, 0.5, 1.5])
        text = self.path("csv.toml").read_text()
        for wrong, message in (('"t.csv", columns = "t"', 'time.save: found "t", expected one of time'),
                               ('"u0.csv"', 'time.save: found no column "time" in u0.csv, expected one of x, rho, y, z; '
                                            'name the column, as in columns = "x"'),
                               ('"gone.csv"', "gone.csv: found no readable file"),
                               ('"lorenz.h5"', "time.save: found an HDF5 file without the name of a dataset"),
                               ('"lorenz.h5", dataset = "tme"', 'time.save: found "tme", which lorenz.h5 does not have'),
                               ('"t.csv", every = 1', "time.save: found keys that do not go together")):
            self.write("bad.toml", text.replace('"t.csv"', wrong))
            self.fail_with(message, "solve", "bad.toml", "--output", "new.h5")

    def test_progress_is_a_bar_on_a_terminal(self):
        self.write("endless.toml", ENDLESS)
        master, slave = pty.openpty()
        process = subprocess.Popen([TOOL, "solve", "endless.toml"], cwd=self.folder, stdout=slave, stderr=slave)
        os.close(slave)
        self.addCleanup(process.kill)
        text = b""
        deadline = time.monotonic() + 60
        while not re.search(rb"solving \[[#.]+\] \d+ %, [\d,]+ of 1,000,000 trajectories", text):
            self.assertLess(time.monotonic(), deadline, text)
            text += os.read(master, 4096)
        process.kill()
        process.wait()
        os.close(master)

    def test_progress_fits_into_a_narrow_terminal(self):
        self.write("endless.toml", ENDLESS)
        for size, columns in (((24, 40), "100"), ((0, 0), "60")):  # what the terminal says, then what COLUMNS does
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            process = subprocess.Popen([TOOL, "solve", "endless.toml", "--overwrite"], cwd=self.folder, stdout=slave,
                                       stderr=slave, env={**os.environ, "COLUMNS": columns})
            os.close(slave)
            self.addCleanup(process.kill)
            text = b""
            deadline = time.monotonic() + 60
            while text.count(b"\033[K") < 4:
                self.assertLess(time.monotonic(), deadline, text)
                text += os.read(master, 4096)
            process.kill()
            process.wait()
            os.close(master)
            lines = [line.decode() for line in re.findall(rb"\033\[K(solving [^\r\n]*)\r", text)]
            self.assertGreater(len(lines), 1, text)
            self.assertLess(max(map(len, lines)), size[1] or int(columns), lines)
            self.assertGreater(max(map(len, lines)), 30, lines)


class Interrupted(NetTest):
    def interrupt(self, number):
        self.write("endless.toml", ENDLESS)
        process = subprocess.Popen([TOOL, "solve", "endless.toml"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while not self.path("endless.h5.part").exists() or self.path("endless.h5.part").stat().st_size == 0:
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
        return process.returncode, out, errors

    def test_ctrl_c_keeps_what_is_finished(self):
        code, out, errors = self.interrupt(signal.SIGINT)
        self.assertEqual(code, 130, errors)
        finished = re.search(r"lockstep: stopped: ([\d,]+) of 1,000,000 trajectories are finished and in endless.h5", errors)
        self.assertIsNotNone(finished, errors)
        count = int(finished[1].replace(",", ""))
        # The rate counts what was finished, not what was asked for.
        spent = re.search(r"^([\d.]+) (m?)s, ([\d,.]+) trajectories/s", out, re.MULTILINE)
        seconds = float(spent[1]) * (1e-3 if spent[2] else 1)
        self.assertLess(abs(float(spent[3].replace(",", "")) * seconds / count - 1), 0.02)
        with h5py.File(self.path("endless.h5")) as file:
            status = file["status"][:]
            self.assertEqual(np.count_nonzero(status != 6), count)
            self.assertEqual(file["committed"][()], count)
            self.assertTrue(np.isnan(file["state"][:][status == 6]).all())
            self.assertTrue(np.isfinite(file["state"][:][status == 0]).all())
        self.assertFalse(list(self.folder.glob("*part*")) + list(self.folder.glob(".*part*")))
        self.assertIn("cancelled", self.succeed("info", "endless.h5"))

    def test_sigterm_exits_with_143(self):
        code, _, errors = self.interrupt(signal.SIGTERM)
        self.assertEqual(code, 143, errors)
        self.assertTrue(self.path("endless.h5").exists())


    def test_counts_may_have_an_exponent_as_in_files(self):
        self.write("p.toml", LORENZ)
        out = self.succeed("explain", "p.toml", "--trajectories", "1e3")
        self.assertIn("1,000 trajectories of 3 components", out)
        self.assertIn("1 trajectory in tiles of", self.succeed("explain", "p.toml", "--trajectories", "1"))
        for wrong in ("1.5", "1e-3", "-1e3", "1e30", "1e", "inf"):
            done = self.run_tool("explain", "p.toml", "--trajectories", wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn(f'found "{wrong}", expected a whole number', done.stderr)

    def test_strict_fails_where_a_trajectory_did_and_the_file_stays(self):
        problem = ('[rhs.equations]\ny = "1"\nx = "-sqrt(-x)"\n[ensemble]\ntrajectories = 3\ninitial_state = [0, 1]\n'
                   '[time]\nspan = [0, 1]\nsave = 5\n[output]\nfile = "p.h5"\n')
        self.write("p.toml", problem)
        out = self.succeed("solve", "p.toml")
        self.assertIn("not_finite: the right-hand side or the state became NaN or infinite; trajectory 0 came to t = 0 of 1, where "
                      "dx/dt is no finite number\n", out)
        for flags in ([], ["--resume"]):  # the second finds nothing to do
            done = self.run_tool("solve", "p.toml", "--strict", "--quiet", *(flags or ["--overwrite"]))
            self.assertEqual(done.returncode, 3)
            self.assertEqual(done.stderr, "lockstep: 3 trajectories failed (3 not_finite), which --strict does not accept; p.h5 "
                                          "holds them with the others\n")
        self.assertIn("3 not_finite", self.succeed("info", "p.h5"))
        self.write("p.toml", problem.replace("-sqrt(-x)", "x^2").replace("[0, 1]\n[time]", "[0, 10]\n[time]"))
        self.assertRegex(self.succeed("solve", "p.toml", "--dt", "0.03", "--overwrite"),
                         r"from where a step led out of what is finite; the largest there is x = \d\S+\n")
        self.write("p.toml", problem.replace("-sqrt(-x)", "-x"))
        self.succeed("solve", "p.toml", "--strict", "--overwrite")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
