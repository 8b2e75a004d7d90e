#include "core/recipe/recipe.h"

#include <xxhash.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr Format kFormats[] = {Format::kNone,     Format::kMxfp8,      Format::kNvfp4,
                               Format::kFp8Block, Format::kFp8Current, Format::kFp8Delayed};
constexpr BackwardOverride kOverrides[] = {
    BackwardOverride::kNone, BackwardOverride::kHighPrecision, BackwardOverride::kDequantized};
constexpr Fp8Format kFp8Formats[] = {Fp8Format::kE4M3, Fp8Format::kHybrid};
constexpr AmaxAlgorithm kAmaxAlgorithms[] = {AmaxAlgorithm::kMax, AmaxAlgorithm::kMostRecent};

template <typename T>
std::string ListNames(absl::Span<const T> values) {
  return absl::StrJoin(values, ", ",
                       [](std::string* out, T value) { absl::StrAppend(out, Name(value)); });
}

// Nine digits tell any two F32 numbers apart.
std::string RoundTripDigits(float value) { return absl::StrFormat("%.9g", value); }

absl::string_view OnOff(bool value) { return value ? "on" : "off"; }

std::string ValueOf(const Recipe& recipe, RecipeField field) {
  switch (field) {
    case RecipeField::kFp8Format:
      return std::string(Name(recipe.fp8_format));
    case RecipeField::kWeightGeometry:
      return std::string(Name(recipe.weight_geometry));
    case RecipeField::kPowerOfTwoScales:
      return std::string(OnOff(recipe.power_of_two_scales));
    case RecipeField::kAmaxEpsilon:
      return RoundTripDigits(recipe.amax_epsilon);
    case RecipeField::kMargin:
      return absl::StrCat(recipe.margin);
    case RecipeField::kAmaxHistoryLength:
      return absl::StrCat(recipe.amax_history_length);
    case RecipeField::kAmaxAlgorithm:
      return std::string(Name(recipe.amax_algorithm));
    case RecipeField::kHadamard:
      return std::string(OnOff(recipe.hadamard));
    case RecipeField::kStochasticRounding:
      return std::string(OnOff(recipe.stochastic_rounding));
  }
  return "invalid";
}

absl::Status CheckOverride(const Recipe& recipe) {
  if (recipe.backward_override == BackwardOverride::kNone) return absl::OkStatus();
  const absl::string_view name = Name(recipe.backward_override);
  if (recipe.format == Format::kFp8Delayed) {
    return Error(Reason::kOverrideUnsupportedForRecipe,
                 absl::StrCat("recipe fp8_delayed with backward_override=", name,
                              ": delayed scaling allows only none; use fp8_current or another "
                              "recipe, or drop the override"));
  }
  if (!recipe.quantized()) {
    return Error(Reason::kOverrideUnsupportedForRecipe,
                 absl::StrCat("backward_override=", name,
                              " without quantization: recipe none computes its backward in high "
                              "precision already; drop the override or name a quantized recipe"));
  }
  return absl::OkStatus();
}

absl::Status CheckFieldsExist(const Recipe& recipe) {
  const Recipe defaults = DefaultRecipe(recipe.format);
  for (const RecipeField field : kRecipeFields) {
    const std::string value = ValueOf(recipe, field);
    if (HasField(recipe.format, field) || value == ValueOf(defaults, field)) continue;
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("recipe ", Name(recipe.format), " has no field ", Name(field),
                              "; it is ", value, "; leave it out"))
        .With("field", Name(field));
  }
  return absl::OkStatus();
}

Error OutOfRange(const Recipe& recipe, absl::string_view field, absl::string_view value,
                 absl::string_view valid) {
  return Error(Reason::kInvalidRequest, absl::StrCat("recipe ", Name(recipe.format), ": ", field,
                                                     " is ", value, "; valid: ", valid))
      .With("field", field);
}

