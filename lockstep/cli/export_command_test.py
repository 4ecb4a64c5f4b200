"""`lockstep export` from outside. usage: export_command_test.py LOCKSTEP TESTDATA CC [unittest arguments]"""
import ctypes
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest

import h5py
import numpy as np

DATA = pathlib.Path(sys.argv[2]).resolve()
CC = sys.argv[3]
NET = DATA / "lorenz_tanh_3_100_3.safetensors"
SAMPLES = np.random.default_rng(3).normal(0, 10, (37, 3)).astype(np.float32)


class ExportTest(ToolTest):
    def evaluated(self, model=NET):
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = SAMPLES
        self.succeed("evaluate", model, "--input", "x.h5", "--output", "y.h5")
        with h5py.File(self.path("y.h5")) as file:
            return file["output"][...]

    def by_header(self, header, weights=None):
        """The header's answers, through a shared library made of it alone."""
        name = pathlib.Path(header).stem
        argument, passed = ("const void *w, ", "w, ") if weights else ("", "")
        self.write("library.c", f'#include "{header}"\n'
                   f"void run({argument}size_t n, const float *x, float *y) {{"
                   f" {name}_evaluate_batch_f32({passed}n, x, 3, 1, y, 3, 1); }}\n")
        subprocess.run([CC, "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC",
                        "library.c", "-o", f"./{name}.so", "-lm"], cwd=self.folder, check=True)
        library = ctypes.CDLL(str(self.path(f"{name}.so")))
        y = np.empty_like(SAMPLES)
        first = [np.fromfile(self.path(weights), np.uint8)] if weights else []
        pointer = ctypes.c_void_p
        library.run(*[pointer(a.ctypes.data) for a in first], ctypes.c_size_t(len(y)), pointer(SAMPLES.ctypes.data),
                    pointer(y.ctypes.data))
        return y

    def test_a_c_header_answers_as_evaluate_does(self):
        said = self.succeed("export", NET, "--c-header", "closure.h")
        self.assertIn("closure_evaluate_f32", said)
        np.testing.assert_array_equal(self.by_header("closure.h").view(np.uint32), self.evaluated().view(np.uint32))

    def test_equations_are_exported_with_the_nets_they_call(self):
        self.write("hybrid.toml", f"""[rhs]
models = {{ net = "{NET}" }}
[rhs.equations]
x = "10 * (y - x)"
y = "x * (28 - z) - y + sin(x)"
z = "net(x, y, z)[2] / 3"
""")
        self.succeed("export", "hybrid.toml", "--c-header", "hybrid.h")
        np.testing.assert_array_equal(self.by_header("hybrid.h").view(np.uint32),
                                      self.evaluated("hybrid.toml").view(np.uint32))
        self.write("system.toml", "[rhs]\nsystem = 'lorenz'\n")
        self.fail_with("system.toml:1: rhs: found no equations", "export", "system.toml", "--c-header", "system.h")

    def test_weights_may_lie_in_a_file(self):
        self.succeed("export", NET, "--c-header", "apart.h", "--weights", "apart.bin")
        np.testing.assert_array_equal(self.by_header("apart.h", "apart.bin").view(np.uint32),
                                      self.evaluated().view(np.uint32))

    def test_the_jacobian_of_equations_is_a_header_too(self):
        self.write("lorenz.toml", """[rhs.equations]
x = "10 * (y - x)"
y = "x * (28 - z) - y"
z = "x * y - 2.5 * z"
""")
        self.succeed("export", "lorenz.toml", "--derivative", "jacobian", "--c-header", "lorenz.h")
        self.write("library.c", """#include "lorenz.h"
int run(const double *x, double *y, double *jacobian) {
  lorenz_evaluate_f64(x, y, jacobian);
  return lorenz_check();
}
""")
        subprocess.run([CC, "-O1", "-shared", "-fPIC", "library.c", "-o", "./lorenz.so", "-lm"], cwd=self.folder, check=True)
        x, y, z = 1.5, -2.25, 20.0
        state, rate, jacobian = np.array([x, y, z]), np.empty(3), np.empty((3, 3))
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (state, rate, jacobian)]
        self.assertEqual(ctypes.CDLL(str(self.path("lorenz.so"))).run(*pointers), 0)
        np.testing.assert_array_equal(rate, [10 * (y - x), x * (28 - z) - y, x * y - 2.5 * z])
        np.testing.assert_array_equal(jacobian, [[-10, 10, 0], [28 - z, -1, -x], [y, x, -2.5]])

    def test_a_product_with_the_jacobian_is_onnx_a_header_and_a_plan(self):
        along = np.random.default_rng(4).normal(0, 1, SAMPLES.shape).astype(np.float32)
        with h5py.File(self.path("both.h5"), "w") as file:
            file["x"] = SAMPLES
            file["x_dot"] = along
        self.succeed("export", NET, "--derivative", "jvp", "--onnx", "jvp.onnx")
        self.succeed("evaluate", "jvp.onnx", "--input", "both.h5", "--output", "made.h5")
        with h5py.File(self.path("made.h5")) as file:
            y, y_dot = file["y"][...], file["y_dot"][...]
        np.testing.assert_array_equal(y.view(np.uint32), self.evaluated().view(np.uint32))
        self.succeed("export", NET, "--derivative", "jvp", "--c-header", "jvp.h")
        self.write("library.c", """#include "jvp.h"
void run(size_t n, const float *x, const float *x_dot, float *y, float *y_dot) {
  jvp_evaluate_batch_f32(n, x, 3, 1, x_dot, 3, 1, y, 3, 1, y_dot, 3, 1);
}
""")
        subprocess.run([CC, "-O1", "-shared", "-fPIC", "library.c", "-o", "./jvp.so", "-lm"], cwd=self.folder, check=True)
        by_header = np.empty_like(y), np.empty_like(y)
        ctypes.CDLL(str(self.path("jvp.so"))).run(
            ctypes.c_size_t(len(y)), *[ctypes.c_void_p(a.ctypes.data) for a in (SAMPLES, along, *by_header)])
        np.testing.assert_array_equal(by_header[0].view(np.uint32), y.view(np.uint32))
        np.testing.assert_array_equal(by_header[1].view(np.uint32), y_dot.view(np.uint32))
        self.assertGreater(np.abs(y_dot).min(), 0)
        self.succeed("compile", NET, "--derivative", "vjp", "-o", "vjp.plan")
        self.assertIn("y_bar", self.succeed("explain", "vjp.plan"))
        self.fail_with("found it beside --derivative jacobian", "export", NET, "--derivative", "jacobian", "--c-header",
                       "a.h", "--weights", "a.bin")
        self.fail_with("--derivative", "compile", NET, "--derivative", "hessian", "-o", "a.plan")

    def test_a_table_in_seconds_since_1970_is_a_header_of_double_alone(self):
        self.write("late.toml", """[rhs.tables]
flux = { at = [1700000000, 1700000060, 1700000120], values = [1, 5, 2] }
[rhs.equations]
x = "flux(t) - sin(x)"
""")
        self.fail_with("late.toml: flux.at[1]: found 1700000060 after 1700000000, which are one number in float32, expected "
                       "numbers that differ in the precision of the run; take --precision f64, for functions of double alone",
                       "export", "late.toml", "--c-header", "late.h")
        said = self.succeed("export", "late.toml", "--c-header", "late.h", "--precision", "f64")
        self.assertIn("late_evaluate_f64, late_evaluate_batch_f64, late_check", said)
        text = self.path("late.h").read_text()
        self.assertIn("Functions of double alone", text)
        self.assertIn("\n * inputs: x, t\n", text)  # of two ports
        self.assertNotRegex(text, r"_f32|float[ *]+\w+[\[(]")
        self.write("library.c", """#include "late.h"
int run(const double *u, const double *t, double *du) {
  late_evaluate_f64(u, t, du);
  late_evaluate_batch_f64(1, u, 1, 1, t, 1, 1, du + 1, 1, 1);
  return late_check();
}
""")
        subprocess.run([CC, "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC", "library.c",
                        "-o", "./late.so", "-lm"], cwd=self.folder, check=True)
        u, t, du = np.array([0.25]), np.array([1700000090.0]), np.empty(2)
        self.assertEqual(ctypes.CDLL(str(self.path("late.so"))).run(*[ctypes.c_void_p(a.ctypes.data) for a in (u, t, du)]), 0)
        with h5py.File(self.path("both.h5"), "w") as file:
            file["u"], file["t"] = u[:, None], t[:, None]
        self.succeed("evaluate", "late.toml", "--input", "both.h5", "--output", "y.h5", "--precision", "f64")
        with h5py.File(self.path("y.h5")) as file:
            np.testing.assert_array_equal(du, np.repeat(file["output"][0], 2))
        self.succeed("export", "late.toml", "--cuda-header", "late.cuh", "--precision", "f64")
        self.assertIn("static_assert(sizeof(T) == sizeof(double)", self.path("late.cuh").read_text())
        self.succeed("export", NET, "--cuda-header", "net.cuh", "--precision", "f64")
        self.assertIn("static_assert(sizeof(T) == sizeof(double)", self.path("net.cuh").read_text())
        # A CUDA header is C++ as well.
        self.write("host.cpp", """#include "late.cuh"
#include "net.cuh"
int main() { return late_check() | net_check(); }
""")
        subprocess.run([CC, "-x", "c++", "-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "host.cpp", "-o", "host",
                        "-lm"], cwd=self.folder, check=True)
        self.assertEqual(subprocess.run([self.path("host")]).returncode, 0)

    def test_names_follow_the_file_or_the_flag(self):
        self.assertIn("net_3d_net_evaluate", self.succeed("export", NET, "--cuda-header", "3d-net.cuh"))
        self.succeed("export", NET, "--cuda-header", "b.cuh", "--name", "mixing")
        self.assertIn("mixing_evaluate_group", self.path("b.cuh").read_text())
        self.fail_with('found "a b"', "export", NET, "--c-header", "c.h", "--name", "a b")

    def test_existing_files_stay(self):
        self.write("closure.h", "mine")
        self.fail_with("closure.h: found a file of that name", "export", NET, "--c-header", "closure.h")
        self.assertEqual(self.path("closure.h").read_text(), "mine")
        self.succeed("export", NET, "--c-header", "closure.h", "--overwrite")

    def test_what_cannot_be_exported_or_compiled_is_named(self):
        self.write("text.h5", "neither")
        for command, flag, output in (("export", "--c-header", "new.h"), ("compile", "--output", "new.plan")):
            self.fail_with("missing.h5: found no such file", command, "missing.h5", flag, output)
            self.fail_with("text.h5: found a file of no known model format", command, "text.h5", flag, output)
            self.fail_with(f"nowhere/{output}: found no folder nowhere", command, NET, flag, f"nowhere/{output}")
            self.assertFalse(self.path(output).exists())

    def test_wants_one_output(self):
        self.fail_with("found nothing to write, expected one of --c-header FILE, --cuda-header FILE and --onnx FILE", "export", NET)
        self.fail_with("run once for each", "export", NET, "--c-header", "a.h", "--cuda-header", "a.cuh")
        self.fail_with("found 2 files to write", "export", NET, "--c-header", "a.h", "--onnx", "a.onnx")
        self.fail_with("--weights: found it beside --onnx", "export", NET, "--onnx", "a.onnx", "--weights", "a.bin")
        self.fail_with("--name: found it beside --onnx", "export", NET, "--onnx", "a.onnx", "--name", "a")
        self.fail_with("--precision f32: found it beside a header", "export", NET, "--c-header", "a.h", "--precision", "f32")
        self.fail_with("--precision", "export", NET, "--onnx", "a.onnx", "--precision", "f16")
        self.assertFalse(list(self.folder.glob("a.*")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
