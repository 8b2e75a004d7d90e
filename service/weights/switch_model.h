#ifndef PLANEWISE_SERVICE_WEIGHTS_SWITCH_MODEL_H_
#define PLANEWISE_SERVICE_WEIGHTS_SWITCH_MODEL_H_
// ModelCatalog::Validate and Switch: judge a mode switch on a snapshot, and
// carry it out as a new version.

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "planner/mode_switch.h"
#include "service/auth/principal.h"
#include "service/weights/catalog_job.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/catalog_state.h"

namespace planewise {

// As ModelCatalog::Validate.
absl::StatusOr<ValidationOutcome> ValidateSwitch(CatalogState& state, absl::string_view name,
                                                 const SwitchTarget& target);

// As ModelCatalog::Switch.
JobTicket SwitchMode(const std::shared_ptr<CatalogState>& state, const Principal& principal,
                     SwitchSpec spec, DoneCallback<SwitchOutcome> done);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_SWITCH_MODEL_H_
