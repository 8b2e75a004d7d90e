#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/weights/catalog_fixture.h"
#include "service/weights/model_catalog.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Recipe Mxfp8(BackwardOverride backward_override) {
  Recipe recipe = DefaultRecipe(Format::kMxfp8);
  recipe.backward_override = backward_override;
  return recipe;
}

class SwitchModelTest : public CatalogFixture {
 protected:
  void Host(BackwardOverride backward_override, PlanePolicy policy = PlanePolicy::kAuto) {
    WriteSource();
    CreateModelSpec spec = Spec("m", backward_override);
    spec.policy = policy;
    PW_ASSERT_OK(Create(spec));
  }

  // A switch that was validated just now.
  SwitchSpec Validated(const Recipe& target, bool release = false) {
    SwitchSpec spec;
    spec.name = "m";
    spec.target = target;
    spec.release_unused_planes = release;
    auto validation = catalog().Validate("m", {target, release});
    EXPECT_TRUE(validation.ok()) << validation.status();
    spec.fingerprint = validation->validation.fingerprint;
    return spec;
  }

  std::shared_ptr<const ModelVersion> Newest() { return catalog().Describe("m")->version; }

  void ExpectPlannedIsActual() {
    const ModelDescription model = *catalog().Describe("m");
    EXPECT_EQ(model.planned_bytes, model.actual_bytes);
    EXPECT_EQ(budget_->used_bytes(), model.actual_bytes);
  }

  WeightLease Lease() {
    LeaseRequest request;
    request.model = "m";
    request.holder = "session 7, step 3";
    return *catalog().Lease(std::move(request));
  }
};

TEST_F(SwitchModelTest, RowOnlyWeightsMoveFreelyBetweenTheOverrides) {
  Host(BackwardOverride::kDequantized);
  const std::shared_ptr<const ModelVersion> before = Newest();
  PW_ASSERT_OK_AND_ASSIGN(const SwitchOutcome outcome,
                          Switch(Validated(Mxfp8(BackwardOverride::kHighPrecision))));
  const std::shared_ptr<const ModelVersion> after = Newest();
  EXPECT_EQ(outcome.version, WeightVersion(2));
  EXPECT_EQ(outcome.freed_bytes, 0);
  EXPECT_EQ(outcome.validation.current, before->recipe);
  EXPECT_EQ(after->version, WeightVersion(2));
  EXPECT_EQ(after->recipe.backward_override, BackwardOverride::kHighPrecision);
  for (size_t i = 0; i < before->layers.size(); ++i) {
    EXPECT_EQ(after->layers[i].weight->row, before->layers[i].weight->row) << "planes are shared";
    EXPECT_EQ(after->layers[i].weight->epoch, WeightVersion(1)) << "their bytes did not change";
  }
}

TEST_F(SwitchModelTest, TheDefaultBackwardNeedsMastersOfRowOnlyWeights) {
  Host(BackwardOverride::kDequantized);
  PW_ASSERT_OK_AND_ASSIGN(const ValidationOutcome outcome,
                          catalog().Validate("m", {Mxfp8(BackwardOverride::kNone)}));
  EXPECT_EQ(outcome.validation.verdict, SwitchVerdict::kNeedsMaster);
  const int64_t before = budget_->used_bytes();
  EXPECT_THAT(Switch(Validated(Mxfp8(BackwardOverride::kNone))),
              HasReason(Reason::kColumnwiseMissing));
  EXPECT_EQ(Newest()->version, WeightVersion(1)) << "invariant 2: everything is as it was";
  EXPECT_EQ(budget_->used_bytes(), before);
}

TEST_F(SwitchModelTest, TwoPlaneWeightsEnterAndLeaveOverrides) {
  Host(BackwardOverride::kNone);
  PW_ASSERT_OK(Switch(Validated(Mxfp8(BackwardOverride::kDequantized))));
  EXPECT_NE(Newest()->layers[0].weight->column, nullptr) << "only an explicit release drops it";
  ExpectPlannedIsActual();
  PW_ASSERT_OK(Switch(Validated(Mxfp8(BackwardOverride::kNone))));
  EXPECT_EQ(Newest()->version, WeightVersion(3));
  ExpectPlannedIsActual();
}

