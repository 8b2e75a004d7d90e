#include "core/layer/test_layer.h"

#include <cmath>
#include <cstring>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "core/quant/quantizer.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

constexpr WeightVersion kVersion{1};

int64_t ElementBytes(DType dtype) { return FactsOf(dtype).bits / 8; }

std::shared_ptr<Plane> DensePlane(const TestMatrixBytes& matrix, MemoryBudget& budget) {
  auto plane = std::make_shared<Plane>();
  plane->layout = *PlaneLayoutFor(Format::kNone, BlockGeometry::k1D, PlaneKind::kHighPrecision,
                                  {matrix.rows, matrix.columns}, matrix.dtype);
  plane->epoch = kVersion;
  plane->payload = BufferOf(matrix, budget);
  plane->payload.ChargeTo(MemoryUse::kWeights);
  return plane;
}

}  // namespace

TestMatrixBytes RandomMatrix(std::mt19937_64& random, DType dtype, int64_t rows, int64_t columns,
                             double magnitude) {
  TestMatrixBytes matrix = DirtyMatrix(dtype, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double unit = static_cast<double>(static_cast<int64_t>(random() >> 40)) / 0x1p23 - 1.0;
    const int64_t column_size = i % columns % 7;
    const float value =
        static_cast<float>(magnitude * std::ldexp(unit, -static_cast<int>(column_size)));
    uint8_t* to = matrix.bytes.data() + i * ElementBytes(dtype);
    if (dtype == DType::kF32) {
      std::memcpy(to, &value, 4);
    } else {
      const uint16_t bits = dtype == DType::kBF16 ? BFloat16::FromFloat(value).bits
                                                  : Float16::FromFloat(value).bits;
      std::memcpy(to, &bits, 2);
    }
  }
  return matrix;
}

TestMatrixBytes DirtyMatrix(DType dtype, int64_t rows, int64_t columns) {
  return {dtype, rows, columns,
          std::vector<uint8_t>(static_cast<size_t>(rows * columns * ElementBytes(dtype)), 0xA5)};
}

HostBuffer BufferOf(const TestMatrixBytes& matrix, MemoryBudget& budget) {
  absl::StatusOr<HostBuffer> buffer =
      HostBuffer::Allocate(budget, MemoryUse::kTransport,
                           static_cast<int64_t>(matrix.bytes.size()), "test matrix");
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  if (!matrix.bytes.empty()) {
    std::memcpy(buffer->data(), matrix.bytes.data(), matrix.bytes.size());
  }
  return *std::move(buffer);
}

HostedLayer MakeTestLayer(uint64_t seed, const TestLayerSpec& spec, MemoryBudget& budget) {
  std::mt19937_64 random(seed);
  const TestMatrixBytes matrix = RandomMatrix(random, spec.nominal, spec.out, spec.in, 0.05);
  auto weight = std::make_shared<PrimaryWeight>();
  weight->name = "layer.weight";
  weight->shape = {spec.out, spec.in};
  weight->nominal = spec.nominal;
  weight->format = spec.format;
  weight->epoch = kVersion;
  if (spec.format == Format::kNone) {
    weight->high_precision = DensePlane(matrix, budget);
  } else {
    absl::StatusOr<QuantizedPlanes> planes = QuantizeToPlanes(
        ScalarQuantizer(), budget, MemoryUse::kWeights, matrix.view(), {.format = spec.format},
        {.row = true, .column = spec.column}, kVersion, "test");
    EXPECT_TRUE(planes.ok()) << planes.status();
    weight->row = planes->row;
    weight->column = planes->column;
  }
  HostedLayer layer;
  layer.name = "layer";
  layer.weight = weight;
  if (spec.bias) {
    auto bias = std::make_shared<PrimaryWeight>();
    bias->name = "layer.bias";
    bias->shape = {1, spec.out};
    bias->nominal = spec.nominal;
    bias->epoch = kVersion;
    bias->high_precision = DensePlane(RandomMatrix(random, spec.nominal, 1, spec.out), budget);
    layer.bias = bias;
  }
  return layer;
}

}  // namespace planewise
