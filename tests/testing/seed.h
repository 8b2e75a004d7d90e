#ifndef PLANEWISE_TESTS_TESTING_SEED_H_
#define PLANEWISE_TESTS_TESTING_SEED_H_
// The seed of this run's random tests. A failure is replayed with
//   PLANEWISE_SEED=<the number printed> bazel test ...
// and a seed that found a defect becomes a fixed case.
//
// Not here: a generator. std::mt19937_64 gives the same numbers everywhere; the
// standard distributions do not, so tests take bits and make values themselves.

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace planewise {

// PLANEWISE_SEED if it is set, else a fresh number; printed on first use and the
// same for the whole process. Exits if PLANEWISE_SEED is not a number: a replay
// that silently runs other inputs would be taken for a pass.
uint64_t TestSeed();

// The seed that `text` spells: all of it an unsigned decimal number.
std::optional<uint64_t> ParseSeed(absl::string_view text);

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_SEED_H_
