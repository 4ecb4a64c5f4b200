#!/usr/bin/env bash
# Looks for data races in the C interface: builds its test with ThreadSanitizer into build-thread/ and runs it.
#   usage: scripts/thread_check.sh
# Only the test's own threads are watched: gcc's OpenMP runtime is not instrumented, and its barriers look like races.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stage "ThreadSanitizer build, into build-thread/"
configure build-thread -DCMAKE_BUILD_TYPE=Sanitize "-DCMAKE_CXX_FLAGS=-O1 -g1" -DLOCKSTEP_TESTS=ON -DLOCKSTEP_CLI=OFF \
  -DLOCKSTEP_FORTRAN=OFF -DLOCKSTEP_SANITIZE=thread >/dev/null
ninja -C build-thread -j"$jobs" lockstep_c_test lockstep_c_readers

stage "the C interface's test, many threads"
TSAN_OPTIONS="halt_on_error=1 exitcode=66" build-thread/bin/lockstep_c_test --gtest_brief=1
say "no race found"
