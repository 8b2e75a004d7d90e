#include "core/base/posix_file_system.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "core/base/error.h"
#include "core/base/file_system_conformance.h"
#include "gmock/gmock.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::HasSubstr;

class PosixSubject final : public FileSystemSubject {
 public:
  FileSystem& file_system() override { return PosixFileSystem(); }
  std::string directory() override { return scratch_.path(); }

 private:
  ScratchDirectory scratch_;
};

INSTANTIATE_TEST_SUITE_P(Posix, FileSystemConformance, testing::Values(+[] {
                           return std::unique_ptr<FileSystemSubject>(new PosixSubject);
                         }));

TEST(PosixFileSystemTest, ResolveFollowsLinks) {
  const ScratchDirectory scratch;
  PW_ASSERT_OK(PosixFileSystem().MakeDirectory(scratch.path() + "/d"));
  ASSERT_EQ(symlink((scratch.path() + "/d").c_str(), (scratch.path() + "/link").c_str()), 0);
  PW_ASSERT_OK_AND_ASSIGN(const std::string plain,
                          PosixFileSystem().Resolve(scratch.path() + "/d"));
  EXPECT_THAT(PosixFileSystem().Resolve(scratch.path() + "/link"), IsOkAndHolds(plain));
}

TEST(PosixFileSystemTest, APipeIsRefusedAndNotWaitedFor) {
  const ScratchDirectory scratch;
  const std::string pipe = scratch.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(PosixFileSystem().OpenForRead(pipe),
              HasReason(Reason::kInvalidRequest, HasSubstr("neither a regular file")));
}

TEST(PosixFileSystemTest, FilesAndDirectoriesAreTheOwnersOnly) {
  const ScratchDirectory scratch;
  PW_ASSERT_OK(PosixFileSystem().MakeDirectory(scratch.path() + "/d"));
  PW_ASSERT_OK(PosixFileSystem().Create(scratch.path() + "/f"));
  struct stat info;
  ASSERT_EQ(stat((scratch.path() + "/d").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  ASSERT_EQ(stat((scratch.path() + "/f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST(PosixFileSystemTest, AFullDiskShowsBeforeAnythingIsWritten) {
  const ScratchDirectory scratch;
  PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file,
                          PosixFileSystem().Create(scratch.path() + "/f"));
  EXPECT_THAT(file->Preallocate(int64_t{1} << 60),
              HasReason(Reason::kStorageFull, HasSubstr("preallocate")));
}

}  // namespace
}  // namespace planewise
