#include "service/rpc/model_conversion.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/recipe/recipe_codec.h"
#include "proto/status/field_error.h"
#include "proto/status/status_codec.h"
#include "service/rpc/tensor_conversion.h"

namespace planewise {
namespace {

constexpr char kLinearRole[] = "linear";

absl::StatusOr<NonFinitePolicy> FromProto(v1::NonFinitePolicy value) {
  switch (value) {
    case v1::NON_FINITE_POLICY_UNSPECIFIED:
    case v1::NON_FINITE_POLICY_REJECT:
      return NonFinitePolicy::kReject;
    case v1::NON_FINITE_POLICY_FORMAT:
      return NonFinitePolicy::kFormat;
    default:
      return InvalidField("non_finite_policy", absl::StrCat(value, " is not known"),
                          "FORMAT or REJECT");
  }
}

v1::ModelState ToProto(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return v1::MODEL_STATE_LOADING;
    case ModelState::kServing:
      return v1::MODEL_STATE_SERVING;
    case ModelState::kDamaged:
      return v1::MODEL_STATE_DAMAGED;
  }
  return v1::MODEL_STATE_UNSPECIFIED;
}

v1::SwitchVerdict ToProto(SwitchVerdict verdict) {
  switch (verdict) {
    case SwitchVerdict::kAllowed:
      return v1::SWITCH_VERDICT_ALLOWED;
    case SwitchVerdict::kAllowedByDerivation:
      return v1::SWITCH_VERDICT_ALLOWED_BY_DERIVATION;
    case SwitchVerdict::kNeedsMaster:
      return v1::SWITCH_VERDICT_NEEDS_MASTER;
    case SwitchVerdict::kRejected:
      return v1::SWITCH_VERDICT_REJECTED;
  }
  return v1::SWITCH_VERDICT_UNSPECIFIED;
}

v1::SwitchReason ToProto(const SwitchReason& reason) {
  v1::SwitchReason proto;
  proto.set_code(std::string(FactsOf(reason.reason).name));
  proto.set_rule(reason.rule);
  proto.set_observed(reason.observed);
  for (const Remedy& remedy : reason.remedies) {
    v1::SwitchRemedy& added = *proto.add_remedies();
    added.set_action(remedy.action);
    added.set_bytes(remedy.bytes);
    added.set_seconds(remedy.seconds);
  }
  return proto;
}

v1::WeightVerdict ToProto(const WeightVerdict& verdict) {
  v1::WeightVerdict proto;
  proto.set_weight(verdict.weight);
  proto.set_verdict(ToProto(verdict.verdict));
  for (const SwitchReason& reason : verdict.reasons) *proto.add_reasons() = ToProto(reason);
  *proto.mutable_decision() = ToProto(verdict.decision);
  proto.set_derived_bytes(verdict.derived_bytes);
  proto.set_derivation_seconds(verdict.derivation_seconds);
  proto.set_persistent_delta_bytes(verdict.persistent_delta_bytes);
  proto.set_upload_bytes(verdict.upload_bytes);
  return proto;
}

v1::PlaneBytes ToProto(const Plane& plane) {
  v1::PlaneBytes proto;
  proto.set_plane(ToProto(plane.layout.kind));
  proto.set_payload_bytes(plane.payload.size_bytes());
  proto.set_scale_bytes(plane.scales.size_bytes());
  proto.set_state_bytes(plane.layout.state_bytes);
  proto.set_epoch(plane.epoch.value());
  if (plane.exponents) {
    proto.set_exponent_min(plane.exponents->min);
    proto.set_exponent_max(plane.exponents->max);
  }
  return proto;
}

v1::LocalTensor ToProto(const LocalTensor& tensor) {
  v1::LocalTensor proto;
  proto.set_name(tensor.name);
  for (const int64_t size : tensor.shape) proto.add_shape(size);
  proto.set_why(tensor.why);
  return proto;
}

v1::LayerDescription ToProto(const HostedLayer& layer, const Recipe& recipe,
                             int64_t planned_bytes) {
  v1::LayerDescription proto;
  proto.set_name(layer.name);
  proto.set_kind(std::string(Name(layer.kind)));
  proto.set_has_bias(layer.bias != nullptr);
  if (layer.bias != nullptr) proto.set_bias_bytes(layer.bias->stored_bytes());

  const PrimaryWeight& stored = *layer.weight;
  v1::WeightDescription& weight = *proto.mutable_weight();
  weight.set_name(stored.name);
  weight.add_shape(stored.shape.out);
  weight.add_shape(stored.shape.in);
  weight.set_role(kLinearRole);
  *weight.mutable_recipe() = ToProto(recipe);
  weight.set_nominal_type(ToProto(stored.nominal));
  *weight.mutable_decision() = ToProto(layer.decision);
  for (const Plane* plane : {stored.row.get(), stored.column.get(), stored.high_precision.get()}) {
    if (plane != nullptr) *weight.add_planes() = ToProto(*plane);
  }
  weight.set_actual_bytes(stored.stored_bytes());
  weight.set_planned_bytes(planned_bytes);
  weight.set_epoch(stored.epoch.value());
  weight.set_provenance(layer.provenance);
  return proto;
}

// A layer of a model that is only planned: it loads, or was asked about with
// validate_only.
v1::LayerDescription ToProto(const LayerPlan& layer, const PlanOptions& options) {
  v1::LayerDescription proto;
  proto.set_name(layer.name);
  proto.set_kind(std::string(Name(LayerKind::kLinear)));
  proto.set_has_bias(layer.bias.has_value());
  proto.set_bias_bytes(layer.bias_bytes());

  v1::WeightDescription& weight = *proto.mutable_weight();
  weight.set_name(layer.weight);
  weight.add_shape(layer.shape.out);
  weight.add_shape(layer.shape.in);
  weight.set_role(kLinearRole);
  *weight.mutable_recipe() = ToProto(options.recipe);
  weight.set_nominal_type(ToProto(options.nominal));
  *weight.mutable_decision() = ToProto(layer.decision);
  for (const PlaneLayout& plane : layer.planes) {
    v1::PlaneBytes& bytes = *weight.add_planes();
    bytes.set_plane(ToProto(plane.kind));
    bytes.set_payload_bytes(plane.payload_bytes);
    bytes.set_scale_bytes(plane.scale_bytes);
    bytes.set_state_bytes(plane.state_bytes);
  }
  weight.set_planned_bytes(layer.weight_bytes());
  return proto;
}

void SetHosted(const ModelDescription& model, ModelDetail detail, v1::Model& proto) {
  const ModelVersion& version = *model.version;
  proto.set_version(version.version.value());
  *proto.mutable_recipe() = ToProto(version.recipe);
  proto.set_plane_policy(ToProto(version.policy));
  proto.set_backward_enabled(version.backward_enabled);
  proto.set_trainable(version.trainable);
  proto.set_source_path(version.source_path);
  if (detail == ModelDetail::kSummary) return;
  for (size_t i = 0; i < version.layers.size(); ++i) {
    *proto.add_layers() =
        ToProto(version.layers[i], version.recipe, model.planned_weight_bytes[i]);
  }
  for (const LocalTensor& tensor : version.local) *proto.add_local() = ToProto(tensor);
}

void SetPlanned(const ModelPlan& plan, ModelDetail detail, v1::Model& proto) {
  *proto.mutable_recipe() = ToProto(plan.options.recipe);
  proto.set_plane_policy(ToProto(plan.options.policy));
  proto.set_backward_enabled(plan.options.backward_enabled);
  proto.set_trainable(plan.options.trainable);
  if (detail == ModelDetail::kSummary) return;
  for (const LayerPlan& layer : plan.layers) *proto.add_layers() = ToProto(layer, plan.options);
  for (const LocalTensorPlan& local : plan.local) *proto.add_local() = ToProto(local.tensor);
}

}  // namespace

