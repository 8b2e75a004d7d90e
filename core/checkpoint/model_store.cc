#include "core/checkpoint/model_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/durable_write.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/live_parts.h"
#include "core/checkpoint/manifest_codec.h"
#include "core/checkpoint/segment_writer.h"
#include "core/checkpoint/store_names.h"
#include "core/checkpoint/store_pointer.h"
#include "core/checkpoint/store_scan.h"
#include "core/checkpoint/streaming_checksum.h"
#include "core/checkpoint/version_loader.h"

namespace planewise {
namespace {

// Where VERSIONS is lost, the next number is put behind this many that may have
// been given out after the last save. A process takes at most
// kReservedVersionsMax at a time, so so many are out of reach.
constexpr uint64_t kVersionsSkippedWhenLost = uint64_t{1} << 32;

std::string WithoutTrailingSlashes(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path);
}

std::string Quoted(absl::string_view model) { return absl::StrCat("model \"", model, "\""); }

}  // namespace

// A model in use. While a use that writes is on, there is no other.
class ModelStore::Use {
 public:
  Use(ModelStore& store, std::string model) : store_(&store), model_(std::move(model)) {}
  Use(Use&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), model_(std::move(other.model_)) {}
  ~Use() {
    if (store_ != nullptr) store_->End(model_);
  }

 private:
  ModelStore* store_;
  std::string model_;
};

ModelStore::ModelStore(FileSystem& file_system, std::string root, StoreAccess access,
                       std::unique_ptr<FileLock> lock)
    : disk_(file_system), root_(std::move(root)), access_(access), lock_(std::move(lock)) {}

ModelStore::~ModelStore() = default;

absl::StatusOr<std::unique_ptr<ModelStore>> ModelStore::Open(FileSystem& file_system,
                                                             absl::string_view root,
                                                             StoreAccess access) {
  const std::string path = WithoutTrailingSlashes(root);
  const bool writes = access == StoreAccess::kReadWrite;
  if (writes) PW_RETURN_IF_ERROR(MakeDirectoryDurably(file_system, path));
  absl::StatusOr<std::unique_ptr<FileLock>> lock =
      file_system.Lock(JoinPath(path, kLockFile),
                       writes ? LockMode::kExclusive : LockMode::kShared);
  if (!writes && ReasonOf(lock.status()) == Reason::kNotFound) {
    return Error(Reason::kNotFound, absl::StrCat("there is no store at \"", path, "\""))
        .With("path", path);
  }
  if (ReasonOf(lock.status()) == Reason::kStoreLocked) {
    return Annotate(lock.status(), absl::StrCat("store \"", path, "\" is in use"));
  }
  PW_RETURN_IF_ERROR(lock.status());
  std::unique_ptr<ModelStore> store(
      new ModelStore(file_system, path, access, *std::move(lock)));
  PW_RETURN_IF_ERROR(store->Recover());
  return store;
}

absl::Status ModelStore::Recover() {
  const bool writes = access_ == StoreAccess::kReadWrite;
  if (writes) PW_RETURN_IF_ERROR(MakeDirectoryDurably(disk_, JoinPath(root_, kModelsDirectory)));
  PW_ASSIGN_OR_RETURN(StoreScan scan, ScanStore(disk_, root_));
  open_report_ = std::move(scan.report);
  // Before anything is swept: swept names are evidence of numbers given out.
  if (writes) PW_RETURN_IF_ERROR(RecoverVersions(scan.highest_version, scan.models.empty()));
  for (ScannedModel& model : scan.models) {
    const ModelPaths paths(root_, model.name);
    absl::Status swept;
    if (writes && model.unacknowledged()) {
      swept = SweepModel(disk_, paths, open_report_);
    } else if (writes && model.damage.ok()) {
      swept = SweepUnacknowledged(disk_, paths, model.version, open_report_);
    }
    // Not fatal: a save sweeps before it begins.
    if (!swept.ok()) open_report_.push_back(absl::StrCat("sweep failed: ", swept.message()));
    if (model.unacknowledged()) continue;
    MutexLock lock(mutex_);
    entries_[model.name] = {model.damage, model.version, std::move(model.manifest)};
  }
  return absl::OkStatus();
}

