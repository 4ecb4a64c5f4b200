// The sum of two right-hand sides.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode {
namespace {

template <class T>
class SumTile final : public TileFunction<T> {
 public:
  using Part = std::shared_ptr<const TileFunction<T>>;
  SumTile(Part first, Part second, std::size_t components, std::size_t first_parameters, std::size_t second_parameters)
      : first_(std::move(first)),
        second_(std::move(second)),
        components_(components),
        first_parameters_(first_parameters),
        second_parameters_(second_parameters) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    T* const addend = reinterpret_cast<T*>(workspace);
    std::byte* const rest = workspace + components_ * kTileLanes * sizeof(T);
    const T* const theirs = second_parameters_ == 0 ? nullptr : tile.parameters + first_parameters_ * kTileLanes;
    first_->evaluate({tile.t, tile.in, first_parameters_ == 0 ? nullptr : tile.parameters, tile.out, tile.lanes}, rest);
    second_->evaluate({tile.t, tile.in, theirs, addend, tile.lanes}, rest);
    for (std::size_t c = 0; c < components_; ++c) {
      T* const out = tile.out + c * kTileLanes;
      const T* const add = addend + c * kTileLanes;
      for (int lane = 0; lane < tile.lanes; ++lane) out[lane] += add[lane];
    }
  }

  std::size_t workspace_bytes() const override {
    return components_ * kTileLanes * sizeof(T) + std::max(first_->workspace_bytes(), second_->workspace_bytes());
  }
  std::string description() const override { return first_->description() + " + " + second_->description(); }

 private:
  Part first_;
  Part second_;
  std::size_t components_;
  std::size_t first_parameters_;
  std::size_t second_parameters_;
};

class Sum final : public StateFunction {
 public:
  Sum(Rhs first, Rhs second) : first_(std::move(first)), second_(std::move(second)) {}

  std::size_t components() const override { return first_->components(); }
  std::size_t parameters() const override { return first_->parameters() + second_->parameters(); }
  std::string description() const override { return first_->description() + " + " + second_->description(); }
  std::string digest() const override {
    return ContentHash().add("sum").add(first_->digest()).add(second_->digest()).hex();
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }

 private:
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    return std::make_shared<SumTile<T>>(ode::lower<T>(*first_, target), ode::lower<T>(*second_, target), components(),
                                        first_->parameters(), second_->parameters());
  }

  Rhs first_;
  Rhs second_;
};

void require_rhs(const char* field, const Rhs& rhs) {
  if (rhs && rhs->outputs() == rhs->components()) return;
  throw Error(ErrorKind::invalid_argument,
              {.field = field,
               .found = rhs ? rhs->description() + " with " + std::to_string(rhs->outputs()) + " outputs for " +
                                  std::to_string(rhs->components()) + " components"
                            : std::string("none"),
               .expected = "a right-hand side"});
}

}  // namespace

Rhs sum(Rhs physics, Rhs closure) {
  require_rhs("sum.physics", physics);
  require_rhs("sum.closure", closure);
  if (physics->components() != closure->components()) {
    throw Error(ErrorKind::invalid_argument,
                {.field = "sum.closure",
                 .found = closure->description() + " with " + std::to_string(closure->components()) + " components",
                 .expected = std::to_string(physics->components()) + ", as " + physics->description() + " has",
                 .remedy = "add right-hand sides over the same state"});
  }
  return std::make_shared<Sum>(std::move(physics), std::move(closure));
}

}  // namespace lockstep::ode
