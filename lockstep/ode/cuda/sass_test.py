#!/usr/bin/env python3
"""Looks at the code of the CUDA component: what must hold for the same bits, and for speed. Needs no device.

sass_test.py CUOBJDUMP LIBRARY REGISTERS.tsv INSTRUCTIONS.tsv [--write]

- In PTX every operation is one rounded to nearest (or a conversion, comparison, selection): no .ftz, no .approx but
  the first guess of tanh's quotient, which is rounded correctly from any guess that close (thread_net.h).
- In machine code a product and a sum written apart stay apart (a probe kernel), and the only approximations are the
  first guesses of correctly rounded division and square root (MUFU.RCP, MUFU.RSQ), never a function.
- Kernels compiled for one shape spill nothing, and no inner loop of their steps reads or writes the stack: the search
  for an event alone works on a copy there. Registers and stacks stay within the committed table.
- Tensor cores (HMMA) work in the kernels of their modes, and in no other; between their products nothing is spilled.
- The kernels whose times docs/cuda.md predicts have about as many instructions as when those were counted: 5 % more or
  less in all, 2 % in the loop that has most of the arithmetic, for compute capability 9.0.
"""
import functools
import os
import re
import subprocess
import sys

GUESSES = {"MUFU.RCP", "MUFU.RSQ", "MUFU.RCP64H", "MUFU.RSQ64H"}
# What PTX may do with floating-point numbers besides moving, comparing and converting them.
ARITHMETIC = re.compile(r"(add|sub|mul|fma|div|sqrt|rcp)\.rn\.f(32|64)|(abs|neg|copysign|min|max|selp)\.f(32|64)|"
                        r"(min|max)\.NaN\.f(32|64)|add\.rz\.f64")  # add.rz: inside round()
QUOTIENT = {"rcp.approx.ftz.f32", "rcp.approx.ftz.f64"}  # as GUESSES, of TanhLane
HARMLESS = re.compile(r"(mov|ld|st|setp|cvt|selp|testp|slct|call|atom)\b")

# Products of tensor cores: exact, sums in float32.
TENSOR = re.compile(r"mma\.sync\.aligned\.m16n8k(8|16)\.row\.col\.f32\.(tf32\.tf32|bf16\.bf16|f16\.f16)\.f32")

GEMM = re.compile(r"\d+(gemm_(?:start|advance|plan|move|activate|enter|repeat|count))(?:I([fd])E|E)")
OURS = re.compile(r"advance_kernel|advance_tile_kernel|evaluate_kernel|evaluate_tensor_kernel|graph_kernel|" + GEMM.pattern)
MODES = ("tf32", "bf16", "fp16")
APART = 64  # instructions: products of one sum are nearer to each other, further ones have an activation between them
# Where a stack may be, and why. A kernel that knows every activation holds the exact reduction of large arguments of the
# sine: 168 bytes, used rarely. evaluate: besides, bookkeeping outside the loops over inputs. tensor: besides, sums on
# their way through an activation (128), and what is computed once for all tiles, before the products. graph: every
# elementary function, each called, and what its caller keeps. general, tiles and gemm: arrays whose length the problem
# says, one trajectory's numbers or a column's.
STACKS = ("evaluate", "tensor", "graph", "general", "tiles", "gemm")
MOST_STACK = 1024  # elsewhere: a copy of a trajectory and the search for its event


@functools.cache  # the machine code is looked at more than once, and takes half a minute
def run(tool, *arguments):
    # cuobjdump calls nvdisasm, which lies beside it.
    environment = dict(os.environ, PATH=os.path.dirname(os.path.abspath(tool)) + ":" + os.environ["PATH"])
    return subprocess.run([tool, *arguments], check=True, capture_output=True, text=True, env=environment).stdout


