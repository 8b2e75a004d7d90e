#include "core/checkpoint/store_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/file_system.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/safetensors_json.h"

namespace planewise {
namespace {

constexpr absl::string_view kManifestSuffix = ".manifest";
constexpr absl::string_view kSegmentSuffix = ".safetensors";
constexpr size_t kVersionDigits = 20;  // of 2^64 - 1
constexpr size_t kIndexDigits = 4;

bool AllDigits(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

// `digits`, which are all of a version.
std::optional<WeightVersion> ParseVersion(absl::string_view digits) {
  uint64_t value = 0;
  if (digits.size() != kVersionDigits || !AllDigits(digits) || !absl::SimpleAtoi(digits, &value)) {
    return std::nullopt;
  }
  return WeightVersion(value);
}

}  // namespace

absl::Status CheckModelName(absl::string_view name) {
  bool legal = !name.empty() && static_cast<int64_t>(name.size()) <= kModelNameBytesMax &&
               name != "." && name != "..";
  for (const char c : name) {
    legal = legal && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                      c == '-');
  }
  if (legal) return absl::OkStatus();
  return Error(Reason::kInvalidRequest,
               absl::StrCat("model name \"", ShownTensorName(name), "\": 1 to ", kModelNameBytesMax,
                            " of A-Z a-z 0-9 . _ - are required, and not \".\" or \"..\""))
      .With("model", ShownTensorName(name));
}

std::string ManifestFileName(WeightVersion version) {
  return absl::StrFormat("%020u%s", version.value(), kManifestSuffix);
}

std::string SegmentFileName(WeightVersion version, int64_t index) {
  return absl::StrFormat("%020u-%04d%s", version.value(), index, kSegmentSuffix);
}

std::optional<WeightVersion> VersionOfManifestFile(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kManifestSuffix)) return std::nullopt;
  return ParseVersion(name);
}

std::optional<WeightVersion> VersionOfSegmentFile(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kSegmentSuffix)) return std::nullopt;
  if (name.size() < kVersionDigits + 1 + kIndexDigits || name[kVersionDigits] != '-' ||
      !AllDigits(name.substr(kVersionDigits + 1))) {
    return std::nullopt;
  }
  return ParseVersion(name.substr(0, kVersionDigits));
}

ModelPaths::ModelPaths(absl::string_view root, absl::string_view model)
    : directory(JoinPath(JoinPath(root, kModelsDirectory), model)),
      current(JoinPath(directory, kCurrentFile)),
      manifests(JoinPath(directory, kManifestsDirectory)),
      segments(JoinPath(directory, kSegmentsDirectory)) {}

}  // namespace planewise
