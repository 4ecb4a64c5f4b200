#include "lockstep/ode/result_writer.h"

#include <numeric>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/chunk_writer.h"
#include "lockstep/ode/detail/component_sink.h"
#include "lockstep/ode/unfinished_result.h"

namespace lockstep::ode {
namespace {

// Names what has none by its number in the problem.
void name_all(const char* field, std::vector<std::string>& names, const char* letter,
              const std::vector<std::size_t>& numbers) {
  if (names.empty()) {
    for (const std::size_t number : numbers) names.push_back(letter + std::to_string(number));
  }
  if (names.size() != numbers.size()) {
    throw Error(ErrorKind::invalid_argument, {field, std::to_string(names.size()) + " names",
                                              std::to_string(numbers.size()), "name each, or leave the list empty"});
  }
}

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

}  // namespace

ResultWriter::ResultWriter(const std::filesystem::path& path, const Problem& problem, Precision precision,
                           ResultMetadata metadata, Existing existing)
    : ResultWriter(path, problem, precision, std::move(metadata), existing,
                   existing == Existing::replace ? Leftover::discard : Leftover::refuse) {}

ResultWriter::ResultWriter(const std::filesystem::path& path, const Problem& problem, Precision precision,
                           ResultMetadata metadata, Existing existing, Leftover unfinished) {
  const StandardReading arithmetic;
  name_all("component_names", metadata.component_names, "u",
           metadata.components.empty() ? all_of(problem.rhs->components()) : metadata.components);
  name_all("parameter_names", metadata.parameter_names, "p", all_of(problem.rhs->parameters()));
  if (unfinished == Leftover::resume) {
    if (const auto left = find_unfinished(path)) check_continues(*left, problem, precision, metadata);
  }
  chunks_ =
      std::make_unique<ChunkWriter>(PendingFile::resumable(path, existing, unfinished), problem, precision, metadata);
  if (!metadata.components.empty()) {
    selection_ = std::make_unique<ComponentSink>(*chunks_, problem, precision, metadata.components);
  }
}

ResultWriter::~ResultWriter() = default;

SolutionBlock ResultWriter::acquire(std::size_t first, std::size_t count) {
  return selection_ ? selection_->acquire(first, count) : chunks_->acquire(first, count);
}

void ResultWriter::commit(const SolutionBlock& block) {
  if (selection_) {
    selection_->commit(block);
  } else {
    chunks_->commit(block);
  }
}

const std::atomic<std::uint32_t>* ResultWriter::wishes() const { return chunks_->wishes(); }

void ResultWriter::hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) {
  if (selection_) {
    selection_->hand_in(block, rows);
  } else {
    chunks_->hand_in(block, rows);
  }
}

std::vector<std::size_t> ResultWriter::open_rows() const { return chunks_->open_rows(); }

const StoredBefore& ResultWriter::stored_before() const { return chunks_->stored_before(); }

std::uintmax_t ResultWriter::open_bytes() const { return chunks_->open_bytes(); }

std::filesystem::path ResultWriter::leave(const Attributes& attributes, bool fill) {
  return chunks_->leave(attributes, fill);
}

std::uintmax_t ResultWriter::finish(const Attributes& attributes) { return chunks_->finish(attributes); }

}  // namespace lockstep::ode
