// Named numbers and texts in a plain file: how a problem travels to a machine that has no HDF5, and its solution back.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::portable {

// float32 numbers are widened, so that one kind of list serves; bytes travel as text.
struct Records {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> numbers;
};

static_assert(std::endian::native == std::endian::little, "records hold numbers as they lie in memory");

// For each: a line "text NAME BYTES" or "f64 NAME COUNT", then what it counts, then a line's end.
inline void write_records(const std::filesystem::path& path, const Records& records) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& [name, text] : records.texts) file << "text " << name << ' ' << text.size() << '\n' << text << '\n';
  for (const auto& [name, values] : records.numbers) {
    file << "f64 " << name << ' ' << values.size() << '\n';
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(8 * values.size()));
    file << '\n';
  }
  if (!file.flush()) throw Error(ErrorKind::file, {path.string(), "an error while writing", "a writable file", {}});
}

inline Records read_records(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  Records records;
  std::string kind, name;
  std::size_t count = 0;
  while (file >> kind >> name >> count) {
    file.get();
    char* to = nullptr;
    if (kind == "f64") {
      auto& values = records.numbers[name];
      values.resize(count);
      to = reinterpret_cast<char*>(values.data());
      count *= 8;
    } else {
      auto& text = records.texts[name];
      text.resize(count);
      to = text.data();
    }
    if (!file.read(to, static_cast<std::streamsize>(count)) || file.get() != '\n') {
      throw Error(ErrorKind::file, {path.string() + ": " + name, "an early end", "a whole file", {}});
    }
  }
  if (!file.eof()) throw Error(ErrorKind::file, {path.string(), "unreadable", "a file of records", {}});
  return records;
}

}  // namespace lockstep::portable