absl::StatusOr<CreateModelSpec> FromProto(const v1::CreateModelRequest& request) {
  CreateModelSpec spec;
  spec.name = request.name();
  if (request.source_path().empty()) {
    return InvalidField("source_path", "\"\"",
                        "a directory with the model's weights; a model without weights needs "
                        "writeback, which this build does not have");
  }
  spec.source_path = request.source_path();
  PW_ASSIGN_OR_RETURN(spec.recipe, FromProto(request.recipe(), "recipe"));
  PW_ASSIGN_OR_RETURN(spec.policy, FromProto(request.plane_policy(), "plane_policy"));
  spec.backward_enabled = !request.has_backward_enabled() || request.backward_enabled();
  spec.trainable = request.trainable();
  for (int i = 0; i < request.future_modes_size(); ++i) {
    PW_ASSIGN_OR_RETURN(
        const BackwardOverride mode,
        FromProto(request.future_modes(i), absl::StrCat("future_modes[", i, "]")));
    spec.future_modes.push_back(mode);
  }
  PW_ASSIGN_OR_RETURN(spec.non_finite, FromProto(request.non_finite_policy()));
  spec.validate_only = request.validate_only();
  spec.request_id = request.request_id();
  return spec;
}

absl::StatusOr<SwitchSpec> FromProto(const v1::SwitchModeRequest& request) {
  SwitchSpec spec;
  spec.name = request.name();
  PW_ASSIGN_OR_RETURN(spec.target, FromProto(request.target(), "target"));
  spec.fingerprint = request.fingerprint();
  spec.release_unused_planes = request.release_unused_planes();
  spec.request_id = request.request_id();
  return spec;
}

