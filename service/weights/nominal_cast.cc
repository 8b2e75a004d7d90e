#include "service/weights/nominal_cast.h"

#include <cstdint>

#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"

namespace planewise {
namespace {

float Widen(float value) { return value; }
float Widen(BFloat16 value) { return value.ToFloat(); }
float Widen(Float16 value) { return value.ToFloat(); }

void Narrow(float value, float& dst) { dst = value; }
void Narrow(float value, BFloat16& dst) { dst = BFloat16::FromFloat(value); }
void Narrow(float value, Float16& dst) { dst = Float16::FromFloat(value); }

template <typename Function>
void Visit(DType dtype, Function function) {
  switch (dtype) {
    case DType::kF32: return function(float{});
    case DType::kF16: return function(Float16{});
    default: return function(BFloat16{});
  }
}

}  // namespace

void CastToNominal(MatrixView src, MutableMatrixView dst) {
  Visit(src.dtype, [&](auto src_element) {
    Visit(dst.dtype, [&](auto dst_element) {
      const auto* from = static_cast<const decltype(src_element)*>(src.data);
      auto* to = static_cast<decltype(dst_element)*>(dst.data);
      const int64_t count = src.elements();
      for (int64_t i = 0; i < count; ++i) Narrow(Widen(from[i]), to[i]);
    });
  });
}

}  // namespace planewise
