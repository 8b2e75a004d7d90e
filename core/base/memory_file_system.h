#ifndef PLANEWISE_CORE_BASE_MEMORY_FILE_SYSTEM_H_
#define PLANEWISE_CORE_BASE_MEMORY_FILE_SYSTEM_H_
// A complete file system in memory that knows what is durable: Crash() takes it
// back to what a machine finds after a power loss.
//
// Not here: failing operations (tests/testing/fault_file_system.h).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file_system.h"
#include "core/base/mutex.h"

namespace planewise {

// What a crash leaves of changes that were not synced. kTorn: of each
// directory's changes the first few, of each file's new bytes the first few,
// the rest missing or zeros; how many is drawn from a seed.
enum class Unsynced : uint8_t { kLost, kKept, kTorn };

// Thread-safe. Has a root directory "/"; relative paths begin there. Knows no
// links and no permissions.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // As if the machine lost power: open files answer UNAVAILABLE from now on,
  // locks are free, and what was not synced fares as `unsynced` says.
  void Crash(Unsynced unsynced, uint64_t seed);

  // A file's bytes, and a change of them behind everybody's back, durable at
  // once: what a bad disk does. The file must exist.
  std::string Contents(absl::string_view path) const;
  void SetContents(absl::string_view path, std::string bytes);

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
  struct Node;
  struct State;
  class Readable;
  class Writable;
  class HeldLock;

  // Shared with open files, which may outlive the file system.
  const std::shared_ptr<State> state_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_MEMORY_FILE_SYSTEM_H_
