#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"

#include <algorithm>

#include "lockstep/ode/cuda/gemm/round.cuh"

namespace lockstep::ode::cuda {
namespace {

using lockstep::cuda::testing::simulate;
using lockstep::cuda::testing::SimulatedLaunch;

template <class Body>
void run_threads(std::int64_t threads, const Body& body) {
  const auto blocks = static_cast<unsigned>((threads + kGemmThreads - 1) / kGemmThreads);
  // An order of threads of its own for each number of them.
  simulate({.blocks = blocks, .threads = kGemmThreads, .shared_bytes = 0, .seed = static_cast<unsigned>(threads)},
           [&](unsigned char*) { body(); });
}

template <class T>
class HostGemmStream : public GemmStream {
 public:
  explicit HostGemmStream(HostGemm& host) : host_(host) {}
  void prepare_as(const GemmProgram& program, const GemmLaunch<T>& launch) {
    program_ = program;
    launch_ = launch;
    host_.fewest_columns = std::min(host_.fewest_columns, launch.columns);
  }
  void* native() override { return nullptr; }
  Fault add_advance(const KernelImage& image) override {
    const auto source = host_.sources.find(std::string(image.code.begin(), image.code.end()));
    if (source == host_.sources.end()) return {true, false, "kernel", "no such function"};
    own_advance_ = &source->second;
    return {};
  }
  Fault prepare(const GemmProgram&, const void*) override { return {}; }
  void start() override {
    run_threads(launch_.columns, [&] { start_columns(launch_, launch_.ensemble); });
  }
  void run(std::int32_t floor) override {
    do {
      for (int round = 0; round < program_.rounds; ++round) {
        for (const DenseProduct& product : program_.products)
          multiply_on_host<T>(program_, product, launch_.columns, launch_.pitch, host_.epilogues);
        const bool counts = round + 1 == program_.rounds;
        run_threads(launch_.columns, [&] {
          if (own_advance_ != nullptr) return (*own_advance_)(&launch_, counts);
          advance_columns(launch_, counts);
        });
        ++host_.rounds;
      }
    } while (end_pass(launch_.busy) > floor);
  }
  void compact(std::int32_t target) override {
    ++host_.compactions;
    plan_moves_on_host(launch_, target, static_cast<unsigned>(target));
    run_threads(target, [&] { move_columns(launch_); });
  }
  Fault wait(std::int32_t& busy) override {
    busy = launch_.busy[kBusyLast];
    return {};
  }
  Fault prepare_all(const GemmProgram& program, const void* launch, const std::vector<std::int32_t>& columns) override {
    prepare_as(program, *static_cast<const GemmLaunch<T>*>(launch));
    levels_ = columns;
    return {};
  }
  Fault prepare_graphs() override { return {}; }
  // What the graphs do one after another.
  Fault enqueue(const void* launch) override {
    launch_.ensemble = static_cast<const GemmLaunch<T>*>(launch)->ensemble;
    std::size_t i = 0;
    while (i + 1 < levels_.size() && levels_[i + 1] >= launch_.ensemble.count) ++i;
    *launch_.counter = 0;
    std::fill_n(launch_.busy, kBusyNumbers, 0);
    launch_.columns = levels_[i];
    start();
    launch_.ensemble = {};  // nobody else reads it
    for (;; ++i) {
      launch_.columns = levels_[i];
      host_.fewest_columns = std::min(host_.fewest_columns, launch_.columns);
      const bool last = i + 1 == levels_.size();
      const std::int32_t floor = last ? 0 : levels_[i + 1];
      if (has_work(launch_.busy, floor)) run(floor);
      if (last) return {};
      compact(floor);
    }
  }
  std::string description() const override { return "the host"; }

