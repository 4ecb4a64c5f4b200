"""`lockstep import` from outside. usage: import_test.py LOCKSTEP TESTDATA [unittest arguments]"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest

DATA = pathlib.Path(sys.argv[2]).resolve()
EXPORTED = DATA / "exported"


class ImportTest(ToolTest):
    def test_prints_what_it_understood_and_checks_the_answers(self):
        done = self.run_tool("import", EXPORTED / "torch_scaled_dynamo.onnx", "-o", "net.h5", "--check",
                             EXPORTED / "torch_scaled_dynamo.samples.h5")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("made by pytorch", "(x - shift) / scale", "dense, 3 -> 6", "silu", "mish", "check: at most"):
            self.assertIn(part, done.stdout)
        self.assertIn("silu", self.run_tool("info", "net.h5").stdout)

    def test_both_formats_hold_the_same_net(self):
        onnx = DATA / "qlknn_7_11_tanh_10_133x5_8.onnx"
        for name in ("net.h5", "net.safetensors"):
            self.assertEqual(self.run_tool("import", onnx, "-o", name).returncode, 0)
        digests = {next(line for line in self.run_tool("info", name).stdout.splitlines() if line.startswith("  digest"))
                   for name in ("net.h5", "net.safetensors", onnx)}
        self.assertEqual(len(digests), 1, digests)

    def test_a_note_tells_what_went_into_the_weights(self):
        done = self.run_tool("import", EXPORTED / "torch_batchnorm_legacy.onnx", "-o", "net.h5")
        self.assertIn('note: node "/1/BatchNormalization" (BatchNormalization, opset 17) went into the weights of',
                      done.stdout)

    def test_other_answers_write_nothing(self):
        done = self.run_tool("import", EXPORTED / "torch_scaled_dynamo.onnx", "-o", "net.h5", "--check",
                             EXPORTED / "torch_gelu_dynamo.samples.h5")
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not give those answers", done.stderr)
        self.assertFalse((self.folder / "net.h5").exists())

    def test_bad_input_is_named(self):
        onnx = EXPORTED / "torch_gelu_dynamo.onnx"
        self.assertEqual(self.run_tool("import", onnx, "-o", "net.h5").returncode, 0)
        again = self.run_tool("import", onnx, "-o", "net.h5")
        self.assertEqual(again.returncode, 2)
        self.assertIn("net.h5", again.stderr)
        ending = self.run_tool("import", onnx, "-o", "net.bin")
        self.assertIn("a name that ends in .h5 or .safetensors", ending.stderr)
        (self.folder / "cut.onnx").write_bytes(onnx.read_bytes()[:300])
        cut = self.run_tool("import", "cut.onnx", "-o", "cut.h5")
        self.assertEqual(cut.returncode, 2)
        self.assertIn("cut.onnx: found bytes that are no ONNX model", cut.stderr)


unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
