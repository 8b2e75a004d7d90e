#include "planner/mode_switch.h"

#include <functional>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plane_decision.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using enum BackwardOverride;
using enum SwitchVerdict;

constexpr MatrixShape kShape{4096, 4096};
constexpr int64_t kPlaneBytes = 17'301'504;
constexpr int64_t kScaleBytes = 4096 * 4096 / 32;
// Both planes: packed codes, a scale for 16 of them, an amax.
constexpr int64_t kNvfp4Bytes = 2 * (4096 * 4096 / 2 + 4096 * 4096 / 16 + 4);
constexpr int64_t kBf16Bytes = 4096 * 4096 * 2;
constexpr int64_t kMasterBytes = 4096 * 4096 * 4;

Recipe Mxfp8(BackwardOverride backward_override) {
  Recipe recipe = DefaultRecipe(Format::kMxfp8);
  recipe.backward_override = backward_override;
  return recipe;
}

SwitchWeight Mxfp8Weight(bool column) {
  SwitchWeight weight;
  weight.name = "x.weight";
  weight.shape = kShape;
  weight.format = Format::kMxfp8;
  weight.row = true;
  weight.column = column;
  return weight;
}

SwitchWeight Bf16Weight() {
  SwitchWeight weight;
  weight.name = "x.weight";
  weight.shape = kShape;
  weight.high_precision = true;
  return weight;
}

SwitchSnapshot Snapshot(Recipe recipe, std::vector<SwitchWeight> weights) {
  SwitchSnapshot snapshot;
  snapshot.model = "a";
  snapshot.version = WeightVersion(7);
  snapshot.recipe = recipe;
  snapshot.source_path = "/models/a";
  snapshot.weights = std::move(weights);
  snapshot.available_bytes = int64_t{1} << 40;
  snapshot.device = {"cpu", {Format::kNone, Format::kMxfp8}};
  return snapshot;
}

std::vector<Reason> ReasonsOf(const WeightVerdict& weight) {
  std::vector<Reason> reasons;
  for (const SwitchReason& reason : weight.reasons) reasons.push_back(reason.reason);
  return reasons;
}

struct MatrixCase {
  const char* name;
  SwitchWeight weight;
  bool backward_enabled;
  Recipe target;
  SwitchVerdict verdict;
  std::vector<Reason> reasons;
  int64_t persistent_delta_bytes;
  int64_t derived_bytes;
  int64_t upload_bytes;
};

