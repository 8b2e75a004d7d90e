#include "core/base/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

// Data directories may hold private weights: nobody but the owner.
constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;

// Appended bytes after which the kernel is told to start writing them out, so
// that the disk works during the writing and not only in Sync().
constexpr int64_t kWriteOutBytes = 8 << 20;

Reason ReasonFor(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return Reason::kNotFound;
    case EEXIST: return Reason::kAlreadyExists;
    case EACCES:
    case EPERM: return Reason::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return Reason::kStorageFull;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOTEMPTY: return Reason::kInvalidRequest;
    default: return Reason::kUnavailable;
  }
}

absl::Status SystemError(absl::string_view operation, absl::string_view path, int error) {
  return Error(ReasonFor(error), absl::StrCat(operation, " \"", path, "\": ", strerror(error)))
      .With("file", path);
}

// An open descriptor, closed when destroyed.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

absl::StatusOr<Descriptor> Open(absl::string_view operation, const std::string& path, int flags) {
  int number;
  do {
    number = open(path.c_str(), flags | O_CLOEXEC, kFileMode);
  } while (number < 0 && errno == EINTR);
  if (number < 0) return SystemError(operation, path, errno);
  return Descriptor(number);
}

absl::StatusOr<FileInfo> InfoOf(const std::string& path, int stat_result, const struct stat& info) {
  if (stat_result != 0) return SystemError("stat", path, errno);
  if (S_ISDIR(info.st_mode)) return FileInfo{true, 0};
  if (S_ISREG(info.st_mode)) return FileInfo{false, info.st_size};
  // A pipe or device would block or never end.
  return Error(Reason::kInvalidRequest,
               absl::StrCat("\"", path, "\" is neither a regular file nor a directory"))
      .With("file", path);
}

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  absl::StatusOr<int64_t> SizeBytes() const override {
    struct stat info;
    const int result = fstat(descriptor_.number(), &info);
    PW_ASSIGN_OR_RETURN(const FileInfo facts, InfoOf(path_, result, info));
    return facts.size_bytes;
  }

  absl::Status Read(int64_t offset, absl::Span<std::byte> destination) const override {
    while (!destination.empty()) {
      const ssize_t count =
          pread(descriptor_.number(), destination.data(), destination.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError("read", path_, errno);
      if (count == 0) {
        return Error(Reason::kCorruptFile,
                     absl::StrCat("\"", path_, "\" ends at byte ", offset, "; ",
                                  destination.size(), " more bytes were expected"))
            .With("file", path_)
            .With("byteOffset", offset);
      }
      destination.remove_prefix(static_cast<size_t>(count));
      offset += count;
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const Descriptor descriptor_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  absl::Status Preallocate(int64_t size_bytes) override {
    if (size_bytes == 0) return absl::OkStatus();
    int result;
    do {
      result = fallocate(descriptor_.number(), 0, 0, size_bytes);
    } while (result != 0 && errno == EINTR);
    // Where the file system cannot, a full disk shows in Append().
    return result == 0 || errno == EOPNOTSUPP ? absl::OkStatus()
                                              : SystemError("preallocate", path_, errno);
  }

  absl::Status Append(absl::Span<const std::byte> data) override {
    while (!data.empty()) {
      const ssize_t count = write(descriptor_.number(), data.data(), data.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError("write", path_, errno);
      data.remove_prefix(static_cast<size_t>(count));
      written_bytes_ += count;
    }
    if (written_bytes_ - written_out_bytes_ >= kWriteOutBytes) {
      // A hint: Sync() reports what goes wrong.
      (void)sync_file_range(descriptor_.number(), written_out_bytes_,
                            written_bytes_ - written_out_bytes_, SYNC_FILE_RANGE_WRITE);
      written_out_bytes_ = written_bytes_;
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    // Not retried on EINTR either: what a failed fsync dropped stays dropped.
    return fsync(descriptor_.number()) == 0 ? absl::OkStatus()
                                            : SystemError("sync", path_, errno);
  }

  absl::Status Close() override {
    // On Linux the descriptor is gone whatever close() returns.
    return close(descriptor_.Release()) == 0 || errno == EINTR
               ? absl::OkStatus()
               : SystemError("close", path_, errno);
  }

 private:
  const std::string path_;
  Descriptor descriptor_;
  int64_t written_bytes_ = 0;
  int64_t written_out_bytes_ = 0;
};

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const Descriptor descriptor_;  // Closing it gives the lock up.
};

class PosixFileSystemImpl final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(absl::string_view path) override {
    const std::string name(path);
    // O_NONBLOCK: opening a pipe must not wait for a writer.
    PW_ASSIGN_OR_RETURN(Descriptor descriptor, Open("open", name, O_RDONLY | O_NONBLOCK));
    struct stat info;
    const int result = fstat(descriptor.number(), &info);
    PW_ASSIGN_OR_RETURN(const FileInfo facts, InfoOf(name, result, info));
    if (facts.is_directory) return SystemError("open", name, EISDIR);
    return std::make_unique<PosixReadableFile>(name, std::move(descriptor));
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(absl::string_view path) override {
    const std::string name(path);
    PW_ASSIGN_OR_RETURN(Descriptor descriptor,
                        Open("create", name, O_WRONLY | O_CREAT | O_EXCL));
    return std::make_unique<PosixWritableFile>(name, std::move(descriptor));
  }

  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    if (DirectoryOf(from) != DirectoryOf(to)) {
      return Error(Reason::kInvalidRequest, absl::StrCat("rename \"", from, "\" to \"", to,
                                                         "\": not in the same directory"));
    }
    if (rename(std::string(from).c_str(), std::string(to).c_str()) != 0) {
      return SystemError("rename", from, errno);
    }
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(absl::string_view path) override {
    const std::string name(path);
    PW_ASSIGN_OR_RETURN(const Descriptor descriptor,
                        Open("sync directory", name, O_RDONLY | O_DIRECTORY));
    return fsync(descriptor.number()) == 0 ? absl::OkStatus()
                                           : SystemError("sync directory", name, errno);
  }

  absl::StatusOr<std::vector<std::string>> List(absl::string_view path) override {
    const std::string name(path);
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(name.c_str()), closedir);
    if (directory == nullptr) return SystemError("list", name, errno);
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = readdir(directory.get());
      if (entry == nullptr) break;
      const absl::string_view entry_name = entry->d_name;
      if (entry_name != "." && entry_name != "..") names.emplace_back(entry_name);
    }
    if (errno != 0) return SystemError("list", name, errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<FileInfo> Stat(absl::string_view path) override {
    const std::string name(path);
    struct stat info;
    const int result = stat(name.c_str(), &info);
    return InfoOf(name, result, info);
  }

  absl::StatusOr<bool> Exists(absl::string_view path) override {
    struct stat info;
    if (stat(std::string(path).c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return SystemError("stat", path, errno);
  }

  absl::Status Remove(absl::string_view path) override {
    return unlink(std::string(path).c_str()) == 0 ? absl::OkStatus()
                                                  : SystemError("remove", path, errno);
  }

  absl::Status RemoveDirectory(absl::string_view path) override {
    return rmdir(std::string(path).c_str()) == 0 ? absl::OkStatus()
                                                 : SystemError("remove directory", path, errno);
  }

  absl::Status MakeDirectory(absl::string_view path) override {
    return mkdir(std::string(path).c_str(), kDirectoryMode) == 0
               ? absl::OkStatus()
               : SystemError("make directory", path, errno);
  }

  absl::StatusOr<std::string> Resolve(absl::string_view path) override {
    const std::unique_ptr<char, void (*)(void*)> resolved(
        realpath(std::string(path).c_str(), nullptr), std::free);
    if (resolved == nullptr) return SystemError("resolve", path, errno);
    return std::string(resolved.get());
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(absl::string_view path, LockMode mode) override {
    const std::string name(path);
    const bool exclusive = mode == LockMode::kExclusive;
    PW_ASSIGN_OR_RETURN(Descriptor descriptor,
                        Open("lock", name, exclusive ? O_RDWR | O_CREAT : O_RDONLY));
    int result;
    do {
      result = flock(descriptor.number(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EWOULDBLOCK) {
      return Error(Reason::kStoreLocked,
                   absl::StrCat("lock \"", name, "\": held by another process or user of it"))
          .With("file", name);
    }
    if (result != 0) return SystemError("lock", name, errno);
    return std::make_unique<PosixFileLock>(std::move(descriptor));
  }
};

}  // namespace

FileSystem& PosixFileSystem() {
  static PosixFileSystemImpl* const file_system = new PosixFileSystemImpl;
  return *file_system;
}

}  // namespace planewise
