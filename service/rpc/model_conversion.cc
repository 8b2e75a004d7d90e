#include "service/rpc/model_conversion.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/status/status_codec.h"
#include "service/rpc/field_error.h"
#include "service/rpc/recipe_conversion.h"
#include "service/rpc/tensor_conversion.h"

namespace planewise {
namespace {

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

// What the plan says of a layer; `hosted` adds what is stored of it, and is
// nullptr while the model loads.
v1::LayerDescription ToProto(const LayerPlan& plan, const Recipe& recipe, DType nominal,
                             const HostedLayer* hosted) {
  v1::LayerDescription proto;
  proto.set_name(plan.name);
  proto.set_kind(std::string(Name(LayerKind::kLinear)));
  proto.set_has_bias(plan.bias.has_value());
  proto.set_bias_bytes(plan.bias_bytes());

  v1::WeightDescription& weight = *proto.mutable_weight();
  weight.set_name(plan.weight);
  weight.add_shape(plan.shape.out);
  weight.add_shape(plan.shape.in);
  weight.set_role("linear");
  *weight.mutable_recipe() = ToProto(recipe);
  weight.set_nominal_type(ToProto(nominal));
  *weight.mutable_decision() = ToProto(hosted == nullptr ? plan.decision : hosted->decision);
  weight.set_planned_bytes(plan.weight_bytes());
  if (hosted == nullptr) return proto;

  const PrimaryWeight& stored = *hosted->weight;
  for (const Plane* plane : {stored.row.get(), stored.column.get(), stored.high_precision.get()}) {
    if (plane != nullptr) *weight.add_planes() = ToProto(*plane);
  }
  weight.set_actual_bytes(stored.stored_bytes());
  weight.set_epoch(stored.epoch.value());
  weight.set_provenance(hosted->provenance);
  return proto;
}

v1::LocalTensor ToProto(const LocalTensor& tensor) {
  v1::LocalTensor proto;
  proto.set_name(tensor.name);
  for (const int64_t size : tensor.shape) proto.add_shape(size);
  proto.set_why(tensor.why);
  return proto;
}

}  // namespace

absl::StatusOr<CreateModelSpec> FromProto(const v1::CreateModelRequest& request) {
  CreateModelSpec spec;
  spec.name = request.name();
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

v1::Model ToProto(const ModelDescription& model, ModelDetail detail) {
  const ModelVersion* version = model.version.get();
  const PlanOptions& options = model.plan.options;
  v1::Model proto;
  proto.set_name(model.name);
  proto.set_state(ToProto(model.state));
  proto.set_durable_version(model.durable_version.value());
  const Recipe& recipe = version == nullptr ? options.recipe : version->recipe;
  *proto.mutable_recipe() = ToProto(recipe);
  proto.set_plane_policy(ToProto(version == nullptr ? options.policy : version->policy));
  proto.set_backward_enabled(version == nullptr ? options.backward_enabled
                                                : version->backward_enabled);
  proto.set_trainable(version == nullptr ? options.trainable : version->trainable);
  if (version != nullptr) {
    proto.set_version(version->version.value());
    proto.set_source_path(version->source_path);
  }
  proto.set_planned_bytes(model.plan.totals.persistent_bytes);
  proto.set_actual_bytes(model.actual_bytes);
  proto.set_planned_load_peak_bytes(model.plan.load_peak.total_bytes());
  proto.set_actual_load_peak_bytes(model.actual_load_peak_bytes);
  proto.set_lease_count(model.lease_count);
  if (!model.damage.ok()) *proto.mutable_damage() = StatusToProto(model.damage);
  if (detail == ModelDetail::kSummary) return proto;

  for (const LayerPlan& layer : model.plan.layers) {
    const HostedLayer* hosted = version == nullptr ? nullptr : version->FindLayer(layer.name);
    *proto.add_layers() = ToProto(layer, recipe, options.nominal, hosted);
  }
  for (const LocalTensorPlan& local : model.plan.local) *proto.add_local() = ToProto(local.tensor);
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

v1::ValidateModeSwitchResponse ToProto(const SwitchValidation& validation) {
  v1::ValidateModeSwitchResponse proto;
  proto.set_verdict(ToProto(validation.verdict));
  proto.set_allowed_count(validation.allowed);
  proto.set_derivation_count(validation.derivation);
  proto.set_needs_master_count(validation.needs_master);
  proto.set_rejected_count(validation.rejected);
  for (const WeightVerdict& weight : validation.weights) *proto.add_weights() = ToProto(weight);
  proto.set_persistent_delta_bytes(validation.persistent_delta_bytes);
  proto.set_transient_bytes(validation.transient_bytes);
  proto.set_upload_bytes(validation.upload_bytes);
  proto.set_fingerprint(validation.fingerprint);
  for (const SwitchReason& reason : validation.model_reasons) {
    *proto.add_model_reasons() = ToProto(reason);
  }
  proto.set_derivation_seconds(validation.derivation_seconds);
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
