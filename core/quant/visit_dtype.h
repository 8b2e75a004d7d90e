#ifndef PLANEWISE_CORE_QUANT_VISIT_DTYPE_H_
#define PLANEWISE_CORE_QUANT_VISIT_DTYPE_H_
// From a DType known at run time to the C++ type of its elements: calls the
// function with a value of that type, of which only the type matters.
//
//   VisitHighPrecision(src.dtype, [&](auto tag) {
//     using Source = decltype(tag);
//     ...
//   });

#include "core/numeric/bfloat16.h"
#include "core/numeric/dtype.h"
#include "core/numeric/float16.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/float8_e5m2.h"

namespace planewise {

// For IsHighPrecision(dtype).
template <typename Function>
void VisitHighPrecision(DType dtype, Function function) {
  if (dtype == DType::kF32) return function(float{});
  if (dtype == DType::kF16) return function(Float16{});
  return function(BFloat16{});
}

// For E4M3 and E5M2.
template <typename Function>
void VisitFloat8(DType dtype, Function function) {
  if (dtype == DType::kF8E5M2) return function(Float8E5M2{});
  return function(Float8E4M3{});
}

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_VISIT_DTYPE_H_
