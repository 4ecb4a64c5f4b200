"""The rest of what docs/files.md says, by plain h5py: attributes, statuses, packed files, selections, shards, indices.

usage: values_by_the_page.py LOCKSTEP FILES.md EXAMPLE MODEL.safetensors [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import json
import pathlib
import re
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tool_test import LORENZ, h5py, np
from page_reader import ENDLESS, NET, PAGE, STATUS, PageTest, Reader, items

TEXT = {"Conventions", "title", "source", "history", "lockstep_format", "version", "command", "problem_file",
        "problem_digest", "rhs", "rhs_digest", "model", "model_digest", "method", "control", "precision",
        "matrix_precision", "event", "resets", "impulses", "guard", "equations", "engine", "engine_reason", "device",
        "cpu_target", "kernel", "packed", "products", "shard"}
COUNTS = {"max_steps", "stop_at_knots", "events", "seed", "certificate_samples", "threads", "accepted_steps", "rejected_steps",
          "rhs_evaluations", "resumed", "first_trajectory", "ensemble_trajectories"}
NUMBERS = {"rtol", "atol", "dt", "initial_step", "max_step", "stops", "seconds"}
LISTS = {"grid", "grid_points", "index_files", "index_first_trajectories"}


def table_after(heading):
    """The names in the first column of the page's table below a heading."""
    rows = PAGE.read_text().split(heading + "\n", 1)[1]
    rows = rows[rows.index("| name |"):].split("\n\n", 1)[0].splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`([a-z_A-Z]+)`", row.split("|")[1])}


class Datasets(PageTest):
    def test_all_that_the_page_lists_is_there_in_type_and_shape(self):
        self.make_all()
        names = table_after("## Datasets") - {"trajectory", "component", "parameter"} - set(STATUS)
        lengths = {"trajectory": 100, "time": 21, "component": 3, "parameter": 3, "certificate_member": 8,
                   "certificate_trajectory": 64}
        shapes = {"state": ("trajectory", "time", "component"), "end_state": ("trajectory", "component"),
                  "initial_state": ("trajectory", "component"), "time": ("time",), "parameters": ("parameter",),
                  "committed": (), "certificate_member": ("certificate_member",),
                  "certificate_trajectory": ("certificate_trajectory",),
                  "certificate_state": ("certificate_member", "certificate_trajectory", "time", "component")}
        kinds = {"status": "|u1", "accepted": "<i4", "rejected": "<i4", "evaluations": "<i4", "committed": "<i8",
                 "certificate_member": "<i8", "certificate_trajectory": "<i8", "state": "<f4", "end_state": "<f4",
                 "certificate_state": "<f4"}
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertLessEqual(names, set(file))
            for name in names - {"problem"}:
                shape = tuple(lengths[dimension] for dimension in shapes.get(name, ("trajectory",)))
                self.assertEqual((file[name].shape, file[name].dtype.str), (shape, kinds.get(name, "<f8")), name)
            self.assertEqual(list(file["certificate_member"][:]), list(range(8)))
            self.assertEqual([name.decode() for name in file["parameter"][:]], ["sigma", "rho", "beta"])
            self.assertEqual(file["certificate_state"].attrs["ulps"], 4)
        with h5py.File(self.path("own.h5")) as file:
            self.assertEqual((file["time"].shape, file["state"].shape, file["parameters"].shape),
                             ((100, 5), (100, 5, 3), (100, 3)))
            self.assertEqual((file["state"].dtype.str, file["time"].dtype.str), ("<f8", "<f8"))
            self.assertEqual(list(file["save_point"][:]), list(range(5)))
            self.assertEqual(file["state"].attrs["coordinates"], "time")


    def test_impulses_are_shared_or_each_trajectorys_own(self):
        names = table_after("### Impulses")
        self.make_all()
        dosed, uneven = Reader(self.path("dosed.h5")), Reader(self.path("uneven.h5"))
        stored = {*dosed.file, *uneven.file}
        self.assertEqual(names, {name for name in stored if name.startswith("impulse")})
        self.assertEqual({name: dosed.file[name].shape for name in names & set(dosed.file)},
                         {"impulse": (3,), "impulse_time": (3,), "impulse_component": (3,), "impulse_factor": (3,),
                          "impulse_change": (100, 3)})
        self.assertEqual([dosed.file[name].dtype.str for name in ("impulse", "impulse_time", "impulse_component")],
                         ["<i8", "<f8", "<i4"])
        (_, _, change, _), second, third = dosed.impulses(5)
        self.assertTrue(0 < change < 1)
        self.assertEqual((second, third), ((0.75, 2, 0, 0.5), (1, 0, change, 1)))
        self.assertEqual(list(uneven.file["impulse_trajectory"][:]), [7, 7, 99])
        self.assertEqual([uneven.impulses(row) for row in (0, 7, 99)],
                         [[], [(0.25, 0, 2, 1), (0.5, 1, 1, 1)], [(1, 2, 3, 1)]])
        self.assertEqual(uneven.file.attrs["impulses"],
                         "0 to 2 changes of each trajectory's own, of x, y, z, at t = 0.25 to 1")


