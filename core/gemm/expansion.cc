#include "core/gemm/expansion.h"

#include <algorithm>
#include <bit>

namespace planewise {
namespace {

// Every value is a multiple of 2^smallest, of magnitude below 2^limit.
struct MagnitudeRange {
  int smallest = 0;
  int limit = 0;

  MagnitudeRange ShiftedBy(int shift) const { return {smallest + shift, limit + shift}; }
  bool Within(int lowest, int highest) const { return smallest >= lowest && limit <= highest; }
};

constexpr int kSmallestNormal = -126;  // of BF16 and of F32
constexpr int kLimit = 128;

MagnitudeRange MagnitudesOf(std::optional<ExponentRange> exponents, DType element) {
  if (!exponents) return {};
  constexpr int kLargestScale = 254;
  const int steps = element == DType::kF8E4M3 ? 9 : 16;
  return {std::min(exponents->min, kLargestScale) - 127 - steps,
          std::min(exponents->max, kLargestScale) - 127 + steps};
}

// The shift that makes B's values normal BF16 numbers: none if they are, else
// the one that puts them around 1, which leaves A the most room.
std::optional<int> ShiftOfB(MagnitudeRange b) {
  if (b.Within(kSmallestNormal, kLimit)) return 0;
  const int centred = -(b.smallest + b.limit) / 2;
  if (b.ShiftedBy(centred).Within(kSmallestNormal, kLimit)) return centred;
  return std::nullopt;
}

}  // namespace

Expansion ChooseExpansion(std::optional<ExponentRange> a, DType element_a,
                          std::optional<ExponentRange> b, DType element_b, int64_t k) {
  const MagnitudeRange range_b = MagnitudesOf(b, element_b);
  const std::optional<int> shift_b = ShiftOfB(range_b);
  if (!shift_b) return {ExpansionKind::kWide};

  int shift_a = 0;
  if (a) {
    const MagnitudeRange range_a = MagnitudesOf(a, element_a);
    const MagnitudeRange placed_b = range_b.ShiftedBy(*shift_b);
    const int log2_k = std::bit_width(static_cast<uint64_t>(k - 1));
    const int lowest = kSmallestNormal - range_a.smallest - std::min(placed_b.smallest, 0);
    const int highest = std::min(kLimit - range_a.limit,
                                 kLimit - 1 - log2_k - placed_b.limit - range_a.limit);
    if (lowest > highest) return {ExpansionKind::kWide};
    shift_a = std::clamp(0, lowest, highest);
  }
  const bool plain = shift_a == 0 && *shift_b == 0;
  return {plain ? ExpansionKind::kPlain : ExpansionKind::kShifted, shift_a, *shift_b};
}

bool ValuesAreExact(std::optional<ExponentRange> exponents, DType element, DType dtype) {
  if (!exponents) return true;
  const MagnitudeRange range = MagnitudesOf(exponents, element);
  // F16's smallest subnormal is 2^-24; below 2^16, four significant bits make
  // at most 61440, which it has.
  if (dtype == DType::kF16) return range.Within(-24, 16);
  return range.Within(kSmallestNormal, kLimit);
}

}  // namespace planewise
