#ifndef PLANEWISE_SERVICE_WEIGHTS_LANE_PROGRESS_H_
#define PLANEWISE_SERVICE_WEIGHTS_LANE_PROGRESS_H_
// Carries the progress of a transfer on the storage lane to those who wait for
// its job on the executor, and their wish to stop the other way.

#include <memory>
#include <string>
#include <utility>

#include "core/base/executor.h"
#include "core/checkpoint/transfer.h"
#include "service/weights/catalog_job.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

// `executor` outlives the transfer.
template <typename T>
TransferControl LaneProgress(Executor& executor, std::shared_ptr<CatalogJob<T>> job,
                             std::string stage) {
  TransferControl control;
  control.cancel = &job->cancelled();
  control.on_progress = [&executor, job = std::move(job),
                         stage = std::move(stage)](const TransferProgress& progress) {
    executor.Post([job, event = ProgressEvent{stage, std::string(progress.object),
                                              progress.done_bytes, progress.total_bytes}] {
      job->Report(event);
    });
  };
  return control;
}

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_LANE_PROGRESS_H_
