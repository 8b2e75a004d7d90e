#include "planner/mode_switch.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/recipe/recipe_check.h"
#include "planner/estimate_rates.h"
#include "planner/plane_decision.h"

namespace planewise {
namespace {

constexpr int64_t kMasterBytesPerElement = 4;  // FP32

// More would not fit into the trailers of a gRPC reply.
constexpr size_t kListedReasonsMax = 20;

// 0 for a shape that has no layout.
int64_t PlaneBytes(PlaneKind kind, const SwitchWeight& weight) {
  PlaneOptions options;
  options.amax_history_length = weight.amax_history_length;
  const auto layout = PlaneLayoutFor(weight.format, weight.geometry, kind, weight.shape,
                                     weight.nominal, options);
  return layout.ok() ? layout->total_bytes() : 0;
}

int64_t StoredBytes(const SwitchWeight& weight) {
  const auto bytes = [&weight](bool stored, PlaneKind kind) {
    return stored ? PlaneBytes(kind, weight) : 0;
  };
  return bytes(weight.row, PlaneKind::kRow) + bytes(weight.column, PlaneKind::kColumn) +
         bytes(weight.high_precision, PlaneKind::kHighPrecision);
}

bool SameClass(const SwitchWeight& weight, const Recipe& target) {
  return weight.format == target.format;
}

// Fields of a recipe that decide the codes and scales of a weight.
bool SameCodes(const Recipe& stored, const Recipe& target) {
  return stored.power_of_two_scales == target.power_of_two_scales &&
         stored.amax_epsilon == target.amax_epsilon;
}

// Judges one weight after another against one target.
class Judge {
 public:
  Judge(const SwitchSnapshot& snapshot, const SwitchTarget& target)
      : snapshot_(snapshot),
        target_(target.recipe),
        release_(target.release_unused_planes),
        reads_column_(snapshot.backward_enabled && BackwardReadsColumn(target.recipe)) {
    JudgeTarget();
  }

  WeightVerdict operator()(const SwitchWeight& weight) const {
    WeightVerdict verdict;
    verdict.weight = weight.name;
    for (const SwitchReason& reason : target_reasons_) Reject(verdict, reason);
    for (const ShapeViolation& violation : ShapeViolations(target_, weight.shape)) {
      Reject(verdict, {Reason::kShapeNotDivisible,
                       absl::StrCat(Name(target_.format), " needs ", violation.dimension,
                                    " in multiples of ", violation.modulus),
                       violation.ToString(target_.format),
                       {{absl::StrCat("pad ", violation.dimension, " to ", violation.padded), 0,
                         0}}});
    }
    JudgeSource(weight, verdict);
    if (target_legal_) DecideAfter(weight, verdict);
    if (verdict.verdict == SwitchVerdict::kNeedsMaster) {
      verdict.upload_bytes = MasterBytes(weight);
    }
    return verdict;
  }

 private:
  static int64_t MasterBytes(const SwitchWeight& weight) {
    return weight.shape.elements() * kMasterBytesPerElement;
  }

  static void Reject(WeightVerdict& verdict, SwitchReason reason) {
    verdict.verdict = SwitchVerdict::kRejected;
    verdict.reasons.push_back(std::move(reason));
  }

  void NeedMaster(const SwitchWeight& weight, WeightVerdict& verdict, SwitchReason reason) const {
    verdict.verdict = std::max(verdict.verdict, SwitchVerdict::kNeedsMaster);
    if (target_legal_) AddSourceRemedy(weight, reason);
    verdict.reasons.push_back(std::move(reason));
  }

  // What holds for every weight alike.
  void JudgeTarget() {
    const absl::Status legal = CheckRecipe(target_);
    target_legal_ = legal.ok();
    if (!target_legal_) {
      target_reasons_.push_back({ReasonOf(legal).value_or(Reason::kInternal),
                                 std::string(legal.message()), target_.ToString(), {}});
    } else if (!absl::c_linear_search(snapshot_.device.formats, target_.format)) {
      target_reasons_.push_back({Reason::kArchUnsupported,
                                 absl::StrCat("the device must host ", Name(target_.format)),
                                 absl::StrCat("device ", snapshot_.device.name, " cannot"), {}});
    }
  }

