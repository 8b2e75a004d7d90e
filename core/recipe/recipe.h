#ifndef PLANEWISE_CORE_RECIPE_RECIPE_H_
#define PLANEWISE_CORE_RECIPE_RECIPE_H_
// A recipe: how weights, activations and gradients are quantized, and what the
// backward reads. A value: compares, prints, and has a fingerprint that keys
// every cached plan.
//
// Not here: whether a recipe fits a weight (recipe_check.h); which planes it
// needs (planner/plane_decision.h).

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace planewise {

// Storage format of a primary weight. kNone is high precision.
enum class Format : uint8_t { kNone, kMxfp8, kNvfp4, kFp8Block, kFp8Current, kFp8Delayed };

enum class BackwardOverride : uint8_t { kNone, kHighPrecision, kDequantized };

// kHybrid: activations and weights E4M3, gradients E5M2.
enum class Fp8Format : uint8_t { kE4M3, kHybrid };

// Shape of a weight's scaling blocks. MXFP8: 1x32 or 32x32; NVFP4: 1x16 or
// 16x16; block FP8: 1x128 or 128x128. Per-tensor formats ignore it.
enum class BlockGeometry : uint8_t { k1D, k2D };

// Which amaxes of its history delayed scaling takes: the largest, or the last.
enum class AmaxAlgorithm : uint8_t { kMax, kMostRecent };

// TE's DelayedScaling.amax_history_len.
inline constexpr int64_t kDefaultAmaxHistoryLength = 1024;
inline constexpr int64_t kAmaxHistoryLengthMax = 1 << 16;
// |margin| of delayed scaling: 2^-margin must be an F32 number, and not a subnormal.
inline constexpr int kMarginMax = 126;

absl::string_view Name(Format format);
absl::string_view Name(BackwardOverride backward_override);
absl::string_view Name(Fp8Format fp8_format);
absl::string_view Name(BlockGeometry geometry);
absl::string_view Name(AmaxAlgorithm algorithm);

// What a recipe says beside its format and override. Each format has some of it.
enum class RecipeField : uint8_t {
  kFp8Format,
  kWeightGeometry,
  kPowerOfTwoScales,
  kAmaxEpsilon,
  kMargin,
  kAmaxHistoryLength,
  kAmaxAlgorithm,
  kHadamard,
  kStochasticRounding
};

inline constexpr RecipeField kRecipeFields[] = {
    RecipeField::kFp8Format,     RecipeField::kWeightGeometry, RecipeField::kPowerOfTwoScales,
    RecipeField::kAmaxEpsilon,   RecipeField::kMargin,         RecipeField::kAmaxHistoryLength,
    RecipeField::kAmaxAlgorithm, RecipeField::kHadamard,       RecipeField::kStochasticRounding};

absl::string_view Name(RecipeField field);  // for example "amax_epsilon"
bool HasField(Format format, RecipeField field);

// INVALID_ARGUMENT, listing the valid spellings. Formats: none, mxfp8, nvfp4,
// fp8_block, fp8_current, fp8_delayed (and the short block, current, delayed).
absl::StatusOr<Format> ParseFormat(absl::string_view name);
absl::StatusOr<BackwardOverride> ParseBackwardOverride(absl::string_view name);
absl::StatusOr<Fp8Format> ParseFp8Format(absl::string_view name);  // e4m3, hybrid
// max, most_recent.
absl::StatusOr<AmaxAlgorithm> ParseAmaxAlgorithm(absl::string_view name);

// Fields that a format does not have keep the value that DefaultRecipe gives
// them; CheckRecipe refuses any other.
struct Recipe {
  Format format = Format::kNone;
  BackwardOverride backward_override = BackwardOverride::kNone;
  Fp8Format fp8_format = Fp8Format::kE4M3;
  BlockGeometry weight_geometry = BlockGeometry::k1D;

  // fp8_block, fp8_current: scales are powers of two, and an amax below
  // `amax_epsilon` counts as that.
  bool power_of_two_scales = false;
  float amax_epsilon = 0.0f;

  // fp8_delayed: the scale is 2^-margin times what the amax asks for.
  int margin = 0;
  int64_t amax_history_length = 0;
  AmaxAlgorithm amax_algorithm = AmaxAlgorithm::kMax;

  // nvfp4: of the column copies of activations and gradients, and of gradients.
  bool hadamard = false;
  bool stochastic_rounding = false;

  bool operator==(const Recipe&) const = default;

  // For example "mxfp8(backward_override=dequantized)"; defaults are left out.
  std::string ToString() const;

  // XXH3 of every field that the format has. Stable across processes and
  // versions of one major store format.
  uint64_t Fingerprint() const;

  bool quantized() const { return format != Format::kNone; }
};

// One scale for a whole matrix.
constexpr bool IsPerTensor(Format format) {
  return format == Format::kFp8Current || format == Format::kFp8Delayed;
}

std::ostream& operator<<(std::ostream& out, const Recipe& recipe);

// The recipe of a format with every other field at the format's default
// (mxfp8: E4M3, 1-D; nvfp4: 2-D weights, Hadamard transform, stochastic rounding;
// fp8_block: 2-D weights, power-of-two scales; per-tensor: hybrid; a history of
// kDefaultAmaxHistoryLength). The defaults are Transformer Engine's.
Recipe DefaultRecipe(Format format);

// Formats that a model can be hosted in.
absl::Span<const Format> HostableFormats();

// Is the combination legal, whatever the weight? INVALID_ARGUMENT with
// OVERRIDE_UNSUPPORTED_FOR_RECIPE (fp8_delayed with an override; an override
// without quantization) or INVALID_REQUEST (a field that the format does not
// have, or a value outside its range).
absl::Status CheckRecipe(const Recipe& recipe);

}  // namespace planewise

#endif  // PLANEWISE_CORE_RECIPE_RECIPE_H_
