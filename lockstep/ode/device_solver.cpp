#include "lockstep/ode/device_solver.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/matrix_overlap.h"
#include "lockstep/ode/cuda/batch_arrays.h"
#include "lockstep/ode/cuda/choose_engine.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/engine.h"
#include "lockstep/ode/cuda/gemm/device_gemm.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/detail/problem_knots.h"
#include "lockstep/ode/detail/refuse.h"

namespace lockstep::ode {
namespace {

// Of kernels that read parameters where they lie, when those are not one after another (program_derivative.h).
constexpr std::size_t kMostGathered = 64;

using detail::refuse;

template <class T>
void require(const DeviceArray<T>& array, const char* name) {
  if (array.data == nullptr) refuse(std::string("ensemble.") + name, "a null pointer", "an array on the device");
}

// Any two dimensions in which results share a place: a forgotten stride, or one too small.
template <class T>
void require_places(const DeviceArray<T>& array, const char* name, std::int64_t trajectories, std::int64_t times,
                    std::size_t components) {
  const auto share = [](std::size_t rows, std::int64_t row, std::size_t columns, std::int64_t column) {
    return shares_places(
        {0, sizeof(T), rows, columns, static_cast<std::ptrdiff_t>(row), static_cast<std::ptrdiff_t>(column)});
  };
  const auto m = static_cast<std::size_t>(trajectories), k = static_cast<std::size_t>(times);
  if (!share(m, array.trajectory, components, array.component) && !share(m, array.trajectory, k, array.time) &&
      !share(k, array.time, components, array.component)) {
    return;
  }
  refuse(std::string("ensemble.") + name,
         "strides " + std::to_string(array.trajectory) + " (trajectory), " + std::to_string(array.time) +
             " (time) and " + std::to_string(array.component) + " (component), with which results share a place",
         "a place for each result",
         "give the distances in numbers of two trajectories, two save points and two components");
}

int device_of(const Options& options, const cuda::LoadedRuntime& loaded) {
  if (options.device.shares.size() > 1 || (!options.device.is_automatic() && !options.device.uses_cuda()))
    refuse("options.device", to_string(options.device), "one GPU: cuda, or cuda:N");
  if (loaded.runtime == nullptr) {
    throw Error(ErrorKind::unsupported, {.field = "options.device",
                                         .found = loaded.missing,
                                         .expected = "a GPU",
                                         .remedy = "use ode::solve, which runs on the CPU, too"});
  }
  return options.device.is_automatic() ? loaded.devices.front().index : options.device.shares.front().index;
}

// Whether cuda_gemm runs it, which is decided as for solve().
bool by_cuda_gemm(const Problem& problem, const Options& options) {
  const cuda::EngineDecision decision = cuda::decide_engine(problem, options, true);
  if (decision.engine != EngineChoice::cuda_gemm) return false;
  if (const auto& found = decision.obstacle) {
    throw Error(ErrorKind::unsupported,
                {.field = found->field, .found = found->found, .expected = found->expected, .remedy = found->remedy});
  }
  return true;
}

}  // namespace

namespace detail {

// By the engine cuda_fused: one launch is a solve.
template <class T>
class DeviceFused {
 public:
  DeviceFused(const Problem& problem, const Options& options, cuda::Runtime& runtime, int device, void* stream)
      : lowered_(cuda::lower_problem<T>(problem, options)), stops_(lowered_.stops) {
    cuda::Fault fault;
    stream_ = runtime.borrow_stream(device, stream, fault);
    if (stream_ == nullptr) cuda::refuse(fault, "check the driver with nvidia-smi");
    std::optional<cuda::KernelImage> image;
    cuda::add_source_kernel(lowered_, true, runtime, device, *stream_, image);
    launch_ = lowered_.launch;
    fault = stream_->prepare(lowered_.kernel, &launch_);
    if (fault.happened) cuda::refuse(fault, "update the driver");
    launch_.weights = upload();
    if (!stops_.allocate(*stream_, 1))
      cuda::refuse({true, true, "memory", "too little for the stops"}, "free memory on the device");
    stops_.upload(*stream_, 0, 1);
    launch_.counter = static_cast<unsigned long long*>(allocate(sizeof(unsigned long long)));
    // A solve of nothing: the first launch of a kernel is when a driver sets aside memory for its threads' stacks,
    // which later ones may not wait for, and shows whether the device runs it at all.
    enqueue({});
    if (fault = stream_->wait(); fault.happened) cuda::refuse(fault, "check the device with nvidia-smi");
  }

  void enqueue(const cuda::Ensemble<T>& ensemble) {
    launch_.ensemble = ensemble;
    stops_.place(launch_.ensemble);
    stream_->clear(launch_.counter, sizeof *launch_.counter);
    stream_->launch(lowered_.kernel, &launch_);
    if (const cuda::Fault fault = stream_->take_fault(); fault.happened)
      cuda::refuse(fault, "check the device with nvidia-smi, and that the stream belongs to it");
  }

  const std::string& kernel() const { return lowered_.kernel; }

 private:
  void* allocate(std::size_t bytes) {
    void* const memory = stream_->allocate(bytes);
    if (memory == nullptr)
      cuda::refuse({true, true, "memory", std::to_string(bytes) + " bytes do not fit"}, "free memory on the device");
    return memory;
  }

  const T* upload() {
    const std::size_t bytes = lowered_.weights.size() * sizeof(T);
    if (bytes == 0) return nullptr;
    void* const device = allocate(bytes);
    void* const pinned = stream_->allocate_pinned(bytes);
    if (pinned == nullptr) cuda::refuse({true, true, "pinned memory", "too little"}, "free memory on the host");
    std::copy(lowered_.weights.begin(), lowered_.weights.end(), static_cast<T*>(pinned));
    stream_->upload(device, pinned, bytes);
    if (const cuda::Fault fault = stream_->wait(); fault.happened)
      cuda::refuse(fault, "check the device with nvidia-smi");
    return static_cast<const T*>(device);
  }

