#include "core/quant/cuda/mxfp8_quantize_problem.h"

#include "core/base/error.h"
#include "core/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

TEST(Mxfp8QuantizeProblemTest, KnowsItsBytes) {
  const auto problem = MakeMxfp8QuantizeProblem(4096, 4096, DType::kBF16, DType::kF8E4M3);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->source_bytes(), 2 * 4096 * 4096);
  // A byte an element and a scale byte per 32.
  EXPECT_EQ(problem->ideal_bytes(), 3 * 4096 * 4096 + 4096 * 4096 / 32);
  EXPECT_EQ(problem->ToString(), "mxfp8 row quantize [4096, 4096] BF16 to F8_E4M3");
}

struct Refusal {
  const char* name;
  int64_t rows, columns;
  DType source, element;
  Reason reason;
  const char* message;
};

const Refusal kRefusals[] = {
    {"a row that ends inside a block", 4, 48, DType::kBF16, DType::kF8E4M3,
     Reason::kShapeNotDivisible, "columns 48 % 32 = 16; required 0: pad to 64"},
    {"an integer source", 4, 32, DType::kI32, DType::kF8E4M3, Reason::kDtypeUnsupported,
     "of I32: required F32, BF16 or F16"},
    {"an element that is not FP8", 4, 32, DType::kBF16, DType::kU8, Reason::kDtypeUnsupported,
     "required F8_E4M3 or F8_E5M2"},
    {"a negative dimension", -1, 32, DType::kBF16, DType::kF8E4M3, Reason::kInvalidRequest,
     "negative"},
    {"more scales than 32 bits count", int64_t{1} << 27, 1024, DType::kBF16, DType::kF8E4M3,
     Reason::kLimitExceeded, "4294967296 scale bytes; at most 2147483648"},
};

TEST(Mxfp8QuantizeProblemTest, RefusesByName) {
  for (const Refusal& c : kRefusals) {
    SCOPED_TRACE(c.name);
    const auto problem = MakeMxfp8QuantizeProblem(c.rows, c.columns, c.source, c.element);
    ASSERT_FALSE(problem.ok());
    EXPECT_EQ(ReasonOf(problem.status()), c.reason);
    EXPECT_THAT(std::string(problem.status().message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace planewise