// What a load under `target` stores is what a switch to it derives.
TEST_F(SwitchModelTest, AColumnPlaneIsDerivedWhereItCanBe) {
  options_.device.formats.assign(HostableFormats().begin(), HostableFormats().end());
  WriteSource();
  for (const Format format :
       {Format::kMxfp8, Format::kNvfp4, Format::kFp8Block, Format::kFp8Current}) {
    SCOPED_TRACE(Name(format));
    CreateModelSpec spec = Spec("m");
    spec.recipe = DefaultRecipe(format);
    if (!IsPerTensor(format)) spec.recipe.weight_geometry = BlockGeometry::k2D;
    CreateModelSpec both = spec;
    both.name = "both";
    spec.recipe.backward_override = BackwardOverride::kDequantized;
    PW_ASSERT_OK(Create(both));
    PW_ASSERT_OK(Create(spec));
    EXPECT_EQ(Newest()->layers[0].weight->column, nullptr);

    PW_ASSERT_OK_AND_ASSIGN(const SwitchOutcome outcome, Switch(Validated(both.recipe)));
    EXPECT_EQ(outcome.validation.validation.verdict, SwitchVerdict::kAllowedByDerivation);
    const ModelDescription model = *catalog().Describe("m");
    EXPECT_EQ(model.planned_bytes, model.actual_bytes);
    const std::shared_ptr<const ModelVersion> loaded = catalog().Describe("both")->version;
    for (size_t i = 0; i < loaded->layers.size(); ++i) {
      const PrimaryWeight& want = *loaded->layers[i].weight;
      const PrimaryWeight& derived = *model.version->layers[i].weight;
      ASSERT_NE(derived.Fresh(PlaneKind::kColumn), nullptr);
      for (const PlanePart part : kPlaneParts) {
        EXPECT_EQ(derived.column->buffer(part).bytes(), want.column->buffer(part).bytes())
            << derived.name << " " << Name(part);
      }
    }
    PW_ASSERT_OK(Delete(Deletion("m")));
    PW_ASSERT_OK(Delete(Deletion("both")));
  }
}

TEST_F(SwitchModelTest, AnotherHistoryLengthKeepsCodesAndTheMostRecentAmaxes) {
  options_.device.formats.assign(HostableFormats().begin(), HostableFormats().end());
  WriteSource();
  CreateModelSpec spec = Spec("m");
  spec.recipe = DefaultRecipe(Format::kFp8Delayed);
  PW_ASSERT_OK(Create(spec));
  const std::shared_ptr<const ModelVersion> before = Newest();
  Recipe target = spec.recipe;
  target.amax_history_length = 16;
  PW_ASSERT_OK(Switch(Validated(target)));
  const ModelDescription model = *catalog().Describe("m");
  EXPECT_EQ(model.planned_bytes, model.actual_bytes);
  for (size_t i = 0; i < before->layers.size(); ++i) {
    const PrimaryWeight& old = *before->layers[i].weight;
    const PrimaryWeight& resized = *model.version->layers[i].weight;
    EXPECT_EQ(resized.row->payload.bytes(), old.row->payload.bytes());
    EXPECT_EQ(resized.row->scales.bytes(), old.row->scales.bytes());
    ASSERT_EQ(resized.row->state.size_bytes(), 17 * 4);
    // Scale and live amax.
    EXPECT_EQ(resized.row->state.bytes().subspan(0, 8), old.row->state.bytes().subspan(0, 8));
    EXPECT_NE(resized.Fresh(PlaneKind::kColumn), nullptr);
  }
}

TEST_F(SwitchModelTest, ScalesByAnotherRuleNeedMasters) {
  options_.device.formats.assign(HostableFormats().begin(), HostableFormats().end());
  WriteSource();
  CreateModelSpec spec = Spec("m");
  spec.recipe = DefaultRecipe(Format::kFp8Block);
  PW_ASSERT_OK(Create(spec));
  Recipe target = spec.recipe;
  target.power_of_two_scales = false;
  EXPECT_THAT(Switch(Validated(target)),
              HasReason(Reason::kRecipeMismatch, HasSubstr("scales made by another rule")));
}

// (A switch that was given up after its planes were made was published all the same.)
TEST_F(SwitchModelTest, ASwitchThatIsGivenUpSaysHowItEnded) {
  Host(BackwardOverride::kNone);
  bool ended_before = false;
  for (int steps = 0; !ended_before; ++steps) {
    SCOPED_TRACE(steps);
    SwitchSpec spec = Validated(Mxfp8(BackwardOverride::kDequantized));
    spec.request_id = "r";
    std::optional<absl::Status> status;
    catalog().Switch(principal_, spec, [&](absl::StatusOr<SwitchOutcome> outcome) {
      status = outcome.status();
    });
    for (int i = 0; i < steps; ++i) {
      if (!executor_.RunOne()) runner_.RunOne(Lane::kStorage);
    }
    ended_before = status.has_value();
    EXPECT_THAT(catalog().GiveUp(principal_, "r"), IsOkAndHolds(!ended_before));
    runner_.RunUntilIdle();
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->ok(), ended_before) << *status;
    EXPECT_EQ(absl::IsCancelled(*status), !ended_before) << *status;
    EXPECT_EQ(Newest()->recipe.backward_override, ended_before ? BackwardOverride::kDequantized
                                                               : BackwardOverride::kNone);
    ExpectPlannedIsActual();
  }
}

