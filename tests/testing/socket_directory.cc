#include "tests/testing/socket_directory.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace planewise {

SocketDirectory::SocketDirectory() {
  if (mkdtemp(path_.data()) != nullptr) return;
  std::perror("mkdtemp for a test's sockets");
  std::exit(1);
}

SocketDirectory::~SocketDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace planewise