  // Where the planes that the target reads come from.
  void JudgeSource(const SwitchWeight& weight, WeightVerdict& verdict) const {
    const bool quantized = weight.format != Format::kNone;
    if (quantized ? !weight.row : !weight.high_precision) {
      NeedMaster(weight, verdict,
                 {Reason::kNeedsMaster, "a fresh plane must be stored to start from",
                  quantized ? "the row plane is missing or stale"
                            : "the high-precision plane is missing or stale",
                  {}});
    } else if (SameClass(weight, target_)) {
      JudgeSameClass(weight, verdict);
    } else if (quantized && target_.quantized()) {
      NeedMaster(weight, verdict,
                 {Reason::kRecipeMismatch,
                  "another recipe class can come only from master weights",
                  absl::StrCat("stored as ", Name(weight.format), ", target ",
                               Name(target_.format)),
                  {}});
    } else if (weight.dequantized) {
      NeedMaster(weight, verdict,
                 {Reason::kNeedsMaster,
                  "quantizing dequantized weights would round them twice",
                  "the stored matrix was made by dequantizing", {}});
    } else {
      verdict.verdict = std::max(verdict.verdict, SwitchVerdict::kAllowedByDerivation);
    }
  }

  // A stored plane is a plane of the target.
  bool PlanesServe(const SwitchWeight& weight) const {
    if (!SameClass(weight, target_)) return false;
    return !target_.quantized() || (weight.geometry == target_.weight_geometry &&
                                    SameCodes(snapshot_.recipe, target_));
  }

  // The row plane stays but for the length of its history.
  bool ResizesState(const SwitchWeight& weight) const {
    return PlanesServe(weight) && weight.amax_history_length != target_.amax_history_length;
  }

  void JudgeSameClass(const SwitchWeight& weight, WeightVerdict& verdict) const {
    if (target_.quantized() && weight.geometry != target_.weight_geometry) {
      NeedMaster(weight, verdict,
                 {Reason::kGeometryMismatch, "blocks of another shape need other codes",
                  absl::StrCat("stored with ", Name(weight.geometry), " blocks, target ",
                               Name(target_.weight_geometry)),
                  {}});
      return;
    }
    if (target_.quantized() && !SameCodes(snapshot_.recipe, target_)) {
      NeedMaster(weight, verdict,
                 {Reason::kRecipeMismatch, "scales made by another rule need other codes",
                  absl::StrCat("stored as ", snapshot_.recipe.ToString(), ", target ",
                               target_.ToString()),
                  {}});
      return;
    }
    if (ResizesState(weight)) {
      verdict.verdict = std::max(verdict.verdict, SwitchVerdict::kAllowedByDerivation);
    }
    if (!reads_column_ || weight.column) {
      CheckRelease(weight, verdict);
    } else if (ColumnDerivableFromRow(weight.format, weight.geometry)) {
      verdict.verdict = std::max(verdict.verdict, SwitchVerdict::kAllowedByDerivation);
    } else {
      SwitchReason reason{Reason::kColumnwiseMissing,
                          "dgrad under backward_override=none reads the column plane, which "
                          "cannot be made from the row plane",
                          absl::StrCat("stored: row plane only, ", Name(weight.format), " with ",
                                       Name(weight.geometry), " blocks"),
                          {}};
      reason.remedies.push_back({StayUnderAnOverride(), 0, 0});
      NeedMaster(weight, verdict, std::move(reason));
    }
  }

  void CheckRelease(const SwitchWeight& weight, WeightVerdict& verdict) const {
    if (!Releases(weight) || weight.column_operands == 0) return;
    Reject(verdict,
           {Reason::kOperandsOutstanding,
            "the column plane cannot go while saved operands need it",
            absl::StrCat(weight.column_operands, " saved operands under backward_override=none"),
            {{"run or release their backward first", 0, 0},
             {"switch without release_unused_planes", 0, 0}}});
  }

  bool Releases(const SwitchWeight& weight) const {
    return release_ && weight.column && !reads_column_;
  }

