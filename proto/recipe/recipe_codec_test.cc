#include "proto/recipe/recipe_codec.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Format kFormats[] = {Format::kNone,     Format::kMxfp8,      Format::kNvfp4,
                               Format::kFp8Block, Format::kFp8Current, Format::kFp8Delayed};
constexpr BackwardOverride kOverrides[] = {
    BackwardOverride::kNone, BackwardOverride::kHighPrecision, BackwardOverride::kDequantized};

// A field with another value than any format's default.
struct FieldChange {
  RecipeField field;
  void (*change)(Recipe& recipe);
};

const FieldChange kChanges[] = {
    {RecipeField::kFp8Format,
     [](Recipe& r) {
       r.fp8_format = r.fp8_format == Fp8Format::kE4M3 ? Fp8Format::kHybrid : Fp8Format::kE4M3;
     }},
    {RecipeField::kWeightGeometry,
     [](Recipe& r) {
       r.weight_geometry =
           r.weight_geometry == BlockGeometry::k1D ? BlockGeometry::k2D : BlockGeometry::k1D;
     }},
    {RecipeField::kPowerOfTwoScales,
     [](Recipe& r) { r.power_of_two_scales = !r.power_of_two_scales; }},
    {RecipeField::kAmaxEpsilon, [](Recipe& r) { r.amax_epsilon = 0.01f; }},
    {RecipeField::kMargin, [](Recipe& r) { r.margin = -3; }},
    {RecipeField::kAmaxHistoryLength, [](Recipe& r) { r.amax_history_length = 16; }},
    {RecipeField::kAmaxAlgorithm, [](Recipe& r) { r.amax_algorithm = AmaxAlgorithm::kMostRecent; }},
    {RecipeField::kHadamard, [](Recipe& r) { r.hadamard = !r.hadamard; }},
    {RecipeField::kStochasticRounding,
     [](Recipe& r) { r.stochastic_rounding = !r.stochastic_rounding; }},
};

TEST(RecipeCodecTest, EveryFieldThatAFormatHasComesBackAsItWas) {
  ASSERT_EQ(std::size(kChanges), std::size(kRecipeFields));
  for (const Format format : kFormats) {
    for (const BackwardOverride backward_override : kOverrides) {
      Recipe all = DefaultRecipe(format);
      all.backward_override = backward_override;
      EXPECT_THAT(FromProto(ToProto(all), "recipe"), IsOkAndHolds(all));
      for (const FieldChange& change : kChanges) {
        if (!HasField(format, change.field)) continue;
        Recipe one = DefaultRecipe(format);
        change.change(one);
        change.change(all);
        EXPECT_THAT(FromProto(ToProto(one), "recipe"), IsOkAndHolds(one)) << one;
        EXPECT_NE(ToProto(one).fingerprint(), ToProto(DefaultRecipe(format)).fingerprint());
      }
      EXPECT_THAT(FromProto(ToProto(all), "recipe"), IsOkAndHolds(all)) << all;
    }
  }
}

// Sets one field of a message.
struct ProtoField {
  RecipeField field;
  const char* name;
  void (*set)(v1::Recipe& recipe);
};

const ProtoField kProtoFields[] = {
    {RecipeField::kFp8Format, "fp8_format", [](v1::Recipe& r) { r.set_fp8_format("e4m3"); }},
    {RecipeField::kWeightGeometry, "weight_block_dim",
     [](v1::Recipe& r) { r.set_weight_block_dim(1); }},
    {RecipeField::kPowerOfTwoScales, "power_of_two_scales",
     [](v1::Recipe& r) { r.set_power_of_two_scales(false); }},
    {RecipeField::kAmaxEpsilon, "amax_epsilon", [](v1::Recipe& r) { r.set_amax_epsilon(0); }},
    {RecipeField::kMargin, "margin", [](v1::Recipe& r) { r.set_margin(0); }},
    {RecipeField::kAmaxHistoryLength, "amax_history_length",
     [](v1::Recipe& r) { r.set_amax_history_length(1); }},
    {RecipeField::kAmaxAlgorithm, "amax_algorithm",
     [](v1::Recipe& r) { r.set_amax_algorithm("max"); }},
    {RecipeField::kHadamard, "hadamard", [](v1::Recipe& r) { r.set_hadamard(false); }},
    {RecipeField::kStochasticRounding, "stochastic_rounding",
     [](v1::Recipe& r) { r.set_stochastic_rounding(false); }},
};

// Also with the value that stands in for a field that is not there: mxfp8 with
// power_of_two_scales=false would be a lie that nobody sees.
TEST(RecipeCodecTest, AFieldThatAFormatDoesNotHaveIsRefusedByItsPath) {
  ASSERT_EQ(std::size(kProtoFields), std::size(kRecipeFields));
  for (const Format format : kFormats) {
    for (const ProtoField& field : kProtoFields) {
      v1::Recipe proto;
      proto.set_format(std::string(Name(format)));
      field.set(proto);
      const absl::StatusOr<Recipe> recipe = FromProto(proto, "target");
      if (HasField(format, field.field)) {
        PW_EXPECT_OK(recipe) << field.name;
      } else {
        EXPECT_THAT(recipe, HasReason(Reason::kInvalidRequest,
                                      AllOf(HasSubstr(absl::StrCat("target.", field.name)),
                                            HasSubstr(Name(format)))));
        EXPECT_EQ(DetailsOf(recipe.status())->violations.front().subject,
                  absl::StrCat("target.", field.name));
      }
    }
  }
}

