#ifndef PLANEWISE_CORE_LAYER_TEST_LAYER_H_
#define PLANEWISE_CORE_LAYER_TEST_LAYER_H_
// Layers and activations for tests of compute, made of random numbers.

#include <cstdint>
#include <random>
#include <vector>

#include "core/layer/model_version.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/matrix_view.h"

namespace planewise {

// Bytes of a dense matrix.
struct TestMatrixBytes {
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t> bytes;

  MatrixView view() const { return {bytes.data(), dtype, rows, columns}; }
  MutableMatrixView mutable_view() { return {bytes.data(), dtype, rows, columns}; }
  bool operator==(const TestMatrixBytes&) const = default;
};

// Elements of about `magnitude`, both signs, in columns of different size: the
// row and the column plane of such a matrix differ.
TestMatrixBytes RandomMatrix(std::mt19937_64& random, DType dtype, int64_t rows, int64_t columns,
                             double magnitude = 1.0);
// Every byte 0xA5: what an output buffer may hold before.
TestMatrixBytes DirtyMatrix(DType dtype, int64_t rows, int64_t columns);

// The matrix as a buffer of `budget`, as a request would bring it.
HostBuffer BufferOf(const TestMatrixBytes& matrix, MemoryBudget& budget);

struct TestLayerSpec {
  int64_t out = 64;
  int64_t in = 64;
  Format format = Format::kMxfp8;
  bool column = true;  // of kMxfp8: keep the column plane too
  DType nominal = DType::kBF16;
  bool bias = false;
};

// A layer "layer" with weight "layer.weight", quantized from a random matrix
// that the same seed gives again, whatever the format.
HostedLayer MakeTestLayer(uint64_t seed, const TestLayerSpec& spec, MemoryBudget& budget);

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_TEST_LAYER_H_