absl::Status CheckRanges(const Recipe& recipe) {
  if (!std::isfinite(recipe.amax_epsilon) || recipe.amax_epsilon < 0) {
    return OutOfRange(recipe, "amax_epsilon", RoundTripDigits(recipe.amax_epsilon),
                      "a finite number that is not below 0");
  }
  if (recipe.format != Format::kFp8Delayed) return absl::OkStatus();
  if (recipe.margin < -kMarginMax || recipe.margin > kMarginMax) {
    return OutOfRange(recipe, "margin", absl::StrCat(recipe.margin),
                      absl::StrCat(-kMarginMax, " to ", kMarginMax));
  }
  if (recipe.amax_history_length < 1 || recipe.amax_history_length > kAmaxHistoryLengthMax) {
    return OutOfRange(recipe, "amax_history_length", absl::StrCat(recipe.amax_history_length),
                      absl::StrCat("1 to ", kAmaxHistoryLengthMax));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view Name(Format format) {
  switch (format) {
    case Format::kNone:
      return "none";
    case Format::kMxfp8:
      return "mxfp8";
    case Format::kNvfp4:
      return "nvfp4";
    case Format::kFp8Block:
      return "fp8_block";
    case Format::kFp8Current:
      return "fp8_current";
    case Format::kFp8Delayed:
      return "fp8_delayed";
  }
  return "invalid";
}

absl::string_view Name(BackwardOverride backward_override) {
  switch (backward_override) {
    case BackwardOverride::kNone:
      return "none";
    case BackwardOverride::kHighPrecision:
      return "high_precision";
    case BackwardOverride::kDequantized:
      return "dequantized";
  }
  return "invalid";
}

absl::string_view Name(Fp8Format fp8_format) {
  return fp8_format == Fp8Format::kE4M3 ? "e4m3" : "hybrid";
}

absl::string_view Name(BlockGeometry geometry) {
  return geometry == BlockGeometry::k1D ? "1d" : "2d";
}

absl::string_view Name(AmaxAlgorithm algorithm) {
  return algorithm == AmaxAlgorithm::kMax ? "max" : "most_recent";
}

absl::string_view Name(RecipeField field) {
  switch (field) {
    case RecipeField::kFp8Format:
      return "fp8_format";
    case RecipeField::kWeightGeometry:
      return "weight_geometry";
    case RecipeField::kPowerOfTwoScales:
      return "power_of_two_scales";
    case RecipeField::kAmaxEpsilon:
      return "amax_epsilon";
    case RecipeField::kMargin:
      return "margin";
    case RecipeField::kAmaxHistoryLength:
      return "amax_history_length";
    case RecipeField::kAmaxAlgorithm:
      return "amax_algorithm";
    case RecipeField::kHadamard:
      return "hadamard";
    case RecipeField::kStochasticRounding:
      return "stochastic_rounding";
  }
  return "invalid";
}

bool HasField(Format format, RecipeField field) {
  switch (field) {
    case RecipeField::kFp8Format:
      return format != Format::kNone && format != Format::kNvfp4;
    case RecipeField::kWeightGeometry:
      return format == Format::kMxfp8 || format == Format::kNvfp4 || format == Format::kFp8Block;
    case RecipeField::kPowerOfTwoScales:
    case RecipeField::kAmaxEpsilon:
      return format == Format::kFp8Block || format == Format::kFp8Current;
    case RecipeField::kMargin:
    case RecipeField::kAmaxHistoryLength:
    case RecipeField::kAmaxAlgorithm:
      return format == Format::kFp8Delayed;
    case RecipeField::kHadamard:
    case RecipeField::kStochasticRounding:
      return format == Format::kNvfp4;
  }
  return false;
}

absl::StatusOr<Format> ParseFormat(absl::string_view name) {
  for (const Format format : kFormats) {
    const absl::string_view full = Name(format);
    if (name == full || absl::StrCat("fp8_", name) == full) return format;
  }
  return Error(Reason::kUnknownRecipe, absl::StrCat("recipe \"", name, "\" is not known; valid: ",
                                                    ListNames(absl::MakeConstSpan(kFormats))))
      .With("recipe", name);
}

absl::StatusOr<BackwardOverride> ParseBackwardOverride(absl::string_view name) {
  for (const BackwardOverride value : kOverrides) {
    if (name == Name(value)) return value;
  }
  return Error(Reason::kInvalidRequest,
               absl::StrCat("backward_override \"", name, "\" is not known; valid: ",
                            ListNames(absl::MakeConstSpan(kOverrides))));
}

absl::StatusOr<Fp8Format> ParseFp8Format(absl::string_view name) {
  for (const Fp8Format value : kFp8Formats) {
    if (name == Name(value)) return value;
  }
  return Error(Reason::kInvalidRequest,
               absl::StrCat("fp8_format \"", name, "\" is not known; valid: ",
                            ListNames(absl::MakeConstSpan(kFp8Formats))));
}

absl::StatusOr<AmaxAlgorithm> ParseAmaxAlgorithm(absl::string_view name) {
  for (const AmaxAlgorithm value : kAmaxAlgorithms) {
    if (name == Name(value)) return value;
  }
  return Error(Reason::kInvalidRequest,
               absl::StrCat("amax_algorithm \"", name, "\" is not known; valid: ",
                            ListNames(absl::MakeConstSpan(kAmaxAlgorithms))));
}

std::string Recipe::ToString() const {
  std::string fields;
  const auto add = [&fields](absl::string_view key, absl::string_view value) {
    absl::StrAppend(&fields, fields.empty() ? "" : ", ", key, "=", value);
  };
  if (backward_override != BackwardOverride::kNone) {
    add("backward_override", Name(backward_override));
  }
  const Recipe defaults = DefaultRecipe(format);
  for (const RecipeField field : kRecipeFields) {
    const std::string value = ValueOf(*this, field);
    if (value != ValueOf(defaults, field)) add(Name(field), value);
  }
  return fields.empty() ? std::string(Name(format)) : absl::StrCat(Name(format), "(", fields, ")");
}

uint64_t Recipe::Fingerprint() const {
  std::string all = absl::StrCat(Name(format), "/", Name(backward_override), "/", Name(fp8_format),
                                 "/", Name(weight_geometry));
  for (const RecipeField field : kRecipeFields) {
    // Those above are there for every format.
    if (field == RecipeField::kFp8Format || field == RecipeField::kWeightGeometry) continue;
    if (HasField(format, field)) {
      absl::StrAppend(&all, "/", Name(field), "=", ValueOf(*this, field));
    }
  }
  return XXH3_64bits(all.data(), all.size());
}

std::ostream& operator<<(std::ostream& out, const Recipe& recipe) {
  return out << recipe.ToString();
}

Recipe DefaultRecipe(Format format) {
  Recipe recipe;
  recipe.format = format;
  if (format == Format::kNvfp4 || format == Format::kFp8Block) {
    recipe.weight_geometry = BlockGeometry::k2D;
  }
  if (IsPerTensor(format)) recipe.fp8_format = Fp8Format::kHybrid;
  recipe.power_of_two_scales = format == Format::kFp8Block;
  if (format == Format::kFp8Delayed) recipe.amax_history_length = kDefaultAmaxHistoryLength;
  recipe.hadamard = format == Format::kNvfp4;
  recipe.stochastic_rounding = format == Format::kNvfp4;
  return recipe;
}

absl::Span<const Format> HostableFormats() { return kFormats; }

absl::Status CheckRecipe(const Recipe& recipe) {
  PW_RETURN_IF_ERROR(CheckOverride(recipe));
  PW_RETURN_IF_ERROR(CheckFieldsExist(recipe));
  return CheckRanges(recipe);
}

}  // namespace planewise
