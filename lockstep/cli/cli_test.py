"""The tool from outside: every command run as a user runs it, its files opened by h5py and xarray.

usage: cli_test.py LOCKSTEP MODEL.safetensors [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, ToolTest, TOOL, cpu_targets, h5py, np

MODEL = pathlib.Path(sys.argv[2]).resolve()

NET = """
[rhs]
model = "net.safetensors"
components = ["x", "y", "z"]
[ensemble]
trajectories = 100
initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
[time]
span = [0, 1]
save = 11
[output]
file = "net.h5"
"""
# Long enough to be interrupted on any machine.
ENDLESS = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 1000000
[time]
span = [0, 200]
[method]
max_steps = 1000000000
precision = "f64"
[output]
file = "endless.h5"
"""


def safetensors(tensors, metadata=None):
    """The bytes of a file with {name: array} as float32."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, values in tensors.items():
        raw = np.asarray(values, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(np.shape(values)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class CliTest(ToolTest):
    def setUp(self):
        super().setUp()
        shutil.copy(MODEL, self.folder / "net.safetensors")
        self.write("lorenz.toml", LORENZ)
        self.write("net.toml", NET)

    def fail_solving(self, message, problem):
        self.write("bad.toml", problem)
        self.fail_with(message, "solve", "bad.toml")
        self.assertFalse(list(self.folder.glob("*.h5")), "a failed solve leaves no file")
        self.assertFalse(list(self.folder.glob("*part*")) + list(self.folder.glob(".*part*")), "a failed solve leaves no temporary file")


class Help(CliTest):
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
                                      ("--precision", "f16", "one of f32, f64")):
            self.fail_with(f'{flag}: found "{value}", expected {expected}', "solve", "lorenz.toml", f"{flag}={value}")
        self.assertEqual(self.run_tool().returncode, 2)


class Solve(CliTest):
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
        for name in ("bs3", "tsit5", "vern9"):
            self.write("stiff.toml", stiff.replace("NAME", name))
            self.assertRegex(self.succeed("solve", "stiff.toml", "--overwrite"),
                             r"too_many_steps: the problem is stiff: trajectory 0 came to t = 0.\d+ of 10 in 3,000 steps, and "
                             r"tolerances ten times tighter need no more.* raise method.max_steps to some \d+,\d+,000, or")
        self.write("stiff.toml", '[rhs]\nsystem = "robertson"\n[time]\nspan = [0, 1000]\n[method]\nmax_steps = 5000\n'
                                 '[output]\nfile = "stiff.h5"\n')
        self.assertIn("the problem is stiff", self.succeed("solve", "stiff.toml", "--overwrite"))
        # The Lorenz equations by the same methods: accuracy decides.
        for name in ("bs3", "tsit5", "vern9"):
            self.write("short.toml", LORENZ.replace("trajectories = 100", "trajectories = 1").replace("[0, 1]", "[0, 100]") +
                       f'[method]\nmax_steps = 300\nname = "{name}"\nprecision = "f64"\nrtol = 1e-9\natol = 1e-9\n')
            self.assertNotIn("stiff", self.succeed("solve", "short.toml", "--overwrite"))

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


class Interrupted(CliTest):
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


class BadInput(CliTest):
    def test_models(self):
        whole = MODEL.read_bytes()
        length = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + length])

        def with_header(change):
            changed = json.loads(json.dumps(header))
            change(changed)
            text = json.dumps(changed).encode()
            return struct.pack("<Q", len(text)) + text + whole[8 + length:]

        def offsets(name, begin, end):
            def change(h):
                h[name]["data_offsets"] = [begin, end]
            return with_header(change)

        nan = safetensors({"0.weight": [[1, float("nan"), 0]] * 3, "0.bias": [0, 0, 0]}, {"activations": "identity"})
        cases = {
            "net.safetensors": None,
            "truncated": whole[:-10],
            "header cut": whole[:20],
            "empty": b"",
            "text": b"this is not a model, but it is long enough to look at",
            "huge header": struct.pack("<Q", 2**63) + whole[8:],
            "overflow": offsets("0.bias", 0, 2**64 - 1),
            "overlap": offsets("0.bias", 4, 404),
            "outside": offsets("2.weight", 1612, 10**9),
            "nan": nan,
        }
        for case, content in cases.items():
            with self.subTest(case):
                name = "bad.safetensors"
                if content is None:
                    name = "missing.safetensors"
                else:
                    self.write(name, content)
                self.fail_solving(name, NET.replace("net.safetensors", name))
                self.fail_with(name, "info", name)
        self.write("bad.safetensors", nan)
        self.fail_solving('bad.toml:4: rhs.activations[1]: found "relux", expected one of identity, relu',
                          NET.replace("components =", 'activations = "relu,relux"\ncomponents ='))
        self.fail_with("--activations: found 1 names (relu), expected 2", "info", "net.safetensors", "--activations",
                       "relu")
        self.fail_solving("0.weight", NET.replace("net.safetensors", "bad.safetensors"))

    def test_shapes(self):
        self.write("wide.safetensors", safetensors({"0.weight": np.zeros((4, 3)), "0.bias": np.zeros(4)},
                                                   {"activations": "identity"}))
        self.fail_solving("bad.toml:3: rhs.model", NET.replace("net.safetensors", "wide.safetensors"))
        self.fail_solving("bad.toml:7: ensemble.initial_state.normal: found 2 numbers, expected 3 numbers, one for each "
                          "component (x, y, z)", NET.replace("mean = [1, 0, 0]", "mean = [1, 0]"))
        self.fail_solving("bad.toml:4: rhs.components: found 2 names, expected 3", NET.replace('"x", ', ""))
        self.fail_solving('bad.toml:4: rhs.components: found "x" twice, expected different names',
                          NET.replace('"y"', '"x"'))

    def test_toml(self):
        self.fail_solving('bad.toml:9: time.spam: found an unknown key, expected one of span, save, unit; did you mean "span"?',
                          LORENZ.replace("span =", "spam ="))
        self.fail_solving("bad.toml:5: ensemble.trajectories: found \"many\", expected an integer",
                          LORENZ.replace("= 100", '= "many"'))
        self.path("result.bin").write_bytes(b"\x89HDF\r\n\x1a\n")
        self.fail_with("result.bin: found an HDF5 file, expected a TOML file", "solve", "result.bin")
        self.fail_solving('rhs.system: found "lorentz"', LORENZ.replace('"lorenz"', '"lorentz"'))
        self.fail_solving('did you mean "lorenz"', LORENZ.replace('"lorenz"', '"lorentz"'))
        self.fail_solving("rhs: found neither model, system nor equations", LORENZ.replace('system = "lorenz"', ""))
        self.fail_solving("bad.toml: time.span: found nothing", NET.replace("span = [0, 1]", "").replace("save = 11", ""))
        self.fail_solving("output.file: found nothing", LORENZ.replace('file = "lorenz.h5"', ""))
        self.fail_with("missing.toml", "solve", "missing.toml")

    def test_times(self):
        outside = LORENZ.replace("save = 21", "save = [0, 1, 3]")
        self.fail_solving("bad.toml:10: time.save: found save point 2 at 3", outside)
        self.fail_solving("bad.toml:10: time.save: found", LORENZ.replace("save = 21", "save = [0, 1, 0.5]"))
        self.fail_solving("bad.toml:10: time.save: found 21 points over a span of no length",
                          LORENZ.replace("[0, 2]", "[1, 1]"))
        self.fail_solving("time.save: found 0, expected an integer of 1 or more", LORENZ.replace("save = 21", "save = 0"))
        self.fail_solving("time.save.every: found -0.1, expected a number greater than 0",
                          LORENZ.replace("save = 21", "save = { every = -0.1 }"))

    def test_options(self):
        def method(text):
            return LORENZ + "[method]\n" + text + "\n"
        self.fail_solving("bad.toml:14: method.atol: found", method("atol = 0"))
        self.fail_solving("bad.toml:14: method.rtol: found", method("rtol = -1e-3"))
        self.fail_solving("bad.toml:14: method.atol[1]: found -1", method("atol = [1, -1, 1]"))
        self.fail_solving("bad.toml:14: method.atol: found 2 numbers, expected one for all", method("atol = [1, 1]"))
        self.fail_solving("method.rtol: found a number that is not finite", method("rtol = nan"))
        self.fail_solving("bad.toml:14: method.dt: found", method("dt = -0.1"))
        self.fail_solving('bad.toml:14: method.name: found "tsit", expected one of euler', method('name = "tsit"'))
        self.fail_solving("method.control", method('name = "rk4"'))
        self.fail_with("--dt: found", "solve", "lorenz.toml", "--dt", "0")
        self.fail_with("--rtol: found", "solve", "lorenz.toml", "--rtol", "-1")
        self.fail_with("--rtol: found a tolerance beside fixed steps", "solve", "lorenz.toml", "--rtol", "1e-3", "--dt", "1")
        self.fail_with('--method: found "rk5"', "solve", "lorenz.toml", "--method", "rk5")

    def test_cuda_says_how_to_get_on(self):
        # Whatever this machine has: a component that is not there.
        without = {**os.environ, "LOCKSTEP_CUDA_LIBRARY": str(self.folder / "absent.so")}
        for device in ("cuda", "cuda:1", "cpu=20%,cuda=80%"):
            self.fail_with(f"--device: found {device}, expected cpu or auto here: this installation has no CUDA component",
                           "solve", "lorenz.toml", "--device", device, env=without)
        self.fail_with('--device: found "gpu", expected auto, cpu, cuda, cuda:N, or shares', "solve", "lorenz.toml",
                       "--device", "gpu")
        self.fail_with('--matrix-precision: found "tf23", expected one of f32, tf32, bf16, fp16; did you mean "tf32"?',
                       "solve", "lorenz.toml", "--matrix-precision", "tf23")
        self.fail_with("--matrix-precision: found bf16 on the CPU, expected f32 there: bf16 takes a GPU; choose device "
                       "cuda", "solve", "lorenz.toml", "--matrix-precision", "bf16", "--device", "cpu")
        self.fail_with("--matrix-precision: found tf32, expected f32 here: tf32 takes a GPU; this "
                       "installation has no CUDA component", "solve", "lorenz.toml", "--matrix-precision", "tf32",
                       env=without)
        self.fail_with("--device: found shares that add up to 90%", "solve", "lorenz.toml", "--device",
                       "cpu=20%,cuda=70%")

    def test_unavailable_instruction_sets(self):
        foreign = "avx2" if os.uname().machine == "aarch64" else "neon"
        self.fail_with(f"--cpu-target: found {foreign}", "solve", "lorenz.toml", "--cpu-target", foreign)

    def test_outputs(self):
        self.succeed("solve", "lorenz.toml")
        before = self.path("lorenz.h5").read_bytes()
        self.fail_with("lorenz.h5: found a file of that name, expected none; choose another name, or replace it with "
                       "--overwrite", "solve", "lorenz.toml")
        self.assertEqual(self.path("lorenz.h5").read_bytes(), before)
        self.succeed("solve", "lorenz.toml", "--overwrite", "--trajectories", "3")
        self.assertNotEqual(self.path("lorenz.h5").read_bytes(), before)
        self.fail_with("no folder", "solve", "lorenz.toml", "--output", "no/such/folder/x.h5")
        self.fail_with("a writable folder", "solve", "lorenz.toml", "--output", "/proc/x.h5")
        if os.geteuid() != 0:
            locked = self.path("locked")
            locked.mkdir(mode=0o555)
            self.fail_with("a writable folder", "solve", "lorenz.toml", "--output", "locked/x.h5")

    def test_what_is_read_is_never_replaced(self):
        self.write("u0.csv", "x,y,z\n1,0,0\n")
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = np.zeros((4, 3))
            file["times"] = [0.5]
        self.write("all.toml", NET.replace("trajectories = 100\n", "").replace(
            "{ normal = { mean = [1, 0, 0], std = 0.1 } }", '{ x = { file = "u0.csv" }, y = 0, z = 0 }').replace(
            "save = 11", 'save = { file = "x.h5", dataset = "times" }'))
        before = {name: self.path(name).read_bytes() for name in ("u0.csv", "x.h5", "all.toml", "net.safetensors")}
        self.path("link.h5").symlink_to("x.h5")
        for name in (*before, "link.h5"):
            self.fail_with(f"{name}: found a file that is read as well, expected a file of its own for the output",
                           "solve", "all.toml", "--output", name, "--overwrite")
        for name in ("x.h5", "net.safetensors"):
            self.fail_with(f"{name}: found a file that is read as well", "evaluate", "net.safetensors", "--input", "x.h5",
                           "--output", name, "--overwrite")
        for command, flag in (("compile", "--output"), ("export", "--c-header")):
            self.fail_with("net.safetensors: found a file that is read as well", command, "net.safetensors", flag,
                           "net.safetensors", "--overwrite")
        self.succeed("solve", "lorenz.toml", "--quiet")
        before["lorenz.h5"] = self.path("lorenz.h5").read_bytes()
        self.fail_with("lorenz.h5: found a file that is read as well", "merge", "lorenz.h5", "--index", "--output",
                       "lorenz.h5", "--overwrite")
        self.assertEqual({name: self.path(name).read_bytes() for name in before}, before)

    def test_one_file_under_two_names_is_noted(self):
        self.succeed("solve", "lorenz.toml", "--quiet", "--trajectories", "2")
        done = self.run_tool("validate", "lorenz.h5", "./lorenz.h5")
        self.assertEqual((done.returncode, done.stderr), (0, "lockstep: note: lorenz.h5 and ./lorenz.h5 are one file\n"))
        self.assertEqual(self.run_tool("validate", "--quiet", "lorenz.h5", "./lorenz.h5").stderr, "")

    def test_a_file_that_cannot_grow_is_an_error_before_the_solve(self):
        import resource

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        self.write("endless.toml", ENDLESS)
        started = time.monotonic()
        self.fail_with("endless.h5: found a limit of 100000 bytes on the size of files (ulimit -f), expected room for", "solve", "endless.toml", preexec_fn=limit, restore_signals=False)
        self.assertLess(time.monotonic() - started, 30)
        self.assertFalse(list(self.folder.glob("*.h5")) + list(self.folder.glob(".*part*")))


class Validate(CliTest):
    def setUp(self):
        super().setUp()
        self.succeed("solve", "lorenz.toml", "--output", "a.h5", "--quiet")
        shutil.copy(self.path("a.h5"), self.path("b.h5"))

    def change(self, **datasets):
        with h5py.File(self.path("b.h5"), "r+") as file:
            for name, edit in datasets.items():
                values = file[name][...]
                edit(values)
                file[name][...] = values

    def verdict(self, code, *patterns):
        done = self.run_tool("validate", "--bits", "a.h5", "b.h5")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for pattern in patterns:
            self.assertRegex(done.stdout + done.stderr, pattern)
        return done.stdout

    def test_without_a_certificate_the_spread_is_computed_anew(self):
        def edit(state):
            state[17, 4, 1] += 1
        self.change(state=edit)
        done = self.run_tool("validate", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"trajectory 17 goes where rounding(.|\n)*computed anew from the problem in a.h5")

    def test_without_a_spread_there_is_no_verdict_but_how_far_apart(self):
        def edit(state):
            state[17, 4, 1] += 1
        self.change(state=edit)
        done = self.run_tool("validate", "--stored-only", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"different: 1 of 6,300 numbers(.|\n)*first in the file +trajectory 17, time 4")
        self.assertRegex(done.stdout, r"no verdict: nothing tells how much")
        for name in ("a.h5", "b.h5"):
            with h5py.File(self.path(name), "r+") as file:
                del file["problem"]
        done = self.run_tool("validate", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"a.h5: found no description of its problem(.|\n)*b.h5: found no description")

    def test_equal_files_have_the_same_bits(self):
        self.verdict(0, r"\Asame bits: all 6,300 numbers of state agree \(100 trajectories x 21 times x 3 components, float32\)")
        self.assertEqual(self.run_tool("validate", "--bits", "-q", "a.h5", "b.h5").stdout, "")

    def test_one_bit_is_found_and_placed(self):
        def edit(state):
            state[17, 4, 1] = np.nextafter(state[17, 4, 1], np.float32(np.inf))
        self.change(state=edit)
        self.verdict(1, r"\Adifferent: 1 of 6,300 numbers of state, in 1 trajectory ",
                     r"largest absolute +\S+ at trajectory 17, time 4 \(t = 0\.4\), component y: \S+ and \S+\n",
                     r"largest relative +\S+e-0[78] at", r"first in the file +trajectory 17", r"earliest in time")

    def test_the_earliest_difference_is_told_from_the_first(self):
        def edit(state):
            state[3, 20, 0] += 1
            state[50, 2, 2] += 0.5
        self.change(state=edit)
        self.verdict(1, r"first in the file +trajectory 3, time 20", r"earliest in time +trajectory 50, time 2",
                     r"largest absolute +1 at trajectory 3, ")

    def test_nan_equals_nan_but_not_a_number(self):
        def edit(state):
            state[5, 5, 0] = np.nan
        self.change(state=edit)
        shutil.copy(self.path("b.h5"), self.path("a.h5"))

        def other_payload(state):
            state.view(np.uint32)[5, 5, 0] = 0xFFC12345
        self.change(state=other_payload)
        self.verdict(0, "same bits", r"NaN or infinite +1 trajectory of a, 1 trajectory of b")

        def finite(state):
            state[5, 5, 0] = 1
        self.change(state=finite)
        self.verdict(1, r"not finite +1 numbers in a alone, 0 in b alone")

    def test_nan_in_one_file_is_counted_and_no_agreement(self):
        def edit(state):
            state[5, 5:, :] = np.nan
            state[6, 20, 1] = np.inf
        self.change(state=edit)
        for files, counts in ((("a.h5", "b.h5"), "0 in a.h5, 2 in b.h5"), (("b.h5", "a.h5"), "2 in b.h5, 0 in a.h5")):
            done = self.run_tool("validate", *files)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(f"2 trajectories with NaN or infinite numbers ({counts}); "
                          "2 trajectories finite at a time in one solution only", done.stdout)

    def test_a_file_of_another_version_is_told_by_its_version(self):
        with h5py.File(self.path("b.h5"), "r+") as file:
            file.attrs["version"] = "0.0.7"
        self.verdict(0, "same bits", r"  version +\S+ and 0\.0\.7\n")
        with h5py.File(self.path("b.h5"), "r+") as file:
            file.attrs["lockstep_format"] = "ensemble 9"
        self.verdict(2, r'b.h5: found format "ensemble 9" of version 0\.0\.7, expected "ensemble 1"')

    def test_statuses_and_counts_count(self):
        def status(values):
            values[9] = 3
        self.change(status=status)
        self.verdict(1, "state agrees in all 6,300 numbers", r"statuses +1 trajectory, first trajectory 9: success and not_finite")

    def test_differing_options_are_named(self):
        self.succeed("solve", "lorenz.toml", "--output", "b.h5", "--overwrite", "--rtol", "1e-7", "--quiet")
        self.verdict(1, r"what differs in how they were made:\n", r"  rtol +1e-06 and 1e-07\n")
        self.assertNotIn("engine_reason", self.run_tool("validate", "--bits", "a.h5", "b.h5").stdout)
        self.assertNotIn("engine_reason", self.run_tool("validate", "a.h5", "b.h5").stdout, "it follows from the rest")

    def test_float32_passed_for_float64_is_different(self):
        self.succeed("solve", "lorenz.toml", "--output", "b.h5", "--overwrite", "--precision", "f64", "--quiet")
        self.verdict(1, "float32 and float64: compared as float64")

    def test_what_cannot_be_compared_is_an_error(self):
        self.succeed("solve", "lorenz.toml", "--output", "b.h5", "--overwrite", "--trajectories", "50", "--quiet")
        self.verdict(2, "found 100 and 50 trajectories, expected as many trajectories in both")
        self.write("b.h5", "text")
        self.verdict(2, "lockstep: error: b.h5: found no HDF5 signature")
        self.fail_with("missing.h5", "validate", "a.h5", "missing.h5")
        self.write("later.toml", LORENZ.replace("span = [0, 2]", "span = [0, 3]"))
        self.succeed("solve", "later.toml", "--output", "b.h5", "--overwrite", "--quiet")
        self.verdict(2, r"found save point 1 at 0\.1 and 0\.15")


class Evaluate(CliTest):
    def test_outputs_are_the_nets(self):
        rng = np.random.default_rng(5)
        weights = [rng.normal(size=shape).astype(np.float32) for shape in ((16, 3), (16,), (2, 16), (2,))]
        self.write("small.safetensors", safetensors(dict(zip(("0.weight", "0.bias", "2.weight", "2.bias"), weights))))
        rows = rng.normal(size=(1001, 3))
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = rows
        self.succeed("evaluate", "small.safetensors", "--input", "x.h5", "--output", "y.h5", "--precision", "f64",
                     "--activations", "relu,identity")
        w1, b1, w2, b2 = [w.astype(np.float64) for w in weights]
        expected = np.maximum(rows @ w1.T + b1, 0) @ w2.T + b2
        with h5py.File(self.path("y.h5")) as file:
            self.assertEqual(file["output"].dtype, np.float64)
            # Two sums of up to 17 terms of size about 4: 17 * 2^-53 * 17 * 16 is below 1e-12.
            np.testing.assert_allclose(file["output"][:], expected, rtol=0, atol=1e-12)
            exact = file["output"][:]
        self.succeed("evaluate", "small.safetensors", "-i", "x.h5", "-o", "y.h5", "--overwrite", "--activations",
                     "relu,identity", "--threads", "2")
        with h5py.File(self.path("y.h5")) as file:
            self.assertEqual(file["output"].dtype, np.float32)
            np.testing.assert_allclose(file["output"][:], exact, rtol=0, atol=1e-12 * 2**29)

    def test_ports_that_would_share_a_dataset_are_named(self):
        def evaluates(inputs, outputs):  # what the first two inputs, or the input and itself, add up to
            with h5py.File(self.path("ports.h5"), "w") as file:
                file.attrs["lockstep_model"] = 2
                for i, name in enumerate(inputs):
                    file.create_group(f"inputs/{i}").attrs.update(name=name, features=1)
                for i, name in enumerate(outputs):
                    file.create_group(f"outputs/{i}").attrs.update(name=name, features=1, value="sum")
                node = file.create_group("nodes/0")
                node.attrs.update(name="sum", operation="binary", kind="add")
                node["inputs"] = [inputs[0], inputs[-1]]
            return ("evaluate", "ports.h5", "--input", "x.h5", "--output", "y.h5", "--overwrite")

        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = file["a_b"] = file["c"] = np.ones((4, 1))
        self.succeed(*evaluates(["a/b", "c"], ["y", "z/1"]))
        with h5py.File(self.path("y.h5")) as file:
            np.testing.assert_array_equal(file["z_1"], np.full((4, 1), 2))
        self.fail_with('ports.h5: ports "a/b" and "a_b": found one dataset for both, a_b', *evaluates(["a/b", "a_b"], ["y"]))
        self.fail_with('ports "y" and "y_feature": found one dataset for both, y_feature',
                       *evaluates(["x"], ["y", "y_feature"]))

    def test_bad_inputs_are_named(self):
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = np.zeros((4, 2))
            file["flat"] = np.zeros(4)
        arguments = ("evaluate", "net.safetensors", "--input", "x.h5", "--output", "y.h5")
        self.fail_with("x.h5:/input: found 2 columns, expected [sample, feature] with 3 columns", *arguments)
        self.fail_with("x.h5:/flat: found 1 dimension", *arguments, "--input-dataset", "flat")
        self.fail_with("x.h5:/nothing", *arguments, "--input-dataset", "nothing")
        self.fail_with("missing.h5", "evaluate", "net.safetensors", "--input", "missing.h5", "--output", "y.h5")
        self.assertFalse(self.path("y.h5").exists())
        self.write("y.h5", "precious")
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = np.zeros((4, 3))
        self.fail_with("y.h5: found a file of that name", *arguments)


class Info(CliTest):
    def test_models_and_results_are_described(self):
        text = self.succeed("info", "net.safetensors")
        for part in ("dense 3 -> 100", "tanh", "703", "digest", "float32"):
            self.assertIn(part, text)
        self.succeed("solve", "lorenz.toml", "--quiet")
        text = self.succeed("info", "lorenz.h5")
        for part in ("100 trajectories x 21 times x 3 components, float32", "100 success", "rho = 28", "problem_digest"):
            self.assertIn(part, text)
        self.write("each.toml", LORENZ + "[method]\natol = [1e-4, 1e-6, 1e-5]\n")
        self.succeed("solve", "each.toml", "--trajectories", "1", "--output", "each.h5")
        text = self.succeed("info", "each.h5")
        self.assertRegex(text, r"atol +1e-04, 1e-06, 1e-05\n")
        self.assertIn("1 trajectory x 21 times x 3 components", text)

    def test_of_many_components_a_few_are_shown_with_their_units(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["state"].attrs.create("component_units", ["K", "m/s", "Pa"], dtype=h5py.string_dtype())
        self.assertRegex(self.succeed("info", "lorenz.h5"), r"\n  y +\S+ to \S+ m/s\n")
        self.write("many.safetensors", safetensors({"0.weight": -np.eye(40), "0.bias": np.zeros(40)}))
        self.write("many.toml", NET.replace("net.safetensors", "many.safetensors").replace(
            'components = ["x", "y", "z"]', 'activations = "identity"').replace("[1, 0, 0]", "0"))
        self.succeed("solve", "many.toml")
        text = self.succeed("info", "net.h5")
        self.assertRegex(text, r"\n  u30 .*\n  9 others +\S+ to \S+\n\nprovenance")
        self.assertNotIn("u31", text)
        text = self.succeed("info", "--systems")
        for part in ("lorenz ", "van_der_pol", "pleiades", "robertson"):
            self.assertIn(part, text)


class Explain(CliTest):
    def test_a_prediction_has_reasons(self):
        text = self.succeed("explain", "net.toml", "--cpu-target", "scalar", "--threads", "1")
        for part in ("scalar", "1 thread", "100 trajectories of 3 components", "predicted", "\n- "):
            self.assertIn(part, text)
        self.assertFalse(list(self.folder.glob("*.h5")), "nothing is written")
        self.fail_with("bad.toml", "explain", "bad.toml")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
