#include "core/base/memory_file_system.h"

#include <set>
#include <string>

#include "core/base/error.h"
#include "core/base/file_system_conformance.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MemorySubject final : public FileSystemSubject {
 public:
  MemorySubject() { PW_EXPECT_OK(file_system_.MakeDirectory("/scratch")); }
  FileSystem& file_system() override { return file_system_; }
  std::string directory() override { return "/scratch"; }

 private:
  MemoryFileSystem file_system_;
};

INSTANTIATE_TEST_SUITE_P(Memory, FileSystemConformance, testing::Values(+[] {
                           return std::unique_ptr<FileSystemSubject>(new MemorySubject);
                         }));

class CrashTest : public testing::Test {
 protected:
  // Creates a file; syncs its bytes if `sync`.
  void Write(absl::string_view path, absl::string_view text, bool sync) {
    PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, fs_.Create(path));
    PW_ASSERT_OK(file->Append(BytesOf(text)));
    if (sync) {
      PW_ASSERT_OK(file->Sync());
    }
    PW_ASSERT_OK(file->Close());
  }

  MemoryFileSystem fs_;
};

TEST_F(CrashTest, LosesNamesOfUnsyncedDirectories) {
  Write("a", "bytes are synced, the name is not", true);
  fs_.Crash(Unsynced::kLost, 0);
  EXPECT_THAT(fs_.List("/"), IsOkAndHolds(ElementsAre()));
}

TEST_F(CrashTest, LosesUnsyncedBytesUnderSyncedNames) {
  Write("a", "the name is synced, the bytes are not", false);
  PW_ASSERT_OK(fs_.SyncDirectory("/"));
  fs_.Crash(Unsynced::kLost, 0);
  EXPECT_EQ(fs_.Contents("a"), "");
}

TEST_F(CrashTest, KeepsWhatWasSynced) {
  Write("a", "all synced", true);
  PW_ASSERT_OK(fs_.SyncDirectory("/"));
  fs_.Crash(Unsynced::kLost, 0);
  EXPECT_EQ(fs_.Contents("a"), "all synced");
}

TEST_F(CrashTest, MayKeepWhatWasNot) {
  Write("a", "nothing synced", false);
  fs_.Crash(Unsynced::kKept, 0);
  EXPECT_EQ(fs_.Contents("a"), "nothing synced");
}

TEST_F(CrashTest, UndoesAnUnsyncedRenameWhole) {
  Write("old", "old", true);
  Write("new", "new", true);
  PW_ASSERT_OK(fs_.SyncDirectory("/"));
  PW_ASSERT_OK(fs_.Rename("new", "old"));
  fs_.Crash(Unsynced::kLost, 0);
  EXPECT_EQ(fs_.Contents("old"), "old");
  EXPECT_EQ(fs_.Contents("new"), "new");
}

TEST_F(CrashTest, UndoesUnsyncedRemovals) {
  Write("a", "back again", true);
  PW_ASSERT_OK(fs_.SyncDirectory("/"));
  PW_ASSERT_OK(fs_.Remove("a"));
  fs_.Crash(Unsynced::kLost, 0);
  EXPECT_EQ(fs_.Contents("a"), "back again");
}

// Every outcome that a disk can leave occurs for some seed.
TEST_F(CrashTest, TornLeavesAPrefixOrZeros) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    MemoryFileSystem fs;
    PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, fs.Create("a"));
    PW_ASSERT_OK(fs.SyncDirectory("/"));
    PW_ASSERT_OK(file->Append(BytesOf("xy")));
    fs.Crash(Unsynced::kTorn, seed);
    seen.insert(fs.Contents("a"));
  }
  const std::string zero(1, '\0');
  EXPECT_EQ(seen, (std::set<std::string>{"", "x", "xy", "x" + zero, zero + zero}));
}

TEST_F(CrashTest, EndsOpenFilesAndLocks) {
  Write("a", "x", true);
  PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> writable, fs_.Create("b"));
  PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ReadableFile> readable, fs_.OpenForRead("a"));
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<FileLock> old_lock,
                          fs_.Lock("LOCK", LockMode::kExclusive));
  fs_.Crash(Unsynced::kKept, 0);
  EXPECT_THAT(writable->Append(BytesOf("y")),
              HasReason(Reason::kUnavailable, HasSubstr("before the crash")));
  EXPECT_THAT(writable->Sync(), HasReason(Reason::kUnavailable));
  EXPECT_THAT(readable->SizeBytes(), HasReason(Reason::kUnavailable));
  PW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<FileLock> new_lock,
                          fs_.Lock("LOCK", LockMode::kExclusive));
  old_lock.reset();  // Must not free the new one.
  EXPECT_THAT(fs_.Lock("LOCK", LockMode::kShared), HasReason(Reason::kStoreLocked));
}

}  // namespace
}  // namespace planewise
