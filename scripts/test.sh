#!/usr/bin/env bash
# Builds and runs every test: first the host code under AddressSanitizer and UndefinedBehaviorSanitizer,
# then the release build with the header check and the install test, then a cross build's bits and the
# fuzz targets. Exit code 0: all passed.
#   usage: scripts/test.sh [--fast]      --fast leaves out the sanitizers, the cross build and the fuzz targets
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fast=no
case ${1:-} in
  "") ;;
  --fast) fast=yes ;;
  *) fail "unknown argument: $1; usage: scripts/test.sh [--fast]" ;;
esac
# Warnings stop the project's own checks, not a reader who has a newer compiler.
werror=OFF
if [ "${CI:-}" = true ]; then werror=ON; fi
started=$SECONDS

stage "packages"
scripts/install_dependencies.sh test

stage "release build, into build/"
configure build -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_TESTS=ON -DLOCKSTEP_WERROR=$werror >/dev/null
ninja -C build -j"$jobs"
say "built in $((SECONDS - started)) s so far"

stage "every public header compiles alone"
ninja -C build -j"$jobs" all_verify_interface_header_sets

if [ $fast = no ]; then
  stage "sanitizer build (address, undefined), into build-sanitize/"
  configure build-sanitize -DCMAKE_BUILD_TYPE=Sanitize "-DCMAKE_CXX_FLAGS=-O1 -g1" -DLOCKSTEP_TESTS=ON \
    -DLOCKSTEP_SANITIZE=address,undefined >/dev/null
  ninja -C build-sanitize -j"$jobs"
  stage "tests under the sanitizers"
  ctest --test-dir build-sanitize -j"$jobs" --output-on-failure --no-tests=error -LE 'install|slow'
  say "$((SECONDS - started)) s so far"
fi

stage "every test of the release build, the install test among them"
ctest --test-dir build -j"$jobs" --output-on-failure --no-tests=error

if [ $fast = no ]; then
  stage "the same bits on aarch64, under qemu"
  require=()
  if [ "${CI:-}" = true ]; then require=(--require); fi
  scripts/check_aarch64.sh "${require[@]}"
  stage "damaged input, 15 s a reader"
  scripts/fuzz.sh 15
fi
