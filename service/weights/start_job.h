#ifndef PLANEWISE_SERVICE_WEIGHTS_START_JOB_H_
#define PLANEWISE_SERVICE_WEIGHTS_START_JOB_H_
// The beginning that long calls of the catalog have in common: a request that
// was answered before gets that answer, one that runs is joined, a new one
// becomes a job.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "service/auth/principal.h"
#include "service/schedule/work_admission.h"
#include "service/weights/catalog_job.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/catalog_state.h"
#include "service/weights/running_requests.h"

namespace planewise {

// A job that may begin. Holds `ticket` until it ends, and takes itself off the
// running requests by `key` then.
template <typename T>
struct NewJob {
  std::string key;
  std::shared_ptr<CatalogJob<T>> job;
  WorkTicket ticket;
};

template <typename Spec, typename T>
struct JobKind {
  RunningRequests<Spec, T>& running;
  // What the request made that succeeded before; nullopt for a new one.
  std::function<absl::StatusOr<std::optional<T>>(const std::string& key)> remembered;
  // Checks and begins. On failure nothing has begun.
  std::function<absl::Status(NewJob<T> job)> begin;
};

// `what` names the call in messages. The ticket is that of the job; 0 if there
// is none, and `done` gets its answer as a task on the executor.
template <typename Spec, typename T>
JobTicket StartJob(CatalogState& state, const Principal& principal, absl::string_view what,
                   const Spec& spec, ProgressCallback progress, DoneCallback<T> done,
                   const JobKind<Spec, T>& kind) {
  JobTicket ticket;
  const auto start = [&]() -> absl::StatusOr<std::optional<T>> {
    PW_ASSIGN_OR_RETURN(const std::string key, state.RequestKey(principal, spec.request_id));
    PW_ASSIGN_OR_RETURN(std::optional<T> known, kind.remembered(key));
    if (known.has_value()) return known;
    PW_ASSIGN_OR_RETURN(std::shared_ptr<CatalogJob<T>> job, kind.running.Find(key, spec));
    if (job == nullptr) {
      PW_ASSIGN_OR_RETURN(WorkTicket work, state.jobs.Admit(what));
      job = std::make_shared<CatalogJob<T>>();
      PW_RETURN_IF_ERROR(kind.begin(NewJob<T>{key, job, std::move(work)}));
      kind.running.Add(key, spec, job);
    }
    ticket = state.NewTicket(job);
    job->AddWaiter(ticket, std::move(progress), std::move(done));
    return std::nullopt;
  };
  absl::StatusOr<std::optional<T>> answer = start();
  if (!answer.ok()) {
    state.Answer<T>(std::move(done), answer.status());
  } else if (answer->has_value()) {
    state.Answer<T>(std::move(done), **std::move(answer));
  }
  return ticket;
}

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_START_JOB_H_
