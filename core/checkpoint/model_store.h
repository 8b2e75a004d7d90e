#ifndef PLANEWISE_CORE_CHECKPOINT_MODEL_STORE_H_
#define PLANEWISE_CORE_CHECKPOINT_MODEL_STORE_H_
// The directory in which versions are durable. A version is acknowledged once
// CURRENT, which names its manifest, is on stable storage; until then nothing
// that was acknowledged before is touched. FORMAT.md has the bytes.
//
// Not here: publishing versions to readers (service/weights/), imports
// (hf_directory.h).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/store_names.h"
#include "core/checkpoint/sync_guard_file_system.h"
#include "core/checkpoint/transfer.h"
#include "core/checkpoint/version_verifier.h"
#include "core/layer/model_version.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

// kReadWrite keeps every other process out; kReadOnly keeps writers out, and
// sweeps and writes nothing.
enum class StoreAccess : uint8_t { kReadWrite, kReadOnly };

struct StoredModel {
  std::string name;
  absl::Status damage;    // DATA_LOSS with file and offset; OK: whole as far as known
  WeightVersion version;  // 0 if CURRENT itself is damaged
  // Of a manifest that is whole.
  int64_t stored_bytes = 0;
  Recipe recipe;
};

struct SaveOutcome {
  WeightVersion version;
  bool written = false;       // false: it was durable already
  int64_t written_bytes = 0;  // of all files
  std::string path;           // of the model's directory
};

// Thread-safe. Calls for different models run at the same time; calls for one
// model do too where all of them read, else the later one is refused with
// FAILED_PRECONDITION / MODEL_BUSY. All of them block on the disk: not for an
// executor that serves requests.
class ModelStore {
 public:
  // Locks `root`, makes it if kReadWrite and missing, checks every CURRENT and
  // manifest and the lengths of segments, and, with kReadWrite, sweeps what an
  // interrupted save or delete left. A damaged model is listed as such and does
  // not keep the store from opening.
  // FAILED_PRECONDITION / STORE_LOCKED; NOT_FOUND with kReadOnly if there is no
  // store; UNIMPLEMENTED if a newer format version wrote it.
  static absl::StatusOr<std::unique_ptr<ModelStore>> Open(FileSystem& file_system,
                                                          absl::string_view root,
                                                          StoreAccess access);
  ~ModelStore();

  // What Open() found and did, for the log: swept files, versions that were
  // never acknowledged, damage.
  const std::vector<std::string>& open_report() const { return open_report_; }

  // By name.
  std::vector<StoredModel> List() const;

  // NOT_FOUND; DATA_LOSS if damaged.
  absl::StatusOr<Manifest> ManifestOf(absl::string_view model) const;

  // The first of `count` (up to kReservedVersionsMax) version numbers, for all
  // models together, that no process was ever given. Durable when it returns.
  absl::StatusOr<WeightVersion> ReserveVersions(int64_t count);

  // Makes `version` durable. Does nothing if it is already.
  // ABORTED / VERSION_CONFLICT if a newer one is durable; CANCELLED;
  // RESOURCE_EXHAUSTED / STORAGE_FULL; DATA_LOSS if what is stored is damaged:
  // delete it first; FAILED_PRECONDITION / STORE_READ_ONLY after a failed sync.
  // On failure the last durable version stays.
  absl::StatusOr<SaveOutcome> Save(const ModelVersion& version,
                                   const std::vector<std::string>& request_ids,
                                   const TransferControl& control);

  // The durable version, every byte verified, in memory of MemoryUse::kWeights.
  // NOT_FOUND; DATA_LOSS with file and offset; RESOURCE_EXHAUSTED; CANCELLED.
  absl::StatusOr<ModelVersion> Load(absl::string_view model, MemoryBudget& budget,
                                    const TransferControl& control);

  // Reads every byte of the durable version, one plane in memory at a time
  // (MemoryUse::kTransient). Damage is in the report, not in the status, and is
  // what List() says from then on. NOT_FOUND; RESOURCE_EXHAUSTED; CANCELLED.
  absl::StatusOr<VerifyReport> Verify(absl::string_view model, MemoryBudget& budget,
                                      const TransferControl& control);

  // Removes every version of the model. Durable when it returns. NOT_FOUND.
  absl::Status Delete(absl::string_view model);

 private:
  class Use;
  struct Entry {
    absl::Status damage;
    WeightVersion version;
    std::shared_ptr<const Manifest> manifest;  // nullptr if it cannot be read
  };

  ModelStore(FileSystem& file_system, std::string root, StoreAccess access,
             std::unique_ptr<FileLock> lock);

  absl::Status Recover();
  absl::Status RecoverVersions(WeightVersion highest, bool is_new);
  absl::Status RaiseNextVersion(WeightVersion next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_mutex_);
  absl::Status CheckWritable() const;

  absl::StatusOr<Use> Begin(absl::string_view model, bool writes);
  void End(const std::string& model);
  std::optional<Entry> Find(absl::string_view model) const;
  absl::StatusOr<std::shared_ptr<const Manifest>> FindSound(absl::string_view model) const;
  void SetDamage(absl::string_view model, const absl::Status& damage);

  absl::StatusOr<SaveOutcome> WriteVersion(const ModelVersion& version, const Entry& durable,
                                           const std::vector<std::string>& request_ids,
                                           const TransferControl& control);

  // Every access to the disk but the lock goes through this.
  mutable SyncGuardFileSystem disk_;
  const std::string root_;
  const StoreAccess access_;
  const std::unique_ptr<FileLock> lock_;
  std::vector<std::string> open_report_;

  Mutex versions_mutex_;
  WeightVersion next_version_ ABSL_GUARDED_BY(versions_mutex_);  // as VERSIONS says

  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  static constexpr int kWriter = -1;
  absl::flat_hash_map<std::string, int> uses_ ABSL_GUARDED_BY(mutex_);  // readers, or kWriter
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_MODEL_STORE_H_