def short(mangled):
    """"lorenz_tsit5_f64" from a mangled name: words in order."""
    if found := re.search(r"evaluate_kernelI([fd])Li(\d+)ELi(\d+)", mangled):
        return f"evaluate_{found.group(2)}x{found.group(3)}_{'f32' if found.group(1) == 'f' else 'f64'}"
    if found := re.search(r"graph_kernelI([fd])Li(\d+)", mangled):
        return f"graph_{found.group(2)}_{'f32' if found.group(1) == 'f' else 'f64'}"
    if found := GEMM.search(mangled):
        return found.group(1) + {"f": "_f32", "d": "_f64", None: ""}[found.group(2)]
    if found := re.search(r"evaluate_tensor_kernelI\w*?4(Tf32|Bf16|Fp16)ELi(\d+)E\w*?WeightPlaceE([01])E", mangled):
        where = ("", "shared_")[int(found.group(3))]
        return f"tensor_{where}{found.group(2)}_{found.group(1).lower()}"
    if found := re.search(r"advance_tile_kernelI\w*?(?:FmaTileI([fd])E|TensorTileI\w*?4(Tf32|Bf16|Fp16)E)", mangled):
        return "tiles_" + (found.group(2).lower() if found.group(2) else "f32" if found.group(1) == "f" else "f64")
    precision = "f32" if re.search(r"KernelBodyIf", mangled) else "f64"
    method = re.search(r"(Rk4|Tsit5|Dop853)", mangled)
    if "ProgramDerivative" in mangled:
        size = re.search(r"ProgramDerivativeILi(\d+)ELi(\d+)", mangled)
        return ("general_small_" if size.group(1) == "8" else "general_") + precision
    if "FoldedNet" in mangled:
        n = re.search(r"FoldedNetDerivativeILi(\d+)", mangled).group(1)
        return f"net{n}_tanh_{method.group(1).lower()}_{precision}"
    system = re.search(r"systems\d+([A-Z][A-Za-z0-9]*?)E", mangled).group(1)
    return f"{system.lower()}_{method.group(1).lower()}_{precision}"


def resources(tool, library):
    """(architecture, kernel) -> registers, stack, local bytes."""
    table, architecture, kernel = {}, None, None
    for line in run(tool, "-res-usage", library).splitlines():
        if found := re.search(r"arch = (sm_\d+)", line):
            architecture = found.group(1)
        elif found := re.search(r"Function (_Z\S+):", line):
            kernel = found.group(1)
        elif (found := re.search(r"REG:(\d+) STACK:(\d+).* LOCAL:(\d+)", line)) and kernel and OURS.search(kernel):
            table[architecture, short(kernel)] = tuple(map(int, found.groups()))
    return table


def code(tool, library):
    """(architecture, kernel) -> instructions, operands cut off."""
    result, architecture, kernel = {}, None, None
    for line in run(tool, "-sass", library).splitlines():
        if found := re.search(r"arch = (sm_\d+)", line):
            architecture = found.group(1)
        elif found := re.search(r"Function : (_Z\S+)", line):
            name = found.group(1)
            kernel = short(name) if OURS.search(name) else "probe" if "contraction_probe" in name else None
        elif kernel and (found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)", line)):
            result.setdefault((architecture, kernel), []).append(found.group(1))
    return result


# What docs/cuda.md ("What the machine code promises") and benchmarks/gpu_questions.cpp count.
COUNTED = ("evaluate_128x128_f32", "tensor_shared_32_bf16", "lorenz_tsit5_f64", "lorenz_rk4_f32", "net3_tanh_tsit5_f32")
COUNT_AGAIN = ("count the usual path again as docs/cuda.md says under \"What the machine code promises\", correct its "
               "times there and the constants in benchmarks/gpu_questions.cpp, then renew this table with --write")


def instruction_counts(tool, library):
    """kernel -> instructions, those of the innermost loop with most arithmetic, that arithmetic, and there reads and
    writes of the stack; for sm_90."""
    listings, architecture, kernel = {}, None, None
    for line in run(tool, "-sass", library).splitlines():
        if found := re.search(r"arch = (sm_\d+)", line):
            architecture = found.group(1)
        elif found := re.search(r"Function : (_Z\S+)", line):
            kernel = short(found.group(1)) if OURS.search(found.group(1)) else None
        elif architecture == "sm_90" and kernel and (kernel in COUNTED or not kernel.startswith(STACKS)) and (
                found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", line)):
            listings.setdefault(kernel, []).append((int(found.group(1), 16), found.group(2).strip()))
    result = {}
    for kernel, listing in listings.items():
        loops = []
        for address, text in listing:
            if (found := re.search(r"\bBRA\b.* 0x([0-9a-f]+)$", text)) and int(found.group(1), 16) <= address:
                body = [t for a, t in listing if int(found.group(1), 16) <= a <= address]
                if not any(inner[0] >= int(found.group(1), 16) and inner[1] < address for inner in loops):
                    loops.append((int(found.group(1), 16), address, len(body),
                                  sum(bool(re.search(r"\b([FD]FMA|HMMA)\b", t)) for t in body),
                                  sum(bool(re.search(r"\b(LD|ST)L\b", t)) for t in body)))
        # Of those within a tenth of the most arithmetic the shortest: not the search for an event, which is a step, too.
        most = max((loop[3] for loop in loops), default=0)
        result[kernel] = (len(listing), *min((loop[2:] for loop in loops if loop[3] >= 0.9 * most),
                                             key=lambda loop: (loop[0], loop[2]), default=(0, 0, 0)))
    return result


def check_counts(found, committed, write):
    failures = [f"{kernel}: its loop reads or writes the stack {stack} times"
                for kernel, (*_, stack) in sorted(found.items()) if stack and not kernel.startswith(STACKS)]
    counts = {kernel: tuple(numbers) for kernel, (*numbers, _) in found.items() if kernel in COUNTED}
    if write and counts:
        with open(committed, "w") as file:
            file.write("# Of kernels for compute capability 9.0, as nvcc 13.0 makes them: instructions, those of the "
                       "innermost loop with most arithmetic, its fma or products of tensor cores. sass_test.py.\n")
            for kernel, numbers in sorted(counts.items()):
                file.write("\t".join(map(str, (kernel, *numbers))) + "\n")
    with open(committed) as file:
        known = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in file if not line.startswith("#")}
    for kernel, numbers in sorted(counts.items()):
        before = known.get(kernel, (0, 0, 0))
        if any(abs(now - then) > slack * then for now, then, slack in zip(numbers, before, (0.05, 0.02, 0.02))):
            failures.append(f"{kernel}: {numbers} instructions, in its loop, and fma there; {before} when its time was "
                            f"predicted: {COUNT_AGAIN}")
    return failures


