#include "service/auth/auth_token.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A path in a fresh directory of this test.
std::string TokenPath() {
  const std::string directory =
      testing::TempDir() + "/" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory + "/token";
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  ASSERT_EQ(chmod(path.c_str(), mode), 0);
}

TEST(AuthTokenTest, FirstStartMakesAPrivateFileThatLaterStartsRead) {
  const std::string path = TokenPath();
  PW_ASSERT_OK_AND_ASSIGN(const AuthToken first, AuthToken::LoadOrCreate(path));
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(
                              std::filesystem::path(path).parent_path()),
                          {}),
            1);

  const std::string secret = Contents(path).substr(0, 64);
  EXPECT_TRUE(first.Matches(secret));
  PW_ASSERT_OK_AND_ASSIGN(const AuthToken second, AuthToken::LoadOrCreate(path));
  EXPECT_TRUE(second.Matches(secret));
  EXPECT_EQ(Contents(path), secret + "\n");
}

TEST(AuthTokenTest, TokensDiffer) {
  const std::string path = TokenPath();
  PW_ASSERT_OK_AND_ASSIGN(const AuthToken first, AuthToken::LoadOrCreate(path));
  std::filesystem::remove(path);
  PW_ASSERT_OK_AND_ASSIGN(const AuthToken second, AuthToken::LoadOrCreate(path));
  EXPECT_FALSE(first.Matches(Contents(path).substr(0, 64)));
}

TEST(AuthTokenTest, MatchesTheWholeSecretOnly) {
  const AuthToken token("0123456789abcdef");
  EXPECT_TRUE(token.Matches("0123456789abcdef"));
  EXPECT_FALSE(token.Matches("0123456789abcdee"));
  EXPECT_FALSE(token.Matches("1123456789abcdef"));
  EXPECT_FALSE(token.Matches("0123456789abcde"));
  EXPECT_FALSE(token.Matches("0123456789abcdef0"));
  EXPECT_FALSE(token.Matches(""));
}

TEST(AuthTokenTest, FileThatOthersMayReadIsRefused) {
  const std::string path = TokenPath();
  WriteFile(path, std::string(64, 'a'), 0640);
  EXPECT_THAT(AuthToken::LoadOrCreate(path),
              HasReason(Reason::kPermissionDenied,
                        AllOf(HasSubstr(path), HasSubstr("0640"), HasSubstr("chmod 600"),
                              Not(HasSubstr("aaaa")))));
}

TEST(AuthTokenTest, FileWithoutATokenIsRefused) {
  for (const std::string& text :
       {std::string(), std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'G')}) {
    SCOPED_TRACE(text);
    const std::string path = TokenPath();
    WriteFile(path, text, 0600);
    EXPECT_THAT(AuthToken::LoadOrCreate(path),
                HasReason(Reason::kInvalidRequest,
                          AllOf(HasSubstr(path), HasSubstr("64"), HasSubstr("delete it"))));
  }
}

TEST(AuthTokenTest, DirectoryThatIsMissingIsNamed) {
  const std::string path = TokenPath() + "/no/token";
  EXPECT_THAT(AuthToken::LoadOrCreate(path), HasReason(Reason::kUnavailable, HasSubstr(path)));
}

}  // namespace
}  // namespace planewise
