// The nodes that expressions become: one operation each, what is written twice computed once, numbers folded.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

class EquationGraph {
 public:
  // A number, or one feature that a port or node makes.
  struct Value {
    double number = 0;
    std::string node;  // empty: a number
    bool is_number() const { return node.empty(); }
  };

  static Value number(double value) { return {value, {}}; }
  // Feature `index` of `width` of an input port or node.
  Value feature(const std::string& of, std::size_t width, std::size_t index);

  Value unary(UnaryKind kind, const Value& x);
  Value activate(const Activation& activation, const Value& x);
  Value binary(BinaryKind kind, const Value& a, const Value& b);
  Value select(const Value& condition, const Value& yes, const Value& no);
  Value clip(const Value& x, double minimum, double maximum);

  // What the net makes of these inputs, port after port: all output ports' features. `texts` are those of the inputs.
  std::vector<Value> call(const std::string& name, const Model& net, std::span<const Value> inputs,
                          std::span<const std::string> texts);

  // A value that stands for one not known yet, and whether a value comes from such ones.
  Value unknown();
  bool is_unknown(const Value& value) const { return unknown_.contains(value.node); }

  // A node or port with these features.
  std::string vector_of(std::span<const Value> values);

  std::vector<Node> take_nodes() { return std::move(nodes_); }
  // Of nets that know their range, in the order of the first calls.
  std::vector<GuardedCall> take_guarded_calls() { return std::move(guarded_); }

 private:
  std::string node_of(const Value& value);
  // The node is numbered where it gets no name.
  std::string add(const std::string& key, Operation operation, std::vector<std::string> inputs, std::string name = {});

  struct Feature {  // where a value that is a column comes from
    std::string of;
    std::size_t width, index;
  };
  // What the net's ports and nodes are called here, so far those of its ports, which read what stands there.
  using Names = std::map<std::string, std::string>;
  void guard(const std::string& name, const std::string& prefix, const Model& net, Names& here,
             std::span<const std::string> texts);
  void guard_inner(const std::string& name, const std::string& prefix, const Model& net, const Names& here);

  std::vector<Node> nodes_;
  std::vector<GuardedCall> guarded_;
  std::map<std::string, std::string> made_;   // node by what it does to what
  std::map<std::string, Feature> columns_;    // by node
  std::map<std::string, std::size_t> calls_;  // of each net, with differing inputs
  std::map<std::string, std::vector<Value>> called_;
  std::set<std::string, std::less<>> unknown_;  // nodes
};

}  // namespace lockstep::nn::detail
