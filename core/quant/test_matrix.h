#ifndef PLANEWISE_CORE_QUANT_TEST_MATRIX_H_
#define PLANEWISE_CORE_QUANT_TEST_MATRIX_H_
// Matrices for quantizer tests: inputs of every kind that a rule treats
// specially, and output memory that notices a byte written outside it.

#include <cstdint>
#include <random>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/quant/quantizer.h"
#include "core/tensor/matrix_view.h"

namespace planewise {

enum class Distribution {
  kOrdinary,    // a few powers of two, as weights and activations are
  kWide,        // any exponent
  kTiny,        // F32 and BF16 subnormals and what lies just above them
  kZeros,       // +0 and -0, whole blocks of them, some blocks with one value
  kNonFinite,   // NaN of both signs, infinities, blocks of nothing else and of NaN alone
  kMidpoints,   // half-way between two codes once scaled, in row blocks
  kBoundaries,  // block maxima at max * 2^k and beside it
  kAnyBits,     // every bit random
};
inline constexpr Distribution kDistributions[] = {
    Distribution::kOrdinary,  Distribution::kWide,      Distribution::kTiny,
    Distribution::kZeros,     Distribution::kNonFinite, Distribution::kMidpoints,
    Distribution::kBoundaries, Distribution::kAnyBits,
};

// [rows, columns] elements of a high-precision dtype. Their memory is aligned to
// one element and no more.
class TestMatrix {
 public:
  TestMatrix(DType dtype, int64_t rows, int64_t columns, Distribution distribution,
             std::mt19937_64& random);
  TestMatrix(DType dtype, int64_t rows, int64_t columns, const std::vector<float>& values);

  MatrixView view() const;
  // What the elements stand for, exactly.
  std::vector<float> values() const;

 private:
  DType dtype_;
  int64_t rows_;
  int64_t columns_;
  int64_t element_bytes_;
  std::vector<uint8_t> bytes_;
};

// `size` bytes, not zero to begin with, between two guards. They are aligned to
// one element and no more.
class GuardedBytes {
 public:
  explicit GuardedBytes(int64_t size, int64_t element_bytes = 1);

  uint8_t* data() { return bytes_.data() + guard_bytes_; }
  std::vector<uint8_t> contents() const;
  bool GuardsIntact() const;

 private:
  static constexpr uint8_t kFiller = 0xA5;
  // An odd number of elements, since a vector's memory is aligned to 16.
  int64_t guard_bytes_;
  std::vector<uint8_t> bytes_;
};

// A plane's memory, guarded.
class GuardedPlane {
 public:
  GuardedPlane(PlaneKind kind, MatrixView matrix, DType element);

  const PlaneSpan* span() const { return &span_; }
  ConstPlaneSpan const_span() const { return {span_.layout, span_.payload, span_.scales}; }
  const PlaneLayout& layout() const { return span_.layout; }
  std::vector<uint8_t> payload() const { return payload_.contents(); }
  std::vector<uint8_t> scales() const { return scales_.contents(); }
  bool GuardsIntact() const { return payload_.GuardsIntact() && scales_.GuardsIntact(); }

 private:
  PlaneLayout layout_;
  GuardedBytes payload_;
  GuardedBytes scales_;
  PlaneSpan span_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_TEST_MATRIX_H_
