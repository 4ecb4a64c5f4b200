#include "lockstep/nn/detail/onnx_dimensions.h"

#include <algorithm>
#include <utility>

namespace lockstep::nn::detail {

std::optional<std::size_t> numbers_in(const Extents& extents, std::size_t most) {
  std::size_t count = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return {};
    if (extent == 0) return 0;
    if (static_cast<std::size_t>(extent) > most / count) return {};
    count *= static_cast<std::size_t>(extent);
  }
  return count;
}

Indices strides_of(const Extents& extents) {
  Indices strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * static_cast<std::size_t>(extents[i]);
  return strides;
}

Indices places(const Extents& extents, const Indices& steps) {
  Indices result{0};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    Indices next;
    next.reserve(result.size() * static_cast<std::size_t>(extents[axis]));
    for (const std::size_t place : result) {
      for (std::size_t at = 0; at < static_cast<std::size_t>(extents[axis]); ++at)
        next.push_back(place + at * steps[axis]);
    }
    result = std::move(next);
  }
  return result;
}

Picture whole(Extents extents) {
  Indices from = places(extents, strides_of(extents));
  return {std::move(extents), std::move(from)};
}

Picture taken(const Picture& picture, std::size_t axis, const Indices& list, std::size_t otherwise) {
  Picture result{picture.extents, taken(picture.from, picture.extents, axis, list, otherwise)};
  result.extents[axis] = static_cast<std::int64_t>(list.size());
  return result;
}

Picture transposed(const Picture& picture, const Indices& order) {
  const Indices strides = strides_of(picture.extents);
  Picture result;
  Indices steps;
  for (const std::size_t axis : order) {
    result.extents.push_back(picture.extents[axis]);
    steps.push_back(strides[axis]);
  }
  result.from = places(result.extents, steps);
  for (std::size_t& place : result.from) place = picture.from[place];
  return result;
}

std::optional<Indices> broadcast(Extents from, const Extents& to) {
  if (from.size() > to.size()) return {};
  from.insert(from.begin(), to.size() - from.size(), 1);
  Indices steps = strides_of(from);
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    if (from[axis] != to[axis] && from[axis] != 1) return {};
    if (from[axis] == 1) steps[axis] = 0;
  }
  return places(to, steps);
}

std::vector<Indices> groups_along(const Extents& extents, const Indices& axes) {
  const Indices strides = strides_of(extents);
  Extents inside, outside;
  Indices steps_inside, steps_outside;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const bool in = std::binary_search(axes.begin(), axes.end(), axis);
    (in ? inside : outside).push_back(extents[axis]);
    (in ? steps_inside : steps_outside).push_back(strides[axis]);
  }
  const Indices along = places(inside, steps_inside);
  std::vector<Indices> groups;
  for (const std::size_t first : places(outside, steps_outside)) {
    Indices& group = groups.emplace_back(along);
    for (std::size_t& place : group) place += first;
  }
  return groups;
}

}  // namespace lockstep::nn::detail
