// Layout, little-endian: the mark, version, precision, target, the file's length, the digest of all that follows it,
// and then the model as a stream of lengths, texts and numbers. Docs: docs/embedding.md.
#include "lockstep/nn/plan_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/nn/detail/read_bytes.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn {
namespace {

using detail::refuse;

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMark = {'\x89', 'L', 'S', 'P', 'L', 'A', 'N', '\n'};
constexpr std::size_t kDigestAt = 32, kDigestLength = 32, kBodyAt = kDigestAt + kDigestLength;
constexpr std::uint32_t kAnyMachine = 0xffffffff;  // as a target
constexpr const char* kCompileAgain = "make it again from the model: lockstep compile";

struct Header {  // the first kDigestAt bytes
  std::array<char, 8> mark;
  std::uint32_t version;
  std::uint32_t precision;
  std::uint32_t target;
  std::uint32_t reserved;
  std::uint64_t bytes;  // of the whole file
};
static_assert(sizeof(Header) == kDigestAt && std::is_trivially_copyable_v<Header>);

// The members of each operation, in the order in which they are stored: one description for writing and reading.
template <class Archive, class Op>
void members(Archive& archive, Op& op) {
  using T = std::remove_const_t<Op>;
  if constexpr (std::is_same_v<T, Dense>) {
    archive(op.inputs), archive(op.outputs), archive(op.weights), archive(op.bias);
  } else if constexpr (std::is_same_v<T, Activate> || std::is_same_v<T, Chain>) {
    archive(op.activation.kind), archive(op.activation.alpha);
  } else if constexpr (std::is_same_v<T, Standardise> || std::is_same_v<T, Rescale>) {
    archive(op.shift), archive(op.scale);
  } else if constexpr (std::is_same_v<T, Constant>) {
    archive(op.values);
  } else if constexpr (std::is_same_v<T, Columns>) {
    archive(op.indices);
  } else if constexpr (std::is_same_v<T, Clip>) {
    archive(op.minimum), archive(op.maximum);
  } else if constexpr (std::is_same_v<T, DeadZone>) {
    archive(op.lower), archive(op.upper), archive(op.bias);
  } else if constexpr (std::is_same_v<T, Interpolate>) {
    archive(op.knots), archive(op.outputs), archive(op.coefficients);
  } else if constexpr (std::is_same_v<T, Choose>) {
    archive(op.mask);
  } else if constexpr (std::is_same_v<T, LayerNormalise>) {
    archive(op.scale), archive(op.shift), archive(op.epsilon);
  } else if constexpr (requires { op.kind; }) {  // Unary, Binary, Softmax, Reduce
    archive(op.kind);
  } else {
    static_assert(std::is_same_v<T, Concatenate> || std::is_same_v<T, Select>,
                  "an operation that plan files do not know");
  }
}

// How many values an enumeration has; a plan file is read by the version that wrote it.
template <class E>
constexpr std::uint64_t count_of() {
  if constexpr (std::is_same_v<E, ActivationKind>) return static_cast<std::uint64_t>(ActivationKind::square) + 1;
  if constexpr (std::is_same_v<E, UnaryKind>) return graph::kUnaryKinds;
  if constexpr (std::is_same_v<E, BinaryKind>) return graph::kBinaryKinds;
  if constexpr (std::is_same_v<E, SoftmaxKind>) return static_cast<std::uint64_t>(SoftmaxKind::logarithm) + 1;
  if constexpr (std::is_same_v<E, ReduceKind>) return static_cast<std::uint64_t>(ReduceKind::maximum) + 1;
  if constexpr (std::is_same_v<E, WeightType>) return static_cast<std::uint64_t>(WeightType::f64) + 1;
}

class PlanWriter {
 public:
  std::vector<std::byte> bytes;

  void raw(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
  void operator()(std::size_t value) {
    const std::uint64_t wide = value;
    raw(&wide, sizeof wide);
  }
  void operator()(double value) { raw(&value, sizeof value); }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(E value) { (*this)(static_cast<std::size_t>(value)); }
  void operator()(const std::string& text) { (*this)(text.size()), raw(text.data(), text.size()); }
  void operator()(const std::vector<std::size_t>& values) {
    (*this)(values.size());
    for (const std::size_t value : values) (*this)(value);
  }
  void operator()(const std::vector<std::uint8_t>& values) {
    (*this)(values.size()), raw(values.data(), values.size());
  }
  // As float32 where that loses nothing; the bytes of each number come before the count.
  void operator()(const std::vector<double>& values) {
    const bool narrow = detail::all_fit_float32(values);
    (*this)(narrow ? sizeof(float) : sizeof(double));
    (*this)(values.size());
    if (!narrow) return raw(values.data(), values.size() * sizeof(double));
    const std::vector<float> rounded(values.begin(), values.end());
    raw(rounded.data(), rounded.size() * sizeof(float));
  }
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& source) : left_(bytes), source_(source) {}

