// What the commands do where their output is there already: one message, with the flag that replaces it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/core/pending_file.h"

namespace lockstep::cli {

inline constexpr const char* kReplaceRemedy = "choose another name, or replace it with --overwrite";

// Throws Error (file).
[[noreturn]] void refuse_existing(const std::filesystem::path& path, const char* remedy = kReplaceRemedy);

// Throws Error (invalid_argument) where the output is one of the files that the command reads: those are not meant by
// --overwrite.
void refuse_to_replace(const std::filesystem::path& output, const std::vector<std::filesystem::path>& inputs);

// Throws Error (invalid_argument) naming `where` for the name of a result whose ending is that of another format:
// results are HDF5.
void require_result_name(const std::filesystem::path& path, const std::string& where);
// The same where a table may be written as well, into NAME.csv.
void require_answers_name(const std::filesystem::path& path, const std::string& where);
bool is_csv_name(const std::filesystem::path& path);  // or .CSV

// For a command's --overwrite. Throws Error (file) where the file is there and may not be replaced: before any work,
// for the writer itself notices at the earliest when it begins.
Existing existing_output(const std::filesystem::path& path, bool overwrite);

}  // namespace lockstep::cli
