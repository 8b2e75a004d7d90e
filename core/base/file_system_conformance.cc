#include "core/base/file_system_conformance.h"

#include <vector>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {

using testing::ElementsAre;
using testing::HasSubstr;

void FileSystemConformance::WriteFile(absl::string_view name, absl::string_view text) {
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file, fs_.Create(Path(name)));
  PW_ASSERT_OK(file->Append(BytesOf(text)));
  PW_ASSERT_OK(file->Close());
}

std::string FileSystemConformance::ReadFile(absl::string_view name) {
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = fs_.OpenForRead(Path(name));
  if (!file.ok()) return std::string(file.status().message());
  std::string text(static_cast<size_t>((*file)->SizeBytes().value()), '?');
  PW_EXPECT_OK((*file)->Read(0, MutableBytesOf(text)));
  return text;
}

TEST_P(FileSystemConformance, ReadsBackWhatWasAppended) {
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file, fs_.Create(Path("a")));
  PW_ASSERT_OK(file->Append(BytesOf("planes ")));
  PW_ASSERT_OK(file->Append({}));
  PW_ASSERT_OK(file->Append(BytesOf("and scales")));
  PW_ASSERT_OK(file->Sync());
  PW_ASSERT_OK(file->Close());
  EXPECT_EQ(ReadFile("a"), "planes and scales");
}

TEST_P(FileSystemConformance, ReadsAnyRange) {
  WriteFile("a", "0123456789");
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<ReadableFile> file, fs_.OpenForRead(Path("a")));
  std::string text(3, '?');
  PW_ASSERT_OK(file->Read(4, MutableBytesOf(text)));
  EXPECT_EQ(text, "456");
  PW_EXPECT_OK(file->Read(10, {}));
}

TEST_P(FileSystemConformance, ReadPastTheEndIsDataLossThatNamesFileAndOffset) {
  WriteFile("a", "0123456789");
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<ReadableFile> file, fs_.OpenForRead(Path("a")));
  std::string text(3, '?');
  const absl::Status status = file->Read(8, MutableBytesOf(text));
  EXPECT_THAT(status, HasReason(Reason::kCorruptFile, HasSubstr("ends at byte 10")));
  EXPECT_EQ(*DetailsOf(status)->Find("file"), Path("a"));
  EXPECT_EQ(*DetailsOf(status)->Find("byteOffset"), "10");
}

TEST_P(FileSystemConformance, PreallocatedFileHasItsSizeAndThenItsBytes) {
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file, fs_.Create(Path("a")));
  PW_ASSERT_OK(file->Preallocate(6));
  PW_ASSERT_OK(file->Append(BytesOf("abc")));
  PW_ASSERT_OK(file->Append(BytesOf("def")));
  PW_ASSERT_OK(file->Close());
  EXPECT_EQ(ReadFile("a"), "abcdef");
}

TEST_P(FileSystemConformance, PreallocatingNothingIsAllowed) {
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<WritableFile> file, fs_.Create(Path("a")));
  PW_ASSERT_OK(file->Preallocate(0));
  PW_ASSERT_OK(file->Close());
  EXPECT_EQ(ReadFile("a"), "");
}

TEST_P(FileSystemConformance, CreateRefusesATakenName) {
  WriteFile("a", "old");
  EXPECT_THAT(fs_.Create(Path("a")), HasReason(Reason::kAlreadyExists, HasSubstr(Path("a"))));
  EXPECT_EQ(ReadFile("a"), "old");
}