absl::Status ModelStore::RecoverVersions(WeightVersion highest, bool is_new) {
  const std::string path = JoinPath(root_, kVersionsFile);
  absl::StatusOr<WeightVersion> next = WeightVersion(1);
  const absl::StatusOr<std::string> bytes = ReadWholeFile(disk_, path, kPointerBytesMax);
  if (bytes.ok()) {
    next = DecodeVersions(path, *bytes);
  } else if (ReasonOf(bytes.status()) != Reason::kNotFound || !is_new) {
    next = bytes.status();
  }
  if (ReasonOf(next.status()) == Reason::kNotSupported) return next.status();
  MutexLock lock(versions_mutex_);
  if (!next.ok()) {
    const uint64_t block = highest.value() / kVersionsSkippedWhenLost;
    next_version_ = WeightVersion((block + 2) * kVersionsSkippedWhenLost);
    open_report_.push_back(absl::StrCat("version numbers go on at ", next_version_.value(),
                                        ", because the record of those given out is lost: ",
                                        next.status().message()));
    return WriteDurably(disk_, path, EncodeVersions(next_version_));
  }
  next_version_ = std::max(*next, highest.Next());
  if (bytes.ok() && next_version_ == *next) return absl::OkStatus();
  return WriteDurably(disk_, path, EncodeVersions(next_version_));
}

absl::Status ModelStore::CheckWritable() const {
  if (access_ == StoreAccess::kReadOnly) {
    return Error(Reason::kStoreReadOnly,
                 absl::StrCat("store \"", root_, "\" was opened for reading only"));
  }
  return disk_.CheckWritable();
}

absl::StatusOr<ModelStore::Use> ModelStore::Begin(absl::string_view model, bool writes) {
  MutexLock lock(mutex_);
  int& uses = uses_[model];
  if (uses == kWriter || (writes && uses > 0)) {
    return Error(Reason::kModelBusy, absl::StrCat(Quoted(model), " is being ",
                                                  uses == kWriter ? "saved or deleted"
                                                                  : "loaded or verified",
                                                  ": try again when that has ended"))
        .With("model", model);
  }
  uses = writes ? kWriter : uses + 1;
  return Use(*this, std::string(model));
}

void ModelStore::End(const std::string& model) {
  MutexLock lock(mutex_);
  const auto uses = uses_.find(model);
  if (uses->second > 1) {
    --uses->second;
  } else {
    uses_.erase(uses);
  }
}

std::optional<ModelStore::Entry> ModelStore::Find(absl::string_view model) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(std::string(model));
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<std::shared_ptr<const Manifest>> ModelStore::FindSound(
    absl::string_view model) const {
  const std::optional<Entry> entry = Find(model);
  if (!entry) {
    return Error(Reason::kNotFound, absl::StrCat(Quoted(model), " is not in the store"))
        .With("model", model);
  }
  if (!entry->damage.ok()) return Annotate(entry->damage, Quoted(model));
  return entry->manifest;
}

void ModelStore::SetDamage(absl::string_view model, const absl::Status& damage) {
  MutexLock lock(mutex_);
  entries_.at(std::string(model)).damage = damage;
}

std::vector<StoredModel> ModelStore::List() const {
  MutexLock lock(mutex_);
  std::vector<StoredModel> models;
  for (const auto& [name, entry] : entries_) {
    StoredModel& model = models.emplace_back();
    model.name = name;
    model.damage = entry.damage;
    model.version = entry.version;
    if (entry.manifest == nullptr) continue;
    model.stored_bytes = entry.manifest->stored_bytes();
    model.recipe = entry.manifest->recipe;
  }
  return models;
}

absl::StatusOr<Manifest> ModelStore::ManifestOf(absl::string_view model) const {
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<const Manifest> manifest, FindSound(model));
  return *manifest;
}