absl::StatusOr<ReadWeightsSpec> FromProto(const v1::ReadWeightsRequest& request) {
  ReadWeightsSpec spec;
  spec.name = request.name();
  spec.version = WeightVersion(request.version());
  spec.weights.assign(request.weights().begin(), request.weights().end());
  if (request.plane() != v1::PLANE_UNSPECIFIED) {
    PW_ASSIGN_OR_RETURN(spec.plane, FromProto(request.plane(), "plane"));
  }
  if (request.dequantize_to() != v1::DATA_TYPE_UNSPECIFIED) {
    PW_ASSIGN_OR_RETURN(spec.dequantize_to, FromProto(request.dequantize_to(), "dequantize_to"));
  }
  return spec;
}

v1::Model ToProto(const ModelDescription& model, ModelDetail detail) {
  v1::Model proto;
  proto.set_name(model.name);
  proto.set_state(ToProto(model.state));
  if (!model.damage.ok()) *proto.mutable_damage() = StatusToProto(model.damage);
  if (model.version != nullptr) {
    SetHosted(model, detail, proto);
  } else if (model.plan) {
    SetPlanned(*model.plan, detail, proto);
  }
  proto.set_durable_version(model.durable_version.value());
  proto.set_planned_bytes(model.planned_bytes);
  proto.set_actual_bytes(model.actual_bytes);
  proto.set_planned_load_peak_bytes(model.planned_load_peak_bytes);
  proto.set_actual_load_peak_bytes(model.actual_load_peak_bytes);
  proto.set_lease_count(model.lease_count);
  return proto;
}

v1::Progress ToProto(const ProgressEvent& progress) {
  v1::Progress proto;
  proto.set_stage(progress.stage);
  proto.set_object(progress.object);
  proto.set_done_bytes(progress.done_bytes);
  proto.set_total_bytes(progress.total_bytes);
  return proto;
}

v1::SaveResult ToProto(const SaveOutcome& outcome) {
  v1::SaveResult proto;
  proto.set_version(outcome.version.value());
  proto.set_written_bytes(outcome.written_bytes);
  proto.set_written(outcome.written);
  proto.set_path(outcome.path);
  return proto;
}

v1::VerifyResult ToProto(const VerifyOutcome& outcome) {
  v1::VerifyResult proto;
  proto.set_ok(outcome.ok);
  proto.set_checked_bytes(outcome.checked_bytes);
  proto.set_tensor_count(outcome.tensor_count);
  for (const std::string& finding : outcome.findings) proto.add_findings(finding);
  return proto;
}

v1::ValidateModeSwitchResponse ToProto(const ValidationOutcome& outcome) {
  const SwitchValidation& validation = outcome.validation;
  v1::ValidateModeSwitchResponse proto;
  proto.set_verdict(ToProto(validation.verdict));
  proto.set_allowed_count(validation.allowed);
  proto.set_derivation_count(validation.derivation);
  proto.set_needs_master_count(validation.needs_master);
  proto.set_rejected_count(validation.rejected);
  for (const WeightVerdict& weight : validation.weights) *proto.add_weights() = ToProto(weight);
  for (const SwitchReason& reason : validation.model_reasons) {
    *proto.add_model_reasons() = ToProto(reason);
  }
  proto.set_persistent_delta_bytes(validation.persistent_delta_bytes);
  proto.set_transient_bytes(validation.transient_bytes);
  proto.set_upload_bytes(validation.upload_bytes);
  proto.set_derivation_seconds(validation.derivation_seconds);
  proto.set_fingerprint(validation.fingerprint);
  proto.set_version(outcome.version.value());
  *proto.mutable_current() = ToProto(outcome.current);
  return proto;
}

v1::SwitchModeResponse ToProto(const SwitchOutcome& outcome) {
  v1::SwitchModeResponse proto;
  proto.set_version(outcome.version.value());
  proto.set_freed_bytes(outcome.freed_bytes);
  *proto.mutable_validation() = ToProto(outcome.validation);
  return proto;
}

}  // namespace planewise
