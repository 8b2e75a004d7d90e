#ifndef PLANEWISE_CORE_NUMERIC_STOCHASTIC_ROUNDING_H_
#define PLANEWISE_CORE_NUMERIC_STOCHASTIC_ROUNDING_H_
// Rounding that is right on average: a value between two codes becomes the upper
// one with the probability of its distance from the lower. The random word of an
// element depends on what the element is, and on nothing else: not on threads,
// order, or what is computed beside it.
//
// Never used for weights: writing a master back twice must give the same bytes.

#include <bit>
#include <cstdint>

#include "core/numeric/philox.h"
#include "core/numeric/small_float.h"

namespace planewise {

// Names a matrix for all time: one call in one session, and the weight whose
// gradient or activation it is.
struct StochasticKey {
  uint64_t session_seed = 0;
  uint64_t request = 0;
  uint64_t weight = 0;

  bool operator==(const StochasticKey&) const = default;
};

// The random words of one plane of a matrix. Cheap to make and to copy.
class StochasticWords {
 public:
  // `plane` tells planes of one matrix apart.
  constexpr StochasticWords(const StochasticKey& key, uint32_t plane) : plane_(plane) {
    const PhiloxBlock mixed =
        Philox({Low(key.session_seed), High(key.session_seed)},
               {Low(key.request), High(key.request), Low(key.weight), High(key.weight)});
    key_ = {mixed[0], mixed[1]};
  }

  // The four words of elements 4 * group to 4 * group + 3, by their index in the
  // stored plane if its rows had whole blocks (core/numeric/NUMERICS.md).
  constexpr PhiloxBlock OfFour(uint64_t group) const {
    return Philox(key_, {Low(group), High(group), plane_, 0});
  }
  constexpr uint32_t Of(uint64_t element) const { return OfFour(element / 4)[element % 4]; }

 private:
  static constexpr uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
  static constexpr uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

  PhiloxKey key_ = {};
  uint32_t plane_;
};

// `value` as one of its two neighbours among the codes of Element (Float4E2M1,
// Float8E4M3, Float8E5M2), the further one from zero if `random` says so. What is
// a code already stays; what lies above the largest saturates; NaN as FromFloat.
//
// Of the 2^32 words, floor(2^32 f) round away from zero, f the distance from the
// lower neighbour in steps: exact unless f has bits below 2^-32, and then the
// mean is less than 2^-32 steps too close to zero.
template <typename Element>
constexpr Element RoundStochastically(float value, uint32_t random) {
  if (IsNan(value)) return Element::FromFloat(value);
  constexpr auto kWiden = WidenSmallFloat<Element::kMantissaBits, Element::kBias>;
  const float magnitude = value < 0 ? -value : value;
  uint32_t code = Element::kMaxCode;
  if (magnitude < Element::kMax) {
    code = RoundToSmallFloat<Element::kMantissaBits, Element::kBias>(magnitude);
    if (kWiden(code) > magnitude) --code;
    // Both differences are exact: of neighbours, and of a number and its own
    // leading bits. A step is a power of two, and so the quotient is exact too.
    const float step = kWiden(code + 1) - kWiden(code);
    const float distance = (magnitude - kWiden(code)) / step;
    if (random < static_cast<uint64_t>(distance * 0x1p32f)) ++code;
  }
  const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 31) * Element::kSignBit;
  return {static_cast<uint8_t>(sign | code)};
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_NUMERIC_STOCHASTIC_ROUNDING_H_
