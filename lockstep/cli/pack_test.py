"""What other programs add to a result file, before and behind `lockstep pack`: the same, or refused by name.

usage: pack_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, ToolTest, h5py, np


class Pack(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        self.write("lorenz.toml", LORENZ)
        self.succeed("solve", "lorenz.toml", "--quiet")

    def pack(self, **options):
        self.succeed("pack", "lorenz.h5", "--output", "packed.h5", "--overwrite", "--quiet", timeout=60, **options)
        return h5py.File(self.path("packed.h5"))

    def edit(self):
        return h5py.File(self.path("lorenz.h5"), "r+")

    def test_names_of_one_object_stay_so_and_cycles_end(self):
        with self.edit() as file:
            group = file.create_group("mine")
            group["whole"], group["self"], group["again"] = file["/"], group, file["state"]
            group["numbers"] = np.arange(20000.0)
            file["copy"] = group["numbers"]
            file["zz"] = group
        before = self.path("lorenz.h5").stat().st_size
        with self.pack() as packed:
            self.assertEqual(packed["mine/whole"], packed["/"])
            self.assertEqual(packed["mine/self"], packed["zz"])
            self.assertEqual(packed["mine/again"], packed["state"])
            self.assertEqual(packed["copy"], packed["mine/numbers"])
            self.assertEqual(packed["copy"][-1], 19999)
            self.assertEqual(packed["state"].dims[0][0], packed["trajectory"])
        self.assertLess(self.path("packed.h5").stat().st_size, before)

    def test_links_stay_links_wherever_they_lead(self):
        with h5py.File(self.path("other.h5"), "w") as other:
            other["a"] = np.arange(3)
        with self.edit() as file:
            file["near"], file["nowhere"] = h5py.SoftLink("/time"), h5py.SoftLink("/gone")
            file.create_group("mine")["up"] = h5py.SoftLink("/mine")
            file["far"], file["lost"] = h5py.ExternalLink("other.h5", "/a"), h5py.ExternalLink("gone.h5", "/a")
        with self.pack() as packed:
            self.assertEqual([packed.get(name, getlink=True).path for name in ("near", "nowhere", "mine/up")],
                             ["/time", "/gone", "/mine"])
            for name, file in (("far", "other.h5"), ("lost", "gone.h5")):
                link = packed.get(name, getlink=True)
                self.assertEqual((link.filename, link.path), (file, "/a"))
            self.assertEqual(packed["far"][()].tolist(), [0, 1, 2])
        self.path("archive").mkdir()
        self.fail_with("lorenz.h5:/far: found a link to other.h5 beside this file, expected what can be copied whole",
                       "pack", "lorenz.h5", "--output", "archive/lorenz.h5")

    def test_numbers_of_every_type_keep_their_bits(self):
        numbers = {"u4": np.array([2**32 - 1, 0], "u4"), "u8": np.array([2**64 - 1], "u8"), "i1": np.array([-3], "i1"),
                   "u2": np.array(65535, "u2"), "i2": np.array([[-1, 5]], ">i2"), "f2": np.array([0.5], "f2"),
                   "many": np.arange(40000, dtype="u4") + 2**31, "none": np.zeros((0, 3), "u4")}
        with self.edit() as file:
            for name, values in numbers.items():
                file[name] = values
            file["empty"], file["no_text"] = h5py.Empty("f8"), h5py.Empty(h5py.string_dtype())
        with self.pack() as packed:
            for name, values in numbers.items():
                self.assertEqual(packed[name].dtype, values.dtype, name)
                self.assertEqual(packed[name][()].tolist(), values.tolist(), name)
            self.assertEqual(packed["many"].compression, "gzip")
            self.assertEqual(packed["empty"].shape, None)
            self.assertEqual(packed["no_text"].shape, None)

    def test_scales_in_groups_and_several_of_a_dimension_are_attached(self):
        with self.edit() as file:
            group = file.create_group("mine")
            group["days"] = np.arange(3.0)
            group["days"].make_scale("day")
            group["numbers"] = np.arange(3.0)
            group["numbers"].dims[0].attach_scale(group["days"])
            group.attrs["NAME"] = file.attrs["CLASS"] = "of the user"
            file["second"] = np.zeros(file["time"].shape)
            file["second"].make_scale("also the time")
            file["state"].dims[1].attach_scale(file["second"])
        with self.pack() as packed:
            self.assertEqual(packed["mine/numbers"].dims[0][0], packed["mine/days"])
            self.assertEqual(packed["mine/days"].attrs["NAME"], b"day")
            self.assertEqual((packed["mine"].attrs["NAME"], packed.attrs["CLASS"]), ("of the user", "of the user"))
            self.assertEqual(list(packed["state"].dims[1].values()), [packed["time"], packed["second"]])

    def test_what_cannot_be_kept_is_refused_by_name(self):
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource("gone.h5", "a", (3,))
        for name, add, found in (
                ("kind", lambda file: file.__setitem__("kind", np.dtype("f8")), "a named datatype"),
                ("shown", lambda file: file.create_virtual_dataset("shown", layout), "a dataset whose numbers lie in"),
                ("mine", lambda file: file.create_dataset("mine", data=np.zeros(3, [("a", "i4")])),
                 "a dataset of another type")):
            with self.edit() as file:
                add(file)
            self.fail_with(f"lorenz.h5:/{name}: found {found}", "pack", "lorenz.h5")
            with self.edit() as file:
                del file[name]
        with self.pack():
            pass

    def test_other_commands_do_not_run_round_in_cycles(self):
        with self.edit() as file:
            file["problem"]["again"] = file["problem"]
        self.assertIn("same bits", self.succeed("validate", "lorenz.h5", "lorenz.h5", timeout=60))
        self.fail_with("lorenz.h5: found a group that holds itself, as problem/again, expected groups that end", "merge",
                       "lorenz.h5", "--output", "merged.h5")
        with self.edit() as file:
            del file["problem"]["again"]
            file["mine"] = np.array([2**32 - 1], "u4")
        self.fail_with("mine: found uint32, expected a type that result files have", "merge", "lorenz.h5", "--output",
                       "merged.h5")

    def test_what_is_no_smaller_is_not_said_to_be(self):
        self.succeed("solve", "lorenz.toml", "--trajectories", "1", "--output", "one.h5", "--quiet")
        self.assertRegex(self.succeed("pack", "one.h5", "--output", "larger.h5"),
                         r"\Alarger\.h5: [\d.]+ kB, was [\d.]+ kB: no smaller, every bit verified\n\Z")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