  std::string StayUnderAnOverride() const {
    const BackwardOverride now = snapshot_.recipe.backward_override;
    if (now == BackwardOverride::kNone) {
      return "use backward_override=high_precision or dequantized";
    }
    return absl::StrCat("stay under backward_override=", Name(now));
  }

  void AddSourceRemedy(const SwitchWeight& weight, SwitchReason& reason) const {
    const int64_t bytes = MasterBytes(weight);
    if (snapshot_.source_path.empty()) {
      reason.remedies.push_back({"create the model again from a checkpoint of its weights", bytes,
                                 SecondsOf(bytes, kUploadBytesPerSecond)});
      return;
    }
    reason.remedies.push_back(
        {absl::StrCat("create the model again from \"", snapshot_.source_path, "\" with recipe ",
                      target_.ToString(), reads_column_ ? " and plane policy BOTH" : ""),
         bytes, SecondsOf(bytes, kSourceReadBytesPerSecond)});
  }

  // Planes and bytes after the switch.
  void DecideAfter(const SwitchWeight& weight, WeightVerdict& verdict) const {
    PlaneQuestion question;
    question.recipe = target_;
    question.backward_enabled = snapshot_.backward_enabled;
    question.policy = snapshot_.policy;
    question.shape = weight.shape;
    question.nominal = weight.nominal;
    const auto decision = PlanesServe(weight) && target_.quantized()
                              ? KeepPlanes(question, weight)
                              : DecidePlanes(question);
    if (!decision.ok()) return;  // no such layout: the shape was rejected before
    verdict.decision = *decision;
    if (!target_.quantized() && (weight.format != Format::kNone || weight.dequantized)) {
      verdict.decision.forbids.push_back(
          "a quantized recipe later: quantizing dequantized weights would round them twice");
    }
    const auto planes = LayoutsOf(*decision, target_, weight.shape, weight.nominal);
    if (!planes.ok()) return;
    const int64_t now = StoredBytes(weight);
    const int64_t after = TotalBytes(*planes);
    verdict.persistent_delta_bytes = after - now;
    if (verdict.verdict != SwitchVerdict::kAllowedByDerivation) return;
    // A plane whose state has another length is a plane of its own.
    const bool adds = PlanesServe(weight) && !ResizesState(weight);
    verdict.derived_bytes = adds ? after - now : after;
    verdict.derivation_seconds = SecondsOf(now + verdict.derived_bytes, kConvertBytesPerSecond);
  }

  // Within a class a switch adds the column plane that the target reads, and
  // drops one only when asked to.
  absl::StatusOr<PlaneDecision> KeepPlanes(const PlaneQuestion& question,
                                           const SwitchWeight& weight) const {
    if (reads_column_) {
      return RecordPlanes(question, true, "backward_override=none reads the column plane in dgrad");
    }
    if (!weight.column) {
      return RecordPlanes(question, false, "every GEMM of the target reads the row plane");
    }
    if (release_) {
      return RecordPlanes(question, false,
                          "released by a switch whose target does not read the column plane");
    }
    return RecordPlanes(question, true,
                        "kept: a switch drops planes only with release_unused_planes");
  }