TEST(RecipeCodecTest, NothingIsToldOfFieldsThatAFormatDoesNotHave) {
  const v1::Recipe none = ToProto(DefaultRecipe(Format::kNone));
  EXPECT_EQ(none.fp8_format(), "");
  EXPECT_EQ(none.weight_block_dim(), 0);
  const v1::Recipe mxfp8 = ToProto(DefaultRecipe(Format::kMxfp8));
  EXPECT_EQ(mxfp8.fp8_format(), "e4m3");
  EXPECT_EQ(mxfp8.weight_block_dim(), 1);
  for (const v1::Recipe& proto : {none, mxfp8}) {
    EXPECT_FALSE(proto.has_power_of_two_scales());
    EXPECT_FALSE(proto.has_amax_epsilon());
    EXPECT_FALSE(proto.has_margin());
    EXPECT_FALSE(proto.has_amax_history_length());
    EXPECT_EQ(proto.amax_algorithm(), "");
    EXPECT_FALSE(proto.has_hadamard());
    EXPECT_FALSE(proto.has_stochastic_rounding());
  }
}

TEST(RecipeCodecTest, WhatIsLeftOutIsTheFormatsDefault) {
  for (const Format format : kFormats) {
    v1::Recipe proto;
    proto.set_format(std::string(Name(format)));
    EXPECT_THAT(FromProto(proto, "recipe"), IsOkAndHolds(DefaultRecipe(format)));
  }
}

TEST(RecipeCodecTest, FingerprintIsSixteenDigits) {
  EXPECT_EQ(ToProto(DefaultRecipe(Format::kMxfp8)).fingerprint().size(), 16u);
  EXPECT_NE(ToProto(DefaultRecipe(Format::kMxfp8)).fingerprint(),
            ToProto(DefaultRecipe(Format::kNone)).fingerprint());
}

struct Refusal {
  const char* name;
  void (*spoil)(v1::Recipe& recipe);
  Reason reason;
  const char* field;
  const char* remedy;
};

const Refusal kRefusals[] = {
    {"no format", [](v1::Recipe& r) { r.clear_format(); }, Reason::kUnknownRecipe, "target.format",
     "mxfp8"},
    {"unknown format", [](v1::Recipe& r) { r.set_format("int4"); }, Reason::kUnknownRecipe,
     "\"int4\"", "mxfp8"},
    {"unknown element format", [](v1::Recipe& r) { r.set_fp8_format("e3m4"); },
     Reason::kInvalidRequest, "target.fp8_format", "hybrid"},
    {"three-dimensional blocks", [](v1::Recipe& r) { r.set_weight_block_dim(3); },
     Reason::kInvalidRequest, "target.weight_block_dim", "1 or 2"},
    {"unknown choice of an amax",
     [](v1::Recipe& r) {
       r.Clear();
       r.set_format("fp8_delayed");
       r.set_amax_algorithm("last");
     },
     Reason::kInvalidRequest, "target.amax_algorithm", "most_recent"},
    {"unknown override",
     [](v1::Recipe& r) { r.set_backward_override(static_cast<v1::BackwardOverride>(9)); },
     Reason::kInvalidRequest, "target.backward_override", "DEQUANTIZED"},
};

TEST(RecipeCodecTest, RefusalsNameTheFieldAndWhatIsValid) {
  for (const Refusal& c : kRefusals) {
    SCOPED_TRACE(c.name);
    v1::Recipe proto = ToProto(DefaultRecipe(Format::kMxfp8));
    c.spoil(proto);
    EXPECT_THAT(FromProto(proto, "target"),
                HasReason(c.reason, AllOf(HasSubstr(c.field), HasSubstr(c.remedy))));
  }
}

TEST(RecipeCodecTest, PoliciesComeBackAsTheyWere) {
  for (const PlanePolicy policy : {PlanePolicy::kAuto, PlanePolicy::kBoth, PlanePolicy::kRowOnly}) {
    EXPECT_THAT(FromProto(ToProto(policy), "plane_policy"), IsOkAndHolds(policy));
  }
  EXPECT_THAT(FromProto(v1::PLANE_POLICY_UNSPECIFIED, "plane_policy"),
              IsOkAndHolds(PlanePolicy::kAuto));
  EXPECT_THAT(FromProto(static_cast<v1::PlanePolicy>(9), "plane_policy"),
              HasReason(Reason::kInvalidRequest, HasSubstr("plane_policy")));
}

TEST(RecipeCodecTest, DecisionIsToldWhole) {
  const PlaneDecision decision{PlanePolicy::kRowOnly, true, false, "ROW_ONLY asked for", 32, {"a"}};
  const v1::PlaneDecision proto = ToProto(decision);
  EXPECT_EQ(proto.policy(), v1::PLANE_POLICY_ROW_ONLY);
  EXPECT_TRUE(proto.row());
  EXPECT_FALSE(proto.column());
  EXPECT_EQ(proto.why(), "ROW_ONLY asked for");
  EXPECT_EQ(proto.saved_bytes(), 32);
  ASSERT_EQ(proto.forbids_size(), 1);
  EXPECT_EQ(proto.forbids(0), "a");
}

}  // namespace
}  // namespace planewise
