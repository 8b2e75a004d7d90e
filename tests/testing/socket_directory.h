#ifndef PLANEWISE_TESTS_TESTING_SOCKET_DIRECTORY_H_
#define PLANEWISE_TESTS_TESTING_SOCKET_DIRECTORY_H_
// An empty directory for one test's Unix sockets, with a path short enough for
// them: TEST_TMPDIR may be longer than the 107 bytes that the system allows.
//
// Not here: directories for files (scratch_directory.h).

#include <string>

namespace planewise {

// Made (0700) in /tmp by the constructor, removed with all in it by the
// destructor. Exits where that is not possible.
class SocketDirectory {
 public:
  SocketDirectory();
  ~SocketDirectory();
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;

  const std::string& path() const { return path_; }
  // A path in it, as --listen and gRPC take it.
  std::string Address(const std::string& name = "p.sock") const {
    return "unix://" + path_ + "/" + name;
  }

 private:
  std::string path_ = "/tmp/planewise-XXXXXX";
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_SOCKET_DIRECTORY_H_
