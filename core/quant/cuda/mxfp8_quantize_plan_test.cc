#include "core/quant/cuda/mxfp8_quantize_plan.h"

#include "gtest/gtest.h"

namespace planewise {
namespace {

struct Case {
  const char* name;
  int64_t rows, columns;
  Mxfp8QuantizePlan plan;
};

// For 132 multiprocessors.
const Case kCases[] = {
    {"nothing to do for no rows", 0, 64, {64, 0}},
    // One row has 128 x 4 scale bytes: the padding is written as well.
    {"one block of one row", 1, 32, {64, 8}},
    // 16384 scale bytes are 512 warps: 256 threads would give 64 blocks.
    {"a small batch spreads over the device", 128, 4096, {64, 256}},
    {"a square weight takes whole thread blocks", 4096, 4096, {256, 2048}},
    {"a scale row of 5 is padded to 8", 128, 160, {64, 16}},
};

TEST(Mxfp8QuantizePlanTest, DividesTheScaleBytes) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto problem =
        MakeMxfp8QuantizeProblem(c.rows, c.columns, DType::kBF16, DType::kF8E4M3);
    ASSERT_TRUE(problem.ok()) << problem.status();
    EXPECT_EQ(PlanMxfp8Quantize(*problem, 132), c.plan);
  }
}

TEST(Mxfp8QuantizePlanTest, CoversEveryScaleByteAndNoWholeBlockMore) {
  for (int64_t rows : {1, 127, 128, 129, 1000}) {
    for (int64_t columns : {32, 64, 128, 160, 4096, 11008}) {
      for (int threads : {64, 128, 256}) {
        const auto problem =
            MakeMxfp8QuantizeProblem(rows, columns, DType::kF32, DType::kF8E5M2);
        ASSERT_TRUE(problem.ok()) << problem.status();
        const auto plan = Mxfp8QuantizePlanWithThreads(*problem, threads);
        EXPECT_GE(plan.grid_blocks * threads, problem->row.scale_bytes);
        EXPECT_LT((plan.grid_blocks - 1) * threads, problem->row.scale_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace planewise
