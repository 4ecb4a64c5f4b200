"""Makes a stand-in for each of NVIDIA's libraries that PyTorch's wheel names, into the wheel's own folder.

PyPI has PyTorch for Linux with CUDA only; its CUDA libraries are gigabytes more to download, and a test of exporters on the
processor calls none of them. They are linked all the same, so that each must exist and have the symbols asked for: every
function here answers "no device" (100, cudaErrorNoDevice), which is what a machine without a card says, too.

    python stub_cuda_libraries.py FOLDER_OF_TORCH
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

libraries = pathlib.Path(sys.argv[1]) / "lib"
present = sorted(libraries.glob("*.so*"))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def dynamic(tag, path):
    return re.findall(rf"\({tag}\).*\[(.+)\]", output("readelf", "-dW", path))


names = {path.name for path in present} | {soname for path in present for soname in dynamic("SONAME", path)}
missing = {name for path in present for name in dynamic("NEEDED", path)
           if name not in names and re.match(r"lib(cu|nv|nccl)", name)}

# Undefined symbols of the wheel's libraries; with @version, the version's file says which library is meant.
versioned = collections.defaultdict(set)  # (library, version): symbols
plain = set()
defined = set()
for path in present:
    section = output("readelf", "-VW", path).split("Version needs section")[-1]
    library_of = {}
    file = None
    for line in section.splitlines():
        if found := re.search(r"File: (\S+)", line):
            file = found[1]
        elif found := re.search(r"Name: (\S+)", line):
            library_of[found[1]] = file
    for line in output("nm", "-D", path).splitlines():
        *_, kind, symbol = line.split()
        name, _, version = symbol.replace("@@", "@").partition("@")
        if kind not in "Uw":
            defined.add(name)
        elif version and library_of.get(version) in missing:
            versioned[library_of[version], version].add(name)
        elif not version and kind == "U":
            plain.add(name)
plain -= defined
plain = {name for name in plain if re.match(r"(__)?(cu|nv|nccl|cupti)", name)}

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for library in sorted(missing):
        groups = {version: symbols for (owner, version), symbols in versioned.items() if owner == library}
        # A symbol without version may be anybody's: every stand-in has them all.
        functions = sorted(plain.union(*groups.values()))
        (folder / "stub.c").write_text("".join(f"int {name}() {{ return 100; }}\n" for name in functions) or "int none;\n")
        script = "".join(f"{version} {{ global: {' '.join(f'{name};' for name in sorted(symbols))} }};\n"
                         for version, symbols in groups.items())
        (folder / "stub.map").write_text(script or "{ global: *; };\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", libraries / library, f"-Wl,-soname,{library}",
                        f"-Wl,--version-script={folder / 'stub.map'}", folder / "stub.c"], check=True)
        print(f"   {library}: {len(functions)} functions")
