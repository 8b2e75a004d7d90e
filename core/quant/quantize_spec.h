#ifndef PLANEWISE_CORE_QUANT_QUANTIZE_SPEC_H_
#define PLANEWISE_CORE_QUANT_QUANTIZE_SPEC_H_
// How one matrix is quantized: a recipe, seen from the role that the matrix plays.
// The only place where roles differ.
//
// Not here: the arithmetic (quantizer.h); which planes are kept
// (planner/plane_decision.h).

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/numeric/dtype.h"
#include "core/numeric/stochastic_rounding.h"
#include "core/quant/delayed_scaling.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// W; X; dY.
enum class OperandRole : uint8_t { kWeight, kActivation, kGradient };

struct QuantizeSpec {
  Format format = Format::kNone;
  BlockGeometry geometry = BlockGeometry::k1D;
  DType element = DType::kF8E4M3;  // or E5M2; nvfp4: E2M1

  // fp8_block and fp8_current, as in Recipe.
  bool power_of_two_scales = false;
  float amax_epsilon = 0.0f;

  // fp8_delayed: the encode scale, the first word of the state before the cast.
  float delayed_scale = 1.0f;
  // fp8_delayed: of a weight's own state. 0 for X and dY, whose state is the
  // session's: their planes are laid out as those of fp8_current.
  int64_t amax_history_length = 0;

  // nvfp4, 1-D: the column plane is made of the transformed matrix.
  bool hadamard_column = false;
  // nvfp4, 1-D: rounds stochastically, with the words of this key.
  std::optional<StochasticKey> stochastic = std::nullopt;
};

// The spec of a matrix in `role` under `recipe`. Weights have E4M3 (E2M1) elements
// and the recipe's geometry, are never transformed, and never rounded
// stochastically. X and dY have 1-D blocks, whatever the geometry of weights; dY
// has E5M2 elements under the hybrid format, and `key` if the recipe rounds
// gradients stochastically. X and dY are transformed if the recipe says so.
QuantizeSpec QuantizeSpecFor(const Recipe& recipe, OperandRole role, const StochasticKey& key = {});

// How the state of an fp8_delayed matrix in `role` moves on.
DelayedScalingRule DelayedScalingRuleFor(const Recipe& recipe, OperandRole role);

// INVALID_ARGUMENT for a format without quantization, an element type that the
// format does not have, and a transform or stochastic rounding outside 1-D nvfp4.
absl::Status CheckSpec(const QuantizeSpec& spec);

// The layout of a plane of `shape` under `spec`. A column plane of transformed
// elements has whole groups of 16 rows: those that the matrix lacks count as 0.
// Errors as CheckSpec and PlaneLayoutFor.
absl::StatusOr<PlaneLayout> LayoutFor(const QuantizeSpec& spec, PlaneKind kind, MatrixShape shape);

// Whether a matrix must have been measured before it is quantized.
bool NeedsAmax(const QuantizeSpec& spec);

// Whether its row plane has a state of delayed scaling, which records its amax.
bool HasDelayedState(const QuantizeSpec& spec);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_QUANTIZE_SPEC_H_
