#include "core/recipe/recipe.h"

#include <xxhash.h>

#include <cmath>
#include <vector>

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
constexpr AmaxAlgorithm kAmaxAlgorithms[] = {AmaxAlgorithm::kMax, AmaxAlgorithm::kMostRecent};

template <typename T>
std::string ListNames(absl::Span<const T> values) {
  return absl::StrJoin(values, ", ",
                       [](std::string* out, T value) { absl::StrAppend(out, Name(value)); });
}

// Nine digits tell any two F32 numbers apart.
std::string RoundTripDigits(float value) { return absl::StrFormat("%.9g", value); }

absl::string_view OnOff(bool value) { return value ? "on" : "off"; }

bool HasBlocks(Format format) {
  return format == Format::kMxfp8 || format == Format::kNvfp4 || format == Format::kFp8Block;
}

// A field beyond format and override, as text, with whether the format has it.
struct Field {
  absl::string_view name;
  bool exists;
  std::string value;
};

std::vector<Field> FieldsOf(const Recipe& recipe) {
  const Format format = recipe.format;
  const bool amax_scaled = format == Format::kFp8Block || format == Format::kFp8Current;
  const bool delayed = format == Format::kFp8Delayed;
  const bool nvfp4 = format == Format::kNvfp4;
  return {
      {"fp8_format", recipe.quantized() && !nvfp4, std::string(Name(recipe.fp8_format))},
      {"weight_geometry", HasBlocks(format), std::string(Name(recipe.weight_geometry))},
      {"power_of_two_scales", amax_scaled, std::string(OnOff(recipe.power_of_two_scales))},
      {"amax_epsilon", amax_scaled, RoundTripDigits(recipe.amax_epsilon)},
      {"margin", delayed, absl::StrCat(recipe.margin)},
      {"amax_history_length", delayed, absl::StrCat(recipe.amax_history_length)},
      {"amax_algorithm", delayed, std::string(Name(recipe.amax_algorithm))},
      {"hadamard", nvfp4, std::string(OnOff(recipe.hadamard))},
      {"stochastic_rounding", nvfp4, std::string(OnOff(recipe.stochastic_rounding))},
  };
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
  const std::vector<Field> fields = FieldsOf(recipe);
  const std::vector<Field> defaults = FieldsOf(DefaultRecipe(recipe.format));
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].exists || fields[i].value == defaults[i].value) continue;
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("recipe ", Name(recipe.format), " has no field ", fields[i].name,
                              "; it is ", fields[i].value, "; leave it out"))
        .With("field", fields[i].name);
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
  const std::vector<Field> defaults = FieldsOf(DefaultRecipe(format));
  const std::vector<Field> values = FieldsOf(*this);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].value != defaults[i].value) add(values[i].name, values[i].value);
  }
  return fields.empty() ? std::string(Name(format)) : absl::StrCat(Name(format), "(", fields, ")");
}

uint64_t Recipe::Fingerprint() const {
  std::string all = absl::StrCat(Name(format), "/", Name(backward_override), "/", Name(fp8_format),
                                 "/", Name(weight_geometry));
  for (const Field& field : FieldsOf(*this)) {
    // Those above are there for every format.
    if (field.name == "fp8_format" || field.name == "weight_geometry") continue;
    if (field.exists) absl::StrAppend(&all, "/", field.name, "=", field.value);
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
