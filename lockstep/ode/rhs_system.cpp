// The built-in systems as tile functions, one version an instruction set.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/hash.h"
#include "lockstep/core/names.h"
#include "lockstep/kernels/generated/program_lane.h"
#include "lockstep/kernels/lane/targets.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/detail/arithmetic_tile.h"
#include "lockstep/ode/detail/kept_lowering.h"
#include "lockstep/ode/detail/reverse_system.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/systems/systems.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/rhs_system.cpp"
#include <hwy/foreach_target.h>
#include "lockstep/kernels/lane/dispatch.h"
#include "lockstep/ode/systems/systems_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Registers divide the tile, so that the last one may compute lanes nobody asked for, never past a row.
template <class System, class T>
void evaluate_system(const TileView<T>& tile) {
  const hn::ScalableTag<T> d;
  using L = HwyLane<decltype(d)>;
  typename L::V u[System::kComponents];
  typename L::V p[System::kParameters > 0 ? System::kParameters : 1];
  typename L::V du[System::kComponents];
  alignas(64) T time[kTileLanes] = {};
  if constexpr (systems::kDependsOnTime<System>) {
    for (int lane = 0; lane < tile.lanes; ++lane) time[lane] = static_cast<T>(tile.t[lane]);
  }
  for (int lane = 0; lane < tile.lanes; lane += int(hn::Lanes(d))) {
    for (int c = 0; c < System::kComponents; ++c) u[c] = hn::Load(d, tile.in + c * kTileLanes + lane);
    for (int q = 0; q < System::kParameters; ++q) p[q] = hn::Load(d, tile.parameters + q * kTileLanes + lane);
    systems::evaluate_at<System, L>(hn::Load(d, time + lane), u, p, du);
    for (int c = 0; c < System::kComponents; ++c) hn::Store(du[c], d, tile.out + c * kTileLanes + lane);
  }
}

template <class T>
using Evaluate = void (*)(const TileView<T>&);

// By place in AllSystems.
template <class T, class... System>
Evaluate<T> evaluate_function(systems::SystemList<System...>, std::size_t index) {
  constexpr Evaluate<T> functions[] = {evaluate_system<System, T>...};
  return functions[index];
}

}  // namespace

Evaluate<float> system_f32(std::size_t index) { return evaluate_function<float>(systems::AllSystems(), index); }
Evaluate<double> system_f64(std::size_t index) { return evaluate_function<double>(systems::AllSystems(), index); }

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {
namespace {

template <class T>
auto choose_system(CpuTarget target, std::size_t index) {
  require_cpu_target(target);
  if constexpr (sizeof(T) == 4) {
    return LOCKSTEP_CHOOSE(target, system_f32)(index);
  } else {
    return LOCKSTEP_CHOOSE(target, system_f64)(index);
  }
}

}  // namespace

namespace ode {
namespace {

template <class... System>
std::vector<SystemInfo> collect(systems::SystemList<System...>) {
  return {System::info()...};
}

const std::vector<SystemInfo>& all_systems() {
  static const std::vector<SystemInfo> systems = collect(systems::AllSystems());
  return systems;
}

std::size_t index_of(std::string_view name) {
  const auto& systems = all_systems();
  const auto found = std::find_if(systems.begin(), systems.end(), [&](const SystemInfo& s) { return s.name == name; });
  if (found == systems.end()) throw unknown_name("system", name, system_names());
  return std::size_t(found - systems.begin());
}

using Source = detail::GraphSource;
constexpr Source kInputs[] = {Source::state, Source::parameters, Source::time};

// The system's operations as they are written; none where it calls functions.
template <class System, class T>
std::optional<LaneProgram> written_system() {
  using L = ProgramLane<T>;
  using Tile = detail::ArithmeticTile<T>;
  LaneProgram program;
  typename L::V u[System::kComponents], du[System::kComponents], p[std::max(System::kParameters, 1)] = {}, t = 0;
  const auto input = [&](std::size_t i, int row) {
    return program.load({static_cast<std::uint8_t>(Tile::kFirstInput + i), 0, static_cast<std::uint32_t>(row)});
  };
  for (int c = 0; c < System::kComponents; ++c) u[c] = input(0, c);
  for (int q = 0; q < System::kParameters; ++q) p[q] = input(1, q);
  if constexpr (systems::kDependsOnTime<System>) t = input(2, 0);
  {
    const typename L::Recording recording(program);
    systems::evaluate_at<System, L>(t, u, p, du);
    if (!recording.is_whole()) return std::nullopt;
  }
  for (int c = 0; c < System::kComponents; ++c) program.store(du[c], {Tile::kOutput, 0, static_cast<std::uint32_t>(c)});
  return program;
}

// By place in AllSystems.
template <class T, class... System>
std::optional<LaneProgram> written_system(systems::SystemList<System...>, std::size_t index) {
  constexpr std::optional<LaneProgram> (*written[])() = {written_system<System, T>...};
  return written[index]();
}

template <class T>
class SystemTile final : public TileFunction<T>, public detail::ArithmeticTile<T> {
 public:
  SystemTile(std::size_t index, CpuTarget target)
      : evaluate_(choose_system<T>(target, index)),
        description_("built-in " + all_systems()[index].name + ", " + std::string(to_string(target))),
        arithmetic_(written_system<T>(systems::AllSystems(), index)) {}

  void evaluate(const TileView<T>& tile, std::byte*) const override { evaluate_(tile); }
  std::string description() const override { return description_; }

  const LaneProgram* arithmetic() const override { return arithmetic_ ? &*arithmetic_ : nullptr; }
  Source source(std::size_t input) const override { return kInputs[input]; }

 private:
  void (*evaluate_)(const TileView<T>&);
  std::string description_;
  std::optional<LaneProgram> arithmetic_;
};

class System final : public StateFunction {
 public:
  explicit System(std::size_t index) : index_(index) {}

  std::size_t components() const override { return info().components.size(); }
  std::size_t parameters() const override { return info().parameters.size(); }
  std::string description() const override { return info().name; }
  // The number is the equations' version: raise it when an order of operations changes.
  std::string digest() const override { return ContentHash().add("system").add(info().name).add("1").hex(); }
  std::string inlined_name() const override { return info().name; }
  std::vector<FunctionPart> parts() const override { return {{SystemPart{info().name}, parameters()}}; }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return detail::reverse_system<float>(index_, target, lower_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return detail::reverse_system<double>(index_, target, lower_f64(target));
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return detail::directional_system<float>(index_, target);
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return detail::directional_system<double>(index_, target);
  }

 private:
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    return lowered_.get<T>(target, [&] { return std::make_shared<SystemTile<T>>(index_, target); });
  }

  const SystemInfo& info() const { return all_systems()[index_]; }
  std::size_t index_;
  detail::KeptLowering<> lowered_;
};

}  // namespace

// Those that were asked for live as long as the program, with the code that solves made of them.
Rhs system(std::string_view name) {
  static std::mutex mutex;
  static std::vector<Rhs> systems(all_systems().size());
  const std::size_t index = index_of(name);
  const std::lock_guard lock(mutex);
  if (systems[index] == nullptr) systems[index] = std::make_shared<System>(index);
  return systems[index];
}

std::vector<std::string_view> system_names() {
  std::vector<std::string_view> names;
  for (const SystemInfo& s : all_systems()) names.push_back(s.name);
  return names;
}

const SystemInfo& system_info(std::string_view name) { return all_systems()[index_of(name)]; }

}  // namespace ode
}  // namespace lockstep
#endif  // HWY_ONCE