 private:
  HostGemm& host_;
  GemmProgram program_;
  GemmLaunch<T> launch_{};
  const std::function<void(const void*, bool)>* own_advance_ = nullptr;
  std::vector<std::int32_t> levels_;
};

// Of the precision that the first program has.
class AnyHostGemmStream : public GemmStream {
 public:
  explicit AnyHostGemmStream(HostGemm& host) : host_(host), f32_(host), f64_(host) {}
  void* native() override { return nullptr; }
  Fault add_advance(const KernelImage& image) override {
    f32_.add_advance(image);
    return f64_.add_advance(image);
  }
  Fault prepare(const GemmProgram& program, const void* launch) override {
    if (Fault fault = failure(); fault.happened) return fault;
    if (program.float64) {
      f64_.prepare_as(program, *static_cast<const GemmLaunch<double>*>(launch));
      used_ = &f64_;
    } else {
      f32_.prepare_as(program, *static_cast<const GemmLaunch<float>*>(launch));
      used_ = &f32_;
    }
    return {};
  }
  void start() override { used_->start(); }
  void run(std::int32_t floor) override { used_->run(floor); }
  void compact(std::int32_t target) override { used_->compact(target); }
  Fault wait(std::int32_t& busy) override { return used_->wait(busy); }
  Fault prepare_all(const GemmProgram& program, const void* launch, const std::vector<std::int32_t>& columns) override {
    if (Fault fault = failure(); fault.happened) return fault;
    used_ = program.float64 ? static_cast<GemmStream*>(&f64_) : &f32_;
    return used_->prepare_all(program, launch, columns);
  }
  Fault prepare_graphs() override {
    if (!host_.graphs) return {true, false, "conditional node", "operation not supported"};
    return {};
  }
  Fault enqueue(const void* launch) override { return used_->enqueue(launch); }
  std::string description() const override { return "the host"; }

 private:
  Fault failure() {
    if (host_.failing_prepares == 0) return {};
    --host_.failing_prepares;
    return {true, host_.failures_are_memory, "cuBLASLt", host_.failures_are_memory ? "out of memory" : "no algorithm"};
  }

  HostGemm& host_;
  HostGemmStream<float> f32_;
  HostGemmStream<double> f64_;
  GemmStream* used_ = nullptr;
};

}  // namespace

std::unique_ptr<GemmStream> HostGemmRuntime::open(int, Fault&) { return std::make_unique<AnyHostGemmStream>(host_); }
std::unique_ptr<GemmStream> HostGemmRuntime::borrow(int, void*, Fault&) {
  return std::make_unique<AnyHostGemmStream>(host_);
}

template <class T>
void multiply_on_host(const GemmProgram& program, const DenseProduct& product, std::int64_t columns, std::int64_t pitch,
                      bool epilogue) {
  using L = ScalarLane<T>;
  const auto kind = static_cast<int>(product.activation.kind);
  const T* const bias = static_cast<const T*>(product.bias);
  const MatrixPrecision out_mode = product.last ? MatrixPrecision::f32 : program.mode;
  T* const plain = static_cast<T*>(program.plain);
  for (std::int64_t column = 0; column < columns; ++column) {
    for (int j = 0; j < product.outputs; ++j) {
      T sum = epilogue ? bias[j] : T(0);
      for (int k = 0; k < product.inputs; ++k) {
        const std::int64_t index = product.first ? k * pitch + column : column * product.in_pitch + k;
        const T x = load_factor<T>(product.in, index, program.mode);
        const T w = load_factor<T>(product.weights, std::int64_t{j} * product.in_pitch + k, program.mode);
        sum = L::fma(w, x, sum);
      }
      const std::int64_t index = column * product.out_pitch + j;
      if (epilogue) {
        const T alpha = static_cast<T>(product.activation.alpha);
        store_factor(product.out, index, lockstep::cuda::activate_any(kind, sum, alpha), out_mode);
      } else {
        plain[index] = sum;
      }
    }
    for (int j = product.outputs; j < product.out_pitch; ++j) {
      const std::int64_t index = column * product.out_pitch + j;
      if (epilogue) {
        store_factor(product.out, index, T(0), out_mode);
      } else {
        plain[index] = 0;
      }
    }
  }
  if (epilogue) return;
  const ActivationLaunch<T> launch{
      plain, bias, product.out, columns, product.out_pitch, kind, product.activation.alpha, out_mode};
  // Fewer threads than fours of numbers, so that each takes several.
  run_threads((columns * product.out_pitch / 4 + 2) / 3, [&] { activate_products(launch); });
}

template <class T>
void plan_moves_on_host(const GemmLaunch<T>& launch, std::int32_t target, unsigned seed) {
  simulate({.blocks = 1, .threads = kCompactionThreads, .shared_bytes = kCompactionSharedBytes, .seed = seed},
           [&](unsigned char* shared) { plan_moves(launch, target, reinterpret_cast<std::int32_t*>(shared)); });
}

template void multiply_on_host<float>(const GemmProgram&, const DenseProduct&, std::int64_t, std::int64_t, bool);
template void multiply_on_host<double>(const GemmProgram&, const DenseProduct&, std::int64_t, std::int64_t, bool);
template void plan_moves_on_host<float>(const GemmLaunch<float>&, std::int32_t, unsigned);
template void plan_moves_on_host<double>(const GemmLaunch<double>&, std::int32_t, unsigned);

}  // namespace lockstep::ode::cuda
