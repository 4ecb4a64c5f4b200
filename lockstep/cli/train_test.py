"""`lockstep train` from outside: regression and neural ODE, killed and resumed, and what it says to wrong input.

usage: train_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, ToolTest, TOOL, h5py, np


REGRESSION = """
[net]
hidden = [8]
activation = "tanh"
[data]
file = "table.csv"
inputs = ["x", "y"]
targets = ["z"]
normalise = "standard"
validation = 0.2
[[phase]]
name = "adam"
rate = 0.02
iterations = 300
batch = 32
[[phase]]
optimiser = "lbfgs"
iterations = 40
[output]
file = "net"
"""
SPIRAL = """
[net]
hidden = [16]
[data]
file = "spiral.csv"
time = "t"
states = ["u", "v"]
[training]
rate = 0.01
iterations = 120
[method]
rtol = 1e-4
atol = 1e-4
[output]
file = "spiral"
checkpoint_every = 0
"""


class TrainTest(ToolTest):
    silent = False
    timeout = 300

    def setUp(self):
        super().setUp()
        x = np.random.default_rng(1).uniform(-1, 1, (200, 2))
        self.write("table.csv", "x,y,z\n" + "".join(f"{a},{b},{np.sin(2 * a) * b}\n" for a, b in x))
        t = np.linspace(0, 2, 21)
        self.write("spiral.csv", "t,u,v\n" + "".join(
            f"{s},{np.exp(-s) * np.cos(3 * s)},{np.exp(-s) * np.sin(3 * s)}\n" for s in t))
        self.write("train.toml", REGRESSION)
        self.write("spiral.toml", SPIRAL)

    def bytes_of(self, name):
        return (self.folder / name).read_bytes()

    def state_of(self, name):
        with h5py.File(self.folder / name) as file:
            return {key: file[key][()].tobytes() for key in ("parameters", "best_parameters", "curve/loss")}

    def test_a_regression_writes_a_model_that_other_commands_take(self):
        out = self.succeed("train", "train.toml")
        self.assertIn("2-8-1 tanh, 33 parameters, f32; 160 rows, 40 more for validation", out)
        self.assertIn("\nnet.h5, net.safetensors\n", out)
        self.assertIn("phase 2 of 2: ", out)
        with h5py.File(self.folder / "net.h5") as model:
            self.assertEqual([n.decode() for n in model["inputs/name"][()]], ["x", "y"])
            self.assertLess(model["inputs/maximum"][0], 1.02)  # inputs lie in [-1, 1], and 0.01 of their width more
            self.assertAlmostEqual(model["inputs/shift"][0], 0, delta=0.2)
        with h5py.File(self.folder / "x.h5", "w") as file:
            file["input"] = np.array([[0.5, 0.5], [-0.3, 0.8]], np.float32)
        self.succeed("evaluate", "net.safetensors", "--input", "x.h5", "--output", "y.h5")
        with h5py.File(self.folder / "y.h5") as file:
            truth = [np.sin(1) * 0.5, np.sin(-0.6) * 0.8]
            # The validation error of this net is below 0.01 mean squared: 0.3 would be a wrong scaling.
            np.testing.assert_allclose(file["output"][:, 0], truth, atol=0.3)
        self.assertEqual(struct.unpack(">II", self.bytes_of("net_loss.png")[16:24]), (1600, 1000))
        losses = (self.folder / "net_loss.csv").read_text().splitlines()
        self.assertEqual(losses[0], "iteration,loss,watched,gradient_norm,learning_rate,phase")
        self.assertGreater(float(losses[1].split(",")[1]), 20 * float(losses[-1].split(",")[1]))

    def test_threads_and_instruction_sets_do_not_change_a_byte(self):
        for text, stem in ((REGRESSION, "net"), (SPIRAL, "spiral")):
            self.write("run.toml", text.replace("iterations = 300", "iterations = 60"))
            for name, flags in (("a", ["--threads", "1"]), ("b", ["--threads", "2"]),
                                ("c", ["--cpu-target", "avx2"])):
                result = self.run_tool("train", "run.toml", "--output", name, "--overwrite", "-q", *flags)
                if "--cpu-target" in flags and "cpu target" in result.stderr:
                    continue
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.bytes_of(f"{name}_loss.csv"), self.bytes_of("a_loss.csv"))
                self.assertEqual(self.state_of(f"{name}_checkpoint.h5"), self.state_of("a_checkpoint.h5"))

    def test_a_neural_ode_is_trained_and_solved(self):
        out = self.succeed("train", "spiral.toml")
        self.assertIn("1 trajectory of 21 points", out)
        self.write("problem.toml", '[rhs]\nmodel = "spiral.h5"\n[ensemble]\ninitial_state = [1, 0]\n'
                   '[time]\nspan = [0, 2]\n[output]\nfile = "solved.h5"\n')
        self.succeed("solve", "problem.toml", "-q")
        self.check_guards()

    def check_guards(self):
        """Trained on 0 <= t <= 2 from (1, 0): (0.9, 0) spirals in, (5, 0) starts far outside."""
        problem = ('[rhs]\nmodel = "spiral.h5"\n[ensemble]\ninitial_state = [[0.9, 0.01], [5, 0]]\n[time]\n'
                   'span = [0, 1]\nsave = 11\n[output]\nfile = "g.h5"\n')
        self.write("guard.toml", problem)

        def solve(*flags):
            out = self.succeed("solve", "guard.toml", "--overwrite", *flags)
            with h5py.File(self.folder / "g.h5") as file:
                return out, file["state"][()], list(file["status"][()]), file.attrs.get("guard")

        out, flagged, status, guard = solve()
        self.assertEqual((status, guard), ([0, 5], "flag"))
        self.assertIn("1 success, 1 outside_range", out)
        _, ignored, status, guard = solve("--guard", "ignore")
        self.assertEqual((status, guard), ([0, 0], None))
        self.assertEqual(ignored.tobytes(), flagged.tobytes())
        _, stopped, status, _ = solve("--guard", "stop")
        self.assertEqual(status, [0, 5])
        self.assertEqual(stopped[1, 0, 0], 5)
        self.assertTrue(np.isnan(stopped[1, 1:]).all())
        _, clamped, status, _ = solve("--guard", "clamp")
        self.assertEqual(status, [0, 0])
        self.assertEqual(clamped[0].tobytes(), flagged[0].tobytes())
        self.assertNotEqual(clamped[1].tobytes(), flagged[1].tobytes())
        self.fail_with('did you mean "clamp"?', "solve", "guard.toml", "--guard", "clamps", "--overwrite")

        with h5py.File(self.folder / "gx.h5", "w") as file:
            file["input"] = np.array([[0.5, 0.1], [5, 0]], np.float32)
        out = self.succeed("evaluate", "spiral.h5", "--input", "gx.h5", "--output", "gy.h5")
        self.assertIn("1 of them outside the training range", out)
        with h5py.File(self.folder / "gy.h5") as file:
            self.assertEqual(list(file["outside_range"][()]), [0, 1])
            plain = file["output"][()]
        self.succeed("evaluate", "spiral.h5", "--input", "gx.h5", "--output", "gc.h5", "--guard", "clamp")
        with h5py.File(self.folder / "gc.h5") as file:
            self.assertEqual(file["output"][0].tobytes(), plain[0].tobytes())
            self.assertNotEqual(file["output"][1].tobytes(), plain[1].tobytes())
        self.fail_with("row 1: found an input outside the range", "evaluate", "spiral.h5", "--input", "gx.h5",
                       "--output", "gs.h5", "--guard", "stop")

    def test_free_states_find_what_noise_hides_and_continue_with_the_same_bits(self):
        # shooting_test.cpp derives the numbers: segments from noisy data see a damping of about 1.5 where 0.1 is.
        t = np.linspace(0, 10, 101)
        noise = 0.2 * np.random.default_rng(2).standard_normal((101, 2))
        exact = np.exp(-0.1 * t)[:, None] * np.stack([np.cos(2 * t), -np.sin(2 * t)], 1)
        self.write("noisy.csv", "t,u,v\n" + "".join(f"{a},{b},{c}\n" for a, (b, c) in zip(t, exact + noise)))
        head = ('[net]\nhidden = []\ninitialisation = "zeros"\n[data]\nfile = "noisy.csv"\ntime = "t"\n'
                'states = ["u", "v"]\n[method]\ndt = 0.1\nprecision = "f64"\n[output]\nfile = "map"\n')
        lbfgs = '[[phase]]\noptimiser = "lbfgs"\niterations = 60\n'

        def damping(phases, *flags):
            self.write("noisy.toml", head + phases)
            out = self.succeed("train", "noisy.toml", "--overwrite", *flags)
            self.assertIn("2-2 identity, 6 parameters", out)
            with h5py.File(self.folder / "map.h5") as model:
                return -np.trace(model["layers/0/weight"][()]) / 2

        self.assertGreater(damping(lbfgs + "segment = 1\n"), 0.8)
        free = lbfgs + "segment = 5\ncontinuity = 1\n" + lbfgs + "segment = 20\ncontinuity = 100\n"
        # Half the data of shooting_test, so that its 0.005 is 0.007 here, and six of them are allowed.
        self.assertAlmostEqual(damping(free), 0.1, delta=0.042)
        with h5py.File(self.folder / "map.h5") as model:
            said = model["metadata"].attrs["training_loss"]
        self.assertIn("of the last phase: in segments of 20 intervals, with the gaps between them", said)
        whole = self.state_of("map_checkpoint.h5")
        (self.folder / "map_checkpoint.h5").unlink()
        self.write("noisy.toml", head.replace('"map"', '"map"\ncheckpoint_every = 0') + free)
        process = subprocess.Popen([str(TOOL), "train", "noisy.toml", "--resume", "--overwrite", "-q"], cwd=self.folder)
        time.sleep(0.1)
        process.kill()
        process.wait()
        self.succeed("train", "noisy.toml", "--resume", "--overwrite", "-q")
        self.assertEqual(self.state_of("map_checkpoint.h5"), whole)
        self.write("noisy.toml", head + lbfgs + "continuity = 0\n")
        self.fail_with("phase[0].continuity: found 0, expected a number greater than 0", "train", "noisy.toml")

    def test_mini_batches_of_trajectories_continue_with_the_same_bits(self):
        t = np.linspace(0, 1, 11)
        with h5py.File(self.folder / "decay.h5", "w") as file:
            file["time"] = t
            file["state"] = np.arange(1, 8)[:, None, None] * np.exp(-t)[None, :, None]
        text = ('[net]\nhidden = []\n[data]\nfile = "decay.h5"\ntime = "time"\nstates = "state"\n[training]\n'
                'rate = 0.05\niterations = 60\nbatch = 3\n[method]\ndt = 0.1\n[output]\nfile = "many"\n'
                'checkpoint_every = 0\n')
        self.write("many.toml", text)
        out = self.succeed("train", "many.toml", "--output", "whole")
        self.assertIn("1-1 identity, 2 parameters, f32; 7 trajectories of 11 points", out)
        process = subprocess.Popen([str(TOOL), "train", "many.toml", "--resume", "-q"], cwd=self.folder)
        time.sleep(0.03)
        process.kill()
        process.wait()
        self.succeed("train", "many.toml", "--resume", "-q", "--threads", "2")
        self.assertEqual(self.state_of("many_checkpoint.h5"), self.state_of("whole_checkpoint.h5"))
        self.assertEqual(self.bytes_of("many_loss.csv"), self.bytes_of("whole_loss.csv"))
        rows = np.genfromtxt(self.folder / "many_loss.csv", delimiter=",", names=True)
        self.assertEqual(len(set(rows["watched"][:3])), 1)  # an epoch is three steps; all trajectories are watched
        self.assertNotEqual(rows["watched"][3], rows["watched"][2])
        data = self.bytes_of("decay.h5")
        self.fail_with('"decay.h5", the file of the data', "train", "many.toml", "--output", "decay", "--overwrite")
        self.assertEqual(self.bytes_of("decay.h5"), data)
        self.write("many.toml", text.replace("batch = 3", "batch = 3\ncontinuity = 1"))
        self.fail_with("batch beside continuity", "train", "many.toml")

    def test_trajectories_of_unequal_length_with_gaps_give_the_same_bits_from_csv_and_hdf5(self):
        lengths, t = [5, 11, 2, 8], np.linspace(0, 1, 11)
        u = np.arange(1, 5)[:, None] * np.exp(-t)[None, :]
        u[1, 4] = u[3, 2] = np.nan
        lines = ["run,t,u0"]
        for i, length in enumerate(lengths):
            u[i, length:] = np.nan
            lines += [f"{i},{float(t[k])!r},{'' if np.isnan(u[i, k]) else repr(float(u[i, k]))}" for k in range(length)]
        self.write("uneven.csv", "\n".join(lines) + "\n")
        with h5py.File(self.folder / "uneven.h5", "w") as file:
            file["time"] = t
            file["state"] = u[:, :, None]
        rest = ('[net]\nhidden = []\n[training]\noptimiser = "lbfgs"\niterations = 30\nsegment = 4\ncontinuity = 1\n'
                '[method]\ndt = 0.1\n[run]\nthreads = 2\n[data]\n')
        self.write("a.toml", rest + 'file = "uneven.h5"\n[ode]\n')
        self.write("b.toml", rest + 'file = "uneven.csv"\ntime = "t"\nstates = ["u0"]\ntrajectory = "run"\n')
        out = self.succeed("train", "a.toml", "--output", "a")
        self.assertIn("4 trajectories of 2 to 11 points, 2 of 26 numbers missing", out)
        self.succeed("train", "b.toml", "--output", "b")
        self.assertEqual(self.bytes_of("a_loss.csv"), self.bytes_of("b_loss.csv"))
        with h5py.File(self.folder / "a_checkpoint.h5") as file:
            self.assertLess(file["curve"]["loss"][-1], 1e-6)  # u' = -u fits what was measured to float32's roundings
        self.write("a.toml", rest.replace("continuity = 1\n", "") + 'file = "uneven.h5"\n[ode]\n')
        self.fail_with("NaN in trajectory 1, row 4, component 0, where a segment of phase 1 starts", "train", "a.toml",
                       "--output", "c")

    def test_rows_for_validation_may_be_of_a_file_of_their_own(self):
        x = np.linspace(-1, 1, 21)
        np.savetxt(self.folder / "rows.csv", np.c_[x, x**2], delimiter=",", header="x,z", comments="")
        np.savetxt(self.folder / "test.csv", np.c_[x + 3, x * 0], delimiter=",", header="x,z", comments="")
        text = ('[net]\nhidden = [4]\n[data]\nfile = "rows.csv"\ninputs = ["x"]\ntargets = ["z"]\n'
                'validation_file = "test.csv"\n[training]\noptimiser = "lbfgs"\niterations = 20\n')
        self.write("own.toml", text)
        out = self.succeed("train", "own.toml", "--output", "own")
        self.assertIn("21 rows, 21 more for validation", out)
        # The loss goes by the rows trained on, and what is the best net by those of the other file.
        self.write("plain.toml", text.replace('validation_file = "test.csv"\n', ""))
        self.succeed("train", "plain.toml", "--output", "plain")
        own, plain = (np.loadtxt(self.folder / f"{name}_loss.csv", delimiter=",", skiprows=1) for name in ("own", "plain"))
        rows = min(len(own), len(plain))
        np.testing.assert_array_equal(own[:rows, 1], plain[:rows, 1])
        self.assertTrue((own[:, 2] != own[:, 1]).all())
        np.savetxt(self.folder / "test.csv", np.c_[x + 3, x * 0 + 1], delimiter=",", header="x,z", comments="")
        self.fail_with("expected the same data", "train", "own.toml", "--output", "own", "--resume")
        for old, new, words in (
                ("validation_file", "validation = 0.1\nvalidation_file", "data.validation_file: found validation_file beside"),
                ('"test.csv"', '"nowhere.csv"', "nowhere.csv"), ('validation_file = "t', 'validation = "t',
                                                                 "data in a file of their own are validation_file"),
                ("validation_file", "validation_data", 'write validation_file = "test.csv"')):
            self.write("wrong.toml", text.replace(old, new))
            self.fail_with(words, "train", "wrong.toml", "--output", "wrong")

    def test_diverging_trajectories_are_named_and_do_not_make_a_net_the_best(self):
        # A rate this large takes all trajectories with it, and a loss over none of them would be 0.
        self.write("wild.toml", SPIRAL.replace("hidden = [16]", 'hidden = [16]\nactivation = "square"')
                   .replace("rate = 0.01", "rate = 0.5") + '[ode]\nfailed = "leave_out"\n')
        self.fail_with("trajectory 0: found step_too_small at t = ", "train", "wild.toml", "-q")
        # Whatever the weights, 20 steps lead through a span of 1, not of 10,000.
        with h5py.File(self.folder / "few.h5", "w") as file:
            file["time"] = np.array([[0, 1], [0, 1], [0, 1e4]])
            file["state"] = np.array([[1, 0.5], [2, 1], [1, 1]])[:, :, None]
        self.write("few.toml", '[net]\nhidden = []\n[data]\nfile = "few.h5"\n[ode]\nfailed = "leave_out"\n'
                   '[method]\nmax_steps = 20\n[training]\niterations = 3\n[output]\nfile = "some"\n')
        out = self.succeed("train", "few.toml")
        self.assertRegex(out, r"phase 1 of 1: .*, 1 left out\n")
        self.assertRegex(out, r"result: .*, without 1 of 3 trajectories \(2: [a-z_]+ at t = ")
        self.assertRegex(out, r"\nnote: left out, since they could not be solved: 1 of 3 trajectories of the training data "
                              r"\(2: too_many_steps at t = [0-9.]+\); the result was not fitted to them\n")
        with h5py.File(self.folder / "few.h5", "r+") as file:
            file["time"][2, 1] = 1
        self.assertNotIn("left out", self.succeed("train", "few.toml", "--overwrite"))

    def test_a_net_that_is_no_plain_stack_is_trained_on(self):
        exported = pathlib.Path(__file__).resolve().parents[2] / "testdata" / "exported"
        text = SPIRAL.replace('states = ["u", "v"]', 'states = ["u", "v"]\n[ode]\nwith_time = true')
        text = text.replace("iterations = 120", "iterations = 40")
        for name, parameters in (("residual_opset13", 474), ("normalised_opset17", 120)):
            self.write("on.toml", text.replace("hidden = [16]", f'start = "{exported}/graph_{name}.onnx"'))
            out = self.succeed("train", "on.toml", "--output", name)
            self.assertIn("3-...-2, a graph of ", out)
            self.assertNotIn("safetensors", out)
            self.assertIn(f"nodes, {parameters} parameters, f32; 1 trajectory of 21 points", out)
            losses = [float(row.split(",")[1]) for row in (self.folder / f"{name}_loss.csv").read_text().split()[1:]]
            self.assertLess(min(losses), losses[0] / 3)
            # The model written gives the loss that was reported: solved along the data's times.
            self.write("problem.toml", f'[rhs]\nmodel = "{name}.h5"\nwith_time = true\n[ensemble]\n'
                       'initial_state = [1, 0]\n[time]\nspan = [0, 2]\nsave = 21\n[method]\nrtol = 1e-4\natol = 1e-4\n'
                       f'[output]\nfile = "{name}_solved.h5"\n')
            self.succeed("solve", "problem.toml", "-q", "--guard", "ignore")
            truth = np.loadtxt(self.folder / "spiral.csv", delimiter=",", skiprows=1)[:, 1:]
            with h5py.File(self.folder / f"{name}_solved.h5") as file:
                loss = ((file["state"][0] - truth)[1:] ** 2).sum()
            self.assertAlmostEqual(loss, min(losses), delta=0.01 * loss + 1e-4)
        self.succeed("train", "on.toml", "--output", name, "--resume")
        self.write("on.toml", REGRESSION.replace('hidden = [8]\nactivation = "tanh"',
                                                 f'start = "{exported}/graph_residual_opset13.onnx"')
                   .replace('["x", "y"]', '["x", "y", "z"]').replace('["z"]', '["x", "z"]')
                   .replace('normalise = "standard"\n', ""))
        self.check_a_regression_of_a_graph()

    def check_a_regression_of_a_graph(self):
        out = self.succeed("train", "on.toml", "--output", "a", "--threads", "1")
        self.assertIn("3-...-2, a graph of ", out)
        self.succeed("train", "on.toml", "--output", "b", "--threads", "2", "-q")
        self.assertEqual(self.bytes_of("a_loss.csv"), self.bytes_of("b_loss.csv"))
        losses = np.genfromtxt(self.folder / "a_loss.csv", delimiter=",", names=True)
        self.assertLess(losses["watched"][-1], losses["watched"][0] / 10)
        rows = np.loadtxt(self.folder / "table.csv", delimiter=",", skiprows=1)
        with h5py.File(self.folder / "rows.h5", "w") as file:
            file["input"] = rows
        self.succeed("evaluate", "a.h5", "--input", "rows.h5", "--output", "made.h5")
        with h5py.File(self.folder / "made.h5") as file:
            loss = ((file["output"][()] - rows[:, [0, 2]]) ** 2).mean()
        # Of training and validation data together: between the two that were reported.
        found = [float(x) for x in re.search(r"result: .* error (\S+), (\S+) on the validation", out).groups()]
        self.assertTrue(min(found) * 0.99 <= loss <= max(found) * 1.01, (loss, found))

    def test_explain_says_what_would_be_trained_and_writes_nothing(self):
        out = self.succeed("train", "spiral.toml", "--explain")
        self.assertIn("2-16-2 tanh, 82 parameters, f32; 1 trajectory of 21 points", out)
        self.assertIn("phase 1 of 1: at most 120 iterations of adam\n- trajectories are taken one by one", out)
        self.assertIn("checkpoints and compute the steps between them again", out)
        self.assertIn("phase 2 of 2: at most 40 iterations of lbfgs", self.succeed("train", "train.toml", "--explain"))
        self.assertFalse((self.folder / "spiral_checkpoint.h5").exists())

    def test_a_result_file_needs_no_names(self):
        self.write("lorenz.toml", LORENZ.replace("trajectories = 100", "trajectories = 3"))
        self.succeed("solve", "lorenz.toml", "--output", "lorenz.h5")
        self.write("from_result.toml", '[net]\nhidden = [4]\n[data]\nfile = "lorenz.h5"\n[training]\noptimiser = "adam"\nrate = 0.01\niterations = 10\n')
        self.assertIn("3-4-3 tanh", self.succeed("train", "from_result.toml", "--explain"))

    def test_killed_runs_continue_with_the_same_bits(self):
        self.succeed("train", "spiral.toml", "--output", "whole", "-q")
        # Iterations take some milliseconds with a checkpoint after every 16th; three kills fall somewhere among them.
        for wait in (0.15, 0.3, 0.45):
            process = subprocess.Popen([str(TOOL), "train", "spiral.toml", "--resume", "-q"], cwd=self.folder)
            time.sleep(wait)
            process.kill()
            process.wait()
        self.succeed("train", "spiral.toml", "--resume", "-q")
        self.assertEqual(self.bytes_of("spiral_loss.csv"), self.bytes_of("whole_loss.csv"))
        self.assertEqual(self.state_of("spiral_checkpoint.h5"), self.state_of("whole_checkpoint.h5"))

    def test_a_checkpoint_follows_each_long_iteration(self):
        # 80,000 steps and their transposes take some tenths of a second, four times what counts as long and more.
        self.write("long.toml", SPIRAL.replace("rtol = 1e-4\natol = 1e-4", "dt = 2.5e-5")
                   .replace("iterations = 120", "iterations = 1000"))
        process = subprocess.Popen([str(TOOL), "train", "long.toml", "-q"], cwd=self.folder)
        while not (self.folder / "spiral_checkpoint.h5").exists():
            time.sleep(0.01)
        process.kill()
        process.wait()
        with h5py.File(self.folder / "spiral_checkpoint.h5") as checkpoint:
            self.assertLess(checkpoint.attrs["iteration"], 16)

    def test_ctrl_c_keeps_what_was_reached_and_exits_130(self):
        self.write("long.toml", SPIRAL.replace("iterations = 120", "iterations = 1000000"))
        process = subprocess.Popen([str(TOOL), "train", "long.toml"], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not (self.folder / "spiral_checkpoint.h5").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("go on with --resume", err)
        self.assertIn("best so far: ", out)
        self.assertTrue((self.folder / "spiral.safetensors").exists())

    def test_other_data_or_options_are_refused_on_resume(self):
        self.succeed("train", "spiral.toml", "-q")
        self.write("spiral.toml", SPIRAL.replace("rate = 0.01", "rate = 0.02"))
        self.fail_with(": options: found rate = 0.01 when it was written, rate = 0.02 now", "train", "spiral.toml", "--resume")
        self.fail_with('or start anew, from its best model perhaps: net.start = "spiral.h5"', "train", "spiral.toml",
                       "--resume")
        self.write("spiral.toml", SPIRAL)
        text = (self.folder / "spiral.csv").read_text()
        self.write("spiral.csv", text.replace("0,1.0,0.0", "0,1.0,0.01").replace("0.0,1.0,0.0", "0.0,1.0,0.01"))
        self.fail_with(": data: found ", "train", "spiral.toml", "--resume")

    def test_an_existing_output_is_refused(self):
        self.succeed("train", "spiral.toml", "-q")
        self.fail_with("go on with --resume, or replace it with --overwrite", "train", "spiral.toml")
        # Without a checkpoint there is nothing to go on from, and what lies there is another's.
        (self.folder / "spiral_checkpoint.h5").unlink()
        before = (self.folder / "spiral.h5").read_bytes()
        self.fail_with("choose another name, or replace it with --overwrite", "train", "spiral.toml", "--resume")
        self.assertEqual((self.folder / "spiral.h5").read_bytes(), before)

    def test_nothing_that_is_read_is_replaced(self):
        self.write("own_rhs.toml", SPIRAL.replace("[data]", '[rhs]\nequations = { x = "net(x, y)[0]", y = "net(x, y)[1] + '
                                                  'known(x)" }\nmodels = { known = "known.h5" }\n[data]'))
        (self.folder / "known.h5").write_bytes(b"a net")
        self.fail_with("the file of known, expected names that leave what is read as it is", "train", "own_rhs.toml",
                       "--overwrite", "--output", "known")
        self.assertEqual((self.folder / "known.h5").read_bytes(), b"a net")

    def test_tolerances_of_each_component_are_as_many(self):
        text = SPIRAL.replace("\natol = 1e-4", "\natol = [1e-4, 1e-4, 1e-4]")
        self.write("atol.toml", text)
        line = 1 + text.splitlines().index("atol = [1e-4, 1e-4, 1e-4]")
        self.fail_with(f"atol.toml:{line}: method.atol: found 3 numbers, expected one for all components or one for each of 2\n",
                       "train", "atol.toml")

    def test_what_layers_compute_is_told(self):
        self.write("line.csv", "a,b\n0,1\n1,2\n2,3\n")
        for layers, told in (('hidden = [3]\nactivations = ["relu", "tanh"]', "1-3-1 relu (output tanh), "),
                             ('hidden = [3, 2]\nactivations = ["relu", "sin", "tanh"]', "1-3-2-1 relu-sin (output tanh), "),
                             ('hidden = [3, 2]\nactivation = "relu"', "1-3-2-1 relu, "), ("hidden = []", "1-1 identity, ")):
            self.write("layers.toml", f'[net]\n{layers}\n[data]\nfile = "line.csv"\ninputs = ["a"]\ntargets = ["b"]\n'
                                      '[training]\noptimiser = "lbfgs"\niterations = 1\n[output]\nfile = "layers"\n')
            self.assertTrue(self.succeed("train", "layers.toml", "--overwrite").startswith(told), told)

    def test_a_folder_is_no_name_of_what_is_written(self):
        (self.folder / "runs").mkdir()
        for name, better in ((".", "./net"), ("runs/", "runs/net"), ("runs/..", "runs/../net")):
            self.fail_with(f'--output: found "{name}", a folder, expected how the names of the files begin; put a name behind it: '
                           f'"{better}"', "train", "spiral.toml", "--output", name)
        self.write("folder.toml", SPIRAL.replace('file = "spiral"', 'file = "./"'))
        self.fail_with('output.file: found "./", a folder', "train", "folder.toml")
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".")], [])
        self.succeed("train", "spiral.toml", "-q", "--output", "runs")  # runs.h5 beside it

    def test_a_folder_that_is_missing_is_told_before_training(self):
        before = sorted(path.name for path in self.folder.iterdir())
        self.fail_with("--output: found no folder nowhere, expected an existing folder; create it first",
                       "train", "train.toml", "--output", "nowhere/net")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)

    def test_an_existing_output_is_replaced_where_that_is_asked_for(self):
        self.succeed("train", "spiral.toml", "-q")
        self.succeed("train", "spiral.toml", "-q", "--overwrite")

    def test_a_rate_too_large_names_the_iteration_and_keeps_the_best(self):
        self.write("wild.toml", SPIRAL.replace("rate = 0.01", "rate = 1e30").replace("[training]", "[training]"))
        result = self.run_tool("train", "wild.toml", "-q")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"iteration \d+")
        self.assertIn("the last good state in spiral_checkpoint.h5", result.stderr)
        self.assertTrue((self.folder / "spiral.h5").exists())

    def test_a_phase_that_cannot_begin_leaves_the_model_of_the_one_before(self):
        times = [0.1 * i for i in range(16)]
        self.write("growth.csv", "t,x\n" + "".join(f"{t},{1 / (1 - 0.5 * t)}\n" for t in times))
        self.write("growth.toml", """
