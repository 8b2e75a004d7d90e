#include "core/checkpoint/sync_guard_file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

class SyncGuardFileSystem::GuardedFile final : public WritableFile {
 public:
  GuardedFile(SyncGuardFileSystem& guard, std::unique_ptr<WritableFile> file)
      : guard_(guard), file_(std::move(file)) {}

  absl::Status Preallocate(int64_t size_bytes) override {
    PW_RETURN_IF_ERROR(guard_.CheckWritable());
    return file_->Preallocate(size_bytes);
  }
  absl::Status Append(absl::Span<const std::byte> data) override {
    PW_RETURN_IF_ERROR(guard_.CheckWritable());
    return file_->Append(data);
  }
  absl::Status Sync() override {
    PW_RETURN_IF_ERROR(guard_.CheckWritable());
    return guard_.Guard(file_->Sync());
  }
  absl::Status Close() override { return file_->Close(); }

 private:
  SyncGuardFileSystem& guard_;
  const std::unique_ptr<WritableFile> file_;
};

absl::Status SyncGuardFileSystem::CheckWritable() const {
  MutexLock lock(mutex_);
  return first_failure_;
}

absl::Status SyncGuardFileSystem::Guard(const absl::Status& status) {
  if (status.ok()) return status;
  MutexLock lock(mutex_);
  if (first_failure_.ok()) {
    first_failure_ = Error(Reason::kStoreReadOnly,
                           absl::StrCat("the store takes no writes until a restart, because this "
                                        "failed: ",
                                        status.message()));
  }
  return first_failure_;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> SyncGuardFileSystem::OpenForRead(
    absl::string_view path) {
  return base_.OpenForRead(path);
}

absl::StatusOr<std::unique_ptr<WritableFile>> SyncGuardFileSystem::Create(absl::string_view path) {
  PW_RETURN_IF_ERROR(CheckWritable());
  PW_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_.Create(path));
  return std::make_unique<GuardedFile>(*this, std::move(file));
}

absl::Status SyncGuardFileSystem::Rename(absl::string_view from, absl::string_view to) {
  PW_RETURN_IF_ERROR(CheckWritable());
  return Guard(base_.Rename(from, to));
}

absl::Status SyncGuardFileSystem::SyncDirectory(absl::string_view path) {
  PW_RETURN_IF_ERROR(CheckWritable());
  return Guard(base_.SyncDirectory(path));
}

absl::StatusOr<std::vector<std::string>> SyncGuardFileSystem::List(absl::string_view path) {
  return base_.List(path);
}

absl::StatusOr<FileInfo> SyncGuardFileSystem::Stat(absl::string_view path) {
  return base_.Stat(path);
}

absl::StatusOr<bool> SyncGuardFileSystem::Exists(absl::string_view path) {
  return base_.Exists(path);
}

absl::Status SyncGuardFileSystem::Remove(absl::string_view path) {
  PW_RETURN_IF_ERROR(CheckWritable());
  return base_.Remove(path);
}

absl::Status SyncGuardFileSystem::RemoveDirectory(absl::string_view path) {
  PW_RETURN_IF_ERROR(CheckWritable());
  return base_.RemoveDirectory(path);
}

absl::Status SyncGuardFileSystem::MakeDirectory(absl::string_view path) {
  PW_RETURN_IF_ERROR(CheckWritable());
  return base_.MakeDirectory(path);
}

absl::StatusOr<std::string> SyncGuardFileSystem::Resolve(absl::string_view path) {
  return base_.Resolve(path);
}

absl::StatusOr<std::unique_ptr<FileLock>> SyncGuardFileSystem::Lock(absl::string_view path,
                                                                    LockMode mode) {
  return base_.Lock(path, mode);
}

}  // namespace planewise
