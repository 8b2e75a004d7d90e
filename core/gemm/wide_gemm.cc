#include "core/gemm/wide_gemm.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"
#include "core/numeric/scale_e8m0.h"

namespace planewise {
namespace {

double Decode(DType element, uint8_t code, uint8_t scale) {
  if (scale == ScaleE8M0::kNan) return kCanonicalNan;
  const float value = element == DType::kF8E4M3 ? Float8E4M3{code}.ToFloat()
                                                : Float8E5M2{code}.ToFloat();
  return std::ldexp(static_cast<double>(value), scale - 127);
}

// The operand's element (row, p), as the product sees it.
double ElementOf(const OperandSource& source, int64_t row, int64_t p) {
  const ConstPlaneSpan& plane = source.data.plane;
  const PlaneLayout& layout = plane.layout;
  if (source.format.contracted == Contracted::kColumns) {
    return Decode(layout.payload_dtype, plane.payload[row * layout.payload_columns + p],
                  plane.scales[row * layout.scale_columns + p / kMxfp8Block]);
  }
  return Decode(layout.payload_dtype, plane.payload[p * layout.payload_columns + row],
                plane.scales[p / kMxfp8Block * layout.scale_columns + row]);
}

}  // namespace

void MultiplyWide(const OperandSource& a, const OperandSource& b, int64_t k,
                  absl::Span<const int64_t> rows, int64_t first_column, int64_t columns,
                  float* sums, int64_t stride) {
  // Decoded parts of B and A, and the sums of a group of rows: small enough
  // for the stack and the first cache.
  constexpr int64_t kGroup = 16;
  double b_part[kSumStep][kTileColumns];
  double group_sums[kGroup][kTileColumns];
  for (size_t first = 0; first < rows.size(); first += kGroup) {
    const absl::Span<const int64_t> group = rows.subspan(first, kGroup);
    for (auto& row_sums : group_sums) std::fill_n(row_sums, kTileColumns, 0.0);
    for (int64_t part = 0; part < k; part += kSumStep) {
      const int64_t count = std::min(kSumStep, k - part);
      for (int64_t p = 0; p < count; ++p) {
        for (int64_t j = 0; j < columns; ++j) {
          b_part[p][j] = ElementOf(b, first_column + j, part + p);
        }
      }
      for (size_t i = 0; i < group.size(); ++i) {
        for (int64_t p = 0; p < count; ++p) {
          const double factor = ElementOf(a, group[i], part + p);
          for (int64_t j = 0; j < columns; ++j) group_sums[i][j] += factor * b_part[p][j];
        }
      }
    }
    for (size_t i = 0; i < group.size(); ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        sums[static_cast<int64_t>(first + i) * stride + j] =
            static_cast<float>(group_sums[i][j]);
      }
    }
  }
}

}  // namespace planewise
