#include "core/checkpoint/hf_index.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/base/strict_json.h"
#include "core/checkpoint/safetensors_json.h"

namespace planewise {
namespace {

// {"metadata": {...}, "weight_map": {...}} and some room for metadata.
constexpr int kDepthMax = 8;

Error Malformed(absl::string_view path, absl::string_view text) {
  return Error(Reason::kInvalidCheckpoint, absl::StrCat("\"", path, "\": ", text))
      .With("file", path);
}

// A name that cannot lead out of the directory on any system.
bool IsPlainFileName(absl::string_view name) {
  if (!absl::EndsWith(name, ".safetensors")) return false;
  for (const char c : name) {
    if (c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20) return false;
  }
  return name.front() != '.';
}

// "model-00002-of-00005.safetensors" is number 2 of 5 of "model".
struct Numbered {
  std::string stem;
  int64_t number = 0;
  int64_t count = 0;
};

std::optional<Numbered> NumberedName(absl::string_view file) {
  file = absl::StripSuffix(file, ".safetensors");
  const size_t of = file.rfind("-of-");
  if (of == absl::string_view::npos) return std::nullopt;
  const size_t dash = file.substr(0, of).rfind('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  Numbered name;
  name.stem = std::string(file.substr(0, dash));
  if (!absl::SimpleAtoi(file.substr(dash + 1, of - dash - 1), &name.number) ||
      !absl::SimpleAtoi(file.substr(of + 4), &name.count)) {
    return std::nullopt;
  }
  return name;
}

// A stale index names some of the files of a set, and the rest would be left
// out in silence.
absl::Status CheckSetsComplete(absl::string_view path, const std::set<std::string>& files) {
  std::map<std::pair<std::string, int64_t>, std::set<int64_t>> numbers;  // by stem and count
  for (const std::string& file : files) {
    const std::optional<Numbered> name = NumberedName(file);
    if (name) numbers[{name->stem, name->count}].insert(name->number);
  }
  for (const auto& [set, seen] : numbers) {
    const int64_t count = set.second;
    if (static_cast<int64_t>(seen.size()) != count || *seen.begin() != 1 ||
        *seen.rbegin() != count) {
      return Malformed(path, absl::StrCat("it names ", seen.size(), " of the ", count,
                                          " shards of \"", set.first, "\""))
          .With("observedShards", static_cast<int64_t>(seen.size()))
          .With("requiredShards", count);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HfWeightMap> ParseHfIndex(absl::string_view path, absl::string_view text) {
  PW_ASSIGN_OR_RETURN(const nlohmann::json json,
                      ParseStrictJson(text, kDepthMax, absl::StrCat("\"", path, "\"")));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object()) {
    return Malformed(path, "an object \"weight_map\" from tensor to file is required");
  }
  HfWeightMap weight_map;
  std::set<std::string> files;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string()) {
      return Malformed(path, absl::StrCat("tensor \"", ShownTensorName(name),
                                          "\" maps to something that is not a file name"));
    }
    const std::string& file_name = file.get_ref<const std::string&>();
    if (!IsPlainFileName(file_name)) {
      return Malformed(path, absl::StrCat("tensor \"", ShownTensorName(name), "\" maps to \"",
                                          ShownTensorName(file_name),
                                          "\"; a *.safetensors file beside the index is required"));
    }
    weight_map.emplace_back(name, file_name);
    files.insert(file_name);
  }
  if (weight_map.empty()) return Malformed(path, "\"weight_map\" names no tensor");
  PW_RETURN_IF_ERROR(CheckSetsComplete(path, files));
  return weight_map;
}

}  // namespace planewise
