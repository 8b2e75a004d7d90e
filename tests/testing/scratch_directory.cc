#include "tests/testing/scratch_directory.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace planewise {

ScratchDirectory::ScratchDirectory() {
  const char* base = std::getenv("TEST_TMPDIR");
  path_ = std::string(base != nullptr ? base : "/tmp") + "/scratch.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror(path_.c_str());
    std::exit(1);
  }
}

ScratchDirectory::~ScratchDirectory() { std::filesystem::remove_all(path_); }

}  // namespace planewise