  const SwitchSnapshot& snapshot_;
  const Recipe& target_;
  const bool release_;
  const bool reads_column_;
  bool target_legal_ = false;
  std::vector<SwitchReason> target_reasons_;
};

void Count(const WeightVerdict& weight, SwitchValidation& validation) {
  switch (weight.verdict) {
    case SwitchVerdict::kAllowed: ++validation.allowed; break;
    case SwitchVerdict::kAllowedByDerivation: ++validation.derivation; break;
    case SwitchVerdict::kNeedsMaster: ++validation.needs_master; break;
    case SwitchVerdict::kRejected: ++validation.rejected; break;
  }
  validation.verdict = std::max(validation.verdict, weight.verdict);
  validation.persistent_delta_bytes += weight.persistent_delta_bytes;
  validation.transient_bytes += weight.derived_bytes;
  validation.upload_bytes += weight.upload_bytes;
  validation.derivation_seconds += weight.derivation_seconds;
}

int64_t AddedBytes(const SwitchValidation& validation) {
  return std::max(validation.transient_bytes, validation.persistent_delta_bytes);
}

void AdmitMemory(const SwitchSnapshot& snapshot, SwitchValidation& validation) {
  const int64_t needed = AddedBytes(validation);
  if (needed <= snapshot.available_bytes) return;
  const int64_t missing = needed - snapshot.available_bytes;
  validation.model_reasons.push_back(
      {Reason::kMemoryShortfall, "the planes that the switch adds must fit",
       absl::StrCat("needs ", needed, " bytes, ", snapshot.available_bytes,
                    " are available (short of ", missing, ")"),
       {{"free memory: delete a model or end sessions", missing, 0}}});
  validation.verdict = SwitchVerdict::kRejected;
}

std::string ReasonText(const SwitchReason& reason) {
  std::string text = absl::StrCat(reason.rule, "; observed: ", reason.observed);
  if (reason.remedies.empty()) return text;
  return absl::StrCat(text, "; do: ",
                      absl::StrJoin(reason.remedies, ", or ",
                                    [](std::string* out, const Remedy& remedy) {
                                      absl::StrAppend(out, remedy.action);
                                      if (remedy.bytes > 0) {
                                        absl::StrAppend(out, " (", remedy.bytes, " bytes)");
                                      }
                                    }));
}

}  // namespace

absl::string_view Name(SwitchVerdict verdict) {
  switch (verdict) {
    case SwitchVerdict::kAllowed: return "ALLOWED";
    case SwitchVerdict::kAllowedByDerivation: return "ALLOWED_BY_DERIVATION";
    case SwitchVerdict::kNeedsMaster: return "NEEDS_MASTER";
    case SwitchVerdict::kRejected: return "REJECTED";
  }
  return "invalid";
}

SwitchValidation ValidateModeSwitch(const SwitchSnapshot& snapshot, const SwitchTarget& target) {
  SwitchValidation validation;
  const Judge judge(snapshot, target);
  validation.weights.reserve(snapshot.weights.size());
  for (const SwitchWeight& weight : snapshot.weights) {
    validation.weights.push_back(judge(weight));
    Count(validation.weights.back(), validation);
  }
  AdmitMemory(snapshot, validation);
  validation.fingerprint = SwitchFingerprint(snapshot, target.recipe);
  return validation;
}

absl::Status SwitchStatus(const SwitchSnapshot& snapshot, const SwitchTarget& target,
                          const SwitchValidation& validation) {
  if (validation.runs()) return absl::OkStatus();
  std::vector<Violation> violations;
  const auto list_weights = [&](SwitchVerdict verdict) {
    for (const WeightVerdict& weight : validation.weights) {
      if (weight.verdict != verdict) continue;
      for (const SwitchReason& reason : weight.reasons) {
        if (violations.size() == kListedReasonsMax) return;
        violations.push_back({reason.reason, weight.weight, ReasonText(reason)});
      }
    }
  };
  list_weights(SwitchVerdict::kRejected);
  for (const SwitchReason& reason : validation.model_reasons) {
    violations.push_back({reason.reason, snapshot.model, ReasonText(reason)});
  }
  list_weights(SwitchVerdict::kNeedsMaster);

  const Violation& worst = violations.front();
  Error error(worst.reason,
              absl::StrCat("model \"", snapshot.model, "\": cannot switch from ",
                           snapshot.recipe.ToString(), " to ", target.recipe.ToString(), ": \"",
                           worst.subject, "\": ", worst.description, " (",
                           validation.needs_master, " of ", validation.weights.size(),
                           " weights need masters, ", validation.rejected, " are rejected)"));
  error.With("needsMasterCount", validation.needs_master)
      .With("rejectedCount", validation.rejected)
      .With("uploadBytes", validation.upload_bytes);
  const int64_t short_bytes = AddedBytes(validation) - snapshot.available_bytes;
  if (short_bytes > 0) error.With("bytesShort", short_bytes);
  for (Violation& violation : violations) error.WithViolation(std::move(violation));
  return error;
}

}  // namespace planewise
