#!/usr/bin/env bash
# The same bits by another compiler: builds two programs of the tests by Clang, with optimisation, and compares what they
# print with what this machine's build prints: digests of some 260 computations on every instruction set, and of
# 150 problems drawn at random with their solutions and gradients.
# Between the two, that each source compiles without what others include before it where they are compiled together.
#   usage: scripts/check_clang.sh    after building build/, as scripts/test.sh does. From nothing it takes a few minutes.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

for program in portable_bits random_problems; do
  [ -x build/bin/$program ] || fail "build/bin/$program is missing; build it: ninja -C build $program"
done
scripts/install_dependencies.sh clang

stage "release build by Clang, into build-clang-release/"
configure build-clang-release -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -DLOCKSTEP_TESTS=ON -DLOCKSTEP_TOGETHER=ON -DLOCKSTEP_CUDA=OFF >/dev/null
ninja -C build-clang-release -j"$jobs" portable_bits random_problems

stage "each source by itself"
configure build-clang-apart -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Release \
  -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_TOGETHER=OFF -DLOCKSTEP_CUDA=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
python3 scripts/check_sources.py build-clang-apart "$jobs"

stage "the bits of both compilers"
for bin in build/bin build-clang-release/bin; do
  "$bin/portable_bits" testdata >"$bin/digests.txt"
  "$bin/random_problems" 1 150 >>"$bin/digests.txt"
done
if ! diff build/bin/digests.txt build-clang-release/bin/digests.txt; then
  fail "results by Clang (>) are not those of build/ (<); portable_bits testdata CASE prints a case's numbers"
fi
say "the same bits in $(($(wc -l <build/bin/digests.txt) - 1)) cases and 150 problems"
