#include "core/quant/test_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/quant/mxfp8_block.h"
#include "core/quant/visit_dtype.h"

namespace planewise {
namespace {

constexpr int64_t kOffCacheLine = 1;  // elements

// A number in [low, high].
int Between(std::mt19937_64& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
}

// (-1, 1), 24 bits.
float Fraction(std::mt19937_64& random) {
  return static_cast<float>(Between(random, -0xFFFFFF, 0xFFFFFF)) * 0x1p-24f;
}

float NonFinite(std::mt19937_64& random) {
  const float kind = random() % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                       : std::numeric_limits<float>::infinity();
  return random() % 2 == 0 ? kind : -kind;
}

// Element `column` of a row whose blocks all have the maximum 448 * 2^exponent,
// or 57344 * 2^exponent: both are 1.75 times a power of two.
float Midpoint(std::mt19937_64& random, int64_t column, int exponent) {
  if (column % kMxfp8Block == 0) return std::ldexp(1.75f, exponent);
  // Five bits with the last one set lie half-way between numbers of four bits,
  // four bits between those of three.
  const bool for_e4m3 = random() % 2 == 0;
  const int bits = for_e4m3 ? 17 + 2 * Between(random, 0, 7) : 9 + 2 * Between(random, 0, 3);
  const float value = std::ldexp(static_cast<float>(bits), exponent - 5 - Between(random, 0, 12));
  return random() % 2 == 0 ? value : -value;
}

float Boundary(std::mt19937_64& random, int exponent) {
  float value = std::ldexp(1.75f, exponent);
  const float towards = random() % 2 == 0 ? 0.0f : std::numeric_limits<float>::max();
  for (int steps = Between(random, 0, 2); steps > 0; --steps) {
    value = std::nextafterf(value, towards);
  }
  return value;
}

float Value(Distribution distribution, std::mt19937_64& random, int64_t row, int64_t column) {
  // One exponent a row, the same for all that ask.
  const int row_exponent = static_cast<int>(row * 37 % 200) - 119;
  switch (distribution) {
    case Distribution::kOrdinary:
      return std::ldexp(Fraction(random), Between(random, -6, 2));
    case Distribution::kWide:
      return std::ldexp(Fraction(random), Between(random, -148, 127));
    case Distribution::kTiny:
      return std::ldexp(Fraction(random), Between(random, -149, -116));
    case Distribution::kZeros:
      if (random() % 50 == 0) return Fraction(random);
      return random() % 2 == 0 ? 0.0f : -0.0f;
    case Distribution::kNonFinite: {
      const int64_t block = row / kMxfp8Block + column / kMxfp8Block;
      if (block % 6 == 0) return std::numeric_limits<float>::quiet_NaN();
      if (block % 6 == 3 || random() % 40 == 0) return NonFinite(random);
      return Fraction(random);
    }
    case Distribution::kMidpoints:
      return Midpoint(random, column, row_exponent);
    case Distribution::kBoundaries:
      if (random() % 16 == 0) return Boundary(random, row_exponent);
      return std::ldexp(Fraction(random), row_exponent);
    case Distribution::kAnyBits:
      return std::bit_cast<float>(static_cast<uint32_t>(random()));
  }
  return 0.0f;
}

}  // namespace

TestMatrix::TestMatrix(DType dtype, int64_t rows, int64_t columns, const std::vector<float>& values)
    : dtype_(dtype), rows_(rows), columns_(columns), element_bytes_(FactsOf(dtype).bits / 8) {
  bytes_.resize(static_cast<size_t>((kOffCacheLine + rows * columns) * element_bytes_));
  VisitHighPrecision(dtype, [&](auto tag) {
    auto* elements = reinterpret_cast<decltype(tag)*>(bytes_.data()) + kOffCacheLine;
    for (size_t i = 0; i < values.size(); ++i) elements[i] = Narrow<decltype(tag)>(values[i]);
  });
}

TestMatrix::TestMatrix(DType dtype, int64_t rows, int64_t columns, Distribution distribution,
                       std::mt19937_64& random)
    : TestMatrix(dtype, rows, columns, [&] {
        std::vector<float> values;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            values.push_back(Value(distribution, random, i, j));
          }
        }
        return values;
      }()) {
  if (distribution != Distribution::kAnyBits) return;
  // Conversions would make one NaN of all: take the bits as they come.
  for (uint8_t& byte : bytes_) byte = static_cast<uint8_t>(random());
}

MatrixView TestMatrix::view() const {
  return {bytes_.data() + kOffCacheLine * element_bytes_, dtype_, rows_, columns_};
}

std::vector<float> TestMatrix::values() const {
  std::vector<float> values;
  VisitHighPrecision(dtype_, [&](auto tag) {
    const auto* elements = static_cast<const decltype(tag)*>(view().data);
    for (int64_t i = 0; i < rows_ * columns_; ++i) values.push_back(Widen(elements[i]));
  });
  return values;
}

GuardedBytes::GuardedBytes(int64_t size, int64_t element_bytes)
    : guard_bytes_(65 * element_bytes),
      bytes_(static_cast<size_t>(size + 2 * guard_bytes_), kFiller) {}

std::vector<uint8_t> GuardedBytes::contents() const {
  return {bytes_.begin() + guard_bytes_, bytes_.end() - guard_bytes_};
}

bool GuardedBytes::GuardsIntact() const {
  const auto is_filler = [](uint8_t byte) { return byte == kFiller; };
  return std::all_of(bytes_.begin(), bytes_.begin() + guard_bytes_, is_filler) &&
         std::all_of(bytes_.end() - guard_bytes_, bytes_.end(), is_filler);
}

GuardedPlane::GuardedPlane(PlaneKind kind, MatrixView matrix, DType element)
    : layout_(*Mxfp8LayoutFor(kind, {matrix.rows, matrix.columns}, element)),
      payload_(layout_.payload_bytes),
      scales_(layout_.scale_bytes),
      span_{layout_, payload_.data(), scales_.data()} {}

}  // namespace planewise
