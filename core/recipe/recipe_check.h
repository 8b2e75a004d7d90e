#ifndef PLANEWISE_CORE_RECIPE_RECIPE_CHECK_H_
#define PLANEWISE_CORE_RECIPE_RECIPE_CHECK_H_
// Does a recipe fit a weight, and which plane can be made from the other. Every
// violated rule is listed, and no rule that holds.
//
// Not here: whether a recipe is legal by itself (recipe.h, CheckRecipe); token
// counts, which are padded inside and break no rule.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/recipe/recipe.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// A weight dimension that is not a multiple of the recipe's block.
struct ShapeViolation {
  absl::string_view dimension;  // "out_features" or "in_features"
  int64_t value = 0;
  int64_t modulus = 0;
  int64_t padded = 0;  // the next value that fits

  // For example "in_features 712 % 32 = 8; mxfp8 needs a multiple of 32; pad to 736".
  std::string ToString(Format format) const;
};

// The rules that a weight [out, in] breaks; empty if it fits. MXFP8 needs both
// dimensions in whole blocks of 32, NVFP4 of 16; the others take any shape.
std::vector<ShapeViolation> ShapeViolations(const Recipe& recipe, MatrixShape shape);

// The same as a status. INVALID_ARGUMENT / SHAPE_NOT_DIVISIBLE that names the
// weight, one Violation per broken rule, and for the first one the metadata
// "dimension", "value", "modulus", "remainder" and "paddedTo".
absl::Status CheckWeightShape(const Recipe& recipe, absl::string_view name, MatrixShape shape);

// Can a column plane be made from the row plane without loss? Not for 1-D
// blocks: the two planes have different blocks and thus different codes.
bool ColumnDerivableFromRow(Format format, BlockGeometry geometry);

}  // namespace planewise

#endif  // PLANEWISE_CORE_RECIPE_RECIPE_CHECK_H_
