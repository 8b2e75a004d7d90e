#include "service/auth/auth_token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr size_t kTokenBytes = 32;  // 256 bits: not to be guessed
constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool open() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error SystemError(absl::string_view action, const std::string& path) {
  return Error(Reason::kUnavailable, absl::StrCat(action, " token file ", path, ": ",
                                                  std::strerror(errno)))
      .With("path", path);
}

absl::StatusOr<std::string> RandomToken() {
  std::array<char, kTokenBytes> bits;
  if (getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) {
    return Error(Reason::kInternal, "the system gives no random bits for a token");
  }
  return absl::BytesToHexString({bits.data(), bits.size()});
}

// Makes the file whole or not at all: it gets its name once it is written, and
// only if no other process was first.
absl::Status CreateFile(const std::string& path, const std::string& secret) {
  const std::string temporary = absl::StrCat(path, ".", getpid());
  const Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                             kOwnerOnly));
  if (!file.open()) return SystemError("creating", temporary);
  const std::string line = secret + "\n";
  const bool written = write(file.get(), line.data(), line.size()) ==
                           static_cast<ssize_t>(line.size()) &&
                       fsync(file.get()) == 0;
  const bool named = written && link(temporary.c_str(), path.c_str()) == 0;
  absl::Status failure;
  if (!written) failure = SystemError("writing", temporary);
  if (written && !named && errno != EEXIST) failure = SystemError("naming", path);
  unlink(temporary.c_str());
  return failure;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, const Descriptor& file) {
  struct stat info;
  if (fstat(file.get(), &info) != 0) return SystemError("reading", path);
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0 || info.st_uid != geteuid()) {
    return Error(Reason::kPermissionDenied,
                 absl::StrFormat("token file %s: mode %04o, owner %d; it must be readable by user "
                                 "%d alone: chown it, chmod 600 it, or delete it to get a new one",
                                 path, info.st_mode & 07777, info.st_uid, geteuid()))
        .With("path", path);
  }
  std::array<char, 2 * kTokenBytes + 2> text;
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) return SystemError("reading", path);
  const absl::string_view token =
      absl::StripTrailingAsciiWhitespace({text.data(), static_cast<size_t>(size)});
  const auto is_digit = [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); };
  if (token.size() != 2 * kTokenBytes || !std::all_of(token.begin(), token.end(), is_digit)) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("token file ", path, ": holds no token; required: ", 2 * kTokenBytes,
                              " lowercase hexadecimal digits; delete it to get a new one"))
        .With("path", path);
  }
  return std::string(token);
}

}  // namespace

absl::StatusOr<AuthToken> AuthToken::LoadOrCreate(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    PW_ASSIGN_OR_RETURN(const std::string secret, RandomToken());
    PW_RETURN_IF_ERROR(CreateFile(path, secret));
  }
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return SystemError("opening", path);
  PW_ASSIGN_OR_RETURN(std::string secret, ReadFile(path, file));
  return AuthToken(std::move(secret));
}

bool AuthToken::Matches(absl::string_view presented) const {
  if (presented.size() != secret_.size()) return false;
  uint8_t difference = 0;
  for (size_t i = 0; i < secret_.size(); ++i) {
    difference |= static_cast<uint8_t>(secret_[i] ^ presented[i]);
  }
  return difference == 0;
}

}  // namespace planewise