TEST(ModeSwitchTest, JudgesEveryStoredLayoutAgainstEveryTarget) {
  SwitchWeight dequantized = Bf16Weight();
  dequantized.dequantized = true;
  SwitchWeight stale_row = Mxfp8Weight(true);
  stale_row.row = false;
  const Recipe bf16 = DefaultRecipe(Format::kNone);
  Recipe mxfp8_2d = Mxfp8(kNone);
  mxfp8_2d.weight_geometry = BlockGeometry::k2D;
  Recipe hybrid = Mxfp8(kDequantized);
  hybrid.fp8_format = Fp8Format::kHybrid;
  Recipe delayed_override = DefaultRecipe(Format::kFp8Delayed);
  delayed_override.backward_override = kDequantized;
  Recipe bf16_override = bf16;
  bf16_override.backward_override = kHighPrecision;

  const MatrixCase cases[] = {
      {"row only, to a quantized backward", Mxfp8Weight(false), true, Mxfp8(kNone), kNeedsMaster,
       {Reason::kColumnwiseMissing}, kPlaneBytes, 0, kMasterBytes},
      {"row only, to high_precision", Mxfp8Weight(false), true, Mxfp8(kHighPrecision), kAllowed,
       {}, 0, 0, 0},
      {"row only, to dequantized", Mxfp8Weight(false), true, Mxfp8(kDequantized), kAllowed, {}, 0,
       0, 0},
      {"both, to a quantized backward", Mxfp8Weight(true), true, Mxfp8(kNone), kAllowed, {}, 0, 0,
       0},
      {"both, to high_precision", Mxfp8Weight(true), true, Mxfp8(kHighPrecision), kAllowed, {}, 0,
       0, 0},
      {"both, to dequantized", Mxfp8Weight(true), true, Mxfp8(kDequantized), kAllowed, {}, 0, 0,
       0},
      {"row only, inference never reads the column", Mxfp8Weight(false), false, Mxfp8(kNone),
       kAllowed, {}, 0, 0, 0},
      {"another format of gradients: state only", Mxfp8Weight(false), true, hybrid, kAllowed, {},
       0, 0, 0},
      {"row only, to high precision", Mxfp8Weight(false), true, bf16, kAllowedByDerivation, {},
       kBf16Bytes - kPlaneBytes, kBf16Bytes, 0},
      {"both, to high precision", Mxfp8Weight(true), true, bf16, kAllowedByDerivation, {},
       kBf16Bytes - 2 * kPlaneBytes, kBf16Bytes, 0},
      {"high precision stays", Bf16Weight(), true, bf16, kAllowed, {}, 0, 0, 0},
      {"high precision, to a quantized backward", Bf16Weight(), true, Mxfp8(kNone),
       kAllowedByDerivation, {}, 2 * kPlaneBytes - kBf16Bytes, 2 * kPlaneBytes, 0},
      {"high precision, to an override", Bf16Weight(), true, Mxfp8(kDequantized),
       kAllowedByDerivation, {}, kPlaneBytes - kBf16Bytes, kPlaneBytes, 0},
      {"dequantized weights are not quantized again", dequantized, true, Mxfp8(kDequantized),
       kNeedsMaster, {Reason::kNeedsMaster}, kPlaneBytes - kBf16Bytes, 0, kMasterBytes},
      {"a stale row plane is not read", stale_row, true, Mxfp8(kDequantized), kNeedsMaster,
       {Reason::kNeedsMaster}, kPlaneBytes, 0, kMasterBytes},
      {"blocks of another shape", Mxfp8Weight(true), true, mxfp8_2d, kNeedsMaster,
       {Reason::kGeometryMismatch}, kScaleBytes - kPlaneBytes, 0, kMasterBytes},
      {"another class that the device does not have", Mxfp8Weight(true), true,
       DefaultRecipe(Format::kNvfp4), kRejected,
       {Reason::kArchUnsupported, Reason::kRecipeMismatch}, kNvfp4Bytes - 2 * kPlaneBytes, 0, 0},
      {"an override that delayed scaling cannot take", Mxfp8Weight(true), true, delayed_override,
       kRejected, {Reason::kOverrideUnsupportedForRecipe, Reason::kRecipeMismatch}, 0, 0, 0},
      {"an override of nothing", Bf16Weight(), true, bf16_override, kRejected,
       {Reason::kOverrideUnsupportedForRecipe}, 0, 0, 0},
  };
  for (const MatrixCase& test : cases) {
    SCOPED_TRACE(test.name);
    SwitchSnapshot snapshot = Snapshot(Mxfp8(kDequantized), {test.weight});
    snapshot.backward_enabled = test.backward_enabled;
    const SwitchValidation validation = ValidateModeSwitch(snapshot, {test.target});
    ASSERT_THAT(validation.weights, SizeIs(1));
    const WeightVerdict& weight = validation.weights[0];
    EXPECT_EQ(Name(weight.verdict), Name(test.verdict));
    EXPECT_EQ(validation.verdict, test.verdict);
    EXPECT_EQ(ReasonsOf(weight), test.reasons);
    EXPECT_EQ(weight.persistent_delta_bytes, test.persistent_delta_bytes);
    EXPECT_EQ(weight.derived_bytes, test.derived_bytes);
    EXPECT_EQ(weight.upload_bytes, test.upload_bytes);
    EXPECT_EQ(validation.transient_bytes, test.derived_bytes);
    EXPECT_EQ(weight.derivation_seconds > 0, test.derived_bytes > 0);
    EXPECT_EQ(SwitchStatus(snapshot, {test.target}, validation).ok(), validation.runs());
  }
}

// Guard and validator agree with inference: what AUTO stores for a mode is
// always allowed in that mode, and in every other mode iff the rule says so.
TEST(ModeSwitchTest, AgreesWithTheInferenceOfPlanes) {
  for (const bool backward_enabled : {true, false}) {
    for (const BackwardOverride made_for : {kNone, kHighPrecision, kDequantized}) {
      for (const BackwardOverride target : {kNone, kHighPrecision, kDequantized}) {
        SCOPED_TRACE(testing::Message() << Name(made_for) << " to " << Name(target)
                                        << ", backward_enabled=" << backward_enabled);
        PlaneQuestion question;
        question.shape = kShape;
        question.backward_enabled = backward_enabled;
        question.recipe = Mxfp8(made_for);
        const bool column = DecidePlanes(question)->column;
        question.recipe = Mxfp8(target);
        const bool needed = DecidePlanes(question)->column;
        SwitchSnapshot snapshot = Snapshot(Mxfp8(made_for), {Mxfp8Weight(column)});
        snapshot.backward_enabled = backward_enabled;
        EXPECT_EQ(ValidateModeSwitch(snapshot, {Mxfp8(target)}).verdict,
                  needed && !column ? kNeedsMaster : kAllowed);
      }
    }
  }
}

