#include "lockstep/agreement/table_difference.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "lockstep/agreement/detail/same_number.h"
#include "lockstep/core/hdf5_text.h"
#include "lockstep/core/text.h"

namespace lockstep::agreement {
namespace {

namespace names = ode::result_names;

constexpr const char* kProblem = "problem";
constexpr std::size_t kPieceElements = std::size_t{1} << 16;

class Tables {
 public:
  void add(std::string table, std::string a, std::string b) {
    if (a != b) all_.push_back({std::move(table), std::move(a), std::move(b)});
  }
  std::vector<TableDifference> take() && { return std::move(all_); }

 private:
  std::vector<TableDifference> all_;
};

void compare_words(const char* what, const std::vector<std::string>& a, const std::vector<std::string>& b,
                   std::string_view nameless, Tables& tables) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const std::string place = std::string(nameless) + std::to_string(i);  // what a file that names none calls it
    if (a[i] != place && b[i] != place) tables.add(what + (" " + std::to_string(i) + "'s name"), a[i], b[i]);
  }
}

// The first number that differs, of two tables of one size.
template <class T>
void compare_numbers(const std::string& name, const hdf5::Dataset& a, const hdf5::Dataset& b, Tables& tables) {
  const hdf5::Shape shape = a.shape();
  if (shape.size() != 1 || b.shape() != shape) {
    tables.add(name, std::to_string(a.size()) + " numbers", std::to_string(b.size()) + " numbers");
    return;
  }
  for (std::size_t first = 0; first < shape[0]; first += kPieceElements) {
    const std::size_t count = std::min(kPieceElements, shape[0] - first);
    const auto in_a = a.read<T>({first}, {count}), in_b = b.read<T>({first}, {count});
    const auto at = static_cast<std::size_t>(
        std::ranges::mismatch(in_a, in_b, [](T x, T y) { return x == y || same_number(x, y); }).in1 - in_a.begin());
    if (at == count) continue;
    const auto text = [](T x) { return number_text(static_cast<double>(x)); };
    tables.add(name + " of trajectory " + std::to_string(first + at), text(in_a[at]), text(in_b[at]));
    return;
  }
}

void compare_attributes(const std::string& name, const hdf5::Object& a, const hdf5::Object& b,
                        const std::set<std::string>& which, Tables& tables) {
  for (const std::string& attribute : which) {
    const auto text = [&](const hdf5::Object& of) {
      const auto value = of.has_attribute(attribute) ? of.attribute(attribute) : std::nullopt;
      return value ? hdf5::to_text(*value) : std::string("not stated");
    };
    tables.add(name + ": " + attribute, text(a), text(b));
  }
}

bool same_bytes(const hdf5::Dataset& a, const hdf5::Dataset& b) {
  return a.shape() == b.shape() && a.read<std::uint8_t>() == b.read<std::uint8_t>();
}

// What trajectories are solved again from. `above`: where the groups lie that hold `a`, which may hold itself.
void compare_problems(const std::string& name, const hdf5::Group& a, const hdf5::Group& b, Tables& tables,
                      std::vector<hdf5::Place> above = {}) {
  if (std::ranges::find(above, a.place()) != above.end()) return;
  above.push_back(a.place());
  std::set<std::string> attributes;
  for (const hdf5::Group* group : {&a, &b}) {
    for (const std::string& attribute : group->attribute_names()) attributes.insert(attribute);
  }
  compare_attributes(name, a, b, attributes, tables);
  for (const std::string& member : a.datasets()) {
    if (!b.has(member)) continue;
    const hdf5::Dataset in_a = a.dataset(member), in_b = b.dataset(member);
    const std::string path = name + "/" + member;
    const bool bytes = in_a.type().kind == hdf5::Kind::integer && in_a.type().bytes == 1;
    if (bytes && !same_bytes(in_a, in_b)) {
      const bool as_many = in_a.size() == in_b.size();
      tables.add(path, grouped_digits(in_a.size()) + " bytes",
                 grouped_digits(in_b.size()) + (as_many ? " other bytes" : " bytes"));
    }
    if (in_a.type().kind == hdf5::Kind::real && in_a.shape().size() == 1)
      compare_numbers<double>(path, in_a, in_b, tables);
  }
  for (const std::string& member : a.groups()) {
    if (b.has(member)) compare_problems(name + "/" + member, a.group(member), b.group(member), tables, above);
  }
}

}  // namespace

std::vector<TableDifference> compare_tables(const ode::ResultFile& a, const ode::ResultFile& b) {
  Tables tables;
  const hdf5::File &in_a = a.hdf5(), &in_b = b.hdf5();
  const auto both_hold = [&](const char* name) { return in_a.has(name) && in_b.has(name); };
  compare_words("component", a.component_names(), b.component_names(), "u", tables);
  compare_words("parameter", a.parameter_names(), b.parameter_names(), "p", tables);
  if (both_hold(names::kStartTime))
    compare_numbers<double>(names::kStartTime, in_a.dataset(names::kStartTime), in_b.dataset(names::kStartTime),
                            tables);
  if (both_hold(names::kTrajectory)) {
    compare_numbers<std::int64_t>(names::kTrajectory, in_a.dataset(names::kTrajectory),
                                  in_b.dataset(names::kTrajectory), tables);
  }
  for (const char* name :
       {names::kState, names::kEndState, names::kInitialState, names::kTime, names::kStartTime, names::kEndTime}) {
    const bool ours = a.attribute("version") && b.attribute("version");
    if (ours && both_hold(name))
      compare_attributes(name, in_a.dataset(name), in_b.dataset(name), {"units", "component_units"}, tables);
  }
  if (both_hold(kProblem)) compare_problems(kProblem, in_a.group(kProblem), in_b.group(kProblem), tables);
  return std::move(tables).take();
}

}  // namespace lockstep::agreement
