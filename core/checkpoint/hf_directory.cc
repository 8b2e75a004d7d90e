#include "core/checkpoint/hf_directory.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/hf_index.h"
#include "core/checkpoint/path_confinement.h"
#include "core/checkpoint/safetensors_json.h"

namespace planewise {
namespace {

constexpr absl::string_view kConfigFile = "config.json";
constexpr absl::string_view kSingleFile = "model.safetensors";
constexpr absl::string_view kIndexFile = "model.safetensors.index.json";

Error Malformed(absl::string_view directory, absl::string_view text) {
  return Error(Reason::kInvalidCheckpoint,
               absl::StrCat("model directory \"", directory, "\": ", text))
      .With("directory", directory);
}

// Which of the two ways to store weights to read.
absl::StatusOr<HfWeights> ChooseWeights(absl::string_view directory,
                                        const std::vector<std::string>& names, HfWeights wanted) {
  const bool single = absl::c_linear_search(names, kSingleFile);
  const bool sharded = absl::c_linear_search(names, kIndexFile);
  if (wanted == HfWeights::kOnlyOne && single && sharded) {
    return Malformed(directory, absl::StrCat("both ", kSingleFile, " and ", kIndexFile,
                                             " are present, and one is left from an earlier save: "
                                             "remove that one"));
  }
  if (wanted != HfWeights::kSharded && single) return HfWeights::kSingleFile;
  if (wanted != HfWeights::kSingleFile && sharded) return HfWeights::kSharded;
  const bool pickled =
      absl::c_any_of(names, [](const std::string& name) { return absl::EndsWith(name, ".bin"); });
  return Malformed(directory,
                   absl::StrCat(wanted == HfWeights::kSharded ? "" : kSingleFile,
                                wanted == HfWeights::kOnlyOne ? " or " : "",
                                wanted == HfWeights::kSingleFile ? "" : kIndexFile,
                                " is required and missing",
                                pickled ? "; pickled *.bin weights are never read: convert them "
                                          "to safetensors"
                                        : ""));
}

// A file of the directory that may be read: links are followed first.
absl::StatusOr<std::string> ReadablePath(FileSystem& file_system, absl::string_view path,
                                         const std::vector<std::string>& roots) {
  if (roots.empty()) return std::string(path);
  return ResolveWithinRoots(file_system, path, roots);
}

}  // namespace

absl::StatusOr<HfDirectory> HfDirectory::Open(FileSystem& file_system, absl::string_view directory,
                                              const HfOpenOptions& options) {
  HfDirectory opened;
  PW_ASSIGN_OR_RETURN(opened.path_, ReadablePath(file_system, directory, options.roots));
  PW_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system.List(opened.path_));
  if (!absl::c_linear_search(names, kConfigFile)) {
    return Malformed(opened.path_, absl::StrCat(kConfigFile, " is required and missing"));
  }
  PW_ASSIGN_OR_RETURN(const std::string config_path,
                      ReadablePath(file_system, JoinPath(opened.path_, kConfigFile),
                                   options.roots));
  PW_ASSIGN_OR_RETURN(opened.config_json_,
                      ReadWholeFile(file_system, config_path, kHfConfigBytesMax));