// TransformerEngine#3468: created under an override, later asked for the
// default backward.
// Field report 46: what is missing, of which weights, and what it can be made of.
TEST(ModeSwitchTest, AMissingColumnPlaneNamesItsRemedies) {
  const SwitchSnapshot snapshot = Snapshot(Mxfp8(kDequantized), {Mxfp8Weight(false)});
  const SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(kNone)});
  ASSERT_THAT(validation.weights[0].reasons, SizeIs(1));
  const SwitchReason& reason = validation.weights[0].reasons[0];
  EXPECT_EQ(reason.rule,
            "dgrad under backward_override=none reads the column plane, which cannot be made from "
            "the row plane");
  EXPECT_EQ(reason.observed, "stored: row plane only, mxfp8 with 1d blocks");
  ASSERT_THAT(reason.remedies, SizeIs(2));
  EXPECT_EQ(reason.remedies[0], (Remedy{"stay under backward_override=dequantized", 0, 0}));
  EXPECT_EQ(reason.remedies[1].action,
            "create the model again from \"/models/a\" with recipe mxfp8 and plane policy BOTH");
  EXPECT_EQ(reason.remedies[1].bytes, kMasterBytes);
  EXPECT_GT(reason.remedies[1].seconds, 0);
  EXPECT_TRUE(validation.weights[0].decision.column);

  const absl::Status status = SwitchStatus(snapshot, {Mxfp8(kNone)}, validation);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status,
              HasReason(Reason::kColumnwiseMissing,
                        AllOf(HasSubstr("model \"a\": cannot switch from "
                                        "mxfp8(backward_override=dequantized) to mxfp8: "
                                        "\"x.weight\": dgrad under"),
                              HasSubstr("do: stay under backward_override=dequantized, or create "
                                        "the model again"),
                              HasSubstr("(1 of 1 weights need masters, 0 are rejected)"))));
  const auto details = DetailsOf(status);
  EXPECT_EQ(*details->Find("uploadBytes"), "67108864");
  ASSERT_THAT(details->violations, SizeIs(1));
  EXPECT_EQ(details->violations[0].subject, "x.weight");
}

TEST(ModeSwitchTest, WithoutASourceTheRemedyIsACheckpoint) {
  SwitchSnapshot snapshot = Snapshot(Mxfp8(kNone), {Mxfp8Weight(false)});
  snapshot.source_path.clear();
  const SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(kNone)});
  ASSERT_THAT(validation.weights[0].reasons, SizeIs(1));
  EXPECT_THAT(validation.weights[0].reasons[0].remedies,
              ElementsAre(Field(&Remedy::action,
                                "use backward_override=high_precision or dequantized"),
                          Field(&Remedy::action, HasSubstr("from a checkpoint"))));
}

// torchtitan#1703: refused when validated, not inside a backward.
TEST(ModeSwitchTest, ShapesAreRejectedWithOnlyTheBrokenRule) {
  SwitchWeight weight = Bf16Weight();
  weight.shape = {16, 64};
  const SwitchSnapshot snapshot = Snapshot(DefaultRecipe(Format::kNone), {weight});
  const SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(kNone)});
  EXPECT_EQ(validation.verdict, kRejected);
  ASSERT_THAT(validation.weights[0].reasons, SizeIs(1));
  const SwitchReason& reason = validation.weights[0].reasons[0];
  EXPECT_EQ(reason.reason, Reason::kShapeNotDivisible);
  EXPECT_EQ(reason.observed, "out_features 16 % 32 = 16; mxfp8 needs a multiple of 32; pad to 32");
  EXPECT_THAT(reason.remedies, ElementsAre(Remedy{"pad out_features to 32", 0, 0}));
  EXPECT_THAT(SwitchStatus(snapshot, {Mxfp8(kNone)}, validation),
              HasReason(Reason::kShapeNotDivisible));
}

TEST(ModeSwitchTest, ADeviceWithoutThePathIsNamed) {
  SwitchSnapshot snapshot = Snapshot(Mxfp8(kNone), {Mxfp8Weight(true)});
  snapshot.device = {"sm_120", {Format::kNone}};
  const SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(kDequantized)});
  EXPECT_EQ(ReasonsOf(validation.weights[0]), std::vector<Reason>{Reason::kArchUnsupported});
  EXPECT_EQ(validation.weights[0].reasons[0].observed, "device sm_120 cannot");
  EXPECT_EQ(validation.verdict, kRejected);
}

