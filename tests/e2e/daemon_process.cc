#include "tests/e2e/daemon_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace planewise {
namespace {

// Where Bazel puts it for tests.
constexpr char kBinary[] = "service/planewised";

void Require(bool condition, const char* what) {
  if (condition) return;
  std::perror(what);
  std::exit(1);
}

}  // namespace

DaemonProcess::DaemonProcess(const std::vector<std::string>& flags) {
  error_path_ = std::string(std::getenv("TEST_TMPDIR")) + "/stderr.XXXXXX";
  const int error = mkstemp(error_path_.data());
  int pipe_ends[2];
  Require(error >= 0 && pipe2(pipe_ends, O_CLOEXEC) == 0, "pipe");
  std::vector<char*> arguments = {const_cast<char*>(kBinary)};
  for (const std::string& flag : flags) arguments.push_back(const_cast<char*>(flag.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  Require(pid_ >= 0, "fork");
  if (pid_ == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    execv(kBinary, arguments.data());
    std::perror(kBinary);
    _exit(127);
  }
  close(pipe_ends[1]);
  close(error);
  output_ = pipe_ends[0];
  for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) ready_line_.push_back(c);
}

DaemonProcess::~DaemonProcess() {
  Kill();
  close(output_);
}

void DaemonProcess::Kill() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

int DaemonProcess::Stop() {
  kill(pid_, SIGTERM);
  return Wait();
}

int DaemonProcess::Wait() {
  int status = 0;
  Require(waitpid(pid_, &status, 0) == pid_, "waitpid");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string DaemonProcess::ErrorText() const {
  std::ifstream file(error_path_);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace planewise
