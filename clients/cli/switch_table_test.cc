#include "clients/cli/switch_table.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

v1::ValidateModeSwitchResponse NeedsMasters(int weights) {
  v1::ValidateModeSwitchResponse validation;
  validation.set_verdict(v1::SWITCH_VERDICT_NEEDS_MASTER);
  validation.set_needs_master_count(weights);
  validation.mutable_current()->set_format("mxfp8");
  for (int i = 0; i < weights; ++i) {
    v1::WeightVerdict& weight = *validation.add_weights();
    weight.set_weight("layers." + std::to_string(i));
    weight.set_verdict(v1::SWITCH_VERDICT_NEEDS_MASTER);
    v1::SwitchReason& reason = *weight.add_reasons();
    reason.set_code("COLUMNWISE_MISSING");
    reason.set_rule("a quantized dgrad reads the column plane");
    reason.set_observed("row plane only");
    v1::SwitchRemedy& remedy = *reason.add_remedies();
    remedy.set_action("upload FP32 masters");
    remedy.set_bytes(1024);
    remedy.set_seconds(0.5);
  }
  return validation;
}

TEST(SwitchTableTest, PutsEqualReasonsTogetherAndAddsUpTheirRemedies) {
  v1::Recipe target;
  target.set_format("mxfp8");
  const std::string text = SwitchText(NeedsMasters(3), target);
  EXPECT_NE(text.find("mxfp8 -> mxfp8: NEEDS_MASTER"), std::string::npos) << text;
  EXPECT_NE(text.find("COLUMNWISE_MISSING  3 weights, first layers.0"), std::string::npos) << text;
  EXPECT_NE(text.find("upload FP32 masters: 3.00 KiB (3072 B), about 1.5 s"), std::string::npos)
      << text;
}

TEST(SwitchTableTest, OnlyAllowedVerdictsRun) {
  v1::ValidateModeSwitchResponse validation;
  validation.set_verdict(v1::SWITCH_VERDICT_ALLOWED_BY_DERIVATION);
  EXPECT_TRUE(SwitchRuns(validation));
  EXPECT_FALSE(SwitchRuns(NeedsMasters(1)));
}

}  // namespace
}  // namespace planewise
