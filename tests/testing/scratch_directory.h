#ifndef PLANEWISE_TESTS_TESTING_SCRATCH_DIRECTORY_H_
#define PLANEWISE_TESTS_TESTING_SCRATCH_DIRECTORY_H_
// An empty directory on the real disk for one test.

#include <string>

namespace planewise {

// Made by the constructor below TEST_TMPDIR, removed with all in it by the
// destructor. Exits where that is not possible.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_SCRATCH_DIRECTORY_H_
