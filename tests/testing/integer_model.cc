#include "tests/testing/integer_model.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

std::shared_ptr<const PrimaryWeight> MakeWeight(MemoryBudget& budget, const std::string& name,
                                                MatrixShape shape, WeightVersion version,
                                                uint64_t salt) {
  auto plane = std::make_shared<Plane>();
  plane->layout = *PlaneLayoutFor(Format::kNone, BlockGeometry::k1D, PlaneKind::kHighPrecision,
                                  shape, DType::kF32);
  plane->epoch = version;
  plane->payload = *HostBuffer::Allocate(budget, MemoryUse::kWeights,
                                         plane->layout.payload_bytes, name);
  const std::vector<float> values = IntegerMatrix(shape.out, shape.in, salt);
  std::memcpy(plane->payload.data(), values.data(), values.size() * sizeof(float));
  auto weight = std::make_shared<PrimaryWeight>();
  weight->name = name;
  weight->shape = shape;
  weight->nominal = DType::kF32;
  weight->epoch = version;
  weight->high_precision = std::move(plane);
  return weight;
}

float At(const PrimaryWeight& weight, int64_t row, int64_t column) {
  float value;
  std::memcpy(&value,
              weight.high_precision->payload.data() +
                  (row * weight.shape.in + column) * static_cast<int64_t>(sizeof(float)),
              sizeof(value));
  return value;
}

}  // namespace

std::vector<float> IntegerMatrix(int64_t rows, int64_t columns, uint64_t salt) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 7 + salt * 13) % 11) - 5.0f;
  }
  return values;
}

std::shared_ptr<ModelVersion> MakeIntegerVersion(MemoryBudget& budget, const std::string& model,
                                                 uint64_t number,
                                                 const std::vector<IntegerLayer>& layers) {
  auto version = std::make_shared<ModelVersion>();
  version->model = model;
  version->version = WeightVersion(number);
  version->trainable = true;
  uint64_t salt = number;
  for (const IntegerLayer& wanted : layers) {
    HostedLayer layer;
    layer.name = wanted.name;
    layer.weight = MakeWeight(budget, absl::StrCat(wanted.name, ".weight"),
                              {wanted.out, wanted.in}, version->version, ++salt);
    if (wanted.bias) {
      layer.bias = MakeWeight(budget, absl::StrCat(wanted.name, ".bias"), {1, wanted.out},
                              version->version, ++salt);
    }
    version->layers.push_back(std::move(layer));
  }
  return version;
}

std::vector<float> ExpectedForward(const HostedLayer& layer, const std::vector<float>& x) {
  const auto [out, in] = layer.weight->shape;
  const int64_t tokens = static_cast<int64_t>(x.size()) / in;
  std::vector<float> y(static_cast<size_t>(tokens * out));
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t o = 0; o < out; ++o) {
      float sum = layer.bias == nullptr ? 0.0f : At(*layer.bias, 0, o);
      for (int64_t i = 0; i < in; ++i) sum += x[t * in + i] * At(*layer.weight, o, i);
      y[t * out + o] = sum;
    }
  }
  return y;
}

std::vector<float> ExpectedInputGradient(const HostedLayer& layer, const std::vector<float>& dy) {
  const auto [out, in] = layer.weight->shape;
  const int64_t tokens = static_cast<int64_t>(dy.size()) / out;
  std::vector<float> dx(static_cast<size_t>(tokens * in));
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) {
        dx[t * in + i] += dy[t * out + o] * At(*layer.weight, o, i);
      }
    }
  }
  return dx;
}

std::vector<float> ExpectedWeightGradient(const HostedLayer& layer, const std::vector<float>& x,
                                          const std::vector<float>& dy) {
  const auto [out, in] = layer.weight->shape;
  const int64_t tokens = static_cast<int64_t>(dy.size()) / out;
  std::vector<float> dw(static_cast<size_t>(out * in));
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) dw[o * in + i] += dy[t * out + o] * x[t * in + i];
    }
  }
  return dw;
}

std::vector<float> ExpectedBiasGradient(const HostedLayer& layer, const std::vector<float>& dy) {
  const int64_t out = layer.weight->shape.out;
  std::vector<float> db(static_cast<size_t>(out));
  for (size_t i = 0; i < dy.size(); ++i) db[i % out] += dy[i];
  return db;
}

}  // namespace planewise
