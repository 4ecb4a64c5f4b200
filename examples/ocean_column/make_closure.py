"""Writes closure.safetensors: a 32-128-128-31 relu net that is a scheme of vertical mixing, exactly.

From the temperatures T of 32 levels (K, downwards) it gives the heat flux through the 31 interfaces between them (K m/s,
downwards): with s[k] = T[k] - T[k+1], levels dz apart,
    flux[k] dz = background s[k] + convective (min(s[k], 0) + min(s[k-1], 0) / 2)
Where water is stable it diffuses slowly; where cold lies over warm it mixes fast, and entrains some of what lies below.
The weights are written down here, not trained: relu(s) and relu(-s) are the first layer's units, the second passes them
on, the third adds them up. The other units stand idle; they cost the same. usage: make_closure.py OUTPUT
"""
import json
import struct
import sys

LEVELS, WIDTH = 32, 128
BACKGROUND, CONVECTIVE, DZ = 1e-4, 6e-3, 10.0  # m2/s, m2/s, m
INTERFACES = LEVELS - 1

weights = [[[0.0] * inputs for _ in range(outputs)]
           for inputs, outputs in ((LEVELS, WIDTH), (WIDTH, WIDTH), (WIDTH, INTERFACES))]
for k in range(INTERFACES):
    stable, unstable = k, INTERFACES + k
    for unit, sign in ((stable, 1.0), (unstable, -1.0)):
        weights[0][unit][k], weights[0][unit][k + 1] = sign, -sign
        weights[1][unit][unit] = 1.0
    weights[2][k][stable] = BACKGROUND / DZ
    weights[2][k][unstable] = -(BACKGROUND + CONVECTIVE) / DZ
    if k > 0:
        weights[2][k][unstable - 1] = -CONVECTIVE / 2 / DZ

header = {"__metadata__": {
    "name": "vertical mixing", "activations": "relu,relu,linear", "producer": "make_closure.py", "licence": "CC0-1.0",
    "inputs": ",".join(f"T{k}" for k in range(LEVELS)), "input_units": ",".join(["degC"] * LEVELS),
    "outputs": ",".join(f"flux{k}" for k in range(INTERFACES)), "output_units": ",".join(["K m/s"] * INTERFACES)}}
data = b""
for layer, matrix in enumerate(weights):
    for name, shape, numbers in (("weight", [len(matrix), len(matrix[0])], [w for row in matrix for w in row]),
                                 ("bias", [len(matrix)], [0.0] * len(matrix))):
        block = struct.pack(f"<{len(numbers)}f", *numbers)
        header[f"layers.{layer}.{name}"] = {"dtype": "F32", "shape": shape,
                                            "data_offsets": [len(data), len(data) + len(block)]}
        data += block
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
