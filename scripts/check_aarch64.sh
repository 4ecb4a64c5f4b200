#!/usr/bin/env bash
# The same bits on another processor family: builds two small programs for 64-bit ARM with the cross compiler and runs them
# under qemu. The digests of the one are compared with those of this machine's build, line by line; the solutions of the
# other become result files that `lockstep validate` compares with this machine's.
#   usage: scripts/check_aarch64.sh [--require]    after building build/, as scripts/test.sh does.
# Where the cross compiler cannot be had the check is skipped with a message; --require makes that an error.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

require=no
case ${1:-} in
  "") ;;
  --require) require=yes ;;
  *) fail "unknown argument: $1; usage: scripts/check_aarch64.sh [--require]" ;;
esac
skip() {
  [ $require = no ] || fail "$1"
  say "skipped: $1"
  exit 0
}

for program in portable_bits portable_carry lockstep; do
  [ -x build/bin/$program ] || fail "build/bin/$program is missing; build it: ninja -C build $program"
done
if [ "$(uname -m)" = aarch64 ]; then
  say "this machine is aarch64 itself: its own tests are the check"
  exit 0
fi
(scripts/install_dependencies.sh aarch64) || skip "the packages g++-aarch64-linux-gnu and qemu-user could not be installed"
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$program" >/dev/null || skip "no $program here"
done

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S tests/aarch64 -B build-aarch64 -G Ninja --toolchain "$root/cmake/aarch64-linux-gnu.cmake" "${launcher[@]}" \
  -DLOCKSTEP_WERROR="$([ $require = yes ] && echo ON || echo OFF)" >/dev/null
ninja -C build-aarch64 -j"$jobs"

build/bin/portable_bits testdata >build-aarch64/here.txt
qemu-aarch64 -L /usr/aarch64-linux-gnu build-aarch64/portable_bits testdata >build-aarch64/aarch64.txt
if ! diff build-aarch64/here.txt build-aarch64/aarch64.txt; then
  fail "results on aarch64 (>) are not those of this machine (<); portable_bits testdata CASE prints a case's numbers"
fi
say "the same bits in $(wc -l <build-aarch64/here.txt) cases"
tests/portable/same_bits.sh build/bin build-aarch64/carried qemu-aarch64 -L /usr/aarch64-linux-gnu build-aarch64/portable_solve |
  while IFS= read -r line; do say "$line"; done
