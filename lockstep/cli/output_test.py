"""What goes to a result file and how: chosen components and save points, and files packed for the archive.

usage: output_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
import tool_test
from tool_test import ToolTest, TOOL, h5py, np

LORENZ = tool_test.LORENZ.replace("trajectories = 100", "trajectories = 3000")


class OutputTest(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        self.write("lorenz.toml", LORENZ)


SLOW = """[rhs]
[rhs.equations]
T = "0.002"
x = "-1000*(x - t)"
[ensemble]
trajectories = 40
initial_state = [300, 0]
[time]
span = [0, 20]
[output]
file = "slow.h5"
"""


class Notes(OutputTest):
    def test_a_component_below_its_tolerance_is_told(self):
        text = ('[rhs.equations]\nx = "-x"\n[ensemble]\ninitial_state = [1e-9]\n[time]\nspan = [0, 5]\nsave = 6\n'
                '[output]\nfile = "small.h5"\n')
        self.write("small.toml", text)
        told = self.run_tool("solve", "small.toml").stderr
        self.assertIn("x, never above 1e-09, has an absolute tolerance of 1e-06; take a smaller atol", told)
        told = self.run_tool("solve", "small.toml", "--atol", "1e-15", "--overwrite").stderr
        self.assertNotIn("tolerance", told)

    def test_a_component_that_float32_holds_still_is_told(self):
        self.write("slow.toml", SLOW)
        done = self.run_tool("solve", "slow.toml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lockstep: note: float32 holds T still at 300: a step of 0.0035 adds 6.9e-06, less than half the "
                      "spacing of float32 there (3.1e-05), and 0.04 in all is lost: take precision f64", done.stderr)
        self.assertEqual(self.run_tool("solve", "slow.toml", "--precision", "f64", "--overwrite").stderr, "")

    def test_numbers_that_float32_has_no_room_for_are_told(self):
        self.write("far.toml", '[rhs.equations]\nx = "v"\nv = "-G * M / x^2"\n[rhs.parameters]\nG = 6.674e-48\nM = 1e39\n'
                               '[ensemble]\ntrajectories = 2\ninitial_state = { x = [7e12, 1e40], v = 0 }\n'
                               '[time]\nspan = [0, 1]\n[output]\nfile = "far.h5"\n')
        said = self.run_tool("solve", "far.toml").stderr
        for note in ("the initial state x = 1e+40 in trajectory 1 is infinite in float32, whose numbers go up to 3.4e38: take "
                     "precision f64, or other units\n", "parameter G = 6.674e-48 is 0 in float32", "parameter M = 1e+39 is infinite"):
            self.assertIn("lockstep: note: " + note, said)
        self.assertNotIn("float32", self.run_tool("solve", "far.toml", "--precision", "f64", "--overwrite").stderr)


class Selection(OutputTest):
    def test_chosen_components_and_times_have_the_bits_of_a_whole_file(self):
        self.write("some.toml", LORENZ + 'components = ["z", "x"]\nevery = 4\n')
        self.succeed("solve", "lorenz.toml")
        self.succeed("solve", "some.toml", "--output", "some.h5", "--certificate")
        with h5py.File(self.path("lorenz.h5")) as whole, h5py.File(self.path("some.h5")) as some:
            self.assertEqual(some["state"].shape, (3000, 6, 2))
            self.assertEqual([name.decode() for name in some["component"][:]], ["z", "x"])
            np.testing.assert_array_equal(some["state"][:], whole["state"][:][:, ::4][:, :, [2, 0]])
            np.testing.assert_array_equal(some["end_state"][:], whole["end_state"][:][:, [2, 0]])
            np.testing.assert_array_equal(some["initial_state"][:], whole["initial_state"][:][:, [2, 0]])
            np.testing.assert_array_equal(some["time"][:], whole["time"][:][::4])
            self.assertEqual(some["certificate_state"].shape[2:], (6, 2))
        self.assertIn("3,000 trajectories x 6 times x 2 components", self.succeed("info", "some.h5"))
        self.succeed("solve", "some.toml", "--output", "again.h5", "--threads", "1")
        self.assertIn("same bits", self.succeed("validate", "some.h5", "again.h5"))
        with h5py.File(self.path("again.h5"), "r+") as file:
            file["state"][:] *= np.float32(1.001)
        done = self.run_tool("validate", "some.h5", "again.h5")
        self.assertEqual(done.returncode, 1, "judged by the certificate: " + done.stdout + done.stderr)

    def test_a_file_of_chosen_components_is_judged_without_a_certificate(self):
        self.write("some.toml", LORENZ.replace("3000", "300") + 'components = ["z", "x"]\nevery = 4\n')
        self.succeed("solve", "some.toml", "--output", "a.h5")
        for index in (1, 2):
            self.succeed("solve", "some.toml", "--shard", f"{index}/2")
        self.succeed("merge", *sorted(self.folder.glob("*.shard*.h5")), "--output", "merged.h5")
        for reference in ("a.h5", "merged.h5"):
            for factor, code, words in ((1 + 2**-23, 0, "agrees with"), (1.001, 1, "does not agree")):
                shutil.copy(self.path("a.h5"), self.path("b.h5"))
                with h5py.File(self.path("b.h5"), "r+") as file:
                    file["state"][:, 1:] *= np.float32(factor)
                done = self.run_tool("validate", reference, "b.h5")
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertIn(words, done.stdout)
                self.assertIn(f"computed anew from the problem in {reference}", done.stdout)

    def test_a_run_with_chosen_components_is_continued(self):
        self.write("some.toml", LORENZ.replace("3000", "60000").replace("[0, 2]", "[0, 40]") + 'components = ["y"]\n')
        self.succeed("solve", "some.toml", "--output", "whole.h5")
        process = subprocess.Popen([TOOL, "solve", "some.toml", "--threads", "1"], cwd=self.folder)
        deadline = time.monotonic() + 60
        stored = 0
        while stored == 0:
            self.assertLess(time.monotonic(), deadline)
            part = self.path("lorenz.h5.part")
            if part.exists() and part.stat().st_size > 0:
                with h5py.File(part, "r") as file:
                    stored = np.count_nonzero(file["status"][:] != 6)
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.write("other.toml", self.path("some.toml").read_text().replace('["y"]', '["z"]'))
        self.fail_with("found results of another run: components y, expected components z", "solve", "other.toml", "--resume")
        self.succeed("solve", "some.toml", "--resume")
        self.assertIn("same bits", self.succeed("validate", "lorenz.h5", "whole.h5"))

    def test_wrong_choices_name_their_line(self):
        for keys, message in (
                ('components = ["w"]', 'bad.toml:13: output.components: found "w", expected names among x, y, z'),
                ('components = ["x", "x"]', 'output.components: found "x" twice, expected each component once'),
                ("components = []", "output.components: found no components, expected at least one name"),
                ("components = 3", "output.components: found 3"),
                ("every = 0", "bad.toml:13: output.every: found 0, expected an integer of 1 or more"),
                ("every = 21", "output.every: found 21, expected a number below that of the save points, which is 21"),
                ("evry = 2", 'did you mean "every"?')):
            with self.subTest(keys):
                self.write("bad.toml", LORENZ + keys + "\n")
                self.fail_with(message, "solve", "bad.toml")

    def test_names_of_other_formats_are_refused(self):
        self.write("csv.toml", LORENZ.replace("lorenz.h5", "w.CSV"))
        self.fail_with('csv.toml:12: output.file: found "w.CSV", expected a name that ends in .h5: results are HDF5; name '
                       "it w.h5", "solve", "csv.toml")
        self.fail_with('--output: found "w.npz", expected a name', "solve", "lorenz.toml", "-o", "w.npz")
        self.fail_with('--output: found "w.csv", expected a name', "merge", "lorenz.h5", "-o", "w.csv")
        self.assertFalse(list(self.folder.glob("w.*")))
        for name in ("w.h5", "w.nc", "w", "run.2"):
            self.succeed("solve", "lorenz.toml", "-q", "-o", name)


class Pack(OutputTest):
    def contents(self, name):
        found = {}
        with h5py.File(self.path(name), "r") as file:
            def visit(path, thing):
                if isinstance(thing, h5py.Dataset):
                    value = thing[()]
                    found[path] = value.tobytes() if value.dtype != object else list(value)
            file.visititems(visit)
            for key, value in file.attrs.items():
                if key not in ("history", "packed"):
                    found["@" + key] = value
        return found

    def test_a_packed_file_is_smaller_and_holds_the_same(self):
        self.succeed("solve", "lorenz.toml", "--certificate")
        out = self.succeed("pack", "lorenz.h5", "--output", "small.h5")
        self.assertRegex(out, r"\Asmall.h5: [\d.]+ [kM]B, was [\d.]+ [kM]B: \d+\.\d\d times smaller, every bit verified\n\Z")
        self.assertLess(self.path("small.h5").stat().st_size, 0.95 * self.path("lorenz.h5").stat().st_size)
        self.assertEqual(self.contents("small.h5"), self.contents("lorenz.h5"))
        with h5py.File(self.path("small.h5")) as file:
            self.assertEqual(file["state"].compression, "gzip")
            self.assertTrue(file["state"].shuffle)
            self.assertIsNotNone(file["state"].chunks)
            self.assertEqual(file.attrs["packed"], "shuffle, deflate 4")
            self.assertEqual(file["state"].dims[2][0].name, "/component")
        self.assertIn("same bits", self.succeed("validate", "small.h5", "lorenz.h5"))
        self.assertIn("3,000 success", self.succeed("info", "small.h5"))
        self.assertIn("nothing to do", self.succeed("solve", "lorenz.toml", "--output", "small.h5", "--resume"))

    def test_tables_of_a_packed_file_are_inflated_once(self):
        self.write("own.toml", LORENZ.replace("trajectories = 3000", "trajectories = 20000").replace(
            "[time]", "parameters = { box = { low = [9, 20, 2], high = [11, 30, 3] } }\n[time]"))
        self.succeed("solve", "own.toml", "--output", "own.h5", "--quiet")
        self.succeed("pack", "own.h5", "--output", "small.h5", "--quiet")

        def processor_seconds(*files):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.succeed("validate", "--quiet", *files)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        # Inflated for each trajectory anew, the parameters alone take hundreds of times as long.
        self.assertLess(processor_seconds("own.h5", "small.h5"), 2 + 20 * processor_seconds("own.h5", "own.h5"))

    def test_xarray_opens_a_packed_file(self):
        try:
            import h5netcdf  # noqa: F401
            import xarray
        except ImportError as error:
            self.skipTest(f"{error}; install python3-xarray and python3-h5netcdf")
        self.succeed("solve", "lorenz.toml")
        self.succeed("pack", "lorenz.h5", "--output", "small.h5")
        with xarray.open_dataset(self.path("small.h5"), engine="h5netcdf") as small, \
                xarray.open_dataset(self.path("lorenz.h5"), engine="h5netcdf") as whole:
            self.assertEqual(small.state.dims, ("trajectory", "time", "component"))
            self.assertTrue(small.state.equals(whole.state))
            self.assertEqual(list(small.component.values), ["x", "y", "z"])

    def test_without_output_the_file_is_replaced(self):
        self.succeed("solve", "lorenz.toml")
        before = self.contents("lorenz.h5")
        self.succeed("pack", "lorenz.h5", "--level", "9", "--quiet")
        self.assertEqual(self.contents("lorenz.h5"), before)
        self.fail_with("lorenz.h5: found a file that is packed already (shuffle, deflate 9), expected one that is not",
                       "pack", "lorenz.h5")
        self.assertEqual([path.name for path in self.folder.iterdir() if "h5" in path.name], ["lorenz.h5"])

    def test_a_file_that_would_not_become_smaller_stays_as_it_is(self):
        self.succeed("solve", "lorenz.toml", "--trajectories", "5")
        before = self.path("lorenz.h5").read_bytes()
        self.assertRegex(self.succeed("pack", "lorenz.h5"),
                         r"\Alorenz.h5: stays as it is, [\d.]+ kB: packed it would take [\d.]+ kB\n\Z")
        self.assertEqual(self.path("lorenz.h5").read_bytes(), before)
        self.succeed("pack", "lorenz.h5", "--output", "asked.h5")
        self.assertEqual(self.contents("asked.h5"), self.contents("lorenz.h5"))

    def test_what_was_added_to_a_file_is_packed_as_it_is_or_refused(self):
        self.succeed("solve", "lorenz.toml")
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["note"] = "a scalar text"
            file.create_dataset("table", data=[["a", "b"], ["c", ""]], dtype=h5py.string_dtype())
            for attributes in (file.attrs, file["state"].attrs):
                attributes["checked"] = True
                attributes["phase"] = 1j
                attributes["matrix"] = np.arange(6).reshape(2, 3)
                attributes["small"] = np.uint16(3)
                attributes["words"] = [["a", "b"]]
                attributes["none"] = h5py.Empty("f8")
        self.succeed("pack", "lorenz.h5", "--output", "packed.h5")
        with h5py.File(self.path("lorenz.h5")) as file, h5py.File(self.path("packed.h5")) as packed:
            self.assertEqual(packed["note"][()], b"a scalar text")
            self.assertEqual(packed["table"][()].tolist(), file["table"][()].tolist())
            for one, other in ((file.attrs, packed.attrs), (file["state"].attrs, packed["state"].attrs)):
                for name in ("checked", "phase", "matrix", "small", "words"):
                    self.assertEqual(np.asarray(one[name]).tolist(), np.asarray(other[name]).tolist(), name)
                    self.assertEqual(one.get_id(name).dtype, other.get_id(name).dtype, name)
                self.assertEqual(other["none"], h5py.Empty("f8"))
        self.fail_with("@checked: found another type or shape, expected numbers or text", "merge", "lorenz.h5",
                       "--output", "merged.h5")
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["mine"] = np.zeros(3, dtype=[("a", "i4")])
        self.fail_with("/mine: found a dataset of another type, expected what can be copied whole", "pack", "lorenz.h5")

    def test_an_unfinished_file_is_not_packed(self):
        self.succeed("solve", "lorenz.toml")
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["status"][3:5] = 6
        self.fail_with("lorenz.h5: found 2 trajectories that were not finished", "pack", "lorenz.h5")

    def test_what_cannot_be_packed_stays_as_it_is(self):
        self.succeed("solve", "lorenz.toml")
        self.write("text.h5", "not HDF5")
        self.fail_with("text.h5: found no HDF5 signature", "pack", "text.h5")
        self.fail_with("missing.h5: found no such file", "pack", "missing.h5")
        self.path("cut.h5").write_bytes(self.path("lorenz.h5").read_bytes()[:9000])
        self.fail_with("cut.h5: found a truncated file", "pack", "cut.h5")
        self.fail_with("text.h5: found a file of that name", "pack", "lorenz.h5", "--output", "text.h5")
        self.assertEqual(self.path("text.h5").read_text(), "not HDF5")
        self.fail_with("--level", "pack", "lorenz.h5", "--level", "10")
        self.succeed("merge", "lorenz.h5", "--output", "index.h5", "--index")
        self.fail_with("index.h5: found an index of other files", "pack", "index.h5")
        self.path("lorenz.h5").rename(self.path("lorenz.h5.part"))
        self.fail_with("lorenz.h5.part: found the unfinished file of a run, expected a finished one", "pack",
                       "lorenz.h5.part")


class LargerThanMemory(OutputTest):
    """Files of 194 MB each in an address space of 180 MB, the program's own code and stacks in it."""
    one_line = False

    def test_files_are_compared_in_bounded_memory_and_with_progress(self):
        self.write("large.toml", LORENZ.replace("3000", "160000").replace("save = 21", "save = 101").replace(
            "[output]", '[method]\nname = "rk4"\ncontrol = "fixed"\ndt = 0.02\nprecision = "f32"\n[output]'))
        self.succeed("solve", "large.toml", "--quiet", "--certificate")
        limit = 180 << 20
        self.assertGreater(self.path("lorenz.h5").stat().st_size, limit)
        shutil.copy(self.path("lorenz.h5"), self.path("port.h5"))
        with h5py.File(self.path("port.h5"), "r+") as file:  # by the last place
            state = file["state"]
            state[150_000:150_010] = np.nextafter(state[150_000:150_010], np.float32(1000))

        def capped(*arguments):
            return subprocess.run([TOOL, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300,
                                  env=dict(os.environ, OMP_NUM_THREADS="2"),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        done = capped("validate", "lorenz.h5", "port.h5")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("port.h5 agrees with lorenz.h5: they differ by no more than rounding explains", done.stdout)
        done = capped("validate", "--bits", "lorenz.h5", "port.h5")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("in 10 trajectories", done.stdout)
        self.assertEqual(capped("validate", "lorenz.h5", "lorenz.h5").returncode, 0)
        # The limit is one: what needs the whole file in memory does not fit.
        whole = subprocess.run([sys.executable, "-c", "import mmap; mmap.mmap(-1, 194_000_000)"], capture_output=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertNotEqual(whole.returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