  cuda::Lowered<T> lowered_;
  cuda::BlockLaunch<T> launch_;
  std::unique_ptr<cuda::Stream> stream_;
  cuda::StopArrays stops_;
};

template <class T>
class DeviceSolverState {
 public:
  DeviceSolverState(Rhs rhs, const Options& options, void* stream, std::optional<TerminalEvent> event) {
    options.validate();
    if (options.precision != kPrecisionOf<T>)
      refuse("options.precision", std::string(to_string(options.precision)), "that of the solver's number type");
    problem_.rhs = std::move(rhs);
    problem_.event = std::move(event);
    if (!problem_.rhs) refuse("rhs", "null", "a right-hand side");
    const detail::ProblemKnots functions(problem_);
    if (options.stop_at_knots && (functions.moves_knots() || functions.repeats_knots())) {
      refuse("rhs", "one that jumps or bends at times that parameters or spans tell, which lie on the device",
             "times that the host knows",
             "give them as stops, with stop_at_knots = false, or solve from the host's arrays with ode::solve");
    }
    const cuda::LoadedRuntime& loaded = cuda::load_runtime();
    const int device = device_of(options, loaded);
    if (by_cuda_gemm(problem_, options)) {
      const cuda::GemmTarget target{.runtime = loaded.runtime, .gemm = cuda::load_gemm_runtime(), .device = device};
      gemm_.emplace(problem_, options, target, stream);
    } else {
      fused_.emplace(problem_, options, *loaded.runtime, device, stream);
    }
  }

  void enqueue(const DeviceEnsemble<T>& e) {
    check(e);
    if (e.trajectories == 0) return;
    const cuda::Ensemble<T> ensemble{.count = e.trajectories,
                                     .initial_states = e.initial_states.data,
                                     .initial_strides = strides(e.initial_states),
                                     .parameters = e.parameters.data,
                                     .parameter_stride = e.parameters.trajectory,
                                     .parameter_component = e.parameters.component,
                                     .gathered_parameters = static_cast<std::int32_t>(problem_.rhs->parameters()),
                                     .start_times = e.start_times.data,
                                     .start_stride = e.start_times.trajectory,
                                     .end_times = e.end_times.data,
                                     .end_stride = e.end_times.trajectory,
                                     .save_times = e.save_times.data,
                                     .save_stride = e.save_times.trajectory,
                                     .save_points = e.save_points,
                                     .states = e.states.data,
                                     .state_strides = strides(e.states),
                                     .end_states = e.end_states.data,
                                     .end_strides = strides(e.end_states),
                                     .records = e.records};
    if (gemm_) return gemm_->enqueue(ensemble);
    fused_->enqueue(ensemble);
  }

  std::string kernel() const { return gemm_ ? gemm_->description() : fused_->kernel(); }

 private:
  template <class Number>
  static cuda::StateStrides strides(const DeviceArray<Number>& array) {
    return {.trajectory = array.trajectory, .time = array.time, .component = array.component};
  }

  void check(const DeviceEnsemble<T>& e) const {
    if (e.trajectories < 0) refuse("ensemble.trajectories", std::to_string(e.trajectories), "0 or more");
    if (e.save_points < 0) refuse("ensemble.save_points", std::to_string(e.save_points), "0 or more");
    if (e.trajectories == 0) return;
    require(e.initial_states, "initial_states");
    require(e.start_times, "start_times");
    require(e.end_times, "end_times");
    require(e.end_states, "end_states");
    const std::size_t n = problem_.rhs->components();
    require_places(e.end_states, "end_states", e.trajectories, 1, n);
    const std::size_t m = problem_.rhs->parameters();
    if (m > 0) require(e.parameters, "parameters");
    if (gemm_ && m > 1 && e.parameters.component != 1) {
      refuse("ensemble.parameters.component", std::to_string(e.parameters.component), "1 in the engine cuda_gemm",
             "store a trajectory's parameters one after another, or use cuda_fused");
    }
    if (m > kMostGathered && e.parameters.component != 1)
      refuse("ensemble.parameters.component", std::to_string(e.parameters.component), "1 for more than 64 parameters",
             "store a trajectory's parameters one after another");
    if (e.save_points == 0) return;
    require(e.save_times, "save_times");
    require(e.states, "states");
    require_places(e.states, "states", e.trajectories, e.save_points, n);
  }

  Problem problem_;                      // the ensemble left out
  std::optional<DeviceFused<T>> fused_;  // one of the two
  std::optional<cuda::DeviceGemm<T>> gemm_;
};

}  // namespace detail

template <class T>
DeviceSolver<T>::DeviceSolver(Rhs rhs, const Options& options, void* stream, std::optional<TerminalEvent> event)
    : state_(std::make_unique<detail::DeviceSolverState<T>>(std::move(rhs), options, stream, std::move(event))) {}
template <class T>
DeviceSolver<T>::~DeviceSolver() = default;
template <class T>
DeviceSolver<T>::DeviceSolver(DeviceSolver&&) noexcept = default;
template <class T>
DeviceSolver<T>& DeviceSolver<T>::operator=(DeviceSolver&&) noexcept = default;

template <class T>
void DeviceSolver<T>::enqueue(const DeviceEnsemble<T>& ensemble) {
  state_->enqueue(ensemble);
}
template <class T>
std::string DeviceSolver<T>::kernel() const {
  return state_->kernel();
}

template class DeviceSolver<float>;
template class DeviceSolver<double>;

}  // namespace lockstep::ode
