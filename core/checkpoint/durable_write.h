#ifndef PLANEWISE_CORE_CHECKPOINT_DURABLE_WRITE_H_
#define PLANEWISE_CORE_CHECKPOINT_DURABLE_WRITE_H_
// Files that are there whole or not at all, also after a power loss:
// temporary name, preallocate, write, sync, rename, sync the directory.
//
// Not here: the writing of large files (segment_writer.h), which does the first
// four steps itself.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace planewise {

// The name that `path` is written under until it is whole.
std::string TemporaryPath(absl::string_view path);

// Puts the synced and closed TemporaryPath(path) in the place of `path`.
absl::Status Publish(FileSystem& file_system, absl::string_view path);

// A small file, whole.
absl::Status WriteDurably(FileSystem& file_system, absl::string_view path,
                          absl::string_view bytes);

// A directory that exists already is as good as a new one. Durable.
absl::Status MakeDirectoryDurably(FileSystem& file_system, absl::string_view path);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_DURABLE_WRITE_H_