TEST_F(SwitchModelTest, ReleasingDropsTheColumnPlanes) {
  Host(BackwardOverride::kNone);
  const int64_t before = budget_->used_bytes();
  PW_ASSERT_OK_AND_ASSIGN(const SwitchOutcome outcome,
                          Switch(Validated(Mxfp8(BackwardOverride::kDequantized), true)));
  EXPECT_GT(outcome.freed_bytes, 0);
  EXPECT_EQ(budget_->used_bytes(), before - outcome.freed_bytes);
  for (const HostedLayer& layer : Newest()->layers) EXPECT_EQ(layer.weight->column, nullptr);
  ExpectPlannedIsActual();
}

TEST_F(SwitchModelTest, ReleasingIsRefusedWhileOperandsReadTheColumnPlane) {
  Host(BackwardOverride::kNone);
  const SwitchSpec spec = Validated(Mxfp8(BackwardOverride::kDequantized), true);
  WeightLease step = Lease();
  WeightLease operand = step.ForOperand(Newest()->layers[2].name, true, nullptr);
  EXPECT_THAT(Switch(spec), HasReason(Reason::kOperandsOutstanding));
  PW_EXPECT_OK(Switch(Validated(Mxfp8(BackwardOverride::kHighPrecision))))
      << "without a release it may";
  PW_ASSERT_OK(Switch(Validated(Mxfp8(BackwardOverride::kNone))));
  EXPECT_THAT(Switch(Validated(Mxfp8(BackwardOverride::kDequantized), true)),
              HasReason(Reason::kOperandsOutstanding))
      << "operands of older versions count";
  operand = WeightLease();
  PW_EXPECT_OK(Switch(Validated(Mxfp8(BackwardOverride::kDequantized), true)));
}

TEST_F(SwitchModelTest, ALeaseKeepsTheOldPlanes) {
  Host(BackwardOverride::kNone);
  WeightLease lease = Lease();
  const int64_t before = budget_->used_bytes();
  PW_ASSERT_OK_AND_ASSIGN(const SwitchOutcome outcome,
                          Switch(Validated(Mxfp8(BackwardOverride::kDequantized), true)));
  EXPECT_EQ(outcome.freed_bytes, 0);
  EXPECT_EQ(budget_->used_bytes(), before) << "invariant 5";
  lease = WeightLease();
  ExpectPlannedIsActual();
}

TEST_F(SwitchModelTest, AValidationThatMovedIsRefused) {
  Host(BackwardOverride::kDequantized);
  const SwitchSpec first = Validated(Mxfp8(BackwardOverride::kHighPrecision));
  PW_ASSERT_OK(Switch(first));
  EXPECT_THAT(Switch(first), HasReason(Reason::kValidationMoved, HasSubstr("validate again")));
  SwitchSpec guess = first;
  guess.fingerprint = "0123456789abcdef";
  EXPECT_THAT(Switch(guess), HasReason(Reason::kValidationMoved));
}

TEST_F(SwitchModelTest, ARepeatedRequestSwitchesOnce) {
  Host(BackwardOverride::kDequantized);
  SwitchSpec spec = Validated(Mxfp8(BackwardOverride::kHighPrecision));
  spec.request_id = "s1";
  PW_ASSERT_OK_AND_ASSIGN(const SwitchOutcome first, Switch(spec));
  PW_ASSERT_OK_AND_ASSIGN(const SwitchOutcome again, Switch(spec));
  EXPECT_EQ(first.version, again.version);
  EXPECT_EQ(Newest()->version, first.version);
}

TEST_F(SwitchModelTest, HighPrecisionIsDequantizedOnceAndNotQuantizedAgain) {
  Host(BackwardOverride::kDequantized);
  const Recipe none = DefaultRecipe(Format::kNone);
  PW_ASSERT_OK_AND_ASSIGN(const SwitchOutcome outcome, Switch(Validated(none)));
  EXPECT_EQ(outcome.validation.validation.verdict, SwitchVerdict::kAllowedByDerivation);
  const std::shared_ptr<const ModelVersion> version = Newest();
  const HostedLayer& layer = version->layers[0];
  EXPECT_EQ(layer.weight->format, Format::kNone);
  EXPECT_EQ(layer.weight->row, nullptr);
  EXPECT_EQ(layer.weight->epoch, version->version);
  EXPECT_NE(layer.weight->Fresh(PlaneKind::kHighPrecision), nullptr);
  EXPECT_THAT(layer.provenance, StartsWith("dequantized from mxfp8"));
  ExpectPlannedIsActual();
  EXPECT_FALSE(Switch(Validated(Mxfp8(BackwardOverride::kDequantized))).ok())
      << "it would round twice";
}

