#include "service/listen_address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr absl::string_view kUnixPrefix = "unix://";
constexpr absl::string_view kLoopbackHosts[] = {"127.0.0.1", "localhost", "[::1]"};
// The system's limit, less the final zero.
constexpr size_t kSocketPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

Error Malformed(absl::string_view text, absl::string_view why) {
  return Error(Reason::kInvalidRequest,
               absl::StrCat("listen address \"", text, "\": ", why,
                            "; required: unix:///ABSOLUTE/PATH or 127.0.0.1:PORT"))
      .With("listen", text);
}

absl::StatusOr<ListenAddress> ParseUnix(absl::string_view text, absl::string_view path) {
  if (path.empty() || path.front() != '/') return Malformed(text, "the path is not absolute");
  if (path.size() > kSocketPathBytesMax) {
    return Malformed(text, absl::StrCat("the path has ", path.size(), " bytes, at most ",
                                        kSocketPathBytesMax, " are possible"));
  }
  ListenAddress address;
  address.kind = ListenAddress::Kind::kUnix;
  address.path = std::string(path);
  return address;
}

// Does a process accept connections on the socket?
bool Answers(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kSocketPathBytesMax);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return connected;
}

}  // namespace

std::string ListenAddress::ToString() const {
  return kind == Kind::kUnix ? absl::StrCat(kUnixPrefix, path) : absl::StrCat(host, ":", port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kUnixPrefix)) return ParseUnix(text, rest);
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Malformed(text, "it has no port");
  ListenAddress address;
  address.kind = ListenAddress::Kind::kTcp;
  address.host = std::string(text.substr(0, colon));
  const absl::string_view port = text.substr(colon + 1);
  if (!std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &address.port) || address.port > 65535) {
    return Malformed(text, "the port is not a number from 0 to 65535");
  }
  for (const absl::string_view host : kLoopbackHosts) {
    if (address.host == host) return address;
  }
  return Error(Reason::kNotSupported,
               absl::StrCat("listen address \"", text, "\": \"", address.host,
                            "\" is not a loopback host (127.0.0.1, localhost, [::1]); other "
                            "hosts need TLS, which this build does not have: listen on loopback "
                            "and forward the port over a secure channel"))
      .With("listen", text);
}

absl::Status PrepareSocketDirectory(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  if (mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return Error(Reason::kUnavailable,
                 absl::StrCat("making directory ", directory, " for the socket: ",
                              std::strerror(errno),
                              "; make it, or name another with --listen unix:///PATH"))
        .With("path", directory);
  }
  struct stat info;
  if (stat(directory.c_str(), &info) != 0) {
    return Error(Reason::kUnavailable, absl::StrCat("directory ", directory, " of the socket: ",
                                                    std::strerror(errno)))
        .With("path", directory);
  }
  if (!S_ISDIR(info.st_mode)) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(directory, " of the socket is no directory; name another with "
                              "--listen unix:///PATH"))
        .With("path", directory);
  }
  if (info.st_uid != geteuid() || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error(Reason::kPermissionDenied,
                 absl::StrFormat("directory %s of the socket: owner %d, mode %04o; it must belong "
                                 "to user %d alone (mode 0700): chmod 700 it, or name another "
                                 "with --listen unix:///PATH",
                                 directory, info.st_uid, info.st_mode & 07777, geteuid()))
        .With("path", directory);
  }
  if (Answers(path)) {
    return Error(Reason::kAlreadyExists,
                 absl::StrCat("socket ", path, ": another daemon listens there; stop it, or name "
                              "another with --listen unix:///PATH"))
        .With("path", path);
  }
  return absl::OkStatus();
}

}  // namespace planewise
