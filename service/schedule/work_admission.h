#ifndef PLANEWISE_SERVICE_SCHEDULE_WORK_ADMISSION_H_
#define PLANEWISE_SERVICE_SCHEDULE_WORK_ADMISSION_H_
// Lets a bounded number of jobs wait or run, and none once draining began: so
// that overload is an answer and not a queue without end.
//
// Not here: memory (core/tensor/memory_budget.h).

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planewise {

// One admitted job. Movable; makes room when it is destroyed.
class WorkTicket {
 public:
  WorkTicket() = default;
  explicit WorkTicket(std::shared_ptr<int> running) : running_(std::move(running)) { ++*running_; }
  WorkTicket(WorkTicket&&) = default;
  WorkTicket& operator=(WorkTicket&& other) noexcept {
    End();
    running_ = std::move(other.running_);
    return *this;
  }
  ~WorkTicket() { End(); }

 private:
  void End() {
    if (running_ != nullptr) --*running_;
    running_ = nullptr;
  }

  std::shared_ptr<int> running_;
};

// One thread.
class WorkAdmission {
 public:
  // `limit_name` is what clients are told, for example "jobs_max".
  WorkAdmission(std::string limit_name, int limit)
      : limit_name_(std::move(limit_name)), limit_(limit) {}

  // UNAVAILABLE / DRAINING; RESOURCE_EXHAUSTED / QUOTA_EXCEEDED, both with a
  // retry delay. `what` names the job, for example `create model "a"`.
  absl::StatusOr<WorkTicket> Admit(absl::string_view what) const;

  void BeginDrain() { draining_ = true; }
  bool draining() const { return draining_; }
  int running() const { return *running_; }

 private:
  const std::string limit_name_;
  const int limit_;
  bool draining_ = false;
  std::shared_ptr<int> running_ = std::make_shared<int>(0);
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_SCHEDULE_WORK_ADMISSION_H_
