#include "lockstep/core/hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

std::string digest_of(std::string_view text) { return content_digest(std::as_bytes(std::span(text))); }

TEST(Hash, digests_are_those_of_xxh128sum) {
  // From the Python package xxhash (xxh128) for the same bytes.
  EXPECT_EQ(digest_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest_of("lockstep"), "b4ead11c934f0a1e75345b2b871d8c38");
  EXPECT_EQ(digest_of(std::string(1000, 'x')), "50a1af5a5f2dcf01c0a4877b962cba82");
}

TEST(Hash, boundaries_between_parts_count) {
  const std::string_view a = "a", ab = "ab", bc = "bc", c = "c";
  EXPECT_NE(ContentHash().add(ab).add(c).hex(), ContentHash().add(a).add(bc).hex());
  EXPECT_EQ(ContentHash().add(ab).add(c).hex(), ContentHash().add(ab).add(c).hex());
}

TEST(Hash, every_bit_of_a_number_counts) {
  const std::vector<double> plus = {0.0, 1.0}, minus = {-0.0, 1.0};
  EXPECT_NE(ContentHash().add(std::span(plus)).hex(), ContentHash().add(std::span(minus)).hex());
}

TEST(Hash, more_may_be_added_after_looking) {
  ContentHash hash;
  hash.add("a");
  const std::string first = hash.hex();
  hash.add("b");
  EXPECT_NE(first, hash.hex());
  EXPECT_EQ(hash.hex(), ContentHash().add("a").add("b").hex());
}

}  // namespace
}  // namespace lockstep
