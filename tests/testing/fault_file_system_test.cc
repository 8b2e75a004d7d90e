#include "tests/testing/fault_file_system.h"

#include <memory>

#include "core/base/error.h"
#include "core/base/file_system_conformance.h"
#include "core/base/memory_file_system.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

// Without a fault it is what it wraps.
class FaultSubject final : public FileSystemSubject {
 public:
  FaultSubject() : faults_(memory_) { PW_EXPECT_OK(memory_.MakeDirectory("/scratch")); }
  FileSystem& file_system() override { return faults_; }
  std::string directory() override { return "/scratch"; }

 private:
  MemoryFileSystem memory_;
  FaultFileSystem faults_;
};

INSTANTIATE_TEST_SUITE_P(Fault, FileSystemConformance, testing::Values(+[] {
                           return std::unique_ptr<FileSystemSubject>(new FaultSubject);
                         }));

class FaultFileSystemTest : public testing::Test {
 protected:
  // Creates "a" and appends twice; the first failure.
  absl::Status Write() {
    absl::StatusOr<std::unique_ptr<WritableFile>> file = faults_.Create("a");
    if (!file.ok()) return file.status();
    absl::Status status = (*file)->Append(BytesOf("1234"));
    status.Update((*file)->Append(BytesOf("5678")));
    return status;
  }

  MemoryFileSystem memory_;
  FaultFileSystem faults_{memory_};
};

TEST_F(FaultFileSystemTest, AnErrorHitsOneOperationAndLeavesItUndone) {
  faults_.FailAfter(1, Fault::kError);
  EXPECT_THAT(Write(), HasReason(Reason::kUnavailable, testing::HasSubstr("injected")));
  EXPECT_TRUE(faults_.failed());
  EXPECT_EQ(faults_.failed_operation(), "write \"a\"");
  EXPECT_EQ(memory_.Contents("a"), "5678");
}

TEST_F(FaultFileSystemTest, ALateErrorIsDone) {
  faults_.FailAfter(1, Fault::kLateError);
  EXPECT_THAT(Write(), HasReason(Reason::kUnavailable));
  EXPECT_EQ(memory_.Contents("a"), "12345678");
}

TEST_F(FaultFileSystemTest, AFullDiskTakesHalfAWriteAndWaitsForOneThatNeedsRoom) {
  PW_ASSERT_OK(Write());
  faults_.FailAfter(0, Fault::kFull);
  PW_EXPECT_OK(faults_.Remove("a"));
  EXPECT_FALSE(faults_.failed());
  EXPECT_THAT(Write(), HasReason(Reason::kStorageFull));
  faults_.FailAfter(1, Fault::kFull);
  EXPECT_THAT(Write(), HasReason(Reason::kStorageFull));
  EXPECT_EQ(memory_.Contents("a"), "125678");
}

TEST_F(FaultFileSystemTest, NothingHappensAfterACrash) {
  faults_.FailAfter(1, Fault::kCrash);
  EXPECT_THAT(Write(), HasReason(Reason::kUnavailable));
  EXPECT_EQ(memory_.Contents("a"), "");
  EXPECT_THAT(faults_.Remove("a"), HasReason(Reason::kUnavailable));
  EXPECT_THAT(memory_.Exists("a"), IsOkAndHolds(true));
}

TEST_F(FaultFileSystemTest, ATornCrashLeavesHalfAWrite) {
  faults_.FailAfter(2, Fault::kTornCrash);
  EXPECT_THAT(Write(), HasReason(Reason::kUnavailable));
  EXPECT_EQ(memory_.Contents("a"), "123456");
  EXPECT_THAT(faults_.Exists("a"), HasReason(Reason::kUnavailable));
}

TEST_F(FaultFileSystemTest, HealingTakesTheFaultAway) {
  faults_.FailAfter(1, Fault::kError);
  faults_.Heal();
  PW_EXPECT_OK(Write());
  EXPECT_FALSE(faults_.failed());
}

TEST_F(FaultFileSystemTest, AFaultBeyondTheLastOperationIsNotReached) {
  faults_.FailAfter(3, Fault::kError);
  PW_EXPECT_OK(Write());
  EXPECT_FALSE(faults_.failed());
}

}  // namespace
}  // namespace planewise