absl::StatusOr<WeightVersion> ModelStore::ReserveVersions(int64_t count) {
  if (count < 1 || count > kReservedVersionsMax) {
    return Error(Reason::kInvalidRequest, absl::StrCat("reservation of ", count,
                                                       " version numbers; 1 to ",
                                                       kReservedVersionsMax, " are allowed"));
  }
  PW_RETURN_IF_ERROR(CheckWritable());
  MutexLock lock(versions_mutex_);
  const WeightVersion first = next_version_;
  PW_RETURN_IF_ERROR(RaiseNextVersion(WeightVersion(first.value() + static_cast<uint64_t>(count))));
  return first;
}

// No number below `next` is given out any more.
absl::Status ModelStore::RaiseNextVersion(WeightVersion next) {
  if (next <= next_version_) return absl::OkStatus();
  PW_RETURN_IF_ERROR(
      WriteDurably(disk_, JoinPath(root_, kVersionsFile), EncodeVersions(next)));
  next_version_ = next;
  return absl::OkStatus();
}

absl::StatusOr<SaveOutcome> ModelStore::Save(const ModelVersion& version,
                                             const std::vector<std::string>& request_ids,
                                             const TransferControl& control) {
  PW_RETURN_IF_ERROR(CheckModelName(version.model));
  if (version.version == WeightVersion()) {
    return Error(Reason::kInternal,
                 absl::StrCat(Quoted(version.model), ": version 0 is no version"));
  }
  PW_RETURN_IF_ERROR(CheckWritable());
  PW_ASSIGN_OR_RETURN(const Use use, Begin(version.model, /*writes=*/true));
  const Entry durable = Find(version.model).value_or(Entry());
  if (!durable.damage.ok()) return Annotate(durable.damage, Quoted(version.model));
  const ModelPaths paths(root_, version.model);
  if (durable.version == version.version) {
    return SaveOutcome{version.version, /*written=*/false, 0, paths.directory};
  }
  if (durable.version > version.version) {
    return Error(Reason::kVersionConflict,
                 absl::StrCat("save of ", Quoted(version.model), ": version ",
                              version.version.value(), " is older than the durable version ",
                              durable.version.value()))
        .With("observedVersion", static_cast<int64_t>(version.version.value()))
        .With("currentVersion", static_cast<int64_t>(durable.version.value()));
  }
  absl::StatusOr<SaveOutcome> outcome = WriteVersion(version, durable, request_ids, control);
  if (outcome.ok()) return outcome;
  // What cannot be swept now is swept before the next save, or at start-up.
  std::vector<std::string> swept;
  (durable.version == WeightVersion() ? SweepModel(disk_, paths, swept)
                                      : SweepUnacknowledged(disk_, paths, durable.version, swept))
      .IgnoreError();
  return Annotate(outcome.status(), absl::StrCat("save of ", Quoted(version.model)));
}

