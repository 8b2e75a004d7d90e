#ifndef PLANEWISE_SERVICE_RPC_MODEL_CONVERSION_H_
#define PLANEWISE_SERVICE_RPC_MODEL_CONVERSION_H_
// The Models service's messages and the catalog's values.
//
// Not here: the catalog (service/weights/), rules on names and paths, which the
// catalog checks.

#include "absl/status/statusor.h"
#include "planewise/v1/models.pb.h"
#include "service/weights/catalog_requests.h"

namespace planewise {

// INVALID_ARGUMENT as the conversions of the fields.
absl::StatusOr<CreateModelSpec> FromProto(const v1::CreateModelRequest& request);
absl::StatusOr<SwitchSpec> FromProto(const v1::SwitchModeRequest& request);
absl::StatusOr<ReadWeightsSpec> FromProto(const v1::ReadWeightsRequest& request);

// What of a model is told: lists leave out layers and local tensors.
enum class ModelDetail { kSummary, kFull };

v1::Model ToProto(const ModelDescription& model, ModelDetail detail);
v1::Progress ToProto(const ProgressEvent& progress);
v1::SaveResult ToProto(const SaveOutcome& outcome);
v1::VerifyResult ToProto(const VerifyOutcome& outcome);
v1::ValidateModeSwitchResponse ToProto(const ValidationOutcome& outcome);
v1::SwitchModeResponse ToProto(const SwitchOutcome& outcome);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_MODEL_CONVERSION_H_
