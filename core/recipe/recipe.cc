#include "core/recipe/recipe.h"

#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr Format kHostable[] = {Format::kNone, Format::kMxfp8};
constexpr Format kFormats[] = {Format::kNone,     Format::kMxfp8,      Format::kNvfp4,
                               Format::kFp8Block, Format::kFp8Current, Format::kFp8Delayed};
constexpr BackwardOverride kOverrides[] = {
    BackwardOverride::kNone, BackwardOverride::kHighPrecision, BackwardOverride::kDequantized};

template <typename T>
std::string ListNames(absl::Span<const T> values) {
  return absl::StrJoin(values, ", ", [](std::string* out, T value) {
    absl::StrAppend(out, Name(value));
  });
}

}  // namespace

absl::string_view Name(Format format) {
  switch (format) {
    case Format::kNone: return "none";
    case Format::kMxfp8: return "mxfp8";
    case Format::kNvfp4: return "nvfp4";
    case Format::kFp8Block: return "fp8_block";
    case Format::kFp8Current: return "fp8_current";
    case Format::kFp8Delayed: return "fp8_delayed";
  }
  return "invalid";
}

absl::string_view Name(BackwardOverride backward_override) {
  switch (backward_override) {
    case BackwardOverride::kNone: return "none";
    case BackwardOverride::kHighPrecision: return "high_precision";
    case BackwardOverride::kDequantized: return "dequantized";
  }
  return "invalid";
}

absl::string_view Name(Fp8Format fp8_format) {
  return fp8_format == Fp8Format::kE4M3 ? "e4m3" : "hybrid";
}

absl::string_view Name(BlockGeometry geometry) {
  return geometry == BlockGeometry::k1D ? "1d" : "2d";
}

absl::StatusOr<Format> ParseFormat(absl::string_view name) {
  for (const Format format : kFormats) {
    const absl::string_view full = Name(format);
    if (name == full || absl::StrCat("fp8_", name) == full) return format;
  }
  return Error(Reason::kUnknownRecipe,
               absl::StrCat("recipe \"", name, "\" is not known; valid: ",
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

std::string Recipe::ToString() const {
  const Recipe defaults = DefaultRecipe(format);
  std::string fields;
  const auto add = [&fields](absl::string_view key, absl::string_view value) {
    absl::StrAppend(&fields, fields.empty() ? "" : ", ", key, "=", value);
  };
  if (backward_override != BackwardOverride::kNone) {
    add("backward_override", Name(backward_override));
  }
  if (fp8_format != defaults.fp8_format) add("fp8_format", Name(fp8_format));
  if (weight_geometry != defaults.weight_geometry) {
    add("weight_geometry", Name(weight_geometry));
  }
  return fields.empty() ? std::string(Name(format)) : absl::StrCat(Name(format), "(", fields, ")");
}

uint64_t Recipe::Fingerprint() const {
  const std::string all = absl::StrCat(Name(format), "/", Name(backward_override), "/",
                                       Name(fp8_format), "/", Name(weight_geometry));
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
  if (format == Format::kFp8Current || format == Format::kFp8Delayed) {
    recipe.fp8_format = Fp8Format::kHybrid;
  }
  return recipe;
}

absl::Span<const Format> HostableFormats() { return kHostable; }

absl::Status CheckRecipe(const Recipe& recipe) {
  if (recipe.backward_override != BackwardOverride::kNone) {
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
  }
  for (const Format format : kHostable) {
    if (recipe.format == format &&
        recipe.weight_geometry == DefaultRecipe(format).weight_geometry) {
      return absl::OkStatus();
    }
  }
  return Error(Reason::kNotSupported,
               absl::StrCat("recipe ", recipe.ToString(), " is not hosted by this build; it hosts ",
                            ListNames(HostableFormats()), " with 1-D blocks"));
}

}  // namespace planewise
