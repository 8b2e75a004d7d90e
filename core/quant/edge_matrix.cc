#include "core/quant/edge_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/quant/plane_reference.h"

namespace planewise {
namespace {

size_t At(int64_t index) { return static_cast<size_t>(index); }

// [0.5, 1), so many bits.
float Half(int bits, std::mt19937_64& random) {
  const uint64_t half = uint64_t{1} << (bits - 1);
  return std::ldexp(static_cast<float>(half + random() % half), -bits);
}

float WithSign(float magnitude, std::mt19937_64& random) {
  return random() % 2 == 0 ? magnitude : -magnitude;
}

// Squares of 16 elements have one exponent each.
std::vector<float> Spread(int64_t rows, int64_t columns, int bits, std::mt19937_64& random) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int exponent = -static_cast<int>((i / 16 * 7 + j / 16 * 3) % 21);
      values.push_back(WithSign(std::ldexp(Half(bits, random), exponent), random));
    }
  }
  return values;
}

// Leaves each block its largest element, and with it its scale.
void MoveBetweenCodes(const PlaneReference& reference, ReferenceMatrix& matrix,
                      std::mt19937_64& random) {
  const std::vector<PlaneReference::Scaling> scalings = reference.RowScalings(matrix);
  for (size_t at = 0; at < matrix.values.size(); ++at) {
    const auto [amax, multiplier] = scalings[at];
    if (std::fabs(matrix.values[at]) >= amax || random() % 8 == 0) continue;
    const uint32_t code = static_cast<uint32_t>(random() % reference.CodeMax());
    float value = static_cast<float>(reference.Midpoint(code) / static_cast<double>(multiplier));
    const float towards = random() % 2 == 0 ? 0.0f : HUGE_VALF;
    for (uint64_t steps = random() % 3; steps > 0; --steps) value = std::nextafterf(value, towards);
    if (value < amax) matrix.values[at] = WithSign(value, random);
  }
}

// A number of `source` at which the scale changes, or the one below it.
float ScaleEdge(const PlaneReference& reference, float tensor_amax, DType source,
                std::mt19937_64& random) {
  // Bits of neighbours in the type are this far apart (F16 is rounded later).
  const uint32_t step = source == DType::kBF16 ? 0x10000 : 1;
  const auto scale = [&](uint32_t bits) {
    return reference.ScaleBits(std::bit_cast<float>(bits * step), tensor_amax, source);
  };
  uint32_t high = std::bit_cast<uint32_t>(tensor_amax) / step;
  high -= static_cast<uint32_t>(random() % 0x08000000 / step);  // 16 powers of two
  uint32_t low = high - 0x00800000 / step;                      // one further
  if (scale(low) == scale(high)) return std::bit_cast<float>(high * step);
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    // Keeps two numbers of different scale.
    (scale(middle) == scale(low) ? low : high) = middle;
  }
  return std::bit_cast<float>((random() % 2 == 0 ? low : high) * step);
}

// The first element of each block is its largest.
std::vector<float> BetweenScales(const PlaneReference& reference, const QuantizeSpec& spec,
                                 DType source, int64_t rows, int64_t columns,
                                 std::mt19937_64& random) {
  // A number of every type.
  const float tensor_amax = std::ldexp(static_cast<float>(128 + random() % 128), -7);
  const int64_t block = spec.format == Format::kNvfp4   ? kNvfp4Block
                        : spec.format == Format::kMxfp8 ? kMxfp8Block
                                                        : kFp8Block;
  const int64_t block_rows = spec.geometry == BlockGeometry::k2D ? block : 1;
  std::vector<float> values(At(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      float& value = values[At(i * columns + j)];
      if (i % block_rows == 0 && j % block == 0) {
        value = i + j == 0 ? tensor_amax : ScaleEdge(reference, tensor_amax, source, random);
      } else {
        value = 0x1p-17f * tensor_amax * Half(23, random);
      }
      value = WithSign(value, random);
    }
  }
  return values;
}

}  // namespace

std::vector<float> EdgeValues(Edge edge, const QuantizeSpec& spec, DType source, int64_t rows,
                              int64_t columns, std::mt19937_64& random) {
  const PlaneReference reference(spec);
  if (edge == Edge::kScales) return BetweenScales(reference, spec, source, rows, columns, random);
  if (edge == Edge::kSpread) return Spread(rows, columns, 23, random);
  // Eight bits, which every type holds: the scales are those of what is quantized.
  ReferenceMatrix matrix = {source, rows, columns, Spread(rows, columns, 8, random)};
  MoveBetweenCodes(reference, matrix, random);
  return matrix.values;
}

}  // namespace planewise
