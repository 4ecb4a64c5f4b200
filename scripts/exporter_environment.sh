#!/usr/bin/env bash
# Makes a virtual environment with the programs whose exports Lockstep reads (PyTorch, Keras, scikit-learn, JAX, ONNX Runtime),
# for the tests labelled `exporters`. Touches nothing outside the folder, and no network when it is complete.
#   usage: scripts/exporter_environment.sh [FOLDER]      FOLDER: build/exporter-environment; 2.0 GB, 0.8 GB to download
# Exit code 77: PyPI cannot be reached.
folder=${1:-build/exporter-environment}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(numpy==2.4.6 scipy==1.17.1 h5py==3.16.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1 scikit-learn==1.9.1
  skl2onnx==1.20.0 safetensors==0.8.0 keras==3.15.1 jax==0.10.2 jax2onnx==0.17.1)
# PyTorch from PyPI wants gigabytes of CUDA, which a test on the processor does without: stand-ins take their place.
torch=(torch==2.15.0 sympy==1.14.0 mpmath==1.3.0 networkx==3.6.1 jinja2==3.1.6 markupsafe==3.0.4 fsspec==2026.9.0
  filelock==4.2.11 setuptools==84.2.1)
python=/usr/bin/python3
[ -x "$python" ] || python=python3
if [ -f "$folder/complete" ]; then
  say "$folder is complete"
  exit 0
fi
rm -rf "$folder"
"$python" -m venv "$folder" ||
  fail "no virtual environment can be made with $python; install python3-venv (scripts/install_dependencies.sh test)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  timeout 600 "$folder/bin/python" -m pip --disable-pip-version-check install -q --no-cache-dir --no-compile --retries 1 \
    --timeout 20 --only-binary :all: "$@" >"$log" 2>&1 && return
  tail -n 5 "$log"
  rm -rf "$folder"
  say "$* cannot be installed from PyPI: the tests of exporters are left out"
  exit 77
}
install "${packages[@]}"
install --no-deps "${torch[@]}"
"$folder/bin/python" tests/exporters/stub_cuda_libraries.py "$folder"/lib/python3*/site-packages/torch >"$log" 2>&1 ||
  { cat "$log"; fail "PyTorch's libraries cannot be completed"; }
touch "$folder/complete"
say "made $folder, $(du -sm "$folder" | cut -f 1) MB"
