#ifndef PLANEWISE_TESTS_E2E_DAEMON_PROCESS_H_
#define PLANEWISE_TESTS_E2E_DAEMON_PROCESS_H_
// The daemon as users run it: a process that is started with flags, killed, and
// asked to stop.
//
// Not here: the daemon within the test's process (test_daemon.h).

#include <sys/types.h>

#include <string>
#include <vector>

namespace planewise {

// One thread. Kills what still runs when it is destroyed.
class DaemonProcess {
 public:
  // Starts planewised with `flags` and waits until it is ready or has ended.
  explicit DaemonProcess(const std::vector<std::string>& flags);
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // The line it printed when it was ready; empty if it ended instead.
  const std::string& ready_line() const { return ready_line_; }

  // SIGKILL, and wait.
  void Kill();
  // SIGTERM, and wait; the exit code, or -1 if a signal ended it.
  int Stop();
  // Waits for its own end; as Stop().
  int Wait();
  // What it wrote to stderr; once it has ended.
  std::string ErrorText() const;

 private:
  pid_t pid_ = -1;
  int output_ = -1;  // its stdout
  std::string ready_line_;
  std::string error_path_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_E2E_DAEMON_PROCESS_H_