  PW_ASSIGN_OR_RETURN(const HfWeights weights,
                      ChooseWeights(opened.path_, names, options.weights));
  if (weights == HfWeights::kSingleFile) {
    PW_RETURN_IF_ERROR(opened.OpenFile(file_system, std::string(kSingleFile), options.roots));
    opened.TakeTensors(std::string(kSingleFile));
  } else {
    PW_ASSIGN_OR_RETURN(const std::string index_path,
                        ReadablePath(file_system, JoinPath(opened.path_, kIndexFile),
                                     options.roots));
    PW_ASSIGN_OR_RETURN(const std::string text,
                        ReadWholeFile(file_system, index_path, kHfIndexBytesMax));
    PW_ASSIGN_OR_RETURN(const HfWeightMap weight_map, ParseHfIndex(index_path, text));
    for (const auto& [tensor, file] : weight_map) {
      if (opened.files_.contains(file)) continue;
      if (!absl::c_linear_search(names, file)) {
        return Malformed(opened.path_,
                         absl::StrCat("shard ", file, ", which the index names for \"",
                                      ShownTensorName(tensor),
                                      "\", is missing: copy the checkpoint here again, whole"))
            .With("file", file);
      }
      PW_RETURN_IF_ERROR(opened.OpenFile(file_system, file, options.roots));
    }
    PW_RETURN_IF_ERROR(opened.TakeShards(weight_map));
  }
  opened.NoteIgnoredFiles(names);
  std::sort(opened.tensors_.begin(), opened.tensors_.end(),
            [](const HfTensor& a, const HfTensor& b) { return a.name < b.name; });
  return opened;
}

absl::Status HfDirectory::OpenFile(FileSystem& file_system, const std::string& name,
                                   const std::vector<std::string>& roots) {
  PW_ASSIGN_OR_RETURN(const std::string path,
                      ReadablePath(file_system, JoinPath(path_, name), roots));
  absl::StatusOr<SafetensorsReader> reader = SafetensorsReader::Open(file_system, path);
  if (ReasonOf(reader.status()) == Reason::kNotFound) {
    return Malformed(path_, absl::StrCat(name, " is a link that leads nowhere")).With("file", name);
  }
  PW_RETURN_IF_ERROR(reader.status());
  files_.emplace(name, *std::move(reader));
  return absl::OkStatus();
}

void HfDirectory::TakeTensors(const std::string& file) {
  for (const SafetensorsEntry& entry : files_.at(file).header().tensors) {
    tensors_.push_back({entry.name, entry.dtype, entry.shape, file, entry.offset, entry.length});
  }
}

// Every tensor of every shard, once the index and the shards agree.
absl::Status HfDirectory::TakeShards(const HfWeightMap& weight_map) {
  for (const auto& [tensor, file] : weight_map) {
    if (files_.at(file).Find(tensor) == nullptr) {
      return Malformed(path_, absl::StrCat("the index places tensor \"", ShownTensorName(tensor),
                                           "\" in ", file, ", which does not hold it"))
          .With("tensor", ShownTensorName(tensor))
          .With("file", file);
    }
  }
  absl::flat_hash_map<absl::string_view, absl::string_view> holder;  // of each tensor
  for (const auto& [tensor, file] : weight_map) holder[tensor] = file;
  for (const auto& [file, reader] : files_) {
    for (const SafetensorsEntry& entry : reader.header().tensors) {
      const auto [other, is_new] = holder.try_emplace(entry.name, file);
      if (other->second != file) {
        return Malformed(path_, absl::StrCat("tensor \"", ShownTensorName(entry.name),
                                             "\" is in both ", other->second, " and ", file))
            .With("tensor", ShownTensorName(entry.name));
      }
      if (is_new) {
        notes_.push_back(absl::StrCat("tensor \"", ShownTensorName(entry.name), "\" of ", file,
                                      " is not in the index; it is read all the same"));
      }
    }
    TakeTensors(file);
  }
  std::sort(notes_.begin(), notes_.end());
  return absl::OkStatus();
}

void HfDirectory::NoteIgnoredFiles(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (absl::EndsWith(name, ".safetensors") && !files_.contains(name)) {
      notes_.push_back(absl::StrCat("file ", name, " is ignored"));
    }
  }
}

const HfTensor* HfDirectory::Find(absl::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const HfTensor& tensor, absl::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

absl::Status HfDirectory::Read(const HfTensor& tensor, int64_t offset,
                               absl::Span<std::byte> destination) const {
  const SafetensorsReader& reader = files_.at(tensor.file);
  return reader.Read(*reader.Find(tensor.name), offset, destination);
}

}  // namespace planewise
