#ifndef PLANEWISE_CORE_BASE_POSIX_FILE_SYSTEM_H_
#define PLANEWISE_CORE_BASE_POSIX_FILE_SYSTEM_H_
// The system's disk.

#include "core/base/file_system.h"

namespace planewise {

// Stateless; lives for ever.
FileSystem& PosixFileSystem();

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_POSIX_FILE_SYSTEM_H_
