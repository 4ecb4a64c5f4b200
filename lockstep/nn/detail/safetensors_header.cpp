#include "lockstep/nn/detail/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::nn::detail {
namespace {

using HeaderJson = nlohmann::json;

// Follows where in the header the parser stands, and accepts only what may come there.
class HeaderReader : public nlohmann::json_sax<HeaderJson> {
 public:
  explicit HeaderReader(std::string source) : source_(std::move(source)) {}

  Container take() { return std::move(container_); }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::start:
        place_ = Place::top;
        return true;
      case Place::top:
        place_ = name_ == kMetadata ? Place::metadata : Place::tensor;
        return true;
      default:
        refuse("an object");
    }
  }

  bool key(std::string& key) override {
    bool is_new = false;
    if (place_ == Place::top) {
      name_ = key;
      is_new = key == kMetadata ? !std::exchange(has_metadata_, true) : container_.tensors.try_emplace(key).second;
      seen_ = {};
    } else if (place_ == Place::metadata) {
      key_ = key;
      is_new = container_.metadata.try_emplace(key).second;
    } else {
      key_ = key;
      bool* seen = key == "dtype"          ? &seen_.dtype
                   : key == "shape"        ? &seen_.shape
                   : key == "data_offsets" ? &seen_.offsets
                                           : nullptr;
      if (seen == nullptr) fail("key \"" + key + "\"", "dtype, shape and data_offsets only");
      is_new = !std::exchange(*seen, true);
    }
    if (!is_new) fail("key \"" + key + "\" a second time", "each name once");
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      if (!seen_.dtype) fail("no dtype", "one");
      if (!seen_.shape) fail("no shape", "one");
      if (!seen_.offsets) fail("no data_offsets", "two numbers");
    }
    place_ = place_ == Place::top ? Place::end : Place::top;
    if (place_ == Place::top) key_.clear();
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      container_.metadata[key_] = std::move(value);
    } else if (place_ == Place::tensor && key_ == "dtype") {
      container_.tensors[name_].dtype = std::move(value);
    } else {
      refuse("the string \"" + value + "\"");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") refuse("a list");
    place_ = Place::list;
    list_.clear();
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::list) refuse(std::to_string(value));
    list_.push_back(value);
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    Tensor& tensor = container_.tensors[name_];
    if (key_ == "shape") {
      tensor.shape = list_;
    } else {
      if (list_.size() != 2) fail("data_offsets of " + std::to_string(list_.size()) + " numbers", "two: begin and end");
      tensor.begin = list_[0];
      tensor.end = list_[1];
    }
    return true;
  }

  bool null() override { refuse("null"); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { refuse(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { refuse(text); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // The library's text begins with its own identifier in brackets.
    std::string reason = error.what();
    if (const std::size_t end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
    throw Error(ErrorKind::model,
                {source_ + ": header", "damaged JSON at byte " + std::to_string(position) + ": " + reason, "JSON",
                 "check that the file is whole"});
  }

 private:
  static constexpr const char* kMetadata = "__metadata__";
  enum class Place { start, top, metadata, tensor, list, end };
  struct Seen {
    bool dtype = false, shape = false, offsets = false;
  };

  [[noreturn]] void fail(std::string found, std::string expected) const {
    std::string field = source_ + ": header";
    if (!name_.empty()) field += name_ == kMetadata ? " __metadata__" : " tensor \"" + name_ + "\"";
    throw Error(ErrorKind::model, {std::move(field), std::move(found), std::move(expected), ""});
  }

  [[noreturn]] void refuse(const std::string& found) const {
    switch (place_) {
      case Place::start:
      case Place::end:
        fail(found, "one object");
      case Place::top:
        fail(found, name_ == kMetadata ? "an object of strings" : "an object with dtype, shape and data_offsets");
      case Place::metadata:
        fail(found + " for \"" + key_ + "\"", "a string");
      case Place::tensor:
        fail(found + " for \"" + key_ + "\"", key_ == "dtype" ? "a string" : "a list of whole numbers");
      case Place::list:
        fail(found + " in \"" + key_ + "\"", "whole numbers from 0 to 2^64 - 1");
    }
    fail(found, "");
  }

  std::string source_;
  Container container_;
  Place place_ = Place::start;
  std::string name_, key_;
  bool has_metadata_ = false;
  Seen seen_;
  std::vector<std::uint64_t> list_;
};

}  // namespace

Container parse_header(std::string_view json, const std::string& source) {
  HeaderReader reader(source);
  HeaderJson::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

}  // namespace lockstep::nn::detail