TEST(ModeSwitchTest, RollsUpTheWorstVerdictAndAllBytes) {
  SwitchWeight ragged = Bf16Weight();
  ragged.shape = {48, 64};
  SwitchSnapshot snapshot =
      Snapshot(Mxfp8(kDequantized), {Mxfp8Weight(true), Bf16Weight(), Mxfp8Weight(false)});
  SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(kNone)});
  EXPECT_EQ(validation.verdict, kNeedsMaster);
  EXPECT_EQ(validation.allowed, 1);
  EXPECT_EQ(validation.derivation, 1);
  EXPECT_EQ(validation.needs_master, 1);
  EXPECT_EQ(validation.persistent_delta_bytes, 2 * kPlaneBytes - kBf16Bytes + kPlaneBytes);
  EXPECT_EQ(validation.upload_bytes, kMasterBytes);
  snapshot.weights.push_back(ragged);
  validation = ValidateModeSwitch(snapshot, {Mxfp8(kNone)});
  EXPECT_EQ(validation.verdict, kRejected);
  EXPECT_EQ(validation.rejected, 1);
  // The rejected weight speaks, the others are still listed.
  const absl::Status status = SwitchStatus(snapshot, {Mxfp8(kNone)}, validation);
  EXPECT_THAT(status, HasReason(Reason::kShapeNotDivisible));
  EXPECT_THAT(DetailsOf(status)->violations, SizeIs(2));
}

TEST(ModeSwitchTest, AnEmptyModelMaySwitch) {
  EXPECT_EQ(ValidateModeSwitch(Snapshot(Mxfp8(kNone), {}), {Mxfp8(kDequantized)}).verdict,
            kAllowed);
}

TEST(ModeSwitchTest, MemoryIsAdmittedToTheByte) {
  SwitchSnapshot snapshot = Snapshot(DefaultRecipe(Format::kNone), {Bf16Weight()});
  snapshot.available_bytes = 2 * kPlaneBytes;
  EXPECT_TRUE(ValidateModeSwitch(snapshot, {Mxfp8(kNone)}).runs());
  snapshot.available_bytes = 2 * kPlaneBytes - 1;
  const SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(kNone)});
  EXPECT_EQ(validation.verdict, kRejected);
  EXPECT_EQ(validation.derivation, 1);
  ASSERT_THAT(validation.model_reasons, SizeIs(1));
  EXPECT_EQ(validation.model_reasons[0].observed,
            "needs 34603008 bytes, 34603007 are available (short of 1)");
  const absl::Status status = SwitchStatus(snapshot, {Mxfp8(kNone)}, validation);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*DetailsOf(status)->Find("bytesShort"), "1");
}

TEST(ModeSwitchTest, ReleasingPlanesIsOptInAndWaitsForOperands) {
  SwitchSnapshot snapshot = Snapshot(Mxfp8(kNone), {Mxfp8Weight(true)});
  const SwitchValidation kept = ValidateModeSwitch(snapshot, {Mxfp8(kDequantized)});
  EXPECT_TRUE(kept.weights[0].decision.column);
  EXPECT_EQ(kept.weights[0].decision.why,
            "kept: a switch drops planes only with release_unused_planes");
  EXPECT_EQ(kept.persistent_delta_bytes, 0);

  const SwitchTarget release{Mxfp8(kDequantized), true};
  const SwitchValidation released = ValidateModeSwitch(snapshot, release);
  EXPECT_EQ(released.verdict, kAllowed);
  EXPECT_FALSE(released.weights[0].decision.column);
  EXPECT_EQ(released.weights[0].decision.saved_bytes, kPlaneBytes);
  EXPECT_THAT(released.weights[0].decision.forbids, SizeIs(1));
  EXPECT_EQ(released.persistent_delta_bytes, -kPlaneBytes);
  EXPECT_EQ(released.fingerprint, kept.fingerprint);

  snapshot.weights[0].column_operands = 3;
  EXPECT_EQ(ValidateModeSwitch(snapshot, {Mxfp8(kDequantized)}).verdict, kAllowed);
  const SwitchValidation outstanding = ValidateModeSwitch(snapshot, release);
  EXPECT_EQ(outstanding.verdict, kRejected);
  EXPECT_EQ(outstanding.weights[0].reasons[0].observed,
            "3 saved operands under backward_override=none");
  EXPECT_THAT(SwitchStatus(snapshot, release, outstanding),
              HasReason(Reason::kOperandsOutstanding));
  // A target that reads the plane releases nothing.
  EXPECT_EQ(ValidateModeSwitch(snapshot, {Mxfp8(kNone), true}).verdict, kAllowed);
}

