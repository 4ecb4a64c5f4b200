#!/usr/bin/env bash
# Builds and runs every test: first the host code under AddressSanitizer and UndefinedBehaviorSanitizer,
# then the release build with the header check and the install test, then a cross build's bits, threads under
# ThreadSanitizer, and the fuzz targets. Exit code 0: all passed.
#   usage: scripts/test.sh [--fast]      --fast leaves out the sanitizers, the cross build and the fuzz targets
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fast=no
case ${1:-} in
  "") ;;
  --fast) fast=yes ;;
  *) fail "unknown argument: $1; usage: scripts/test.sh [--fast]" ;;
esac
# Warnings stop the project's own checks, not a reader who has a newer compiler. CI compiles the kernels for one GPU
# architecture, and as PTX: three take minutes longer and differ in machine code alone.
options=(-DLOCKSTEP_TESTS=ON)
if [ "${CI:-}" = true ]; then options+=(-DLOCKSTEP_WERROR=ON -DLOCKSTEP_CUDA_ARCHITECTURES=90); fi
started=$SECONDS

# The same groups of files on every machine, whether it has a compiler cache or not: names that clash in one show anywhere.
options+=(-DLOCKSTEP_TOGETHER=ON)

# Some tests wait longer than they compute: for ranks that start, for what a killed run left, for a program's end.
tests_at_once=$((jobs + 1))

stage "packages"
scripts/install_dependencies.sh test
# What PyPI has, and what later stages need: fetched while the first build keeps the processors busy.
fetch() {
  # nanobind and pytest, in an environment of their own; without it the Python package is left out.
  scripts/python_environment.sh build/python-environment || [ $? -eq 77 ]
  if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
    scripts/cuda_tools.sh build/cuda_tools || say "without cuobjdump: the machine code of the kernels is not looked at"
  fi
  # The cross compiler and Clang: what fails here is told by the stage that wants them.
  if [ $fast = no ]; then scripts/install_dependencies.sh aarch64 fuzz || true; fi
  # The programs whose exports are read, 0.8 GB to download: for CI, or once made, for whoever wants them.
  if [ "${CI:-}" = true ] && [ $fast = no ]; then
    # Ubuntu's Chromium is no Debian package: their tests then skip.
    scripts/install_dependencies.sh witness || say "tests that ask other programs are left out"
    scripts/exporter_environment.sh build/exporter-environment || [ $? -eq 77 ]
  fi
}
mkdir -p build
fetch >build/fetch.log 2>&1 &
fetching=$!
fetched() {
  stage "what came from the network meanwhile"
  wait $fetching || { cat build/fetch.log; fail "packages cannot be made ready; the lines above say why"; }
  cat build/fetch.log
}

if [ $fast = no ]; then
  # Every instruction set is made from the same sources: AVX2 and the fallback show what the sanitizers look for.
  stage "sanitizer build (address, undefined), into build-sanitize/"
  # Programs of a hundred megabytes: without addresses to move they start in half the time, and gold links them sooner.
  linking="-no-pie"
  if command -v ld.gold >/dev/null; then linking+=" -fuse-ld=gold"; fi
  configure build-sanitize -DCMAKE_BUILD_TYPE=Sanitize "-DCMAKE_CXX_FLAGS=-Og -g1" -DLOCKSTEP_TESTS=ON \
    "-DCMAKE_EXE_LINKER_FLAGS=$linking" -DLOCKSTEP_SANITIZE=address,undefined -DLOCKSTEP_AVX512=OFF -DLOCKSTEP_TOGETHER=ON >/dev/null
  ninja -C build-sanitize -j"$jobs"
  say "built after $((SECONDS - started)) s"
  fetched
  stage "tests under the sanitizers"
  ctest --test-dir build-sanitize -j"$tests_at_once" --output-on-failure --no-tests=error -LE 'install|slow'
  say "$((SECONDS - started)) s so far"
else
  fetched
fi

stage "release build, into build/"
configure build -DCMAKE_BUILD_TYPE=Release "${options[@]}" >/dev/null
ninja -C build -j"$jobs"
say "built after $((SECONDS - started)) s"

stage "every public header compiles alone"
ninja -C build -j"$jobs" all_verify_interface_header_sets

stage "every test of the release build, the install test among them"
ctest --test-dir build -j"$tests_at_once" --output-on-failure --no-tests=error

if [ $fast = no ]; then
  # Beside each other: qemu and the threads' program run on one processor, and each build ends with a single link.
  scripts/thread_check.sh >build/thread_check.log 2>&1 &
  threads=$!
  scripts/fuzz.sh --same >build/fuzz.log 2>&1 &
  fuzzing=$!
  ended() {  # ended PROCESS LOG WHAT
    local code=0
    wait "$1" || code=$?
    cat "$2"
    [ $code -eq 0 ] || fail "$3 did not end well; the lines above say why"
  }
  stage "the same bits on aarch64, under qemu"
  require=()
  if [ "${CI:-}" = true ]; then require=(--require); fi
  scripts/check_aarch64.sh "${require[@]}"
  ended $threads build/thread_check.log "the check of threads"
  stage "damaged input, the same in every run"
  ended $fuzzing build/fuzz.log "a fuzz target"
fi
