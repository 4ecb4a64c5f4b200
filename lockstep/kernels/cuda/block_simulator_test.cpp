// The simulator of CUDA blocks: a small tiled kernel runs with the right result in every order of threads, and bugs put
// into it on purpose are found.
#include "lockstep/kernels/cuda/testing/block_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/detail/sanitizer.h"
#include "lockstep/kernels/cuda/testing/cuda_words.h"

namespace lockstep::cuda::testing {
namespace {

using ::testing::HasSubstr;

enum class Bug { none, first_barrier, second_barrier, past_the_end, early_return, wrong_distance, no_wait_for_copy };

constexpr unsigned kThreads = 64, kPiece = 16;

// Each thread's sum over all of `in` of number * (thread + 1), pieces passing through shared memory; then warp sums.
template <Bug bug>
__global__ void sums_kernel(const float* in, int count, float* out, float* warp_out, unsigned char* shared) {
  auto* piece = reinterpret_cast<float*>(shared);
  float sum = 0;
  for (int first = 0; first < count; first += static_cast<int>(kPiece)) {
    for (unsigned i = threadIdx.x; i < kPiece + (bug == Bug::past_the_end); i += blockDim.x)
      copy_later(&piece[i], &in[static_cast<unsigned>(first) + i], sizeof(float));
    end_copy_group();
    if (bug != Bug::no_wait_for_copy) wait_for_copies(0);
    if (bug != Bug::first_barrier) __syncthreads();
    for (unsigned i = 0; i < kPiece; ++i) sum += piece[i] * static_cast<float>(threadIdx.x + 1);
    if (bug != Bug::second_barrier) __syncthreads();
  }
  out[threadIdx.x] = sum;
  if (bug == Bug::early_return && threadIdx.x == 40) return;
  for (unsigned distance = 16; distance != 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, bug == Bug::wrong_distance ? distance - 1 : distance);
  if (threadIdx.x % 32 == 0) warp_out[threadIdx.x / 32] = sum;
}

struct Outcome {
  bool right = false;
  std::string fault;
};

template <Bug bug>
Outcome run(unsigned seed) {
  constexpr int count = 3 * kPiece;
  std::vector<float> in(count + 1), out(kThreads), warps(kThreads / 32);  // one more: past_the_end reads it
  std::iota(in.begin(), in.end(), 1.0f);
  Outcome outcome;
  try {
    simulate({.blocks = 2, .threads = kThreads, .shared_bytes = kPiece * sizeof(float), .seed = seed},
             [&](unsigned char* shared) { sums_kernel<bug>(in.data(), count, out.data(), warps.data(), shared); });
  } catch (const KernelFault& fault) {
    outcome.fault = fault.what();
    return outcome;
  }
  // Whole numbers below 2^24: sums in any order are exact.
  outcome.right = true;
  float total[2] = {};
  for (unsigned i = 0; i < kThreads; ++i) {
    const float expected = static_cast<float>(count * (count + 1) / 2) * static_cast<float>(i + 1);
    outcome.right = outcome.right && out[i] == expected;
    total[i / 32] += expected;
  }
  outcome.right = outcome.right && warps[0] == total[0] && warps[1] == total[1];
  return outcome;
}

TEST(BlockSimulator, gives_the_same_result_in_every_order_of_threads) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Outcome outcome = run<Bug::none>(seed);
    EXPECT_TRUE(outcome.right) << outcome.fault;
  }
}

TEST(BlockSimulator, shows_a_missing_barrier) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  const auto races = ::testing::ExitedWithCode(66);
  EXPECT_EXIT((run<Bug::first_barrier>(0), std::exit(0)), races, "data race");
  EXPECT_EXIT((run<Bug::second_barrier>(0), std::exit(0)), races, "data race");
#else
  EXPECT_FALSE(run<Bug::first_barrier>(1).right);
  EXPECT_FALSE(run<Bug::second_barrier>(1).right);
#endif
}

TEST(BlockSimulator, delivers_no_copy_that_nobody_waited_for) { EXPECT_FALSE(run<Bug::no_wait_for_copy>(0).right); }

TEST(BlockSimulator, finds_a_write_past_shared_memory) {
#ifdef LOCKSTEP_ADDRESS_SANITIZER
  EXPECT_DEATH(run<Bug::past_the_end>(0), "heap-buffer-overflow");
#else
  EXPECT_THAT(run<Bug::past_the_end>(0).fault, HasSubstr("past the end of shared memory"));
#endif
}

#ifdef LOCKSTEP_ADDRESS_SANITIZER
// Which knows the stacks of all threads, and watches them across a switch from one to another.
TEST(BlockSimulator, finds_a_read_past_a_threads_own_array) {
  std::vector<float> out(40);
  const auto kernel = [&](unsigned last) {
    simulate({.threads = 40}, [&](unsigned char*) {
      const float own[4] = {1, 2, 3, 4};
      const volatile float* const first = own;
      __syncthreads();
      out[threadIdx.x] = first[threadIdx.x == 7 ? last : 0];
    });
  };
  kernel(3);
  EXPECT_EQ(out[7], 4);
  EXPECT_DEATH(kernel(4), "stack-buffer-overflow");
}
#endif

TEST(BlockSimulator, names_the_thread_that_never_comes) {
  EXPECT_THAT(run<Bug::early_return>(0).fault, HasSubstr("deadlock: thread 32 waits at"));
}

TEST(BlockSimulator, shows_a_wrong_distance_of_a_shuffle) { EXPECT_FALSE(run<Bug::wrong_distance>(0).right); }

TEST(BlockSimulator, finds_barriers_that_threads_reach_apart) {
  const auto fault_of = [](const std::function<void(unsigned char*)>& kernel) -> std::string {
    try {
      simulate({.threads = 4}, kernel);
    } catch (const KernelFault& fault) {
      return fault.what();
    }
    return {};
  };
  EXPECT_THAT(fault_of([](unsigned char*) {
                if (threadIdx.x != 2) __syncthreads();
              }),
              HasSubstr("1 threads of the block have returned, others wait at"));
  EXPECT_THAT(fault_of([](unsigned char*) {
                if (threadIdx.x == 2) {
                  __syncthreads();
                } else {
                  __syncthreads();
                }
              }),
              HasSubstr("thread 2 at"));
}

TEST(BlockSimulator, counts_threads_at_a_barrier) {
  std::vector<int> counts(40);
  simulate({.threads = 40}, [&](unsigned char*) {
    counts[threadIdx.x] = __syncthreads_count(threadIdx.x % 3 == 0);
    counts[threadIdx.x] += __syncthreads_or(threadIdx.x == 39) ? 100 : 0;
  });
  EXPECT_THAT(counts, ::testing::Each(114));
}

TEST(BlockSimulator, passes_on_what_a_thread_throws) {
  EXPECT_THROW(simulate({.threads = 3}, [](unsigned char*) { throw std::runtime_error("mine"); }), std::runtime_error);
}

}  // namespace
}  // namespace lockstep::cuda::testing
