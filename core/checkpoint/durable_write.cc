#include "core/checkpoint/durable_write.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/format_constants.h"

namespace planewise {

std::string TemporaryPath(absl::string_view path) {
  return absl::StrCat(path, kTemporarySuffix);
}

absl::Status Publish(FileSystem& file_system, absl::string_view path) {
  PW_RETURN_IF_ERROR(file_system.Rename(TemporaryPath(path), path));
  return file_system.SyncDirectory(DirectoryOf(path));
}

absl::Status WriteDurably(FileSystem& file_system, absl::string_view path,
                          absl::string_view bytes) {
  const std::string temporary = TemporaryPath(path);
  PW_ASSIGN_OR_RETURN(const bool left_over, file_system.Exists(temporary));
  if (left_over) PW_RETURN_IF_ERROR(file_system.Remove(temporary));
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, file_system.Create(temporary));
  PW_RETURN_IF_ERROR(file->Preallocate(static_cast<int64_t>(bytes.size())));
  PW_RETURN_IF_ERROR(file->Append(BytesOf(bytes)));
  PW_RETURN_IF_ERROR(file->Sync());
  PW_RETURN_IF_ERROR(file->Close());
  return Publish(file_system, path);
}

absl::Status MakeDirectoryDurably(FileSystem& file_system, absl::string_view path) {
  const absl::Status made = file_system.MakeDirectory(path);
  if (!made.ok() && ReasonOf(made) != Reason::kAlreadyExists) return made;
  // Synced where it existed too: an interrupted call may have left it so.
  return file_system.SyncDirectory(DirectoryOf(path));
}

}  // namespace planewise
