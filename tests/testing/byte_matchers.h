#ifndef PLANEWISE_TESTS_TESTING_BYTE_MATCHERS_H_
#define PLANEWISE_TESTS_TESTING_BYTE_MATCHERS_H_
// Compares long byte strings and says where they part, instead of printing both.
//
//   EXPECT_THAT(plane.payload(), SameBytes(want));

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"

namespace planewise {

MATCHER_P(SameBytes, want, "has the expected bytes") {
  const std::vector<uint8_t> expected(std::begin(want), std::end(want));
  if (arg.size() != expected.size()) {
    *result_listener << "which are " << arg.size() << " bytes, expected " << expected.size();
    return false;
  }
  size_t differing = 0;
  size_t first = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (arg[i] == expected[i]) continue;
    if (differing == 0) first = i;
    ++differing;
  }
  if (differing == 0) return true;
  *result_listener << absl::StrFormat(
      "which differs in %d of %d bytes, first at %d: 0x%02X, expected 0x%02X", differing,
      expected.size(), first, arg[first], expected[first]);
  return false;
}

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_BYTE_MATCHERS_H_
