#ifndef PLANEWISE_CORE_BASE_FILE_SYSTEM_CONFORMANCE_H_
#define PLANEWISE_CORE_BASE_FILE_SYSTEM_CONFORMANCE_H_
// What every FileSystem promises, as tests. An implementation's test says
//   INSTANTIATE_TEST_SUITE_P(Memory, FileSystemConformance, testing::Values(&MakeSubject));

#include <functional>
#include <memory>
#include <string>

#include "core/base/file_system.h"
#include "gtest/gtest.h"

namespace planewise {

// An implementation and an empty directory that it may use; both live as long
// as the subject.
class FileSystemSubject {
 public:
  virtual ~FileSystemSubject() = default;
  virtual FileSystem& file_system() = 0;
  virtual std::string directory() = 0;
};

using FileSystemSubjectFactory = std::unique_ptr<FileSystemSubject> (*)();

class FileSystemConformance : public testing::TestWithParam<FileSystemSubjectFactory> {
 protected:
  FileSystemConformance() : subject_(GetParam()()), fs_(subject_->file_system()) {}

  std::string Path(absl::string_view name) const {
    return JoinPath(subject_->directory(), name);
  }
  // Creates, appends, closes.
  void WriteFile(absl::string_view name, absl::string_view text);
  std::string ReadFile(absl::string_view name);

  const std::unique_ptr<FileSystemSubject> subject_;
  FileSystem& fs_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_FILE_SYSTEM_CONFORMANCE_H_