// Weights with both planes enter and leave an override freely, as often as
// they like.
TEST(ModeSwitchTest, TwoPlanesComeAndGo) {
  SwitchSnapshot snapshot = Snapshot(Mxfp8(kNone), {Mxfp8Weight(true)});
  for (const BackwardOverride target : {kDequantized, kNone, kHighPrecision, kDequantized, kNone}) {
    const SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(target)});
    ASSERT_EQ(validation.verdict, kAllowed);
    snapshot.recipe = Mxfp8(target);
    snapshot.weights[0].column = validation.weights[0].decision.column;
  }
}

TEST(ModeSwitchTest, GoingToHighPrecisionSaysThatItIsOneWay) {
  const SwitchSnapshot snapshot = Snapshot(Mxfp8(kNone), {Mxfp8Weight(true)});
  const SwitchValidation validation =
      ValidateModeSwitch(snapshot, {DefaultRecipe(Format::kNone)});
  EXPECT_THAT(validation.weights[0].decision.forbids,
              ElementsAre(HasSubstr("would round them twice")));
}

TEST(ModeSwitchTest, ListsNoMoreReasonsThanATrailerHolds) {
  const SwitchSnapshot snapshot =
      Snapshot(Mxfp8(kDequantized), std::vector<SwitchWeight>(1000, Mxfp8Weight(false)));
  const SwitchValidation validation = ValidateModeSwitch(snapshot, {Mxfp8(kNone)});
  EXPECT_EQ(validation.needs_master, 1000);
  const absl::Status status = SwitchStatus(snapshot, {Mxfp8(kNone)}, validation);
  EXPECT_THAT(DetailsOf(status)->violations, SizeIs(20));
  EXPECT_EQ(*DetailsOf(status)->Find("needsMasterCount"), "1000");
}

TEST(ModeSwitchTest, TheFingerprintMovesWithEverythingThatCounts) {
  const SwitchSnapshot base = Snapshot(Mxfp8(kDequantized), {Mxfp8Weight(true)});
  const std::string fingerprint = SwitchFingerprint(base, Mxfp8(kNone));
  EXPECT_THAT(fingerprint, SizeIs(16));
  EXPECT_EQ(fingerprint, SwitchFingerprint(base, Mxfp8(kNone)));
  EXPECT_NE(fingerprint, SwitchFingerprint(base, Mxfp8(kHighPrecision)));
  const std::function<void(SwitchSnapshot&)> moves[] = {
      [](SwitchSnapshot& s) { s.model = "b"; },
      [](SwitchSnapshot& s) { s.version = s.version.Next(); },
      [](SwitchSnapshot& s) { s.recipe = Mxfp8(kNone); },
      [](SwitchSnapshot& s) { s.policy = PlanePolicy::kBoth; },
      [](SwitchSnapshot& s) { s.backward_enabled = false; },
      [](SwitchSnapshot& s) { s.device.name = "sm_90"; },
      [](SwitchSnapshot& s) { s.device.formats.pop_back(); },
      [](SwitchSnapshot& s) { s.weights.clear(); },
      [](SwitchSnapshot& s) { s.weights.push_back(s.weights[0]); },
      [](SwitchSnapshot& s) { s.weights[0].name = "y.weight"; },
      [](SwitchSnapshot& s) { s.weights[0].shape.out = 32; },
      [](SwitchSnapshot& s) { s.weights[0].shape.in = 32; },
      [](SwitchSnapshot& s) { s.weights[0].nominal = DType::kF32; },
      [](SwitchSnapshot& s) { s.weights[0].format = Format::kNvfp4; },
      [](SwitchSnapshot& s) { s.weights[0].geometry = BlockGeometry::k2D; },
      [](SwitchSnapshot& s) { s.weights[0].row = false; },
      [](SwitchSnapshot& s) { s.weights[0].column = false; },
      [](SwitchSnapshot& s) { s.weights[0].high_precision = true; },
      [](SwitchSnapshot& s) { s.weights[0].dequantized = true; },
  };
  for (size_t i = 0; i < std::size(moves); ++i) {
    SwitchSnapshot moved = base;
    moves[i](moved);
    EXPECT_NE(SwitchFingerprint(moved, Mxfp8(kNone)), fingerprint) << "move " << i;
  }
  SwitchSnapshot busier = base;
  busier.available_bytes = 1;
  busier.weights[0].column_operands = 9;
  EXPECT_EQ(SwitchFingerprint(busier, Mxfp8(kNone)), fingerprint);
}

}  // namespace
}  // namespace planewise
