"""Input that is wrong: problem files, models, flags and files, each answered in a line that says what and where.

usage: bad_input_test.py LOCKSTEP MODEL.safetensors [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ENDLESS, LORENZ, NET, NetTest, TOOL, h5py, np, safetensors


class BadInput(NetTest):
    def test_files_in_the_place_of_others(self):
        for name, kind in (("net.safetensors", "a safetensors file"), ("net.keras", "a zip archive"),
                           ("net.onnx", "an ONNX model"), ("net.plan", "a plan file"), ("noise", "a binary file"),
                           ("/dev/zero", "more than 256 MB")):
            if name == "net.keras":
                self.write(name, b"PK\x03\x04" + bytes(100))
            elif name == "noise":
                self.write(name, b"\x01\x00\xff" * 99)
            elif name == "net.onnx":
                self.run_tool("export", "net.safetensors", "--onnx", name)
            elif name == "net.plan":
                self.run_tool("compile", "net.safetensors", "-o", name)
            for command in ("solve", "train"):
                self.fail_with(f"{name}: found {kind}", command, name)

    def test_info_tells_what_it_found_in_place_of_what_it_reads(self):
        known = "expected a result file, a model file or data in HDF5"
        self.write("x.csv", "a,b\n1,2\n")
        self.write("empty.h5", "")
        self.write("noise", b"\x01\x02\x03" * 99)
        (self.folder / "folder").mkdir()
        for name, found, remedy in (("missing.h5", "no such file", "check the path"),
                                    ("x.csv", "a table or other text", "data for lockstep train and evaluate"),
                                    ("empty.h5", "an empty file", "what was to write it"),
                                    ("noise", "a file of another kind", "lockstep import --help"),
                                    ("folder", "a folder", "name the file inside it")):
            self.fail_with(f"{name}: found {found}, {known}; ", "info", name)
            self.fail_with(remedy, "info", name)

    def test_results_in_the_place_of_a_model_are_told_from_other_files(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        for command in (("explain",), ("evaluate", "--input", "x.csv", "--output", "y.csv"), ("compile", "-o", "net.plan")):
            self.fail_with("lorenz.h5: found results of an ensemble, expected a model, or equations in a problem file; "
                           "lockstep info tells how they were solved", command[0], "lorenz.h5", *command[1:])

    def test_names_that_are_empty_or_folders(self):
        self.path("out.h5").mkdir()
        self.fail_with("two  spaces.h5: found no such file", "info", "two  spaces.h5")
        self.fail_with("two\\x0alines.h5: found no such file", "info", "two\nlines.h5")
        self.fail_with("two\\x0alines.toml: found no readable file", "solve", "two\nlines.toml")
        self.fail_with("unexpected argument \\x1b[2Jx; see", "info", "net.safetensors", "\x1b[2Jx")
        self.fail_with("out.h5: found a folder, expected a file name", "solve", "lorenz.toml", "--output", "out.h5")
        for command in (["solve", "lorenz.toml"], ["plot", "x.h5"], ["pack", "x.h5"], ["merge", "x.h5"],
                        ["compile", "net.safetensors"], ["import", "net.safetensors"],
                        ["evaluate", "net.safetensors", "--input", "x.h5"]):
            self.fail_with('--output: found "", expected the name of a file', *command, "--output", "")

    def test_what_is_printed_must_arrive(self):
        for command in (["info", "net.safetensors"], ["info", "--systems"], ["solve", "lorenz.toml", "--overwrite"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([TOOL, *command], cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("standard output: found No space left on device", done.stderr)
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertTrue((file["status"][:] == 0).all(), "what was done is done")
        shell = subprocess.run(f"'{TOOL}' info net.safetensors >&-", cwd=self.folder, shell=True, capture_output=True)
        self.assertEqual((shell.returncode, shell.stderr), (0, b""))

    def test_models(self):
        whole = self.path("net.safetensors").read_bytes()
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
        self.fail_solving('bad.toml:4: rhs.activations[1]: found "relux", expected one of identity, linear, relu',
                          NET.replace("components =", 'activations = "relu,relux"\ncomponents ='))
        self.fail_with("--activations: found 3 names (relu,relu,relu), expected 2", "info", "net.safetensors",
                       "--activations", "relu,relu,relu")
        # Others than the file names are refused, whatever its format; its own may be said again.
        self.succeed("import", "net.safetensors", "-o", "own.hdf5")
        for name in ("net.safetensors", "own.hdf5"):
            problem = NET.replace("net.safetensors", name)
            self.succeed("info", name, "--activations", "Tanh,linear")
            self.succeed("info", name, "--activations", "tanh")
            self.fail_with(f'--activations: found "relu,tanh", expected "tanh,identity", the activations that {name} has of its own',
                           "info", name, "--activations", "relu,tanh")
            self.fail_solving('bad.toml:4: rhs.activations: found "relu,tanh", expected "tanh,identity"',
                              problem.replace("components =", 'activations = "relu,tanh"\ncomponents ='))
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

    def test_tables_of_initial_states(self):
        text = LORENZ.replace("{ normal = { mean = [1, 0, 0], std = 0.1 } }", '{ file = "u0.csv" }')
        for rows, message in (("x;y;z\n1,5;0;0\n", 'u0.csv:2, column x: found "1,5", expected a finite number; write decimal '
                                                   "points"),
                              ("x,y,z\n1,0,\n", "u0.csv:2, column z: found an empty field"),
                              ("x y z\n1 0 0\n", 'found no column "x" in u0.csv, expected one of x y z; separate columns by '
                                                  "commas, semicolons or tabs")):
            self.write("u0.csv", rows)
            self.write("table.toml", text.replace("trajectories = 100", "trajectories = 1"))
            self.fail_with(message, "solve", "table.toml")

    def test_events_that_never_strike(self):
        for text in ("x > 20", "x >= 20", "20 < x", "x == 20"):
            self.fail_solving(f'event.function: found the condition "{text}", expected an expression whose sign changes; '
                              "write the difference of its two sides", LORENZ + f'[event]\nfunction = "{text}"\n')
        self.fail_solving('event.function: found the number "2"', LORENZ + '[event]\nfunction = "2"\n')

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
        self.fail_solving("bad.toml:14: method.rtol: found 1000, expected a relative tolerance below 1",
                          method("rtol = 1e3"))
        self.fail_solving("bad.toml:14: method.atol[1]: found -1", method("atol = [1, -1, 1]"))
        self.fail_solving("bad.toml:14: method.atol: found 2 numbers, expected one for all", method("atol = [1, 1]"))
        self.fail_solving("bad.toml:14: method.atol: found an empty list, expected a tolerance", method("atol = []"))
        self.fail_solving("method.rtol: found a number that is not finite", method("rtol = nan"))
        self.fail_solving("bad.toml:14: method.dt: found", method("dt = -0.1"))
        self.fail_solving('bad.toml:14: method.name: found "tsit", expected one of euler', method('name = "tsit"'))
        self.fail_solving("method.control", method('name = "rk4"'))
        self.fail_with("--dt: found", "solve", "lorenz.toml", "--dt", "0")
        self.fail_with("--rtol: found", "solve", "lorenz.toml", "--rtol", "-1")
        self.fail_with("--rtol: found 1, expected", "solve", "lorenz.toml", "--rtol", "1")
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
