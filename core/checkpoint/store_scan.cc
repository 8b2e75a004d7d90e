#include "core/checkpoint/store_scan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/damage.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/manifest_codec.h"
#include "core/checkpoint/store_pointer.h"
#include "core/checkpoint/streaming_checksum.h"

namespace planewise {
namespace {

// Names in a directory that may be missing.
absl::StatusOr<std::vector<std::string>> ListIfThere(FileSystem& file_system,
                                                     const std::string& path) {
  absl::StatusOr<std::vector<std::string>> names = file_system.List(path);
  if (ReasonOf(names.status()) == Reason::kNotFound) return std::vector<std::string>();
  return names;
}

absl::StatusOr<std::shared_ptr<const Manifest>> ReadManifest(FileSystem& file_system,
                                                             const ModelPaths& paths,
                                                             absl::string_view model,
                                                             const CurrentPointer& current) {
  const std::string path = JoinPath(paths.manifests, ManifestFileName(current.version));
  const absl::StatusOr<std::string> bytes = ReadWholeFile(file_system, path, kManifestBytesMax);
  if (ReasonOf(bytes.status()) == Reason::kNotFound) {
    return Damage(Reason::kCorruptFile, path, 0, "CURRENT names this file, and it is missing");
  }
  PW_RETURN_IF_ERROR(bytes.status());
  PW_ASSIGN_OR_RETURN(Manifest manifest, DecodeManifest(path, *bytes));
  if (static_cast<int64_t>(bytes->size()) != current.manifest_bytes ||
      ChecksumOf(BytesOf(*bytes)) != current.manifest_checksum || manifest.model != model ||
      manifest.version != current.version) {
    return Damage(Reason::kChecksumMismatch, path, 0, "it is not the file that CURRENT names");
  }
  return std::make_shared<const Manifest>(std::move(manifest));
}

absl::Status CheckSegmentLengths(FileSystem& file_system, const ModelPaths& paths,
                                 const Manifest& manifest) {
  for (const StoredSegment& segment : manifest.segments) {
    const std::string path = JoinPath(paths.segments, segment.file);
    const absl::StatusOr<FileInfo> info = file_system.Stat(path);
    if (ReasonOf(info.status()) == Reason::kNotFound) {
      return Damage(Reason::kCorruptFile, path, 0, "the file is missing");
    }
    PW_RETURN_IF_ERROR(info.status());
    if (info->size_bytes != segment.file_bytes) {
      return Damage(Reason::kCorruptFile, path, std::min(info->size_bytes, segment.file_bytes),
                    absl::StrCat("it has ", info->size_bytes, " bytes; ", segment.file_bytes,
                                 " were written"));
    }
  }
  return absl::OkStatus();
}

// CURRENT is written before any other file of a model and removed after all of
// them: where it is missing beside others, it was lost.
absl::StatusOr<CurrentPointer> ReadCurrent(FileSystem& file_system, const ModelPaths& paths,
                                           WeightVersion highest) {
  const absl::StatusOr<std::string> bytes =
      ReadWholeFile(file_system, paths.current, kPointerBytesMax);
  if (ReasonOf(bytes.status()) == Reason::kNotFound) {
    if (highest == WeightVersion()) return CurrentPointer();
    return Damage(Reason::kCorruptFile, paths.current, 0,
                  absl::StrCat("the file is missing, but there are files of versions up to ",
                               highest.value()));
  }
  PW_RETURN_IF_ERROR(bytes.status());
  return DecodeCurrent(paths.current, *bytes);
}

// Fills what is known of a model besides its name. `highest`: of its files.
absl::Status ReadModel(FileSystem& file_system, const ModelPaths& paths, WeightVersion highest,
                       ScannedModel& model) {
  PW_ASSIGN_OR_RETURN(const CurrentPointer current, ReadCurrent(file_system, paths, highest));
  model.version = current.version;
  if (model.version == WeightVersion()) return absl::OkStatus();
  PW_ASSIGN_OR_RETURN(model.manifest, ReadManifest(file_system, paths, model.name, current));
  return CheckSegmentLengths(file_system, paths, *model.manifest);
}

absl::StatusOr<WeightVersion> HighestVersion(FileSystem& file_system, const ModelPaths& paths) {
  WeightVersion highest;
  PW_ASSIGN_OR_RETURN(const std::vector<std::string> manifests,
                      ListIfThere(file_system, paths.manifests));
  for (const std::string& name : manifests) {
    highest = std::max(highest, VersionOfManifestFile(name).value_or(WeightVersion()));
  }
  PW_ASSIGN_OR_RETURN(const std::vector<std::string> segments,
                      ListIfThere(file_system, paths.segments));
  for (const std::string& name : segments) {
    highest = std::max(highest, VersionOfSegmentFile(name).value_or(WeightVersion()));
  }
  return highest;
}

// Removes the files of `directory` that `is_swept` picks, then syncs it.
absl::Status SweepFiles(FileSystem& file_system, const std::string& directory,
                        absl::FunctionRef<bool(absl::string_view name)> is_swept,
                        std::vector<std::string>& report) {
  PW_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListIfThere(file_system, directory));
  bool removed = false;
  for (const std::string& name : names) {
    if (!is_swept(name)) continue;
    const std::string path = JoinPath(directory, name);
    PW_RETURN_IF_ERROR(file_system.Remove(path));
    report.push_back(absl::StrCat("swept \"", path, "\": it was never acknowledged"));
    removed = true;
  }
  return removed ? file_system.SyncDirectory(directory) : absl::OkStatus();
}

// False if files that are not ours keep the directory.
absl::StatusOr<bool> RemoveIfEmpty(FileSystem& file_system, const std::string& directory,
                                   std::vector<std::string>& report) {
  const absl::Status removed = file_system.RemoveDirectory(directory);
  if (removed.ok() || ReasonOf(removed) == Reason::kNotFound) return true;
  if (ReasonOf(removed) != Reason::kInvalidRequest) return removed;
  report.push_back(absl::StrCat("kept \"", directory, "\": it holds files of somebody else"));
  return false;
}

bool IsTemporary(absl::string_view name) { return absl::EndsWith(name, kTemporarySuffix); }

}  // namespace

