#include "core/layer/linear_gemms.h"

#include "core/gemm/cpu_gemm.h"
#include "core/gemm/expansion.h"

namespace planewise {
namespace {

// The type to multiply in: BF16 where that changes no operand and the CPU can.
DType ComputeType(const GemmProblem& problem, std::optional<ExponentRange> exponents) {
  if (!CpuMultipliesBf16()) return DType::kF32;
  if (problem.multiplies_codes()) return DType::kBF16;
  if (problem.value_dtype != DType::kBF16) return DType::kF32;
  const bool exact = problem.b.kind != OperandKind::kValues ||
                     ValuesAreExact(exponents, problem.b.dtype, DType::kBF16);
  return exact ? DType::kBF16 : DType::kF32;
}

OperandFormat FormatOf(const WeightOperand& operand, const PrimaryWeight& weight,
                       Contracted contracted) {
  const DType dtype = operand.kind == OperandKind::kDense ? weight.nominal : DType::kF8E4M3;
  return {operand.kind, dtype, contracted};
}

// dY or X, the operand that is not a weight.
OperandFormat TokensFormat(bool quantized, DType element, DType activation,
                           Contracted contracted) {
  if (quantized) return {OperandKind::kCodes, element, contracted};
  return {OperandKind::kDense, activation, contracted};
}

bool Stored(const PrimaryWeight& weight) { return weight.format != Format::kNone; }

}  // namespace

bool ComputesLinear(const Recipe& recipe) {
  return !recipe.quantized() ||
         (recipe.format == Format::kMxfp8 && recipe.weight_geometry == BlockGeometry::k1D);
}

bool QuantizesBackward(const Recipe& recipe) {
  return recipe.quantized() && recipe.backward_override == BackwardOverride::kNone;
}

DType GradientElement(const Recipe& recipe) {
  return recipe.fp8_format == Fp8Format::kHybrid ? DType::kF8E5M2 : DType::kF8E4M3;
}

WeightOperand WeightOfForward(const PrimaryWeight& weight, const Recipe& recipe) {
  if (recipe.quantized()) return {PlaneKind::kRow, OperandKind::kCodes, !Stored(weight)};
  if (Stored(weight)) return {PlaneKind::kRow, OperandKind::kValues};
  return {PlaneKind::kHighPrecision, OperandKind::kDense};
}

WeightOperand WeightOfInputGradient(const PrimaryWeight& weight, const Recipe& recipe) {
  if (QuantizesBackward(recipe)) {
    return {PlaneKind::kColumn, OperandKind::kCodes, !Stored(weight)};
  }
  if (Stored(weight)) return {PlaneKind::kRow, OperandKind::kValues};
  if (recipe.backward_override == BackwardOverride::kDequantized) {
    return {PlaneKind::kRow, OperandKind::kValues, true};
  }
  return {PlaneKind::kHighPrecision, OperandKind::kDense};
}

GemmProblem ForwardProblem(const PrimaryWeight& weight, const Recipe& recipe, int64_t tokens,
                           DType activation, std::optional<ExponentRange> exponents) {
  GemmProblem problem;
  problem.m = tokens;
  problem.n = weight.shape.out;
  problem.k = weight.shape.in;
  problem.a = TokensFormat(recipe.quantized(), DType::kF8E4M3, activation, Contracted::kColumns);
  problem.b = FormatOf(WeightOfForward(weight, recipe), weight, Contracted::kColumns);
  problem.value_dtype = activation;
  problem.output = activation;
  problem.compute = ComputeType(problem, exponents);
  return problem;
}

GemmProblem InputGradientProblem(const PrimaryWeight& weight, const Recipe& recipe,
                                 int64_t tokens, DType activation,
                                 std::optional<ExponentRange> exponents) {
  GemmProblem problem;
  problem.m = tokens;
  problem.n = weight.shape.in;
  problem.k = weight.shape.out;
  problem.a = TokensFormat(QuantizesBackward(recipe), GradientElement(recipe), activation,
                           Contracted::kColumns);
  problem.b = FormatOf(WeightOfInputGradient(weight, recipe), weight, Contracted::kRows);
  problem.value_dtype = activation;
  problem.output = activation;
  problem.compute = ComputeType(problem, exponents);
  return problem;
}

GemmProblem WeightGradientProblem(const PrimaryWeight& weight, const Recipe& recipe,
                                  int64_t tokens, DType activation,
                                  std::optional<ExponentRange> exponents) {
  GemmProblem problem;
  problem.m = weight.shape.out;
  problem.n = weight.shape.in;
  problem.k = tokens;
  const bool quantized = QuantizesBackward(recipe);
  problem.a = TokensFormat(quantized, GradientElement(recipe), activation, Contracted::kRows);
  problem.b = TokensFormat(quantized, DType::kF8E4M3, activation, Contracted::kRows);
  if (recipe.backward_override == BackwardOverride::kDequantized) {
    problem.b = {OperandKind::kValues, DType::kF8E4M3, Contracted::kRows};
  }
  problem.value_dtype = activation;
  problem.output = DType::kF32;
  problem.compute = ComputeType(problem, exponents);
  return problem;
}

}  // namespace planewise