// The protocol of FORMAT.md, "Saving". `durable` is acknowledged so far.
absl::StatusOr<SaveOutcome> ModelStore::WriteVersion(const ModelVersion& version,
                                                     const Entry& durable,
                                                     const std::vector<std::string>& request_ids,
                                                     const TransferControl& control) {
  const ModelPaths paths(root_, version.model);
  {
    MutexLock lock(versions_mutex_);
    PW_RETURN_IF_ERROR(RaiseNextVersion(version.version.Next()));
  }
  PW_RETURN_IF_ERROR(MakeDirectoryDurably(disk_, paths.directory));
  if (durable.version == WeightVersion()) {
    PW_RETURN_IF_ERROR(WriteDurably(disk_, paths.current, EncodeCurrent(CurrentPointer())));
  }
  PW_RETURN_IF_ERROR(MakeDirectoryDurably(disk_, paths.manifests));
  PW_RETURN_IF_ERROR(MakeDirectoryDurably(disk_, paths.segments));
  std::vector<std::string> swept;
  PW_RETURN_IF_ERROR(SweepUnacknowledged(disk_, paths, durable.version, swept));

  TransferMeter meter(control, absl::StrCat("save of ", Quoted(version.model)),
                      version.stored_bytes());
  PW_ASSIGN_OR_RETURN(const StoredParts stored,
                      WriteSegments(disk_, paths.segments, version.version, LivePartsOf(version),
                                    kSegmentBytesTarget, meter));
  auto manifest = std::make_shared<const Manifest>(DescribeVersion(version, request_ids, stored));
  const std::string manifest_bytes = EncodeManifest(*manifest);
  const std::string manifest_path =
      JoinPath(paths.manifests, ManifestFileName(version.version));
  // A version that could not be read back must not become durable.
  const absl::StatusOr<Manifest> read_back = DecodeManifest(manifest_path, manifest_bytes);
  if (!read_back.ok() || *read_back != *manifest) {
    return Error(Reason::kInternal,
                 absl::StrCat("the version breaks a rule of the store: ",
                              read_back.status().message()));
  }
  PW_RETURN_IF_ERROR(WriteDurably(disk_, manifest_path, manifest_bytes));
  const std::string current_bytes =
      EncodeCurrent({version.version, static_cast<int64_t>(manifest_bytes.size()),
                     ChecksumOf(BytesOf(manifest_bytes))});
  PW_RETURN_IF_ERROR(WriteDurably(disk_, paths.current, current_bytes));

  SaveOutcome outcome{version.version, /*written=*/true,
                      static_cast<int64_t>(manifest_bytes.size() + current_bytes.size()),
                      paths.directory};
  for (const StoredSegment& segment : stored.segments) outcome.written_bytes += segment.file_bytes;
  MutexLock lock(mutex_);
  entries_[version.model] = {absl::OkStatus(), version.version, std::move(manifest)};
  return outcome;
}

absl::StatusOr<ModelVersion> ModelStore::Load(absl::string_view model, MemoryBudget& budget,
                                              const TransferControl& control) {
  PW_ASSIGN_OR_RETURN(const Use use, Begin(model, /*writes=*/false));
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<const Manifest> manifest, FindSound(model));
  absl::StatusOr<ModelVersion> version =
      LoadVersion(disk_, ModelPaths(root_, model).segments, *manifest, budget, control);
  if (version.ok()) return version;
  if (version.status().code() == absl::StatusCode::kDataLoss) SetDamage(model, version.status());
  return Annotate(version.status(), absl::StrCat("load of ", Quoted(model)));
}

absl::StatusOr<VerifyReport> ModelStore::Verify(absl::string_view model, MemoryBudget& budget,
                                                const TransferControl& control) {
  PW_ASSIGN_OR_RETURN(const Use use, Begin(model, /*writes=*/false));
  const std::optional<Entry> entry = Find(model);
  if (!entry || entry->manifest == nullptr) {
    // Nothing to compare bytes with: what is known already is the report.
    const absl::Status known = FindSound(model).status();
    if (known.code() != absl::StatusCode::kDataLoss) return known;
    VerifyReport report;
    report.findings.push_back(FindingOf(std::string(model), known));
    report.damage = known;
    return report;
  }
  PW_ASSIGN_OR_RETURN(VerifyReport report, VerifyVersion(disk_, ModelPaths(root_, model).segments,
                                                         *entry->manifest, budget, control));
  SetDamage(model, report.damage);
  return report;
}

absl::Status ModelStore::Delete(absl::string_view model) {
  PW_RETURN_IF_ERROR(CheckWritable());
  PW_ASSIGN_OR_RETURN(const Use use, Begin(model, /*writes=*/true));
  if (!Find(model)) {
    return Error(Reason::kNotFound, absl::StrCat(Quoted(model), " is not in the store"))
        .With("model", model);
  }
  const ModelPaths paths(root_, model);
  PW_RETURN_IF_ERROR(WriteDurably(disk_, paths.current, EncodeCurrent(CurrentPointer())));
  {
    MutexLock lock(mutex_);
    entries_.erase(std::string(model));
  }
  // It is gone for good already; what this leaves is swept at start-up.
  std::vector<std::string> swept;
  SweepModel(disk_, paths, swept).IgnoreError();
  return absl::OkStatus();
}

}  // namespace planewise
