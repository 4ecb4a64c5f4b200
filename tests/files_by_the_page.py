"""Result files read by nothing but docs/files.md and plain h5py: what the page says is enough, and true.

usage: files_by_the_page.py LOCKSTEP FILES.md EXAMPLE MODEL.safetensors [unittest arguments]
EXAMPLE is the C++ program of the page, compiled. Exit code 77 without h5py: skipped, not passed.
"""
import json
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tool_test import LORENZ, TOOL, h5py, np
from page_reader import EXAMPLE, NET, PAGE, STATUS, PageTest, Reader, items


class Numbers(PageTest):
    def test_a_solution_can_be_read_and_checked(self):
        self.succeed("solve", "own.toml", "--precision", "f64", "--rtol", "1e-10", "--atol", "1e-10", "--quiet")
        reader = Reader(self.path("own.h5"))
        file = reader.file
        self.assertEqual(reader.components, ["x", "y", "z"])
        self.assertTrue(reader.finished.all())
        self.assertEqual(int(file["committed"][()]), 100)
        self.assertEqual(list(file["trajectory"][:]), list(range(100)))
        terminated = file["status"][:] == STATUS.index("terminated")
        self.assertTrue(0 < terminated.sum() < 100, "some reach the event, some do not")
        # On the event z = 40 up to the root's tolerance; |dz/dt| < 1e3 on the attractor, time is found to 1e-9.
        np.testing.assert_allclose(file["end_state"][terminated, 2], 40, atol=1e-6)
        asked = file["problem/end_time"][:]
        np.testing.assert_array_equal(file["end_time"][~terminated], asked[~terminated])
        self.assertTrue((file["end_time"][terminated] < asked[terminated]).all())
        for row in range(100):
            times = reader.times(row)
            np.testing.assert_array_equal(reader.state[row, 0], file["initial_state"][row])
            after = times > file["end_time"][row]
            self.assertTrue(np.isnan(reader.state[row, after]).all())
            self.assertTrue(np.isfinite(reader.state[row, ~after]).all())
            self.assertEqual(reader.parameters(row)["sigma"], 10)
        rho = [reader.parameters(row)["rho"] for row in (0, 99)]
        self.assertEqual(rho, [20, 28])
        # The equation itself: central differences of a finely saved run.
        self.path("fine.toml").write_text(LORENZ.replace("save = 21", "save = 20001").replace("= 100\n", "= 3\n"))
        self.succeed("solve", "fine.toml", "--precision", "f64", "--rtol", "1e-12", "--atol", "1e-12", "--quiet")
        fine = Reader(self.path("lorenz.h5"))
        x, y, z = np.moveaxis(fine.state[:], -1, 0)
        slope = (x[:, 2:] - x[:, :-2]) / 2e-4
        # Central differences err by h^2/6 |x'''| = 1.7e-9 |x'''|, |x'''| < 1e6; solver errors of 1e-12 give 1e-8 more.
        np.testing.assert_allclose(slope, 10 * (y - x)[:, 1:-1], atol=1e-2)

    def test_all_kinds_of_files_hold_the_same_ensemble(self):
        self.make_all()
        whole = Reader(self.path("lorenz.h5"))
        for name in ("merged.h5", "index.h5"):
            other = Reader(self.path(name))
            for dataset in ("state", "status", "certificate_state", "certificate_trajectory"):
                self.assertEqual(whole.file[dataset][()].tobytes(), other.file[dataset][()].tobytes(), (name, dataset))
        for path in self.folder.glob("lorenz.shard-*.h5"):
            part = Reader(path)
            first = int(part.file.attrs["first_trajectory"])
            count = part.state.shape[0]
            self.assertEqual(list(part.file["trajectory"][:]), list(range(first, first + count)))
            self.assertEqual(part.file.attrs["ensemble_trajectories"], 100)
            self.assertEqual(whole.state[first:first + count].tobytes(), part.state[:].tobytes())
            chosen = part.file["certificate_trajectory"][:]
            self.assertTrue(((chosen >= first) & (chosen < first + count)).all())
        # A perturbed member starts `ulps` units in the last place away, or more, but fewer than twice as many (of the
        # largest component, where one is zero).
        start = whole.state[:, 0][whole.file["certificate_trajectory"][:]]
        moved = whole.file["certificate_state"][:, :, 0]
        ulps = whole.file["certificate_state"].attrs["ulps"]
        self.assertTrue((moved != start).any(axis=-1).all())
        largest = np.abs(start).max(axis=-1, keepdims=True)
        self.assertTrue((np.abs(moved - start) < 2 * ulps * np.spacing(largest)).all())
        nonzero = np.broadcast_to(start != 0, moved.shape)
        # Half of the spacing above: below a power of two the spacing is that.
        self.assertTrue((np.abs(moved - start) >= ulps * np.spacing(np.abs(start)) / 2)[nonzero].all())

    def test_an_index_without_a_part_is_refused(self):
        self.make_all()
        self.path("lorenz.shard-2-of-3.h5").unlink()
        with self.assertRaises(FileNotFoundError):
            Reader(self.path("index.h5"))

    def test_a_killed_run_can_be_read(self):
        running = subprocess.Popen([TOOL, "solve", "endless.toml", "--quiet"], cwd=self.folder, stderr=subprocess.PIPE)
        part = self.path("lorenz.h5.part")
        begun = time.monotonic()
        while not part.exists() and time.monotonic() - begun < 60:
            time.sleep(0.05)
        time.sleep(3)
        self.assertIsNone(running.poll())
        running.send_signal(signal.SIGKILL)
        running.wait()
        running.stderr.close()
        reader = Reader(part)
        self.assertGreaterEqual(int(reader.finished.sum()), int(reader.file["committed"][()]))
        self.assertTrue(0 < reader.finished.sum() < 1000000)
        rows = np.flatnonzero(reader.finished)[:1000]
        self.assertTrue(np.isfinite(reader.state[rows[0]:rows[0] + 1]).all())
        self.assertTrue((reader.file["evaluations"][rows[0]:rows[0] + 1] > 0).all())


