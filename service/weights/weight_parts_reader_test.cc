#include "service/weights/weight_parts_reader.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/tensor/plane_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/weights/version_store.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Weights [32, 64] of every format, whose bytes mean nothing: what is read is where
// they lie.
class WeightPartsReaderTest : public testing::Test {
 protected:
  std::shared_ptr<const Plane> MakePlane(const Recipe& recipe, PlaneKind kind) {
    auto plane = std::make_shared<Plane>();
    plane->layout = *WeightPlaneLayout(recipe, kind, {32, 64}, DType::kBF16);
    for (const PlanePart part : kPlaneParts) {
      if (!plane->layout.Stores(part)) continue;
      plane->buffer(part) = *HostBuffer::Allocate(*budget_, MemoryUse::kWeights,
                                                  plane->layout.SizeBytesOf(part), "plane");
    }
    return plane;
  }

  // A model of one layer "l" with both planes.
  std::shared_ptr<const ModelVersion> MakeVersion(Format format) {
    const Recipe recipe = DefaultRecipe(format);
    PrimaryWeight weight;
    weight.name = "w";
    weight.shape = {32, 64};
    weight.format = format;
    weight.geometry = recipe.weight_geometry;
    weight.amax_history_length = recipe.amax_history_length;
    weight.row = MakePlane(recipe, PlaneKind::kRow);
    weight.column = MakePlane(recipe, PlaneKind::kColumn);
    ModelVersion version;
    version.model = "m";
    version.version = WeightVersion(1);
    version.recipe = recipe;
    version.layers.emplace_back();
    version.layers[0].name = "l";
    version.layers[0].weight = std::make_shared<const PrimaryWeight>(std::move(weight));
    return std::make_shared<const ModelVersion>(std::move(version));
  }

  absl::StatusOr<std::vector<WeightPart>> Read(const std::shared_ptr<const ModelVersion>& version,
                                               const ReadWeightsSpec& spec) {
    VersionStore versions(clock_, version);
    LeaseRequest request;
    request.use = LeaseUse::kRead;
    PW_ASSIGN_OR_RETURN(WeightLease lease, versions.Lease(std::move(request)));
    PW_ASSIGN_OR_RETURN(const std::unique_ptr<WeightReader> reader,
                        MakeWeightReader(state_, std::move(lease), spec));
    std::vector<WeightPart> parts;
    for (;;) {
      absl::StatusOr<std::optional<WeightPart>> part = absl::DeadlineExceededError("no answer");
      reader->Next([&part](absl::StatusOr<std::optional<WeightPart>> next) { part = next; });
      runner_.RunUntilIdle();
      PW_RETURN_IF_ERROR(part.status());
      if (!part->has_value()) return parts;
      parts.push_back(**part);
    }
  }

  static ReadWeightsSpec Spec(PlaneKind plane, bool named) {
    ReadWeightsSpec spec;
    spec.plane = plane;
    if (named) spec.weights = {"w"};
    return spec;
  }

  SimClock clock_;
  SimExecutor executor_{clock_};
  SimBackgroundRunner runner_{executor_};
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 20);
  std::shared_ptr<CatalogState> state_ = std::make_shared<CatalogState>(
      CatalogResources{&executor_, &clock_, &runner_, nullptr, budget_, nullptr, nullptr},
      CatalogOptions());
};

TEST_F(WeightPartsReaderTest, GivesEveryArrayThatAPlaneStores) {
  for (const Format format : {Format::kMxfp8, Format::kNvfp4, Format::kFp8Block,
                              Format::kFp8Current, Format::kFp8Delayed}) {
    const auto version = MakeVersion(format);
    const Plane& row = *version->layers[0].weight->row;
    for (const bool named : {true, false}) {
      SCOPED_TRACE(Name(format));
      PW_ASSERT_OK_AND_ASSIGN(const std::vector<WeightPart> parts,
                              Read(version, Spec(PlaneKind::kRow, named)));
      ASSERT_THAT(parts, SizeIs(row.layout.state_bytes > 0 ? 3 : 2));
      for (const WeightPart& part : parts) {
        EXPECT_EQ(part.bytes.data(), row.buffer(part.part).data());
        EXPECT_EQ(part.bytes.size(), row.layout.SizeBytesOf(part.part));
      }
    }
  }
}

TEST_F(WeightPartsReaderTest, TellsHowToReadThem) {
  PW_ASSERT_OK_AND_ASSIGN(const std::vector<WeightPart> nvfp4,
                          Read(MakeVersion(Format::kNvfp4), Spec(PlaneKind::kColumn, true)));
  ASSERT_THAT(nvfp4, SizeIs(3));
  // Codes of the transpose, two a byte; one scale for 16, padded; the amax.
  EXPECT_EQ(nvfp4[0].dtype, DType::kU8);
  EXPECT_THAT(nvfp4[0].shape, ElementsAre(64, 16));
  EXPECT_EQ(nvfp4[1].dtype, DType::kF8E4M3);
  EXPECT_THAT(nvfp4[1].shape, ElementsAre(128, 4));
  EXPECT_EQ(nvfp4[2].part, PlanePart::kState);
  EXPECT_EQ(nvfp4[2].dtype, DType::kF32);
  EXPECT_THAT(nvfp4[2].shape, ElementsAre(1));

  PW_ASSERT_OK_AND_ASSIGN(const std::vector<WeightPart> delayed,
                          Read(MakeVersion(Format::kFp8Delayed), Spec(PlaneKind::kRow, true)));
  ASSERT_THAT(delayed, SizeIs(3));
  EXPECT_EQ(delayed[1].dtype, DType::kF32);
  EXPECT_EQ(delayed[2].part, PlanePart::kState);
  // The scale of the next cast, then the history.
  EXPECT_THAT(delayed[2].shape, ElementsAre(1 + kDefaultAmaxHistoryLength));
}

TEST_F(WeightPartsReaderTest, WhatAColumnPlaneSharesIsReadFromTheRowPlane) {
  const auto version = MakeVersion(Format::kFp8Current);
  const Plane& row = *version->layers[0].weight->row;
  for (const bool named : {true, false}) {
    PW_ASSERT_OK_AND_ASSIGN(const std::vector<WeightPart> parts,
                            Read(version, Spec(PlaneKind::kColumn, named)));
    ASSERT_THAT(parts, SizeIs(2));
    for (const WeightPart& part : parts) {
      EXPECT_EQ(part.plane, PlaneKind::kColumn);
      EXPECT_EQ(part.bytes.data(), row.buffer(part.part).data());
      EXPECT_EQ(part.bytes.size(), row.layout.SizeBytesOf(part.part));
    }
    EXPECT_THAT(parts[0].shape, ElementsAre(32, 64)) << "as the row plane stores it";
  }
}

}  // namespace
}  // namespace planewise
