#include "planner/switch_snapshot.h"

#include <memory>

#include "gtest/gtest.h"

namespace planewise {
namespace {

std::shared_ptr<const Plane> PlaneOf(uint64_t epoch) {
  auto plane = std::make_shared<Plane>();
  plane->epoch = WeightVersion(epoch);
  return plane;
}

TEST(SwitchSnapshotTest, CountsFreshPlanesOnly) {
  auto weight = std::make_shared<PrimaryWeight>();
  weight->name = "x.weight";
  weight->shape = {64, 32};
  weight->format = Format::kMxfp8;
  weight->epoch = WeightVersion(3);
  weight->row = PlaneOf(3);
  weight->column = PlaneOf(2);
  HostedLayer layer;
  layer.weight = weight;
  layer.provenance = "quantized from F32 via BF16";
  const SwitchWeight seen = SwitchWeightOf(layer);
  EXPECT_EQ(seen.name, "x.weight");
  EXPECT_EQ(seen.shape, (MatrixShape{64, 32}));
  EXPECT_EQ(seen.format, Format::kMxfp8);
  EXPECT_TRUE(seen.row);
  EXPECT_FALSE(seen.column);
  EXPECT_FALSE(seen.high_precision);
  EXPECT_FALSE(seen.dequantized);
}

TEST(SwitchSnapshotTest, ReadsProvenance) {
  auto weight = std::make_shared<PrimaryWeight>();
  weight->high_precision = PlaneOf(0);
  HostedLayer layer;
  layer.weight = weight;
  layer.provenance = std::string(kDequantizedProvenance) + "mxfp8";
  EXPECT_TRUE(SwitchWeightOf(layer).dequantized);
  EXPECT_TRUE(SwitchWeightOf(layer).high_precision);
}

}  // namespace
}  // namespace planewise
