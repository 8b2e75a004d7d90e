#ifndef PLANEWISE_CORE_CHECKPOINT_SYNC_GUARD_FILE_SYSTEM_H_
#define PLANEWISE_CORE_CHECKPOINT_SYNC_GUARD_FILE_SYSTEM_H_
// A file system that takes no writes any more once a sync or rename has failed.
// After such a failure the system may have dropped bytes it had accepted, or
// not, and what it says about them later is no evidence; a restart reads what
// really is on the disk.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"

namespace planewise {

// Thread-safe. Every failed sync or rename, and every write after it, is
// FAILED_PRECONDITION / STORE_READ_ONLY with the first failure's text. Reads
// are passed on.
class SyncGuardFileSystem final : public FileSystem {
 public:
  // `base` outlives this and every file made by it.
  explicit SyncGuardFileSystem(FileSystem& base) : base_(base) {}

  // OK while writes are taken.
  absl::Status CheckWritable() const;

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(absl::string_view path) override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status SyncDirectory(absl::string_view path) override;
  absl::StatusOr<std::vector<std::string>> List(absl::string_view path) override;
  absl::StatusOr<FileInfo> Stat(absl::string_view path) override;
  absl::StatusOr<bool> Exists(absl::string_view path) override;
  absl::Status Remove(absl::string_view path) override;
  absl::Status RemoveDirectory(absl::string_view path) override;
  absl::Status MakeDirectory(absl::string_view path) override;
  absl::StatusOr<std::string> Resolve(absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(absl::string_view path, LockMode mode) override;

 private:
  class GuardedFile;

  // Remembers the first failure of these operations; what callers get.
  absl::Status Guard(const absl::Status& status);

  FileSystem& base_;
  mutable Mutex mutex_;
  absl::Status first_failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_SYNC_GUARD_FILE_SYSTEM_H_
