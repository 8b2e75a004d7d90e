#ifndef PLANEWISE_CORE_NUMERIC_PHILOX_H_
#define PLANEWISE_CORE_NUMERIC_PHILOX_H_
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as
// 1, 2, 3, 2011): random words as a pure function of a key and a counter. Whoever
// needs number n computes number n; there is no state to share or to order.
//
// Not here: what keys and counters stand for (stochastic_rounding.h).

#include <array>
#include <cstdint>

namespace planewise {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxBlock = std::array<uint32_t, 4>;

// The four words at `counter`.
constexpr PhiloxBlock Philox(PhiloxKey key, PhiloxBlock counter) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t even = uint64_t{0xD2511F53} * counter[0];
    const uint64_t odd = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(odd),
               static_cast<uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(even)};
    key[0] += 0x9E3779B9;  // the golden ratio's fraction
    key[1] += 0xBB67AE85;  // that of the square root of 3
  }
  return counter;
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_PHILOX_H_
