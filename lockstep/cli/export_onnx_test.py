"""`lockstep export --onnx` from outside. usage: export_onnx_test.py LOCKSTEP TESTDATA [unittest arguments]"""
import pathlib
import resource
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest

import h5py
import numpy as np

NET = pathlib.Path(sys.argv[2]).resolve() / "lorenz_tanh_3_100_3.safetensors"
SAMPLES = np.random.default_rng(3).normal(0, 10, (37, 3)).astype(np.float32)


class ExportOnnxTest(ToolTest):
    def digest(self, model):
        return next(line.split()[1] for line in self.succeed("info", model).splitlines() if line.split()[:1] == ["digest"])

    def test_a_net_is_written_and_read_to_the_same_bits(self):
        self.assertEqual(self.succeed("export", NET, "--onnx", "net.onnx"), "net.onnx: ONNX in float32, in x[3], out y[3]\n")
        self.assertEqual(self.digest("net.onnx"), self.digest(NET))
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = SAMPLES
        self.succeed("evaluate", NET, "--input", "x.h5", "--output", "y.h5")
        with h5py.File(self.path("y.h5")) as file:
            expected = file["output"][...]
        with h5py.File(self.path("samples.h5"), "w") as file:
            file["input"], file["output"] = SAMPLES, expected
        self.succeed("import", "net.onnx", "-o", "again.h5", "--check", "samples.h5")
        self.assertEqual(self.digest("again.h5"), self.digest(NET))
        self.succeed("evaluate", "net.onnx", "--input", "x.h5", "--output", "z.h5")
        with h5py.File(self.path("z.h5")) as file:
            np.testing.assert_array_equal(file["output"][...].view(np.uint32), expected.view(np.uint32))

    def test_names_units_and_ranges_are_kept_and_told(self):
        self.succeed("import", NET, "-o", "named.h5", "--inputs", "a,b,c", "--range", "a=-1:2", "--range", "c=0:0.3")
        self.succeed("export", "named.h5", "--onnx", "named.onnx", "--precision", "f64")
        told = self.succeed("info", "named.onnx")
        for line in ("a                -, trained on -1 to 2", "c                -, trained on 0 to 0.3", "stored as float64",
                     "format           ONNX, opset 17"):
            self.assertIn(line, told)

    def test_equations_are_written_with_their_tables(self):
        self.write("wind.csv", "time,speed\n0,1\n1,3\n2.5,0\n")
        self.write("hybrid.toml", f"""[rhs]
models = {{ net = "{NET}" }}
tables = {{ wind = {{ file = "wind.csv" }} }}
[rhs.equations]
x = "10 * (y - x) + wind(t)"
y = "x * (28 - z) - y + sin(x)"
z = "net(x, y, z)[2] / 3"
""")
        said = self.succeed("export", "hybrid.toml", "--onnx", "hybrid.onnx")
        self.assertIn("ONNX in float32, in u[3], t[1], out du[3]", said)
        told = self.succeed("info", "hybrid.onnx")
        for line in ("call               wind, input x", "known from 0 to 2.5", 'dx/dt = 10 * (y - x) + wind(t)'):
            self.assertIn(line, told)
        self.write("exact.toml", self.path("hybrid.toml").read_text() + '[method]\nprecision = "f64"\n')
        self.assertIn("ONNX in float64", self.succeed("export", "exact.toml", "--onnx", "exact.onnx"))
        said = self.succeed("export", "exact.toml", "--onnx", "exact.onnx", "--overwrite", "--precision", "f32")
        self.assertIn("ONNX in float32", said)

    def test_files_appear_whole_or_not_at_all(self):
        self.write("net.onnx", "mine")
        self.fail_with("net.onnx: found a file of that name", "export", NET, "--onnx", "net.onnx")
        self.assertEqual(self.path("net.onnx").read_text(), "mine")
        self.succeed("export", NET, "--onnx", "net.onnx", "--overwrite")
        self.fail_with("a file that is read as well", "export", "net.onnx", "--onnx", "net.onnx", "--overwrite")
        self.fail_with("nowhere/net.onnx: found no folder nowhere", "export", NET, "--onnx", "nowhere/net.onnx")

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
        self.fail_with("full.onnx: found", "export", NET, "--onnx", "full.onnx", preexec_fn=limit, restore_signals=False)
        self.assertFalse(list(self.folder.glob("full*")) + list(self.folder.glob(".*")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
