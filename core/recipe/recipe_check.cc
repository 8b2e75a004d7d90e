#include "core/recipe/recipe_check.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace planewise {

std::string ShapeViolation::ToString(Format format) const {
  return absl::StrCat(dimension, " ", value, " % ", modulus, " = ", value % modulus, "; ",
                      Name(format), " needs a multiple of ", modulus, "; pad to ", padded);
}

namespace {

// What both dimensions of a weight must be multiples of. Block and per-tensor FP8
// quantize ragged edges; the shapes that their GEMMs take are a device's matter.
int64_t ShapeModulus(Format format) {
  switch (format) {
    case Format::kMxfp8:
      return kMxfp8Block;
    case Format::kNvfp4:
      return kNvfp4Block;
    case Format::kNone:
    case Format::kFp8Block:
    case Format::kFp8Current:
    case Format::kFp8Delayed:
      break;
  }
  return 1;
}

}  // namespace

std::vector<ShapeViolation> ShapeViolations(const Recipe& recipe, MatrixShape shape) {
  std::vector<ShapeViolation> violations;
  const int64_t modulus = ShapeModulus(recipe.format);
  const auto check = [&](absl::string_view dimension, int64_t value) {
    if (value % modulus == 0) return;
    violations.push_back({dimension, value, modulus, RoundUp(value, modulus)});
  };
  check("out_features", shape.out);
  check("in_features", shape.in);
  return violations;
}

absl::Status CheckWeightShape(const Recipe& recipe, absl::string_view name, MatrixShape shape) {
  const std::vector<ShapeViolation> violations = ShapeViolations(recipe, shape);
  if (violations.empty()) return absl::OkStatus();
  const auto describe = [&recipe](std::string* out, const ShapeViolation& violation) {
    absl::StrAppend(out, violation.ToString(recipe.format));
  };
  Error error(Reason::kShapeNotDivisible,
              absl::StrCat("weight \"", name, "\": ", absl::StrJoin(violations, "; ", describe)));
  const ShapeViolation& first = violations.front();
  error.With("dimension", first.dimension)
      .With("value", first.value)
      .With("modulus", first.modulus)
      .With("remainder", first.value % first.modulus)
      .With("paddedTo", first.padded);
  for (const ShapeViolation& violation : violations) {
    error.WithViolation(
        {Reason::kShapeNotDivisible, std::string(name), violation.ToString(recipe.format)});
  }
  return error;
}

bool ColumnDerivableFromRow(Format format, BlockGeometry geometry) {
  switch (format) {
    case Format::kNone:
    case Format::kFp8Current:
    case Format::kFp8Delayed:
      return true;
    case Format::kMxfp8:
    case Format::kNvfp4:
    case Format::kFp8Block:
      return geometry == BlockGeometry::k2D;
  }
  return false;
}

}  // namespace planewise
