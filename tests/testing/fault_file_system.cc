#include "tests/testing/fault_file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

FaultFileSystem::Verdict FaultFileSystem::Judge(absl::string_view operation,
                                                absl::string_view path, bool needs_room) {
  MutexLock lock(mutex_);
  const auto failure = [&](Reason reason, absl::string_view text) -> absl::Status {
    return Error(reason, absl::StrCat(operation, " \"", path, "\": ", text)).With("file", path);
  };
  if (crashed_) return {false, false, failure(Reason::kUnavailable, "after the crash")};
  if (operations_left_ < 0) return {};
  if (operations_left_-- > 0) return {};
  // A disk stays full until something needs room.
  if (fault_ == Fault::kFull && !needs_room) {
    operations_left_ = 0;
    return {};
  }
  failed_operation_ = absl::StrCat(operation, " \"", path, "\"");
  switch (fault_) {
    case Fault::kCrash:
      crashed_ = true;
      return {false, false, failure(Reason::kUnavailable, "crash")};
    case Fault::kTornCrash:
      crashed_ = true;
      return {operation == "write", true, failure(Reason::kUnavailable, "crash")};
    case Fault::kError:
      return {false, false, failure(Reason::kUnavailable, "injected error")};
    case Fault::kLateError:
      return {true, false, failure(Reason::kUnavailable, "injected error, after the fact")};
    case Fault::kFull:
      return {operation == "write", true, failure(Reason::kStorageFull, "injected: no room")};
  }
  return {};
}

template <typename Operation>
auto FaultFileSystem::Run(absl::string_view name, absl::string_view path, bool needs_room,
                          Operation operation) -> decltype(operation()) {
  const Verdict verdict = Judge(name, path, needs_room);
  if (!verdict.runs) return verdict.failure;
  auto result = operation();
  if (!verdict.failure.ok()) return verdict.failure;
  return result;
}

class FaultFileSystem::Readable final : public ReadableFile {
 public:
  Readable(FaultFileSystem& faults, std::string path, std::unique_ptr<ReadableFile> file)
      : faults_(faults), path_(std::move(path)), file_(std::move(file)) {}

  absl::StatusOr<int64_t> SizeBytes() const override {
    return faults_.Run("size", path_, false, [&] { return file_->SizeBytes(); });
  }
  absl::Status Read(int64_t offset, absl::Span<std::byte> destination) const override {
    return faults_.Run("read", path_, false, [&] { return file_->Read(offset, destination); });
  }

 private:
  FaultFileSystem& faults_;
  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
};

class FaultFileSystem::Writable final : public WritableFile {
 public:
  Writable(FaultFileSystem& faults, std::string path, std::unique_ptr<WritableFile> file)
      : faults_(faults), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Preallocate(int64_t size_bytes) override {
    return faults_.Run("preallocate", path_, true, [&] { return file_->Preallocate(size_bytes); });
  }
  absl::Status Append(absl::Span<const std::byte> data) override {
    const Verdict verdict = faults_.Judge("write", path_, true);
    if (!verdict.runs) return verdict.failure;
    if (verdict.half) data = data.subspan(0, data.size() / 2);
    const absl::Status status = file_->Append(data);
    return verdict.failure.ok() ? status : verdict.failure;
  }
  absl::Status Sync() override {
    return faults_.Run("sync", path_, false, [&] { return file_->Sync(); });
  }
  absl::Status Close() override {
    return faults_.Run("close", path_, false, [&] { return file_->Close(); });
  }

 private:
  FaultFileSystem& faults_;
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
};

void FaultFileSystem::FailAfter(int64_t count, Fault fault) {
  MutexLock lock(mutex_);
  operations_left_ = count;
  fault_ = fault;
  failed_operation_.clear();
}

void FaultFileSystem::Heal() {
  MutexLock lock(mutex_);
  operations_left_ = -1;
}

bool FaultFileSystem::failed() const {
  MutexLock lock(mutex_);
  return !failed_operation_.empty();
}

std::string FaultFileSystem::failed_operation() const {
  MutexLock lock(mutex_);
  return failed_operation_;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultFileSystem::OpenForRead(
    absl::string_view path) {
  PW_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                      Run("open", path, false, [&] { return base_.OpenForRead(path); }));
  return std::make_unique<Readable>(*this, std::string(path), std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::Create(absl::string_view path) {
  PW_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                      Run("create", path, true, [&] { return base_.Create(path); }));
  return std::make_unique<Writable>(*this, std::string(path), std::move(file));
}

absl::Status FaultFileSystem::Rename(absl::string_view from, absl::string_view to) {
  return Run("rename", from, true, [&] { return base_.Rename(from, to); });
}

absl::Status FaultFileSystem::SyncDirectory(absl::string_view path) {
  return Run("sync directory", path, false, [&] { return base_.SyncDirectory(path); });
}

absl::StatusOr<std::vector<std::string>> FaultFileSystem::List(absl::string_view path) {
  return Run("list", path, false, [&] { return base_.List(path); });
}

absl::StatusOr<FileInfo> FaultFileSystem::Stat(absl::string_view path) {
  return Run("stat", path, false, [&] { return base_.Stat(path); });
}

absl::StatusOr<bool> FaultFileSystem::Exists(absl::string_view path) {
  return Run("exists", path, false, [&] { return base_.Exists(path); });
}

absl::Status FaultFileSystem::Remove(absl::string_view path) {
  return Run("remove", path, false, [&] { return base_.Remove(path); });
}

absl::Status FaultFileSystem::RemoveDirectory(absl::string_view path) {
  return Run("remove directory", path, false, [&] { return base_.RemoveDirectory(path); });
}

absl::Status FaultFileSystem::MakeDirectory(absl::string_view path) {
  return Run("make directory", path, true, [&] { return base_.MakeDirectory(path); });
}

absl::StatusOr<std::string> FaultFileSystem::Resolve(absl::string_view path) {
  return Run("resolve", path, false, [&] { return base_.Resolve(path); });
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultFileSystem::Lock(absl::string_view path,
                                                                LockMode mode) {
  return Run("lock", path, false, [&] { return base_.Lock(path, mode); });
}

}  // namespace planewise
