"""`lockstep import` from outside. usage: import_test.py LOCKSTEP TESTDATA [unittest arguments]"""
import json
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest, h5py, safetensors

DATA = pathlib.Path(sys.argv[2]).resolve()
EXPORTED = DATA / "exported"


class ImportTest(ToolTest):
    def test_prints_what_it_understood_and_checks_the_answers(self):
        done = self.run_tool("import", EXPORTED / "torch_scaled_dynamo.onnx", "-o", "net.h5", "--check",
                             EXPORTED / "torch_scaled_dynamo.samples.h5")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("made by pytorch", "(x - shift) / scale", "dense 3 -> 6", "silu", "mish", "check: at most"):
            self.assertIn(part, done.stdout)
        self.assertIn("silu", self.run_tool("info", "net.h5").stdout)

    def test_outputs_that_cannot_be_read_are_left_out_and_named(self):
        net = EXPORTED / "sklearn_classifier.onnx"
        told = 'output "label" (string): '
        done = self.succeed("import", net, "-o", "net.h5", "--check", EXPORTED / "sklearn_classifier.samples.h5")
        self.assertIn("  left out: " + told, done)
        self.assertIn("left out           " + told, self.succeed("info", net))
        self.assertIn("- left out: " + told, self.succeed("explain", net))
        self.assertNotIn("left out", self.succeed("info", "net.h5"))

    def test_both_formats_hold_the_same_net(self):
        onnx = DATA / "qlknn_7_11_tanh_10_133x5_8.onnx"
        for name in ("net.h5", "net.safetensors"):
            self.assertEqual(self.run_tool("import", onnx, "-o", name).returncode, 0)
        digests = {next(line for line in self.run_tool("info", name).stdout.splitlines() if line.startswith("  digest"))
                   for name in ("net.h5", "net.safetensors", onnx)}
        self.assertEqual(len(digests), 1, digests)

    def test_several_ports_become_datasets_named_after_them(self):
        onnx = EXPORTED / "graph_ports_opset11.onnx"
        with h5py.File(EXPORTED / "graph_ports_opset11.graph.h5") as stored:
            inputs = {port: data[:] for port, data in stored["inputs"].items()}
            answers = {port: data[:] for port, data in stored["outputs_f64"].items()}
        with h5py.File(self.folder / "all.h5", "w") as file:
            for port, data in {**inputs, **answers}.items():
                file[port] = data
        done = self.run_tool("import", onnx, "-o", "net.h5", "--check", "all.h5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dense 16 -> 4 of /trunk/trunk.3/Tanh", done.stdout)
        done = self.run_tool("evaluate", "net.h5", "-i", "all.h5", "-o", "out.h5", "--precision", "f64")
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(self.folder / "out.h5") as out:
            for port, data in answers.items():
                # both compute in float64 with the same weights; sums of at most 16 terms below 10
                self.assertLess(abs(out[port][:] - data).max(), 1e-13, port)
        done = self.run_tool("import", onnx, "-o", "net.safetensors")
        self.assertEqual(done.returncode, 2)
        self.assertIn("a name that ends in .h5", done.stderr)
        with h5py.File(self.folder / "all.h5", "a") as file:
            del file["forcing"]
        done = self.run_tool("evaluate", "net.h5", "-i", "all.h5", "-o", "out.h5", "--overwrite")
        self.assertIn('found no dataset "forcing", expected one for port forcing', done.stderr)

    def test_explain_tells_what_was_fused_and_how_long_an_evaluation_takes(self):
        done = self.run_tool("explain", EXPORTED / "graph_ports_dynamo.onnx", "--cpu-target", "scalar")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("state 4, forcing 3 -> tendency 4", "scalar f32 graph, 15 nodes in", "fused into layers",
                     "merged into 1", "predicted     about", "in batches of 1,024"):
            self.assertIn(part, done.stdout)
        self.run_tool("compile", EXPORTED / "graph_ports_dynamo.onnx", "--target", "avx2", "--precision", "f64", "-o", "a.plan")
        done = self.run_tool("explain", "a.plan", "--cpu-target", "scalar")
        self.assertIn("a.plan, a plan file, 536 parameters", done.stdout)
        self.assertIn("scalar f64 graph", done.stdout)
        targets = {name: self.run_tool("explain", EXPORTED / "graph_ports_dynamo.onnx", "--cpu-target", name)
                   for name in ("avx2", "neon")}
        refused = [done for done in targets.values() if done.returncode != 0]
        self.assertTrue(refused, "no machine has both")
        for done in refused:
            self.assertEqual(done.returncode, 2)
            self.assertIn("expected one this", done.stderr)
        foreign = "avx2" if targets["neon"].returncode == 0 else "neon"
        self.run_tool("compile", EXPORTED / "graph_ports_dynamo.onnx", "--target", foreign, "-o", "other.plan")
        done = self.run_tool("explain", "other.plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"plan          for {foreign}, which this machine lacks; here it would be: ", done.stdout)
        self.run_tool("compile", EXPORTED / "graph_ports_dynamo.onnx", "-o", "any.plan")
        done = self.run_tool("explain", "any.plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("plan          for the best of any machine, here ", done.stdout)
        done = self.run_tool("explain", "a.plan", "--threads", "2")
        self.assertIn("--threads: found a flag of problems", done.stderr)

    def test_every_command_takes_the_activations_that_a_file_does_not_say(self):
        self.write("bare.safetensors", safetensors({"0.weight": [[1, 2], [3, 4]], "0.bias": [0, 1], "1.weight": [[1, -1]],
                                                    "1.bias": [2]}))
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = [[0.5, -0.25]]
        for arguments in (("info",), ("explain",), ("import", "-o", "net.h5"), ("compile", "-o", "net.plan"),
                          ("export", "--c-header", "net.h"), ("export", "--onnx", "net.onnx"),
                          ("evaluate", "-i", "x.h5", "-o", "y.h5")):
            command = (arguments[0], "bare.safetensors", *arguments[1:])
            self.fail_with("activations: found none in the file", *command)
            self.succeed(*command, "--activations", "tanh")
        self.assertIn("2-2-1, tanh", self.path("net.h").read_text())
        self.fail_with('--activations: found "tanh", expected none for a plan file', "explain", "net.plan",
                       "--activations", "tanh")
        self.write("problem.toml", '[rhs]\nsystem = "lorenz"\n')
        self.fail_with('--activations: found "tanh", expected none for a problem file', "explain", "problem.toml",
                       "--activations", "tanh")

    def test_an_output_that_is_there_is_refused_with_the_flag_that_replaces_it(self):
        net = DATA / "lorenz_tanh_3_100_3.safetensors"
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = [[1.0, 0.0, 0.0]]
        self.write("there", "precious")
        self.write("there.h5", "precious")
        for arguments in (("import", net, "-o", "there.h5"), ("compile", net, "-o", "there"),
                          ("export", net, "--c-header", "there"), ("export", net, "--cuda-header", "there"),
                          ("export", net, "--c-header", "net.h", "--weights", "there"),
                          ("evaluate", net, "-i", "x.h5", "-o", "there")):
            name = "there.h5" if arguments[0] == "import" else "there"
            self.fail_with(f"error: {name}: found a file of that name, expected none; choose another name, or replace it "
                           "with --overwrite", *arguments)
            self.assertEqual(self.path(name).read_text(), "precious")
            self.assertFalse(self.path("net.h").exists())
            self.succeed(*arguments, "--overwrite")
            self.write(name, "precious")
            self.path("net.h").unlink(missing_ok=True)

    def test_ranges_of_the_training_data_are_stored(self):
        """From a CSV by name, from HDF5, and one by one; solve then has what its guard needs."""
        with h5py.File(self.path("net.h5"), "w") as file:
            file.attrs["lockstep_model"] = 1
            group = file.create_group("layers/0")
            group["weight"], group["bias"] = [[0.0, 1.0], [-1.0, 0.0]], [0.0, 0.0]
            group.attrs["activation"] = "identity"
        self.write("train.csv", "t,v,x\n0,0.5,-1\n1,2,3\n2,-1,0.25\n")
        shown = self.succeed("import", "net.h5", "-o", "csv.h5", "--inputs", "x,v", "--outputs", "dx,dv", "--ranges",
                             "train.csv")
        self.assertIn("range from 3 rows of train.csv", shown)
        self.assertIn("range x from -1 to 3", shown)
        with h5py.File(self.path("csv.h5")) as file:
            self.assertEqual(list(file["inputs/minimum"][:]), [-1, -1])
            self.assertEqual(list(file["inputs/maximum"][:]), [3, 2])
            self.assertEqual([name.decode() for name in file["outputs/name"][:]], ["dx", "dv"])
        self.write("turned.csv", "x1,x0\n0.5,-1\n2,3\n")
        self.write("others.csv", "v,x\n0.5,-1\n2,3\n")
        done = self.run_tool("import", "net.h5", "-o", "turned.h5", "--ranges", "turned.csv")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("range x[0] from -1 to 3", done.stdout)
        done = self.run_tool("import", "net.h5", "-o", "others.h5", "--ranges", "others.csv")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "lockstep: note: net.h5 names no inputs: the columns v, x of others.csv are taken in their "
                             "order; --inputs names them\n"))
        self.assertIn("range x[0] from 0.5 to 2", done.stdout)
        with h5py.File(self.path("samples.h5"), "w") as file:
            file["input"] = [[-1.0, 0.5], [3.0, 2.0], [0.25, -1.0]]
        self.succeed("import", "net.h5", "-o", "h5.safetensors", "--ranges", "samples.h5")
        self.succeed("import", "h5.safetensors", "-o", "again.h5", "--range", "x[1]=-inf:9")
        with h5py.File(self.path("again.h5")) as file:
            self.assertEqual(list(file["inputs/minimum"][:]), [-1, float("-inf")])
            self.assertEqual(list(file["inputs/maximum"][:]), [3, 9])
        problem = ('[rhs]\nmodel = "{}"\nguard = "{}"\n[ensemble]\ninitial_state = [2.5, 0]\n[time]\nspan = [0, 3]\n'
                   'save = 4\n[output]\nfile = "out.h5"\n')
        self.write("problem.toml", problem.format("csv.h5", "stop"))
        self.assertIn("outside", self.run_tool("solve", "problem.toml").stdout)
        self.write("problem.toml", problem.format("net.h5", "stop"))
        self.fail_with("remove the guard, or store them: lockstep import NET -o net.h5 --ranges data.csv, in Python "
                       "net.with_ranges(data=x)", "solve", "problem.toml", "--overwrite")
        for message, *flags in (
                ("train.csv: found 3 columns, expected 2, the inputs of a net that does not name them", "--ranges", "train.csv"),
                ('train.csv: found "q", expected one of t, v, x', "--ranges", "train.csv", "--inputs", "x,q"),
                ('--range: found "y", expected a feature or port of the net\'s inputs: x; one of a port\'s unnamed '
                 "features is written x[0]", "--range", "y=0:1"),
                ('--range: found "x=1", expected NAME=LOW:HIGH', "--range", "x=1"),
                ('--range: found "x=nan:1", expected NAME=LOW:HIGH', "--range", "x=nan:1"),
                ('--range: found "x=2:1", expected a lower end first', "--range", "x=2:1"),
                ("--inputs: found 3 names, expected 2, one for each feature", "--inputs", "a,b,c"),
                ('--outputs: found "a" twice, expected different names', "--outputs", "a,a")):
            self.fail_with(message, "import", "net.h5", "-o", "bad.h5", *flags)
            self.assertFalse(self.path("bad.h5").exists())

    def test_names_from_a_file_reach_no_terminal_as_commands(self):
        """A name that would clear the screen and another that would forge a line."""
        header = json.dumps({"__metadata__": {"activations": "linear", "inputs": "a\x1b[2J,b\x9b2J", "attribution":
                                              "nobody\x1b]0;title\x07\nlicence   free"},
                             "0.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
                             "0.bias": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}).encode()
        self.write("bad.safetensors", struct.pack("<Q", len(header)) + header + bytes(12))
        shown = self.succeed("info", "bad.safetensors") + self.succeed("import", "bad.safetensors", "-o", "bad.h5")
        shown += self.succeed("info", "bad.h5")
        self.assertIn(r"a\x1b[2J", shown)
        self.assertIn(r"b\xc2\x9b2J", shown)
        self.assertNotRegex(shown, r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]")
        self.assertNotIn("\nlicence   free", shown)

    def test_a_note_tells_what_went_into_the_weights(self):
        done = self.run_tool("import", EXPORTED / "torch_batchnorm_legacy.onnx", "-o", "net.h5")
        self.assertIn('note: node "/1/BatchNormalization" (BatchNormalization, opset 17) went into the weights of',
                      done.stdout)

    def test_keras_files_of_both_kinds_and_versions_give_keras_answers(self):
        for version in ("keras2", "keras3"):
            for ending in ("h5", "keras"):
                keras = DATA / "keras" / f"{version}_batchnorm.{ending}"
                done = self.run_tool("import", keras, "-o", f"{version}_{ending}_ours.h5", "--check",
                                     DATA / "keras" / f"{version}_batchnorm.samples.h5")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("note: batch_normalization went into dense", done.stdout)

    def test_compile_writes_a_plan_for_any_machine_or_one_target(self):
        net = DATA / "keras" / "keras3_scaled.keras"
        done = self.run_tool("compile", net, "-o", "net.plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "^for the best of any machine, here [a-z0-9]+ f32 mlp 3-6-5-4-2")
        self.fail_with('--target: found "sse", expected best, scalar, avx2, avx512 or neon', "compile", net, "--target", "sse",
                       "-o", "sse.plan")
        self.assertEqual(self.run_tool("compile", net, "-o", "net.plan").returncode, 2)
        done = self.run_tool("compile", net, "--target", "neon", "--precision", "f64", "-o", "other.plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_tool("info", "net.plan")
        self.assertEqual(done.returncode, 2)
        self.assertIn("name the model it was compiled from", done.stderr)

    def test_other_answers_write_nothing(self):
        done = self.run_tool("import", EXPORTED / "torch_scaled_dynamo.onnx", "-o", "net.h5", "--check",
                             EXPORTED / "torch_gelu_dynamo.samples.h5")
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not give those answers", done.stderr)
        self.assertFalse((self.folder / "net.h5").exists())

    def test_answers_of_another_shape_are_named(self):
        net = DATA / "lorenz_tanh_3_100_3.safetensors"
        for shape, found in (((5, 2), "[5, 2], expected [sample, 3], as the net has"),
                             ((3, 5), "[3, 5], expected [sample, 3], as the net has; transpose it"), ((5,), "[5], expected")):
            with h5py.File(self.path("samples.h5"), "w") as file:
                file["input"] = [[1.0, 2.0, 3.0]] * 5
                file.create_dataset("output", shape)
            self.fail_with(f"samples.h5:/output: found the shape {found}", "import", net, "-o", "net.h5", "--check", "samples.h5")

    def test_answers_that_are_not_finite_hide_no_others(self):
        self.write("twice.safetensors", safetensors({"0.weight": [[2]], "0.bias": [0]}, {"activations": "identity"}))
        nan, inf = float("nan"), float("inf")
        right = [[2], [nan], [inf], [4], [-inf]]
        for expected, agree in ((right, True), ([[7], *right[1:]], False), ([[nan], *right[1:]], False),
                                ([*right[:3], [7], right[4]], False), ([*right[:4], [inf]], False),
                                ([*right[:4], [3]], False), ([[2], [3], *right[2:]], False)):
            with h5py.File(self.path("samples.h5"), "w") as file:
                file["input"] = [[1.0], [nan], [inf], [2.0], [-inf]]
                file["output"] = expected
            done = self.run_tool("import", "twice.safetensors", "-o", "net.h5", "--overwrite", "--check", "samples.h5")
            self.assertEqual(done.returncode, 0 if agree else 1, f"{expected}: {done.stdout}{done.stderr}")

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
