#ifndef PLANEWISE_CORE_LAYER_LINEAR_GEMMS_H_
#define PLANEWISE_CORE_LAYER_LINEAR_GEMMS_H_
// The three GEMMs of a linear layer as problems: which form of W, X and dY each
// of them multiplies under each recipe and override, and which way round it is
// stored. The only place with the transposes.
//
//   forward          Y [tokens, out]  = X [tokens, in] * W [out, in]^T
//   input gradient   dX [tokens, in]  = dY [tokens, out] * W [out, in]
//   weight gradient  dW [out, in]     = dY [tokens, out]^T * X [tokens, in]
//
// Not here: running them (linear.h).

#include <cstdint>
#include <optional>

#include "core/gemm/gemm_problem.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"
#include "core/tensor/primary_weight.h"

namespace planewise {

// The plane of W that a GEMM reads, and as what.
struct WeightOperand {
  PlaneKind plane = PlaneKind::kRow;
  OperandKind kind = OperandKind::kCodes;
  // The plane is not stored but quantized for this one call, from a
  // high-precision primary.
  bool made = false;
};

WeightOperand WeightOfForward(const PrimaryWeight& weight, const Recipe& recipe);
WeightOperand WeightOfInputGradient(const PrimaryWeight& weight, const Recipe& recipe);

// Whether these GEMMs read planes of the recipe's format: of none, and of mxfp8
// with 1-D blocks. Weights of the others are hosted, not multiplied yet.
bool ComputesLinear(const Recipe& recipe);

// Whether the backward multiplies codes: a quantized recipe without override.
bool QuantizesBackward(const Recipe& recipe);

// The element type that dY is quantized to.
DType GradientElement(const Recipe& recipe);

// Exponents that W or X turns out to have once it is quantized are not known
// when a made plane is planned: this range stands for all of them.
inline constexpr ExponentRange kAnyExponents = {0, 255};

// `exponents` are those of the plane that is read as kValues (W's; X's of the
// weight gradient under dequantized): they decide whether BF16 can multiply it.
GemmProblem ForwardProblem(const PrimaryWeight& weight, const Recipe& recipe, int64_t tokens,
                           DType activation, std::optional<ExponentRange> exponents);
GemmProblem InputGradientProblem(const PrimaryWeight& weight, const Recipe& recipe,
                                 int64_t tokens, DType activation,
                                 std::optional<ExponentRange> exponents);
GemmProblem WeightGradientProblem(const PrimaryWeight& weight, const Recipe& recipe,
                                  int64_t tokens, DType activation,
                                  std::optional<ExponentRange> exponents);

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_LINEAR_GEMMS_H_
