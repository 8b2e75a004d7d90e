#ifndef PLANEWISE_CORE_GEMM_EXPANSION_H_
#define PLANEWISE_CORE_GEMM_EXPANSION_H_
// How MXFP8 codes are turned into BF16 so that nothing is lost: not in the
// operands, not in a product, not in a sum on its way to the result.
//
// A non-zero code times 2^(b - 127) is a multiple of 2^smallest below 2^limit:
//   E4M3   smallest = b - 127 - 9     limit = b - 127 + 9    (2^-9 .. 448 < 2^9)
//   E5M2   smallest = b - 127 - 16    limit = b - 127 + 16   (2^-16 .. 57344 < 2^16)
// It has at most four significant bits, so BF16 holds it exactly if
//   (1)  smallest >= -126 and limit <= 128:  E4M3 10 <= b <= 246, E5M2 17 <= b <= 239.
// BF16 goes down to 2^-133, but AMX and AVX512-BF16 take subnormals for zero.
//
// Products are added in F32. They and every partial sum are multiples of
// 2^(smallest_a + smallest_b), so none is a subnormal that could be flushed if
//   (2)  smallest_a + smallest_b >= -126,
// and none overflows on the way to a result that does not if
//   (3)  limit_a + limit_b + ceil(log2(k)) <= 127, one power of two to spare for rounding.
//
// Where these fail as the numbers stand, an operand is multiplied by a power of
// two and the result divided by it ("alpha"), after the sum: exact, unless the
// result itself leaves F32. Bits of a result are the same under every shift
// that satisfies (1) to (3): multiplying by a power of two commutes with
// rounding as long as nothing overflows or becomes subnormal. So each row of A
// may be shifted by itself, and a row's bits do not depend on its neighbours.
// B's shift must not depend on A, or another row's range would move it.
//
// Where no shift will do, the row is multiplied in a wider type.
//
// Not here: doing it (tile_kernels.h, wide_gemm.h).

#include <cstdint>
#include <optional>

#include "core/numeric/dtype.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

// kPlain: codes as they stand. kShifted: times powers of two. kWide: BF16
// products cannot hold the range.
enum class ExpansionKind : uint8_t { kPlain, kShifted, kWide };

struct Expansion {
  ExpansionKind kind = ExpansionKind::kPlain;
  // A is multiplied by 2^shift_a, B by 2^shift_b; 0 if kPlain or kWide.
  int shift_a = 0;
  int shift_b = 0;

  bool operator==(const Expansion&) const = default;
};

// How codes of element types `element_a` and `element_b` whose blocks have the
// exponents `a` and `b` are multiplied, in a sum of `k` >= 1 products. nullopt
// is an operand of zeros. A NaN scale (255) counts as 254: it stays NaN
// wherever it is moved to. shift_b depends on b and element_b alone.
Expansion ChooseExpansion(std::optional<ExponentRange> a, DType element_a,
                          std::optional<ExponentRange> b, DType element_b, int64_t k);

// Whether rounding a plane's values to `dtype` (F32, BF16, F16) changes none,
// and BF16 holds each as a normal number.
bool ValuesAreExact(std::optional<ExponentRange> exponents, DType element, DType dtype);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_EXPANSION_H_
