#ifndef PLANEWISE_TESTS_TESTING_FAULT_FILE_SYSTEM_H_
#define PLANEWISE_TESTS_TESTING_FAULT_FILE_SYSTEM_H_
// A file system whose N-th operation fails, for every N: wrap the real or the
// in-memory one, run the code under test for N = 0, 1, ... until the fault is no
// longer reached.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file_system.h"
#include "core/base/mutex.h"

namespace planewise {

enum class Fault : uint8_t {
  kCrash,      // this operation and all later ones do nothing and fail
  kTornCrash,  // as kCrash, but a write leaves its first half behind
  kError,      // this operation does nothing and fails: UNAVAILABLE
  kLateError,  // this operation is done, and fails all the same
  kFull,       // STORAGE_FULL; a write leaves its first half. Only operations that need room fail
};

// Thread-safe. Every call is an operation, those of open files too; giving
// files and locks up is not.
class FaultFileSystem final : public FileSystem {
 public:
  // `base` outlives this.
  explicit FaultFileSystem(FileSystem& base) : base_(base) {}

  // The `count`-th operation from now on, counted from 0, has `fault`.
  void FailAfter(int64_t count, Fault fault);

  // No fault from now on; a crash stays one.
  void Heal();

  // Whether the fault of the last FailAfter() has happened, and what it hit,
  // for example `sync "/s/CURRENT.tmp"`.
  bool failed() const;
  std::string failed_operation() const;

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
  class Readable;
  class Writable;

  // What an operation is to do.
  struct Verdict {
    bool runs = true;       // on the base
    bool half = false;      // a write: its first half only
    absl::Status failure;   // what is reported if not OK, whatever the base said
  };
  Verdict Judge(absl::string_view operation, absl::string_view path, bool needs_room);

  // Runs `operation` on the base as its verdict says.
  template <typename Operation>
  auto Run(absl::string_view name, absl::string_view path, bool needs_room, Operation operation)
      -> decltype(operation());

  FileSystem& base_;
  mutable Mutex mutex_;
  int64_t operations_left_ ABSL_GUARDED_BY(mutex_) = -1;  // until the fault; -1: none
  Fault fault_ ABSL_GUARDED_BY(mutex_) = Fault::kError;
  bool crashed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string failed_operation_ ABSL_GUARDED_BY(mutex_);  // empty: not yet
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_FAULT_FILE_SYSTEM_H_