class Provenance(PageTest):
    def test_attributes_are_listed_and_of_the_kinds_the_page_states(self):
        self.assertEqual(TEXT | COUNTS | NUMBERS | LISTS, table_after("## Attributes of the file"))
        self.succeed("solve", "own.toml", "--quiet", "--output", "fixed.h5", "--method", "rk4", "--dt", "0.01")
        self.succeed("pack", "fixed.h5", "--quiet", "--output", "packed.h5")
        self.path("text.toml").write_text('[rhs]\nparameters = { k = 2 }\n[rhs.equations]\nx = "v"\nv = "-k * x"\n[ensemble]\n'
                                          'initial_state = [1, 0]\n[time]\nspan = [0, 1]\n[output]\nfile = "text.h5"\n')
        self.succeed("solve", "text.toml", "--quiet")
        text = self.path("text.toml").read_text().replace('initial_state = [1, 0]', 'initial_state = { x = 1 }').replace("text.h5", "grid.h5")
        self.path("grid.toml").write_text(text + "[ensemble.grid]\nv = { linspace = [-1, 1, 3] }\nk = [2, 3]\n")
        self.succeed("solve", "grid.toml", "--quiet")
        with h5py.File(self.path("grid.h5")) as file:
            self.assertEqual((list(file.attrs["grid"]), list(file.attrs["grid_points"])), (["v", "k"], [3, 2]))
            self.assertEqual(file["initial_state"][:].tolist(), [[1, v] for v in (-1, -1, 0, 0, 1, 1)])
            self.assertEqual(file["parameters"][:].tolist(), [[2], [3]] * 3)
        seen = set()
        for path in self.make_all():
            with h5py.File(path) as file:
                for name, value in file.attrs.items():
                    seen.add(name)
                    kind = h5py.h5a.open(file.id, name.encode()).get_type()
                    if name in TEXT:
                        self.assertIsInstance(value, str, name)
                    elif name in COUNTS:
                        self.assertEqual((kind.get_size(), kind.get_class()), (8, h5py.h5t.INTEGER), name)
                    elif name in NUMBERS:
                        self.assertEqual((kind.get_size(), kind.get_class()), (8, h5py.h5t.FLOAT), name)
                    else:
                        self.assertIn(name, LISTS)
                for name in ("problem_digest", "rhs_digest"):
                    self.assertRegex(file.attrs[name], r"\A[0-9a-f]{32}\Z")
        # Those of GPUs need one; the others are met below.
        self.assertEqual((TEXT | COUNTS | NUMBERS | LISTS) - seen,
                         {"device", "products", "guard", "initial_step", "max_step", "stops", "stop_at_knots"})

    def test_options_reach_the_attributes(self):
        self.path("chosen.toml").write_text(LORENZ + "[method]\natol = [1e-6, 1e-7, 1e-8]\ninitial_step = 0.001\n"
                                            "max_step = 0.1\nmax_steps = 12345\nstops = [0.3, 1.1]\n"
                                            "stop_at_knots = false\n")
        self.succeed("solve", "chosen.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5")) as file:
            attributes = file.attrs
            self.assertEqual(list(attributes["atol"]), [1e-6, 1e-7, 1e-8])
            self.assertEqual((attributes["initial_step"], attributes["max_step"], attributes["max_steps"]),
                             (0.001, 0.1, 12345))
            self.assertEqual((list(attributes["stops"]), attributes["stop_at_knots"]), ([0.3, 1.1], 0))
            self.assertEqual((attributes["seed"], attributes["problem_file"], attributes["precision"]),
                             (3, "chosen.toml", "f32"))
        text = self.path("chosen.toml").read_text().split("[method]")[0]
        self.path("chosen.toml").write_text(text + "[method]\ndt = 0.1\nstops = [0.3, 1.1]\nstop_at_knots = false\n")
        self.succeed("solve", "chosen.toml", "--quiet", "--overwrite")
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertEqual((file.attrs["dt"], list(file.attrs["stops"]), file.attrs["stop_at_knots"]), (0.1, [0.3, 1.1], 0))

    def test_totals_are_the_sums_of_the_columns(self):
        self.make_all()
        for name in ("lorenz", "own", "merged", "index"):
            with h5py.File(self.path(name + ".h5")) as file:
                for total, column in (("accepted_steps", "accepted"), ("rejected_steps", "rejected"),
                                      ("rhs_evaluations", "evaluations")):
                    self.assertEqual(file.attrs[total], file[column][:].astype(int).sum(), (name, total))

    def test_the_problem_is_what_was_asked_for(self):
        for name in ("own", "net", "lorenz"):
            self.succeed("solve", name + ".toml", "--quiet")
        with h5py.File(self.path("own.h5")) as file:
            problem = file["problem"]
            # To two roundings: a sum of low and a share of the range, taken in another order.
            np.testing.assert_allclose(problem["end_time"], np.linspace(1, 2, 100), rtol=2**-51)
            self.assertEqual([problem.attrs[name] for name in ("system", "event_component", "event_value",
                                                               "event_direction")], ["lorenz", 2, 40, "either"])
            self.assertNotIn("model", problem)
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertEqual(list(file["problem/end_time"]), [2])
            self.assertNotIn("resets", file["problem"])
        with h5py.File(self.path("net.h5")) as file:
            self.assertEqual(file["problem"].attrs["with_time"], 0)
            self.assertNotIn("system", file["problem"].attrs)
            self.path("again.safetensors").write_bytes(file["problem/model"][:].tobytes())
        self.path("net.toml").write_text(NET.replace("net.safetensors", "again.safetensors").replace("net.h5", "b.h5"))
        self.succeed("solve", "net.toml", "--quiet")
        with h5py.File(self.path("net.h5")) as a, h5py.File(self.path("b.h5")) as b:
            self.assertEqual(a["state"][:].tobytes(), b["state"][:].tobytes())
            self.assertEqual(a.attrs["rhs_digest"], b.attrs["rhs_digest"])

    def test_resets_are_what_was_asked_for(self):
        self.succeed("solve", "reset.toml", "--quiet")
        with h5py.File(self.path("reset.h5")) as file:
            resets = file["problem/resets"]
            self.assertEqual(list(resets), ["0", "1"])
            texts = ["z = 20 where z rises through 35", "x = rho / 2, y = -y where x + 2 * t crosses 0"]
            self.assertEqual([resets[name].attrs["text"] for name in resets], texts)
            self.assertEqual(file.attrs["resets"], "2 resets: " + "; ".join(texts))
            self.assertEqual({name: value for name, value in resets["0"].attrs.items() if name != "text"},
                             {"event_component": 2, "event_value": 35, "event_direction": "rising"})
            self.assertEqual((list(resets["0"]), list(resets["1"])), (["state_model"], ["event_model", "state_model"]))
            self.assertEqual(resets["1"].attrs["event_direction"], "either")
            self.assertEqual({one.dtype.str for name in resets for one in resets[name].values()}, {"|u1"})

    def test_events_are_where_the_state_crosses(self):
        self.succeed("solve", "reset.toml", "--quiet")
        reader = Reader(self.path("reset.h5"))
        file = reader.file
        self.assertEqual({name for name in file if name.startswith("event")}, table_after("### Events"))
        self.assertEqual([file[name].dtype.str for name in ("event_time", "event_reset", "event_trajectory")],
                         ["<f8", "<i4", "<i8"])
        self.assertEqual(list(file["event_reset"].attrs["resets"]),
                         ["z = 20 where z rises through 35", "x = rho / 2, y = -y where x + 2 * t crosses 0"])
        self.assertEqual(file.attrs["events"], 1)
        whose = file["event_trajectory"][:]
        self.assertTrue((np.diff(whose) >= 0).all() and set(whose) <= set(file["trajectory"][:]))
        for row in range(100):
            events = reader.events(row)
            self.assertEqual(sorted(time for time, _ in events), [time for time, _ in events])
            # Up to the error of a root and of float32.
            self.assertTrue((reader.state[row, :, 2] <= 35.001).all())
        self.assertLessEqual({0}, set(file["event_reset"][:]))
        self.succeed("solve", "lorenz.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5")) as plain:
            self.assertEqual([name for name in plain if name.startswith("event")], [])

    def test_a_resumed_run_counts_it_and_tells_of_its_last_part(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            self.assertEqual(file.attrs["resumed"], 0)
            file["status"][10:20] = STATUS.index("cancelled")
        self.succeed("solve", "lorenz.toml", "--resume", "--quiet")
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertEqual((file.attrs["resumed"], int(file["committed"][()])), (1, 100))


class Statuses(PageTest):
    def solve_odd(self, text, *flags):
        self.path("odd.toml").write_text(text)
        self.succeed("solve", "odd.toml", "--overwrite", "--quiet", *flags)
        return Reader(self.path("lorenz.h5"))

    def expect(self, reader, names):
        """Each trajectory's status; numbers end with the trajectory."""
        self.assertEqual([STATUS[status] for status in reader.file["status"][:]], names)
        for row in range(len(names)):
            after = reader.times(row) > reader.file["end_time"][row]
            self.assertTrue(np.isnan(reader.state[row, after]).all())
            self.assertTrue(np.isfinite(reader.state[row, ~after][:-1]).all())

    def test_every_end_of_a_trajectory_is_told(self):
        two = LORENZ.replace("trajectories = 100\nseed = 3\n", "").replace(
            "{ normal = { mean = [1, 0, 0], std = 0.1 } }", "[[1, 0, 0], [1e30, 0, 0]]")
        self.expect(self.solve_odd(two, "--method", "rk4", "--dt", "0.01"), ["success", "not_finite"])
        # Around 1e15 times are an eighth apart: Lorenz' equations ask for steps of a hundredth.
        late = LORENZ.replace("= 100\n", "= 2\n").replace("[0, 2]", "[1e15, 1.00000000000002e15]")
        self.expect(self.solve_odd(late, "--precision", "f64"), ["step_too_small"] * 2)
        short = LORENZ.replace("= 100\n", "= 2\n") + "[method]\nmax_steps = 5\n"
        reader = self.solve_odd(short)
        self.expect(reader, ["too_many_steps"] * 2)
        self.assertTrue((reader.file["accepted"][:] + reader.file["rejected"][:] == 5).all())

    def test_what_a_time_limit_leaves_open_is_cancelled_and_nan(self):
        self.path("long.toml").write_text(ENDLESS.replace("1000000", "3000").replace("[0, 50]", "[0, 20000]"))
        done = self.run_tool("solve", "long.toml", "--time-limit", "1", "--quiet", "--threads", "1")
        self.assertEqual(done.returncode, 124, done.stderr)
        reader = Reader(self.path("lorenz.h5"))
        self.assertTrue((~reader.finished).any())
        self.assertEqual(int(reader.file["committed"][()]), int(reader.finished.sum()))
        self.assertTrue(np.isnan(reader.state[~reader.finished, -1]).all())

    def test_a_guard_is_named_and_its_trajectories_are_marked(self):
        self.make_ranged_net()
        for guard, statuses in (("flag", {0, 5}), ("stop", {0, 5}), ("clamp", {0})):
            self.succeed("solve", "ranged.toml", "--guard", guard, "--overwrite", "--quiet")
            reader = Reader(self.path("ranged.h5"))
            self.assertEqual(reader.file.attrs["guard"], guard)
            self.assertEqual(set(reader.file["status"][:]), statuses)
            marked = reader.file["status"][:] == STATUS.index("outside_range")
            if guard == "flag":
                outside = (np.abs(reader.state[:]) > 12).any(axis=(1, 2))
                np.testing.assert_array_equal(marked, outside | (np.abs(reader.file["end_state"][:]) > 12).any(axis=1))
            if guard == "stop":
                self.assertTrue(np.isnan(reader.state[marked, -1]).all())

    def make_ranged_net(self):
        """u' = u for each of two components, trained on -12 to 12."""
        tensors = (("0.weight", [2, 2], np.eye(2)), ("0.bias", [2], np.zeros(2)), ("input_min", [2], [-12, -12]),
                   ("input_max", [2], [12, 12]))
        header, content = {"__metadata__": {"activations": "linear"}}, b""
        for name, shape, numbers in tensors:
            numbers = np.asarray(numbers, "<f4").tobytes()
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(content), len(content) + len(numbers)]}
            content += numbers
        header = json.dumps(header).encode()
        self.path("ranged.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + content)
        self.path("ranged.toml").write_text(NET.replace("net.", "ranged.").replace("mean = [1, 0, 0], std = 0.1",
                                                                                  "mean = [4, 4], std = 1"))


class OtherPrograms(PageTest):
    def test_a_file_that_another_program_writes_by_the_page_is_judged(self):
        self.succeed("solve", "lorenz.toml", "--certificate", "--quiet")
        example = PAGE.read_text().split("## Files of other programs\n", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
        with h5py.File(self.path("lorenz.h5")) as file:
            ours = {name: file[name][:] for name in ("state", "time", "initial_state")}

        def write(factor):
            exec(example.replace('"port.h5"', repr(str(self.path("port.h5")))),
                 {"h5py": h5py, **ours, "state": ours["state"] * np.float32(factor)})
        for factor, code, words in ((1, 0, "same bits: all 6,300 numbers of state agree"),
                                    (1 + 2**-23, 0, "port.h5 agrees with lorenz.h5"),
                                    (1.001, 1, "port.h5 does not agree with lorenz.h5")):
            write(factor)
            done = self.run_tool("validate", "lorenz.h5", "port.h5")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(words, done.stdout)
        done = self.run_tool("validate", "port.h5", "lorenz.h5", "--stored-only")
        self.assertIn("stored in lorenz.h5", done.stdout)
        text = self.succeed("info", "port.h5")
        self.assertRegex(text, r"trajectories +100 success\n(.|\n)* u2 +\S+ to ")
        with h5py.File(self.path("port.h5"), "r+") as port:
            port.attrs["method"] = "rk4"
            del port["initial_state"]
        self.assertIn("initial_state", self.run_tool("info", "port.h5").stderr)
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            del file["status"]
        self.assertIn("lorenz.h5:/status: found nothing of that name", self.run_tool("info", "lorenz.h5").stderr)


class Kinds(PageTest):
    def test_a_packed_file_holds_the_same_numbers_behind_standard_filters(self):
        self.succeed("solve", "lorenz.toml", "--certificate", "--trajectories", "2000", "--quiet")
        self.succeed("pack", "lorenz.h5", "--output", "packed.h5", "--quiet")
        plain, packed = Reader(self.path("lorenz.h5")).file, Reader(self.path("packed.h5")).file
        self.assertIn("shuffle", packed.attrs["packed"])
        self.assertEqual(sorted(items(plain)), sorted(items(packed)))
        filtered = set()
        for name, item in items(packed).items():
            if not isinstance(item, h5py.Dataset):
                continue
            if item.dtype.kind != "O":
                self.assertEqual(item[()].tobytes(), plain[name][()].tobytes(), name)
            properties = item.id.get_create_plist()
            codes = {properties.get_filter(i)[0] for i in range(properties.get_nfilters())}
            self.assertLessEqual(codes, {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE}, name)
            large = item.dtype.kind != "O" and item.size * item.dtype.itemsize >= 64_000
            self.assertEqual(bool(codes), large, name)
            self.assertEqual(properties.get_layout(), h5py.h5d.CHUNKED if large else h5py.h5d.CONTIGUOUS, name)
            filtered |= {name} if codes else set()
        self.assertLessEqual({"state", "certificate_state"}, filtered)

    def test_a_selection_holds_the_bits_of_the_whole(self):
        self.succeed("solve", "lorenz.toml", "--certificate", "--quiet")
        self.path("some.toml").write_text(LORENZ.replace('"lorenz.h5"', '"some.h5"\ncomponents = ["z", "x"]\nevery = 5'))
        self.succeed("solve", "some.toml", "--certificate", "--quiet")
        whole, some = Reader(self.path("lorenz.h5")), Reader(self.path("some.h5"))
        self.assertEqual(some.components, ["z", "x"])
        np.testing.assert_array_equal(some.times(0), whole.times(0)[::5])
        for name, chosen in (("state", np.s_[:, ::5, [2, 0]]), ("end_state", np.s_[:, [2, 0]]),
                             ("initial_state", np.s_[:, [2, 0]]), ("certificate_state", np.s_[:, :, ::5, [2, 0]])):
            self.assertEqual(some.file[name][:].tobytes(), whole.file[name][:][chosen].tobytes(), name)
        for name in ("status", "accepted", "rejected", "evaluations", "end_time", "parameters"):
            self.assertEqual(some.file[name][:].tobytes(), whole.file[name][:].tobytes(), name)

    def test_shards_and_indices_say_what_they_are_of(self):
        self.make_all()
        firsts = [0, 33, 66]  # floor(100 (i - 1) / 3)
        for index, first in enumerate(firsts, 1):
            attributes = Reader(self.path(f"lorenz.shard-{index}-of-3.h5")).file.attrs
            self.assertEqual((attributes["shard"], attributes["first_trajectory"], attributes["ensemble_trajectories"]),
                             (f"{index}/3", first, 100))
        attributes = Reader(self.path("index.h5")).file.attrs
        self.assertEqual(list(attributes["index_files"]), [f"lorenz.shard-{i}-of-3.h5" for i in (1, 2, 3)])
        self.assertEqual(list(attributes["index_first_trajectories"]), firsts)

    def test_an_index_without_a_part_shows_what_the_page_says(self):
        self.make_all()
        self.path("lorenz.shard-2-of-3.h5").unlink()
        with h5py.File(self.path("index.h5")) as file:
            gone = np.s_[33:66]
            self.assertTrue(np.isnan(file["state"][gone]).all() and np.isnan(file["end_time"][gone]).all())
            self.assertTrue((file["status"][gone] == 6).all() and (file["accepted"][gone] == 0).all())
            self.assertTrue(np.isfinite(file["state"][:33]).all())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=1)
