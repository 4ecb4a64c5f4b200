// A user's code for one trajectory as a state function: du = f(t, u, p), or an event's value.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "lockstep/ode/detail/guarded_tile.h"
#include "lockstep/ode/detail/lane_loop.h"
#include "lockstep/ode/detail/named_function.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

template <std::size_t rows, class T>
using ColumnOf = decltype(load_column<rows>(std::declval<const T*>(), 0));
template <std::size_t rows, class T>
using FilledColumnOf = std::conditional_t<rows <= kLocalRows, std::array<T, rows>, LaneColumn<T>>;

// f(t, u, p, du).
template <std::size_t n, std::size_t parameter_count, class F>
struct Derivative {
  static constexpr std::size_t kComponents = n;
  static constexpr std::size_t kParameters = parameter_count;
  static constexpr std::size_t kOutputs = n;
  template <class T>
  static constexpr bool kTakes = std::is_invocable_v<const F&, double, const ColumnOf<n, T>&,
                                                     const ColumnOf<parameter_count, T>&, FilledColumnOf<n, T>&>;
  F f;

  template <class T>
  void evaluate_lane(const TileView<T>& tile, int lane) const {
    const auto u = load_column<n>(tile.in, lane);
    const auto p = load_column<parameter_count>(tile.parameters, lane);
    fill_column<n>(tile.out + lane, [&](auto& du) { f(tile.t[lane], u, p, du); });
  }
};

// f(t, u, p) returns the one output.
template <std::size_t n, std::size_t parameter_count, class F>
struct Event {
  static constexpr std::size_t kComponents = n;
  static constexpr std::size_t kParameters = parameter_count;
  static constexpr std::size_t kOutputs = 1;
  template <class T>
  static constexpr bool kTakes =
      std::is_invocable_v<const F&, double, const ColumnOf<n, T>&, const ColumnOf<parameter_count, T>&>;
  F f;

  template <class T>
  void evaluate_lane(const TileView<T>& tile, int lane) const {
    const auto u = load_column<n>(tile.in, lane);
    const auto p = load_column<parameter_count>(tile.parameters, lane);
    constexpr bool kIsNumber = std::is_constructible_v<T, decltype(f(tile.t[lane], u, p))>;
    static_assert(kIsNumber, "an event function f(t, u, p) returns the number whose zero is the event");
    if constexpr (kIsNumber) tile.out[lane] = static_cast<T>(f(tile.t[lane], u, p));
  }
};

template <class T, class Body>
class ScalarTile final : public GuardedTile<T> {
 public:
  ScalarTile(std::shared_ptr<const Body> body, CpuTarget target)
      : GuardedTile<T>(Body::kComponents, Body::kParameters, Body::kOutputs), body_(std::move(body)), target_(target) {}

  std::string description() const override { return "one function call a trajectory" + compiled_for(target_); }

 protected:
  void evaluate_whole(const TileView<T>& tile, std::byte*) const override {
    every_lane_on(target_, AllLanes(), [&tile, &body = *body_](int lane) { body.evaluate_lane(tile, lane); });
  }

 private:
  std::shared_ptr<const Body> body_;
  CpuTarget target_;
};

template <class Body>
class ScalarFunction : public StateFunction {
 public:
  ScalarFunction(FunctionName name, Body body)
      : name_(std::move(name)), body_(std::make_shared<const Body>(std::move(body))) {}

  std::size_t components() const override { return Body::kComponents; }
  std::size_t parameters() const override { return Body::kParameters; }
  std::size_t outputs() const override { return Body::kOutputs; }
  std::string description() const override { return name_.kind + " " + name_.name; }
  std::string digest() const override { return name_.digest(); }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }

 private:
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    static_assert(Body::template kTakes<float> || Body::template kTakes<double>,
                  "call it as f(t, u, p, du), an event as f(t, u, p); take u, p as const auto& and du as auto&");
    if constexpr (Body::template kTakes<T>) {
      require_cpu_target(target);
      return std::make_shared<ScalarTile<T, Body>>(body_, target);
    } else {
      throw wrong_precision(name_.name, sizeof(T) == 4 ? "float32" : "float64", sizeof(T) == 4 ? "double" : "float");
    }
  }

  FunctionName name_;

 protected:
  std::shared_ptr<const Body> body_;
};

// f(tile).
template <class T, class F>
class UserTile final : public GuardedTile<T> {
 public:
  UserTile(std::shared_ptr<const F> f, std::size_t components, std::size_t parameters)
      : GuardedTile<T>(components, parameters, components), f_(std::move(f)) {}
  std::string description() const override { return "the caller's loop over the tile"; }

 protected:
  void evaluate_whole(const TileView<T>& tile, std::byte*) const override { (*f_)(tile); }

 private:
  std::shared_ptr<const F> f_;
};

template <class F>
class UserTileFunction final : public StateFunction {
 public:
  UserTileFunction(FunctionName name, std::size_t components, std::size_t parameters, F f)
      : name_(std::move(name)),
        components_(components),
        parameters_(parameters),
        f_(std::make_shared<const F>(std::move(f))) {}

  std::size_t components() const override { return components_; }
  std::size_t parameters() const override { return parameters_; }
  std::string description() const override { return name_.kind + " " + name_.name; }
  std::string digest() const override { return name_.digest(); }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget) const override { return lower<float>(); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget) const override { return lower<double>(); }

 private:
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower() const {
    if constexpr (std::is_invocable_v<const F&, const TileView<T>&>) {
      return std::make_shared<UserTile<T, F>>(f_, components_, parameters_);
    } else {
      throw wrong_precision(name_.name, sizeof(T) == 4 ? "float32" : "float64", sizeof(T) == 4 ? "double" : "float");
    }
  }

  FunctionName name_;
  std::size_t components_;
  std::size_t parameters_;
  std::shared_ptr<const F> f_;
};

}  // namespace lockstep::ode::detail