  bool at_end() const { return left_.empty(); }
  [[noreturn]] void damaged() const {
    refuse(source_, "content that makes no sense", "a whole plan file", kCompileAgain);
  }

  void operator()(std::size_t& value) {
    std::uint64_t wide = 0;
    raw(&wide, sizeof wide);
    value = wide;
  }
  void operator()(double& value) { raw(&value, sizeof value); }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(E& value) {
    std::size_t number = 0;
    (*this)(number);
    if (number >= count_of<E>()) damaged();
    value = static_cast<E>(number);
  }
  void operator()(std::string& text) {
    text.resize(count(1));
    raw(text.data(), text.size());
  }
  void operator()(std::vector<std::size_t>& values) {
    values.resize(count(sizeof(std::uint64_t)));
    for (std::size_t& value : values) (*this)(value);
  }
  void operator()(std::vector<std::uint8_t>& values) {
    values.resize(count(1));
    raw(values.data(), values.size());
  }
  void operator()(std::vector<double>& values) {
    std::size_t width = 0;
    (*this)(width);
    if (width == sizeof(double)) {
      values.resize(count(width));
      raw(values.data(), values.size() * width);
    } else if (width == sizeof(float)) {
      std::vector<float> narrow(count(width));
      raw(narrow.data(), narrow.size() * width);
      values.assign(narrow.begin(), narrow.end());
    } else {
      damaged();
    }
  }
  // A number of things of which each takes at least `each` bytes of what is left.
  std::size_t count(std::size_t each) {
    std::size_t number = 0;
    (*this)(number);
    if (number > left_.size() / each) damaged();
    return number;
  }

 private:
  void raw(void* to, std::size_t size) {
    if (size > left_.size()) damaged();
    if (size > 0) std::memcpy(to, left_.data(), size);
    left_ = left_.subspan(size);
  }
  std::span<const std::byte> left_;
  const std::string& source_;
};

template <class Archive, class P>
void port_members(Archive& archive, P& port) {
  archive(port.name), archive(port.value);
  for (auto& feature : port.features) {
    archive(feature.name), archive(feature.unit), archive(feature.minimum), archive(feature.maximum);
  }
}

template <class Archive, class P>
void provenance_members(Archive& archive, P& provenance) {
  archive(provenance.source), archive(provenance.format), archive(provenance.digest), archive(provenance.producer);
  archive(provenance.licence), archive(provenance.attribution);
}

void write_ports(PlanWriter& writer, const std::vector<Port>& ports) {
  writer(ports.size());
  for (const Port& port : ports) writer(port.features.size()), port_members(writer, port);
}

void read_ports(Reader& reader, std::vector<Port>& ports) {
  ports.resize(reader.count(3 * sizeof(std::uint64_t)));
  for (Port& port : ports) {
    port.features.resize(reader.count(4 * sizeof(std::uint64_t)));
    port_members(reader, port);
  }
}

// An operation without content, by its place in the variant.
template <std::size_t kIndex = 0>
Operation empty_operation(std::size_t index, const Reader& reader) {
  if constexpr (kIndex < std::variant_size_v<Operation>) {
    if (index == kIndex) return std::variant_alternative_t<kIndex, Operation>{};
    return empty_operation<kIndex + 1>(index, reader);
  } else {
    reader.damaged();
  }
}

Model read_model(Reader& reader, bool has_calls) {
  Model model;
  reader(model.name), reader(model.weight_type);
  provenance_members(reader, model.provenance);
  read_ports(reader, model.inputs);
  read_ports(reader, model.outputs);
  model.nodes.resize(reader.count(3 * sizeof(std::uint64_t)));
  for (Node& node : model.nodes) {
    reader(node.name);
    node.inputs.resize(reader.count(sizeof(std::uint64_t)));
    for (std::string& input : node.inputs) reader(input);
    std::size_t index = 0;
    reader(index);
    node.operation = empty_operation(index, reader);
    std::visit([&](auto& operation) { members(reader, operation); }, node.operation);
  }
  model.calls.resize(has_calls ? reader.count(3 * sizeof(std::uint64_t)) : 0);
  for (GuardedCall& call : model.calls) {
    reader(call.net), reader(call.name);
    read_ports(reader, call.inputs);
  }
  if (!reader.at_end()) reader.damaged();
  return model;
}

}  // namespace