[rhs.equations]
x = "k * x^2"
[rhs.parameters]
k = { start = 2.5 }
[data]
file = "growth.csv"
time = "t"
states = ["x"]
[method]
precision = "f64"
[[phase]]
optimiser = "adam"
rate = 1e-9
iterations = 2
segment = 1
[[phase]]
optimiser = "lbfgs"
iterations = 5
[output]
file = "growth"
""")
        self.fail_with("iteration 2 (phase 2, 0), trajectory 0: found ", "train", "growth.toml", "-q")
        self.assertTrue((self.folder / "growth_rhs.h5").exists())
        self.assertIn("the best model so far is in growth_rhs.h5", self.run_tool(
            "train", "growth.toml", "-q", "--overwrite").stderr)

    def test_wrong_files_are_told_in_one_line(self):
        self.write("bad.toml", REGRESSION.replace("rate = 0.02", "rat = 0.02"))
        self.fail_with('bad.toml:13: phase[0].rat: found an unknown key', "train", "bad.toml")
        self.write("bad.toml", REGRESSION.replace('"x", "y"', '"x", "w"'))
        self.fail_with('data.inputs: found "w", expected one of x, y, z', "train", "bad.toml")
        self.write("table.csv", "x,y,z\n1,2,3\n1,,3\n")
        self.fail_with("table.csv:3, column y: found an empty field", "train", "train.toml")
        self.write("spiral.csv", "t,u,v\n0,1,0\n0.1,1,0\n0.1,1,0\n")
        self.fail_with("spiral.csv:4: found time 0.1 after 0.1", "train", "spiral.toml")
        self.write("bad.toml", SPIRAL.replace('file = "spiral"', ""))
        self.fail_with("how the files to write are called", "train", "bad.toml")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
