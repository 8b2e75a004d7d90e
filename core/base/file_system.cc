#include "core/base/file_system.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {

absl::StatusOr<std::string> ReadWholeFile(FileSystem& file_system, absl::string_view path,
                                          int64_t limit_bytes) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, file_system.OpenForRead(path));
  PW_ASSIGN_OR_RETURN(const int64_t size_bytes, file->SizeBytes());
  if (size_bytes > limit_bytes) {
    return Error(Reason::kLimitExceeded, absl::StrCat("\"", path, "\" has ", size_bytes,
                                                      " bytes; the limit is ", limit_bytes))
        .With("file", path)
        .With("observedBytes", size_bytes)
        .With("limitBytes", limit_bytes);
  }
  std::string text(static_cast<size_t>(size_bytes), '\0');
  PW_RETURN_IF_ERROR(file->Read(0, MutableBytesOf(text)));
  return text;
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  return absl::StrCat(absl::StripSuffix(directory, "/"), "/", name);
}

std::string DirectoryOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string NameOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace planewise
