#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing: what building needs and, when named, what
# the groups test, benchmark, aarch64 (cross build), clang (sanitizers, fuzz targets) and witness need. Touches neither apt nor the network when nothing is missing.
#   usage: scripts/install_dependencies.sh [test] [benchmark] [aarch64] [clang] [witness]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(g++ cmake ninja-build libhwy-dev libhdf5-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev
  libxxhash-dev zlib1g-dev libonnx-dev libprotobuf-dev protobuf-compiler gnuplot-nox)
for group in "$@"; do
  case $group in
    test)
      packages+=(gfortran libgtest-dev libgmock-dev libboost-dev pkg-config locales
        python3-h5py python3-xarray python3-h5netcdf libopenmpi-dev openmpi-bin
        python3-venv python3-dev python3-numpy)
      ;;
    benchmark) packages+=(libbenchmark-dev) ;;
    aarch64) packages+=(g++-aarch64-linux-gnu qemu-user) ;;
    clang) packages+=(clang libclang-rt-dev libomp-dev lld) ;;
    # Other programs that tests call where they find them: a browser, readers of HDF5, a second MPI.
    witness) packages+=(chromium hdf5-tools octave mpich libmpich-dev) ;;
    *) fail "unknown group of packages: $group; known: test benchmark aarch64 clang witness" ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is neither Debian nor Ubuntu: nothing is installed."
  say "Needed, by their Debian names: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  say "all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "missing packages: ${missing[*]}; installing them needs root or sudo. As root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
say "installing with apt-get: ${missing[*]}"
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@" </dev/null
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for step in "update" "install --no-install-recommends ${missing[*]}"; do
  # Word splitting is meant: package names hold no spaces.
  if ! apt_get $step >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "apt-get ${step%% *} failed (its last lines are above); is there a network? Missing: ${missing[*]}"
  fi
done
say "installed ${#missing[@]} packages"
