#ifndef PLANEWISE_CORE_BASE_FILE_SYSTEM_H_
#define PLANEWISE_CORE_BASE_FILE_SYSTEM_H_
// The one seam to the disk: everything that reads or writes files takes a
// FileSystem. Reads are positioned and never mapped; durability is explicit:
// bytes survive a power loss after WritableFile::Sync, names (create, rename,
// remove, make directory) after SyncDirectory of the directory that holds them.
//
// Failures, everywhere: NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED / STORAGE_FULL, else UNAVAILABLE with the system's text;
// each names the operation and the path.
//
// Not here: the system's implementation (posix_file_system.h), the double
// (memory_file_system.h), injected faults (tests/testing/fault_file_system.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace planewise {

// An open file for positioned reads. Thread-safe. Closed by its destructor.
// Stays readable after its name is removed or renamed over.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // Bytes in the file now.
  virtual absl::StatusOr<int64_t> SizeBytes() const = 0;

  // Fills `destination` from `offset` on, whole.
  // DATA_LOSS / CORRUPT_FILE if the file ends before that.
  virtual absl::Status Read(int64_t offset, absl::Span<std::byte> destination) const = 0;
};

// A new file, written front to back. One thread. The destructor closes without
// a report: call Close() where the bytes matter.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Reserves room for a file of `size_bytes`, so that a full disk shows before
  // anything is written, where the file system can. Before the first Append,
  // and exactly so many bytes must follow: the file has this size already.
  virtual absl::Status Preallocate(int64_t size_bytes) = 0;

  // Writes all of `data` at the end. On failure part of it may be there.
  virtual absl::Status Append(absl::Span<const std::byte> data) = 0;

  // Returns once all bytes and the size are on stable storage. Never retry a
  // failure: the system may have dropped the bytes it could not write.
  virtual absl::Status Sync() = 0;

  // No call but the destructor's after it, whatever it returns.
  virtual absl::Status Close() = 0;
};

enum class LockMode : uint8_t { kShared, kExclusive };

// Held until destroyed, or until the process ends in any way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FileInfo {
  bool is_directory = false;
  int64_t size_bytes = 0;  // 0 for a directory

  bool operator==(const FileInfo&) const = default;
};

// Thread-safe. Paths are separated by '/'; links are followed.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(absl::string_view path) = 0;

  // A new, empty file. ALREADY_EXISTS if the name is taken.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(absl::string_view path) = 0;

  // Replaces `to` atomically if it exists. Both lie in the same directory, else
  // INVALID_ARGUMENT: one SyncDirectory then makes the rename durable.
  virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;

  // Makes the names in directory `path` durable as they are now. Never retry a
  // failure.
  virtual absl::Status SyncDirectory(absl::string_view path) = 0;

  // Names in directory `path`, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(absl::string_view path) = 0;

  virtual absl::StatusOr<FileInfo> Stat(absl::string_view path) = 0;

  // False if there is nothing of that name; other failures are failures.
  virtual absl::StatusOr<bool> Exists(absl::string_view path) = 0;

  // Removes a file. NOT_FOUND if there is none.
  virtual absl::Status Remove(absl::string_view path) = 0;

  // Removes an empty directory. INVALID_ARGUMENT if it is not empty.
  virtual absl::Status RemoveDirectory(absl::string_view path) = 0;

  // ALREADY_EXISTS if the name is taken, NOT_FOUND if its parent is missing.
  virtual absl::Status MakeDirectory(absl::string_view path) = 0;

  // The absolute path of an existing file or directory with every link
  // followed and no "." or "..".
  virtual absl::StatusOr<std::string> Resolve(absl::string_view path) = 0;

  // Locks the file `path` for this FileLock against every other, in this
  // process too. kExclusive makes the file if it is missing, kShared answers
  // NOT_FOUND. Never waits: FAILED_PRECONDITION / STORE_LOCKED if it is held.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(absl::string_view path,
                                                         LockMode mode) = 0;
};

// All of a small file. INVALID_ARGUMENT / LIMIT_EXCEEDED if it is larger than
// `limit_bytes`.
absl::StatusOr<std::string> ReadWholeFile(FileSystem& file_system, absl::string_view path,
                                          int64_t limit_bytes);

// The bytes of a text, and a text's bytes to read into.
inline absl::Span<const std::byte> BytesOf(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline absl::Span<std::byte> MutableBytesOf(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

// "a/b" from "a" and "b"; one '/' between them.
std::string JoinPath(absl::string_view directory, absl::string_view name);

// What lies before and after the last '/': "." and the whole path if none.
std::string DirectoryOf(absl::string_view path);
std::string NameOf(absl::string_view path);

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_FILE_SYSTEM_H_
