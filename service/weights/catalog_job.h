#ifndef PLANEWISE_SERVICE_WEIGHTS_CATALOG_JOB_H_
#define PLANEWISE_SERVICE_WEIGHTS_CATALOG_JOB_H_
// A long call of the catalog and all who wait for it: more than one if the
// request was repeated while it ran.
//
// Not here: the work itself.

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/error.h"
#include "core/base/strong_int.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

// Names a call whose work can be abandoned.
using JobTicket = StrongInt<struct JobTicketTag>;

// One thread, but for `cancelled`.
class AbandonableJob {
 public:
  virtual ~AbandonableJob() = default;

  // The caller of `ticket` gets CANCELLED; a job without callers is cancelled.
  virtual void Abandon(JobTicket ticket) = 0;

  // Whether to stop at the next safe point.
  const std::atomic<bool>& cancelled() const { return cancelled_; }

 protected:
  std::atomic<bool> cancelled_ = false;
};

template <typename T>
class CatalogJob final : public AbandonableJob {
 public:
  void AddWaiter(JobTicket ticket, ProgressCallback progress, DoneCallback<T> done) {
    waiters_.push_back({ticket, std::move(progress), std::move(done)});
  }

  void Report(const ProgressEvent& event) {
    for (const Waiter& waiter : waiters_) {
      if (waiter.progress) waiter.progress(event);
    }
  }

  // The end: once, on the executor and not inside the call that began the job.
  void Finish(const absl::StatusOr<T>& result) {
    for (Waiter& waiter : std::exchange(waiters_, {})) std::move(waiter.done)(result);
  }

  void Abandon(JobTicket ticket) override {
    for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
      if (waiter->ticket != ticket) continue;
      DoneCallback<T> done = std::move(waiter->done);
      waiters_.erase(waiter);
      if (waiters_.empty()) cancelled_ = true;
      std::move(done)(Error(Reason::kCancelled, "the caller gave the request up"));
      return;
    }
  }

 private:
  struct Waiter {
    JobTicket ticket;
    ProgressCallback progress;
    DoneCallback<T> done;
  };

  std::vector<Waiter> waiters_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_CATALOG_JOB_H_