absl::StatusOr<StoreScan> ScanStore(FileSystem& file_system, absl::string_view root) {
  StoreScan scan;
  PW_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      file_system.List(JoinPath(root, kModelsDirectory)));
  for (const std::string& name : names) {
    if (!CheckModelName(name).ok()) {
      scan.report.push_back(absl::StrCat("ignored \"", name, "\" among models: no model's name"));
      continue;
    }
    const ModelPaths paths(root, name);
    ScannedModel model;
    model.name = name;
    PW_ASSIGN_OR_RETURN(const WeightVersion highest, HighestVersion(file_system, paths));
    model.damage = ReadModel(file_system, paths, highest, model);
    if (ReasonOf(model.damage) == Reason::kNotSupported) return model.damage;
    scan.highest_version = std::max({scan.highest_version, highest, model.version});
    if (!model.damage.ok()) {
      scan.report.push_back(absl::StrCat("model \"", name, "\": ", model.damage.message()));
    } else if (highest > model.version) {
      scan.report.push_back(absl::StrCat("model \"", name, "\": version ", highest.value(),
                                         " was begun but never acknowledged; version ",
                                         model.version.value(), " stands"));
    }
    scan.models.push_back(std::move(model));
  }
  return scan;
}

absl::Status SweepUnacknowledged(FileSystem& file_system, const ModelPaths& paths,
                                 WeightVersion current, std::vector<std::string>& report) {
  PW_RETURN_IF_ERROR(SweepFiles(file_system, paths.directory, IsTemporary, report));
  PW_RETURN_IF_ERROR(SweepFiles(
      file_system, paths.manifests,
      [&](absl::string_view name) {
        return IsTemporary(name) || VersionOfManifestFile(name).value_or(current) > current;
      },
      report));
  return SweepFiles(
      file_system, paths.segments,
      [&](absl::string_view name) {
        return IsTemporary(name) || VersionOfSegmentFile(name).value_or(current) > current;
      },
      report);
}

absl::Status SweepModel(FileSystem& file_system, const ModelPaths& paths,
                        std::vector<std::string>& report) {
  PW_RETURN_IF_ERROR(SweepUnacknowledged(file_system, paths, WeightVersion(), report));
  for (const std::string& directory : {paths.manifests, paths.segments}) {
    PW_ASSIGN_OR_RETURN(const bool removed, RemoveIfEmpty(file_system, directory, report));
    if (!removed) return absl::OkStatus();
  }
  PW_ASSIGN_OR_RETURN(const bool has_current, file_system.Exists(paths.current));
  if (has_current) PW_RETURN_IF_ERROR(file_system.Remove(paths.current));
  PW_RETURN_IF_ERROR(file_system.SyncDirectory(paths.directory));
  PW_RETURN_IF_ERROR(RemoveIfEmpty(file_system, paths.directory, report).status());
  return file_system.SyncDirectory(DirectoryOf(paths.directory));
}

}  // namespace planewise