TEST_P(FileSystemConformance, MissingThingsAreNotFound) {
  EXPECT_THAT(fs_.OpenForRead(Path("a")), HasReason(Reason::kNotFound, HasSubstr(Path("a"))));
  EXPECT_THAT(fs_.Create(Path("no/a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Rename(Path("a"), Path("b")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.SyncDirectory(Path("a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.List(Path("a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Stat(Path("a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Remove(Path("a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.RemoveDirectory(Path("a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.MakeDirectory(Path("no/a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Resolve(Path("a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Lock(Path("a"), LockMode::kShared), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Exists(Path("a")), IsOkAndHolds(false));
  EXPECT_THAT(fs_.Exists(Path("no/a")), IsOkAndHolds(false));
}

TEST_P(FileSystemConformance, AFileIsNoDirectoryAndADirectoryNoFile) {
  WriteFile("file", "x");
  PW_ASSERT_OK(fs_.MakeDirectory(Path("directory")));
  EXPECT_THAT(fs_.OpenForRead(Path("directory")), HasReason(Reason::kInvalidRequest));
  EXPECT_THAT(fs_.List(Path("file")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Create(Path("file/a")), HasReason(Reason::kNotFound));
  EXPECT_THAT(fs_.Create(Path("directory")), HasReason(Reason::kAlreadyExists));
  EXPECT_THAT(fs_.MakeDirectory(Path("file")), HasReason(Reason::kAlreadyExists));
}

TEST_P(FileSystemConformance, RenameReplaces) {
  WriteFile("old", "old");
  WriteFile("new", "new");
  PW_ASSERT_OK(fs_.Rename(Path("new"), Path("old")));
  EXPECT_EQ(ReadFile("old"), "new");
  EXPECT_THAT(fs_.Exists(Path("new")), IsOkAndHolds(false));
  PW_EXPECT_OK(fs_.SyncDirectory(Path("")));
}

TEST_P(FileSystemConformance, RenameAcrossDirectoriesIsRefused) {
  WriteFile("a", "x");
  PW_ASSERT_OK(fs_.MakeDirectory(Path("d")));
  EXPECT_THAT(fs_.Rename(Path("a"), Path("d/a")), HasReason(Reason::kInvalidRequest));
  EXPECT_EQ(ReadFile("a"), "x");
}

TEST_P(FileSystemConformance, AnOpenFileOutlivesItsName) {
  WriteFile("a", "kept");
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<ReadableFile> file, fs_.OpenForRead(Path("a")));
  PW_ASSERT_OK(fs_.Remove(Path("a")));
  WriteFile("a", "other");
  std::string text(4, '?');
  PW_ASSERT_OK(file->Read(0, MutableBytesOf(text)));
  EXPECT_EQ(text, "kept");
}

TEST_P(FileSystemConformance, ListsNamesInOrder) {
  EXPECT_THAT(fs_.List(Path("")), IsOkAndHolds(ElementsAre()));
  WriteFile("b", "");
  WriteFile("a", "");
  PW_ASSERT_OK(fs_.MakeDirectory(Path("c")));
  WriteFile("c/inner", "");
  EXPECT_THAT(fs_.List(Path("")), IsOkAndHolds(ElementsAre("a", "b", "c")));
  PW_ASSERT_OK(fs_.Remove(Path("a")));
  EXPECT_THAT(fs_.List(Path("")), IsOkAndHolds(ElementsAre("b", "c")));
}

TEST_P(FileSystemConformance, StatTellsKindAndSize) {
  WriteFile("a", "12345");
  PW_ASSERT_OK(fs_.MakeDirectory(Path("d")));
  EXPECT_THAT(fs_.Stat(Path("a")), IsOkAndHolds(FileInfo{false, 5}));
  EXPECT_THAT(fs_.Stat(Path("d")), IsOkAndHolds(FileInfo{true, 0}));
  EXPECT_THAT(fs_.Exists(Path("a")), IsOkAndHolds(true));
  EXPECT_THAT(fs_.Exists(Path("d")), IsOkAndHolds(true));
}

TEST_P(FileSystemConformance, RemovesOnlyEmptyDirectories) {
  PW_ASSERT_OK(fs_.MakeDirectory(Path("d")));
  WriteFile("d/a", "");
  EXPECT_THAT(fs_.RemoveDirectory(Path("d")), HasReason(Reason::kInvalidRequest));
  PW_ASSERT_OK(fs_.Remove(Path("d/a")));
  PW_ASSERT_OK(fs_.RemoveDirectory(Path("d")));
  EXPECT_THAT(fs_.Exists(Path("d")), IsOkAndHolds(false));
}

TEST_P(FileSystemConformance, ResolveTakesDotsAway) {
  PW_ASSERT_OK(fs_.MakeDirectory(Path("d")));
  WriteFile("a", "");
  PW_ASSERT_OK_AND_ASSIGN(const std::string plain, fs_.Resolve(Path("a")));
  EXPECT_EQ(plain.front(), '/');
  EXPECT_THAT(fs_.Resolve(Path("d/.././a")), IsOkAndHolds(plain));
}

TEST_P(FileSystemConformance, OneExclusiveLockKeepsAllOthersOut) {
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<FileLock> lock,
                          fs_.Lock(Path("LOCK"), LockMode::kExclusive));
  EXPECT_THAT(fs_.Lock(Path("LOCK"), LockMode::kExclusive),
              HasReason(Reason::kStoreLocked, HasSubstr(Path("LOCK"))));
  EXPECT_THAT(fs_.Lock(Path("LOCK"), LockMode::kShared), HasReason(Reason::kStoreLocked));
  lock.reset();
  PW_EXPECT_OK(fs_.Lock(Path("LOCK"), LockMode::kShared));
}

TEST_P(FileSystemConformance, SharedLocksKeepOnlyExclusiveOnesOut) {
  PW_ASSERT_OK(fs_.Lock(Path("LOCK"), LockMode::kExclusive));  // Makes the file.
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<FileLock> one,
                          fs_.Lock(Path("LOCK"), LockMode::kShared));
  PW_ASSERT_OK_AND_ASSIGN(std::unique_ptr<FileLock> two,
                          fs_.Lock(Path("LOCK"), LockMode::kShared));
  one.reset();
  EXPECT_THAT(fs_.Lock(Path("LOCK"), LockMode::kExclusive), HasReason(Reason::kStoreLocked));
  two.reset();
  PW_EXPECT_OK(fs_.Lock(Path("LOCK"), LockMode::kExclusive));
}

}  // namespace planewise
