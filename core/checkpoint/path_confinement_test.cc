#include "core/checkpoint/path_confinement.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/posix_file_system.h"
#include "gmock/gmock.h"
#include "tests/testing/scratch_directory.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

class PathConfinementTest : public testing::Test {
 protected:
  PathConfinementTest() {
    base_ = fs_.Resolve(scratch_.path()).value();
    for (const char* name : {"/root", "/root/model", "/root-not", "/outside"}) {
      PW_EXPECT_OK(fs_.MakeDirectory(base_ + name));
    }
    roots_ = {base_ + "/root"};
  }

  void Link(const std::string& target, const std::string& name) {
    ASSERT_EQ(symlink(target.c_str(), (base_ + name).c_str()), 0);
  }
  absl::StatusOr<std::string> Resolve(const std::string& path) {
    return ResolveWithinRoots(fs_, base_ + path, roots_);
  }

  FileSystem& fs_ = PosixFileSystem();
  ScratchDirectory scratch_;
  std::string base_;
  std::vector<std::string> roots_;
};

TEST_F(PathConfinementTest, AcceptsRootsAndWhatIsBelow) {
  EXPECT_THAT(Resolve("/root"), IsOkAndHolds(base_ + "/root"));
  EXPECT_THAT(Resolve("/root/model"), IsOkAndHolds(base_ + "/root/model"));
  EXPECT_THAT(Resolve("/root/../root/./model"), IsOkAndHolds(base_ + "/root/model"));
}

TEST_F(PathConfinementTest, FollowsLinksThatStayInside) {
  Link(base_ + "/root/model", "/root/alias");
  EXPECT_THAT(Resolve("/root/alias"), IsOkAndHolds(base_ + "/root/model"));
}

TEST_F(PathConfinementTest, RefusesWhatLiesOrLeadsOutside) {
  Link(base_ + "/outside", "/root/way-out");
  for (const char* path : {"/outside", "/root-not", "/root/way-out", "/root/../outside", "",
                           "/root/model/../../outside"}) {
    EXPECT_THAT(Resolve(path), HasReason(Reason::kPathOutsideRoots)) << path;
  }
  EXPECT_THAT(ResolveWithinRoots(fs_, "root", roots_), HasReason(Reason::kPathOutsideRoots));
  EXPECT_THAT(ResolveWithinRoots(fs_, "", roots_), HasReason(Reason::kPathOutsideRoots));
}

TEST_F(PathConfinementTest, DoesNotTellWhatExistsOutside) {
  EXPECT_EQ(Resolve("/outside/no").status().code(), Resolve("/outside").status().code());
  EXPECT_THAT(Resolve("/outside/no"), HasReason(Reason::kPathOutsideRoots));
  EXPECT_THAT(Resolve("/root/no/../../outside/no"), HasReason(Reason::kPathOutsideRoots));
}

TEST_F(PathConfinementTest, MissingBelowARootIsNotFound) {
  EXPECT_THAT(Resolve("/root/no"), HasReason(Reason::kNotFound));
}

}  // namespace
}  // namespace planewise
