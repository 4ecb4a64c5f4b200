#!/usr/bin/env python3
"""What a call from Python costs: a net of one sample and of 16, against ONNX Runtime and the same call from C++.

float32. `lockstep` makes a new array for the result, `lockstep out=` writes into one; `onnxruntime` is
InferenceSession.run with a dict, `onnxruntime bound` run_with_iobinding on arrays bound before. `C++` is
build/bin/mlp_bench, where it is built; "over C++" is what Python adds to it.

    PYTHONPATH=build/python python3 benchmarks/python_call.py
"""
import argparse
import json
import os
import subprocess
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

import lockstep

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETS = {
    "ocean_32_128_128_31_relu": "ocean_relu_32_128_128_31",
    "lorenz_3_100_3_tanh": "lorenz_tanh_3_100_3",
}


def nanoseconds(call, repeats):
    """The fastest of `repeats` runs of enough calls to take a millisecond or more, for each call."""
    calls = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        if time.perf_counter_ns() - start > 1_000_000:
            break
        calls *= 2
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter_ns() - start) / calls)
    return best


def from_cpp(workload, size):
    """Nanoseconds of the same call from C++ (a net of that shape), or None."""
    program = os.path.join(ROOT, "build", "bin", "mlp_bench")
    if not os.access(program, os.X_OK):
        return None
    command = [program, f"--benchmark_filter=^f32/[a-z0-9]*/{workload}/rows/{size}/1/manual_time",
               "--benchmark_min_time=0.3", "--benchmark_format=json"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)["benchmarks"][-1]["ns_an_evaluation"] * size  # the widest instruction set
    except (ValueError, LookupError):
        return None


def onnx_session(path):
    try:
        import onnxruntime
    except ImportError:
        print("onnxruntime is not installed: left out (python3 -m pip install onnxruntime)", file=sys.stderr)
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="1,16", help="samples a call, comma separated")
    parser.add_argument("--repeats", type=int, default=200)
    args = parser.parse_args()
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    print(f"{'net':26} {'samples':>7} {'call':20} {'ns a call':>10} {'over C++':>9} {'to lockstep':>11}")
    for workload, file in NETS.items():
        net = lockstep.load(os.path.join(ROOT, "testdata", file + ".safetensors"))
        session = onnx_session(os.path.join(ROOT, "testdata", file + ".onnx"))
        for size in map(int, args.sizes.split(",")):
            x = np.random.default_rng(1).uniform(-1, 1, (size, len(net.inputs[0]["features"]))).astype(np.float32)
            y = net(x)
            out = np.empty_like(y)
            calls = {"lockstep": lambda: net(x), "lockstep out=": lambda: net(x, out)}
            if session is not None:
                name, result = session.get_inputs()[0].name, session.get_outputs()[0].name
                binding = session.io_binding()
                bound = np.empty_like(y)
                binding.bind_input(name, "cpu", 0, np.float32, x.shape, x.ctypes.data)
                binding.bind_output(result, "cpu", 0, np.float32, bound.shape, bound.ctypes.data)
                np.testing.assert_allclose(session.run(None, {name: x})[0], y, rtol=1e-3, atol=1e-4)
                calls["onnxruntime"] = lambda: session.run(None, {name: x})
                calls["onnxruntime bound"] = lambda: session.run_with_iobinding(binding)
            cpp = from_cpp(workload, size)
            times = {name: nanoseconds(call, args.repeats) for name, call in calls.items()}
            if cpp is not None:
                times = {"C++": cpp, **times}
            for name, value in times.items():
                over = "-" if cpp is None or name == "C++" else f"{value - cpp:.0f}"
                print(f"{workload:26} {size:7} {name:20} {value:10.0f} {over:>9} {value / times['lockstep']:11.2f}")


if __name__ == "__main__":
    main()
