#!/usr/bin/env bash
# The wheel in a stranger's hands: made by scripts/python_wheel.sh, installed into a fresh virtual environment that sees
# nothing of the system's packages, run from another folder without a path to the build, no library of HDF5 outside the wheel.
# Exit code 77: PyPI cannot be reached.
#   usage: install_test.sh SOURCES FOLDER PYTHON BUILD      BUILD: the folder that has built the extension
set -euo pipefail
sources=$1 folder=$2 python=$3 build=$4
rm -rf "$folder/environment" "$folder/elsewhere"
mkdir -p "$folder/elsewhere"
code=0
"$sources/scripts/python_wheel.sh" --from "$build" "$folder" || code=$?
[ $code -eq 0 ] || exit $code
"$python" -m venv "$folder/environment"
"$folder/environment/bin/pip" --disable-pip-version-check install -q --retries 1 --timeout 20 numpy ||
  { echo "skipped: NumPy cannot be installed from PyPI"; exit 77; }
"$folder/environment/bin/pip" --disable-pip-version-check install -q --no-index "$folder"/*.whl
cp "$sources/testdata/lorenz_tanh_3_100_3.safetensors" "$folder/elsewhere"
rm -rf "$folder/tree"
cd "$folder/elsewhere"
env -i PATH=/usr/bin:/bin HOME="$folder/elsewhere" "$folder/environment/bin/python" -I - <<'PYTHON'
import os
import numpy, lockstep
net = lockstep.load("lorenz_tanh_3_100_3.safetensors")
y = net(numpy.array([1.0, 0.0, 0.0], numpy.float32))
assert y.shape == (3,) and y.dtype == numpy.float32, y
in_memory = lockstep.solve(net, [[1.0, 0.0, 0.0], [1.1, 0.0, 0.0]], (0, 1), 11)
in_file = lockstep.solve(net, [[1.0, 0.0, 0.0], [1.1, 0.0, 0.0]], (0, 1), 11, output="a.h5")
assert numpy.array_equal(in_memory.state, in_file.state) and lockstep.validate(in_memory, in_file).same_bits
training = lockstep.train(x=[[0.0], [1.0]], y=[0.0, 1.0], hidden=[], iterations=10)
assert len(training.history["loss"]) == 10
package = os.path.dirname(lockstep.__file__)
assert {"py.typed", "_lockstep.pyi"} <= set(os.listdir(package)), os.listdir(package)
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
outside = sorted(path for path in mapped if "hdf5" in path and not path.startswith(os.path.dirname(package)))
assert not outside, outside
print(f"lockstep {lockstep.__version__} from {package}")
PYTHON
"$folder/environment/bin/lockstep" info a.h5 >info.txt
grep -q "lorenz_tanh_3_100_3" info.txt
echo "wheel installs and runs"