class Form(PageTest):
    def check_attribute(self, owner, name):
        attribute = h5py.h5a.open(owner.id, name.encode())
        kind = attribute.get_type()
        self.assertIn(kind.get_class(), (h5py.h5t.STRING, h5py.h5t.INTEGER, h5py.h5t.FLOAT), (owner.name, name))
        self.assertLessEqual(len(attribute.shape), 1)

    def test_nothing_but_plain_hdf5_is_used(self):
        for path in self.make_all():
            with h5py.File(path) as file:
                index = "index_files" in file.attrs
                for name in file.attrs:
                    self.check_attribute(file, name)
                for name, item in items(file).items():
                    self.assertEqual(type(item.parent.get(name.rsplit("/", 1)[-1], getlink=True)), h5py.HardLink, name)
                    for attribute in item.attrs:
                        if attribute not in ("DIMENSION_LIST", "REFERENCE_LIST"):
                            self.check_attribute(item, attribute)
                    if not isinstance(item, h5py.Dataset):
                        continue
                    if item.dtype.kind == "O":
                        self.assertEqual(h5py.check_string_dtype(item.dtype).encoding, "utf-8")
                    else:
                        self.assertIn(item.dtype.str, ("<f4", "<f8", "|u1", "<i4", "<i8"), (path.name, name))
                    properties = item.id.get_create_plist()
                    self.assertEqual(properties.get_nfilters(), 0)
                    self.assertEqual(properties.get_external_count(), 0)
                    self.assertIn(properties.get_layout(),
                                  (h5py.h5d.CONTIGUOUS, h5py.h5d.VIRTUAL) if index else (h5py.h5d.CONTIGUOUS,), name)
                    self.assertEqual(item.maxshape, item.shape)

    def test_h5dump_reads_every_header(self):
        if not shutil.which("h5dump"):
            self.skipTest("h5dump is not installed (hdf5-tools)")
        for path in self.make_all():
            done = subprocess.run(["h5dump", "-H", path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('DATASET "state"', done.stdout)

    def test_octave_reads_what_it_is_told_to(self):
        octave = shutil.which("octave-cli")
        if not octave:
            self.skipTest("GNU Octave is not installed (octave)")
        self.succeed("solve", "lorenz.toml", "--certificate", "--quiet")
        done = subprocess.run([octave, "--norc", "--eval",
                               's = load("-hdf5", "lorenz.h5", "state", "time", "status", "certificate_state");'
                               'printf("%d ", size(s.state), size(s.certificate_state));'
                               'printf("%s %.9g %.17g %d", class(s.status), s.state(3, 2, 8), s.time(2), s.status(8))'],
                              cwd=self.folder, capture_output=True, text=True, timeout=120)
        with h5py.File(self.path("lorenz.h5")) as file:
            state, certificate = file["state"], file["certificate_state"]
            sizes = [*reversed(state.shape), *reversed(certificate.shape)]
            self.assertEqual(done.stdout, " ".join(map(str, sizes)) + " uint8 %.9g %.17g %d" %
                             (state[7, 1, 2], file["time"][1], file["status"][7]))

    def test_the_page_names_everything_in_the_files(self):
        page = PAGE.read_text()
        named = set(re.findall(r"`([a-z_A-Z0-9]+)`", page)) | {"long_name", "CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"}
        for path in self.make_all():
            with h5py.File(path) as file:
                found = set(file.attrs)
                for name, item in items(file).items():
                    found.add(name.rsplit("/", 1)[-1])
                    found |= set(item.attrs)
            self.assertEqual(found - named, set(), f"in {path.name} but not on the page")

    def test_dimensions_carry_their_scales(self):
        for path in self.make_all():
            with h5py.File(path) as file:
                rows = "save_point" if file["time"].ndim == 2 else "time"
                for name, dimensions in (("state", ["trajectory", rows, "component"]),
                                         ("end_state", ["trajectory", "component"]), ("status", ["trajectory"])):
                    self.assertEqual([file[name].dims[i][0].name for i in range(file[name].ndim)],
                                     ["/" + dimension for dimension in dimensions])

    def test_status_explains_itself(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertEqual(file["status"].attrs["flag_meanings"].split(), STATUS)
            self.assertEqual(list(file["status"].attrs["flag_values"]), list(range(7)))
            self.assertEqual(file["status"].attrs["flag_values"].dtype, file["status"].dtype)

    def test_xarray_sees_names_coordinates_and_units(self):
        try:
            import h5netcdf  # noqa: F401
            import xarray
        except ImportError:
            self.skipTest("xarray or h5netcdf is not installed")
        for path in self.make_all():
            with xarray.open_dataset(path, engine="h5netcdf") as ensemble:
                self.assertEqual(ensemble.attrs["Conventions"], "CF-1.10")
                self.assertEqual(list(ensemble.component.values), ["x", "y", "z"] if path.name != "net.h5" else
                                 list(ensemble.component.values))
                for name, variable in ensemble.data_vars.items():
                    self.assertIn("long_name", variable.attrs, name)
                first = ensemble.state.isel(trajectory=0).sel(component=ensemble.component.values[0])
                self.assertTrue(np.isfinite(first.values[0]))
        rows = b"".join(np.zeros(shape, "<f4").tobytes() for shape in ((2, 2), (2,)))
        header = json.dumps({"__metadata__": {"activations": "linear", "inputs": "position,speed", "input_units": "m,m/s"},
                             "0.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                             "0.bias": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]}}).encode()
        self.path("units.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + rows)
        self.path("units.toml").write_text(NET.replace("net.", "units.").replace("mean = [1, 0, 0]", "mean = [1, 0]"))
        self.succeed("solve", "units.toml", "--quiet")
        with xarray.open_dataset(self.path("units.h5"), engine="h5netcdf") as ensemble:
            self.assertEqual(list(ensemble.component.values), ["position", "speed"])
            self.assertEqual(list(ensemble.state.attrs["component_units"]), ["m", "m/s"])
            self.assertNotIn("units", ensemble.state.attrs)


class Example(PageTest):
    def test_the_pages_program_reads_a_file(self):
        self.succeed("solve", "lorenz.toml", "--trajectories", "1234", "--quiet")
        done = subprocess.run([EXAMPLE, self.path("lorenz.h5")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 1234)
        with h5py.File(self.path("lorenz.h5")) as file:
            x, _, z = file["end_state"][1100]
        self.assertEqual(lines[1100], f"1100 ended {x:g} {z:g}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=1)