bool is_plan_file(std::span<const std::byte> bytes) {
  return bytes.size() >= kMark.size() && std::memcmp(bytes.data(), kMark.data(), kMark.size()) == 0;
}

std::vector<std::byte> plan_bytes(const PlanFile& plan) {
  const StandardReading arithmetic;
  plan.model.validate();
  const bool any_machine = plan.made_for == PlanFor::any_machine;
  const std::uint32_t version = any_machine                ? kPlanFileVersionForAnyMachine
                                : plan.model.calls.empty() ? kPlanFileVersion
                                                           : kPlanFileVersionWithCalls;
  PlanWriter writer;
  writer.bytes.resize(kBodyAt);
  const Model& model = plan.model;
  writer(model.name), writer(model.weight_type);
  provenance_members(writer, model.provenance);
  write_ports(writer, model.inputs);
  write_ports(writer, model.outputs);
  writer(model.nodes.size());
  for (const Node& node : model.nodes) {
    writer(node.name), writer(node.inputs.size());
    for (const std::string& input : node.inputs) writer(input);
    writer(node.operation.index());
    std::visit([&](const auto& operation) { members(writer, operation); }, node.operation);
  }
  if (version != kPlanFileVersion) writer(model.calls.size());
  for (const GuardedCall& call : model.calls) {
    writer(call.net), writer(call.name);
    write_ports(writer, call.inputs);
  }
  const Header header{kMark,
                      version,
                      plan.precision == Precision::f32 ? 32u : 64u,
                      any_machine ? kAnyMachine : static_cast<std::uint32_t>(plan.target),
                      0,
                      writer.bytes.size()};
  std::memcpy(writer.bytes.data(), &header, sizeof header);
  ContentHash hash;
  hash.add(std::span(writer.bytes).first(kDigestAt)).add(std::span(writer.bytes).subspan(kBodyAt));
  std::memcpy(writer.bytes.data() + kDigestAt, hash.hex().data(), kDigestLength);
  return std::move(writer.bytes);
}

void write_plan(const std::filesystem::path& path, const PlanFile& plan, Existing existing) {
  const StandardReading arithmetic;
  write_file(path, plan_bytes(plan), existing);
}

PlanFile read_plan(const std::filesystem::path& path) {
  const StandardReading arithmetic;
  return read_plan(detail::read_bytes(path, "a plan file, as lockstep compile writes it"), path.string());
}

PlanFile read_plan(std::span<const std::byte> bytes, const std::string& source) {
  const StandardReading arithmetic;
  if (!is_plan_file(bytes)) refuse(source, "no plan file", "one made by lockstep compile", "check the path");
  if (bytes.size() < kBodyAt) refuse(source, "a truncated plan file", "a whole one", kCompileAgain);
  Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version < kPlanFileVersion || header.version > kPlanFileVersionForAnyMachine) {
    throw Error(ErrorKind::unsupported,
                {source, "a plan file of version " + std::to_string(header.version),
                 "version " + std::to_string(kPlanFileVersion) + " to " + std::to_string(kPlanFileVersionForAnyMachine),
                 kCompileAgain});
  }
  if (header.bytes != bytes.size()) {
    refuse(source, std::to_string(bytes.size()) + " bytes", std::to_string(header.bytes) + ", as it says of itself",
           kCompileAgain);
  }
  ContentHash hash;
  hash.add(bytes.first(kDigestAt)).add(bytes.subspan(kBodyAt));
  if (std::memcmp(bytes.data() + kDigestAt, hash.hex().data(), kDigestLength) != 0) {
    refuse(source, "a checksum that does not fit its content (damaged)", "one that does", kCompileAgain);
  }
  const bool any_machine = header.version == kPlanFileVersionForAnyMachine;
  const bool known_target =
      any_machine ? header.target == kAnyMachine : header.target <= static_cast<std::uint32_t>(CpuTarget::neon);
  const bool known = (header.precision == 32 || header.precision == 64) && known_target;
  if (!known) refuse(source, "a precision or target unknown here", "32 or 64 bits, a known target", kCompileAgain);
  Reader reader(bytes.subspan(kBodyAt), source);
  PlanFile plan{read_model(reader, header.version != kPlanFileVersion),
                header.precision == 32 ? Precision::f32 : Precision::f64,
                any_machine ? best_cpu_target() : static_cast<CpuTarget>(header.target),
                any_machine ? PlanFor::any_machine : PlanFor::target};
  plan.model.validate();
  return plan;
}

}  // namespace lockstep::nn
