#ifndef PLANEWISE_SERVICE_WEIGHTS_CATALOG_JOB_H_
#define PLANEWISE_SERVICE_WEIGHTS_CATALOG_JOB_H_
// A long call of the catalog and all who wait for it: more than one if the
// request was repeated while it ran.
//
// Not here: the work itself.

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/error.h"
#include "core/base/strong_int.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

// Names a call whose work can be abandoned.
using JobTicket = StrongInt<struct JobTicketTag>;

inline absl::Status GivenUp() {
  return Error(Reason::kCancelled, "the caller gave the request up; nothing has changed");
}

// One thread, but for `cancelled`.
class AbandonableJob {
 public:
  virtual ~AbandonableJob() = default;

  // The caller of `ticket` gives up. Others who wait for the job keep it, and the
  // caller gets CANCELLED now. If there are none, the job is cancelled, and the
  // caller hears how it ended: CANCELLED, or done if it was too late.
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
    const auto waiter =
        std::find_if(waiters_.begin(), waiters_.end(),
                     [ticket](const Waiter& waiting) { return waiting.ticket == ticket; });
    if (waiter == waiters_.end()) return;
    if (waiters_.size() == 1) return AbandonAll();
    DoneCallback<T> done = std::move(waiter->done);
    waiters_.erase(waiter);
    std::move(done)(GivenUp());
  }

  // All callers give up.
  void AbandonAll() {
    cancelled_ = true;
    for (Waiter& waiter : waiters_) waiter.progress = nullptr;
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
