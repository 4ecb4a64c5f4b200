// The verdict for people and for programs: a page with pictures, and JSON.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/agreement/verdict.h"
#include "lockstep/core/pending_file.h"

namespace lockstep::agreement {

// One HTML page with everything in it: verdict first, then why, then four pictures, then what differs in how the two
// were made. States of a few trajectories are read again from a and b.
std::string report_page(const Ensemble& a, const Ensemble& b, const Verdict& verdict);

// Writes the page as `folder`/index.html, making the folder. Returns the page's path. Throws Error (file).
std::filesystem::path write_report(const std::filesystem::path& folder, const Ensemble& a, const Ensemble& b,
                                   const Verdict& verdict, Existing existing = Existing::replace);

// An object with "outcome" ("agree", "disagree", "undecided"), "same_bits", "sentence", "reasons", "differences" of
// how the two were made and, where there is any, "evidence": numbers of each tier. Infinities are null.
std::string verdict_json(const Ensemble& a, const Ensemble& b, const Verdict& verdict);
// The same of solutions of these names, which need no longer be there.
std::string verdict_json(const std::string& a, const std::string& b, const Verdict& verdict);

}  // namespace lockstep::agreement