def main():
    tool, library, committed, counted = sys.argv[1:5]
    failures = []
    usage = resources(tool, library)
    if not usage:
        sys.exit("no kernels found: has cuobjdump changed what it prints?")
    if "--write" in sys.argv:
        with open(committed, "w") as file:
            file.write("# Registers a thread and bytes of its stack, as nvcc 13.0 assigns them; sass_test.py --write "
                       "renews this.\n")
            for (architecture, kernel), (registers, stack, _) in sorted(usage.items()):
                file.write(f"{architecture}\t{kernel}\t{registers}\t{stack}\n")
    known = {}
    with open(committed) as file:
        for line in file:
            if not line.startswith("#"):
                architecture, kernel, registers, stack = line.split()
                known[architecture, kernel] = int(registers), int(stack)
    for key, (registers, stack, local) in sorted(usage.items()):
        name = " ".join(key)
        if key not in known:
            failures.append(f"{name}: not in the table of registers")
        elif registers > known[key][0] + 8 or stack > known[key][1] + 32:
            failures.append(f"{name}: {registers} registers and {stack} bytes of stack, {known[key]} in the table")
        if local or stack > MOST_STACK and not key[1].startswith(STACKS):
            failures.append(f"{name}: {stack} bytes of stack, {local} local: something left the registers")
    instructions = code(tool, library)
    if set(instructions) - {key for key in instructions if key[1] == "probe"} != set(usage):
        failures.append("machine code and resources name different kernels")
    for key, listing in sorted(instructions.items()):
        name = " ".join(key)
        for instruction in sorted({i for i in listing if i.startswith("MUFU") and i not in GUESSES}):
            failures.append(f"{name}: {instruction}")
        products = [i for i, instruction in enumerate(listing) if instruction.startswith("HMMA")]
        if bool(products) != key[1].endswith(MODES):
            failures.append(f"{name}: {len(products)} products on tensor cores")
        if any(re.match(r"(ST|LD)L\b", i) for first, last in zip(products, products[1:]) if last - first < APART
               for i in listing[first:last]):
            failures.append(f"{name}: spills between products")
        if key[1] == "probe":
            kinds = [i.split(".")[0] for i in listing if re.match(r"[FD](MUL|ADD|FMA)\b", i)]
            if sorted(kinds) != ["DADD", "DMUL", "FADD", "FMUL"]:
                failures.append(f"{name}: a * b + c became {kinds}")
    failures += check_counts(instruction_counts(tool, library), counted, "--write" in sys.argv)
    failures += check_ptx(run(tool, "-ptx", library))
    for failure in failures:
        print(failure)
    print(f"{len(usage)} kernels looked at, {len(failures)} complaints")
    sys.exit(bool(failures))


def check_ptx(text):
    operations = set(re.findall(r"^\s*(?:@!?%p\d+\s+)?([a-z][a-zA-Z0-9._]*)\s", text, re.MULTILINE)) - QUOTIENT
    floating = {o for o in operations if re.search(r"f32|f64|f16", o)}
    bad = {o for o in floating if not any(p.fullmatch(o) for p in (ARITHMETIC, TENSOR)) and not HARMLESS.match(o)}
    bad |= {o for o in operations if re.search(r"ftz|approx|\.full|\.sat", o)}
    if not any(o.startswith("fma.rn") for o in floating):
        return ["no PTX found in the library"]
    return [f"PTX: {operation}" for operation in sorted(bad)]


if __name__ == "__main__":
    main()
