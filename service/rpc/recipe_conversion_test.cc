#include "service/rpc/recipe_conversion.h"

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

TEST(RecipeConversionTest, EveryQuantizedRecipeComesBackAsItWas) {
  for (const Format format : kFormats) {
    if (format == Format::kNone) continue;
    for (const BackwardOverride backward_override : kOverrides) {
      for (const Fp8Format fp8_format : {Fp8Format::kE4M3, Fp8Format::kHybrid}) {
        for (const BlockGeometry geometry : {BlockGeometry::k1D, BlockGeometry::k2D}) {
          Recipe recipe = DefaultRecipe(format);
          recipe.backward_override = backward_override;
          recipe.fp8_format = fp8_format;
          recipe.weight_geometry = geometry;
          EXPECT_THAT(FromProto(ToProto(recipe), "recipe"), IsOkAndHolds(recipe));
        }
      }
    }
  }
}

TEST(RecipeConversionTest, HighPrecisionHasNoQuantizationFields) {
  const Recipe recipe = DefaultRecipe(Format::kNone);
  const v1::Recipe proto = ToProto(recipe);
  EXPECT_EQ(proto.fp8_format(), "");
  EXPECT_EQ(proto.weight_block_dim(), 0);
  EXPECT_THAT(FromProto(proto, "recipe"), IsOkAndHolds(recipe));
}

TEST(RecipeConversionTest, WhatIsLeftOutIsTheFormatsDefault) {
  for (const Format format : kFormats) {
    v1::Recipe proto;
    proto.set_format(std::string(Name(format)));
    EXPECT_THAT(FromProto(proto, "recipe"), IsOkAndHolds(DefaultRecipe(format)));
  }
}

TEST(RecipeConversionTest, FingerprintIsSixteenDigits) {
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
    {"no format", [](v1::Recipe& r) { r.clear_format(); }, Reason::kUnknownRecipe,
     "target.format", "mxfp8"},
    {"unknown format", [](v1::Recipe& r) { r.set_format("int4"); }, Reason::kUnknownRecipe,
     "\"int4\"", "mxfp8"},
    {"unknown element format", [](v1::Recipe& r) { r.set_fp8_format("e3m4"); },
     Reason::kInvalidRequest, "target.fp8_format", "hybrid"},
    {"three-dimensional blocks", [](v1::Recipe& r) { r.set_weight_block_dim(3); },
     Reason::kInvalidRequest, "target.weight_block_dim", "1 or 2"},
    {"unknown override",
     [](v1::Recipe& r) { r.set_backward_override(static_cast<v1::BackwardOverride>(9)); },
     Reason::kInvalidRequest, "target.backward_override", "DEQUANTIZED"},
};

TEST(RecipeConversionTest, RefusalsNameTheFieldAndWhatIsValid) {
  for (const Refusal& c : kRefusals) {
    SCOPED_TRACE(c.name);
    v1::Recipe proto = ToProto(DefaultRecipe(Format::kMxfp8));
    c.spoil(proto);
    EXPECT_THAT(FromProto(proto, "target"),
                HasReason(c.reason, AllOf(HasSubstr(c.field), HasSubstr(c.remedy))));
  }
}

TEST(RecipeConversionTest, PoliciesComeBackAsTheyWere) {
  for (const PlanePolicy policy : {PlanePolicy::kAuto, PlanePolicy::kBoth, PlanePolicy::kRowOnly}) {
    EXPECT_THAT(FromProto(ToProto(policy), "plane_policy"), IsOkAndHolds(policy));
  }
  EXPECT_THAT(FromProto(v1::PLANE_POLICY_UNSPECIFIED, "plane_policy"),
              IsOkAndHolds(PlanePolicy::kAuto));
  EXPECT_THAT(FromProto(static_cast<v1::PlanePolicy>(9), "plane_policy"),
              HasReason(Reason::kInvalidRequest, HasSubstr("plane_policy")));
}

TEST(RecipeConversionTest, DecisionIsToldWhole) {
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
