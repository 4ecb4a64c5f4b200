#!/usr/bin/env bash
# Gets NVIDIA's cuobjdump, nvdisasm and NVRTC from PyPI into a folder, for the tests that look at machine code and that
# compile kernels at run time. Needs Python's venv and the network; a folder that has them already is left as it is.
# Usage: scripts/cuda_tools.sh [FOLDER], by default build/cuda_tools, where CMake looks.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -le 1 ] || fail "usage: scripts/cuda_tools.sh [FOLDER]"
folder=${1:-build/cuda_tools}

stage "NVIDIA's cuobjdump, nvdisasm and NVRTC, into $folder"
if ! ls "$folder"/lib/python3*/site-packages/nvidia/*/bin/cuobjdump >/dev/null 2>&1; then
  python3 -m venv "$folder"
  "$folder/bin/pip" --quiet install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm nvidia-cuda-nvrtc
fi
ls "$folder"/lib/python3*/site-packages/nvidia/*/bin/cuobjdump