TEST_F(SwitchModelTest, HighPrecisionWeightsAreQuantizedLikeAtLoading) {
  WriteSource();
  CreateModelSpec kept = Spec("m");
  kept.recipe = DefaultRecipe(Format::kNone);
  PW_ASSERT_OK(Create(kept));
  PW_ASSERT_OK_AND_ASSIGN(const ModelDescription loaded,
                          Create(Spec("loaded", BackwardOverride::kNone)));
  PW_ASSERT_OK(Switch(Validated(Mxfp8(BackwardOverride::kNone))));
  const std::shared_ptr<const ModelVersion> switched = Newest();
  const auto bytes = [](const HostBuffer& buffer) {
    return std::vector<std::byte>(buffer.bytes().begin(), buffer.bytes().end());
  };
  for (size_t i = 0; i < switched->layers.size(); ++i) {
    const PrimaryWeight& a = *switched->layers[i].weight;
    const PrimaryWeight& b = *loaded.version->layers[i].weight;
    EXPECT_EQ(bytes(a.row->payload), bytes(b.row->payload));
    EXPECT_EQ(bytes(a.row->scales), bytes(b.row->scales));
    EXPECT_EQ(bytes(a.column->payload), bytes(b.column->payload));
    EXPECT_EQ(bytes(a.column->scales), bytes(b.column->scales));
  }
}

TEST_F(SwitchModelTest, ASwitchThatDoesNotFitLeavesEverythingAsItWas) {
  Host(BackwardOverride::kDequantized);
  const SwitchSpec spec = Validated(DefaultRecipe(Format::kNone));
  const Reservation others = *budget_->Reserve(
      MemoryUse::kTransport, budget_->limit_bytes() - budget_->used_bytes() - 1000, "others");
  const int64_t before = budget_->used_bytes();
  EXPECT_THAT(Switch(spec), HasReason(Reason::kMemoryShortfall));
  EXPECT_EQ(budget_->used_bytes(), before);
  EXPECT_EQ(Newest()->version, WeightVersion(1));
}

TEST_F(SwitchModelTest, OldLeasesGiveWayAndYoungOnesAreNamed) {
  options_.limits.live_versions_max = 2;
  Host(BackwardOverride::kDequantized);
  WeightLease first = Lease();
  PW_ASSERT_OK(Switch(Validated(Mxfp8(BackwardOverride::kHighPrecision))));
  WeightLease second = Lease();
  EXPECT_THAT(Switch(Validated(Mxfp8(BackwardOverride::kDequantized))),
              HasReason(Reason::kQuotaExceeded, HasSubstr("session 7, step 3")));
  clock_.Advance(options_.limits.lease_age_min);
  PW_ASSERT_OK(Switch(Validated(Mxfp8(BackwardOverride::kDequantized))));
  EXPECT_FALSE(first.valid()) << "the oldest was taken back";
  EXPECT_TRUE(second.valid());
}

TEST_F(SwitchModelTest, OnlyOneMayChangeAModelAtATime) {
  Host(BackwardOverride::kDequantized);
  const SwitchSpec spec = Validated(Mxfp8(BackwardOverride::kHighPrecision));
  catalog().Switch(principal_, spec, [](absl::StatusOr<SwitchOutcome>) {});
  EXPECT_THAT(Switch(spec), HasReason(Reason::kModelBusy, HasSubstr("being switched")));
}

TEST_F(SwitchModelTest, UnknownModelsAndIllegalTargets) {
  Host(BackwardOverride::kDequantized);
  EXPECT_THAT(catalog().Validate("n", {Mxfp8(BackwardOverride::kNone)}),
              HasReason(Reason::kNotFound));
  Recipe pointless = DefaultRecipe(Format::kNone);
  pointless.backward_override = BackwardOverride::kDequantized;
  PW_ASSERT_OK_AND_ASSIGN(const ValidationOutcome outcome, catalog().Validate("m", {pointless}));
  EXPECT_EQ(outcome.validation.verdict, SwitchVerdict::kRejected);
  EXPECT_THAT(Switch(Validated(pointless)), HasReason(Reason::kOverrideUnsupportedForRecipe));
}

}  // namespace
}  // namespace planewise
