#include "service/session/operation_inputs.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using ::testing::HasSubstr;

v1::Operation Parse(const std::string& text) {
  v1::Operation operation;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &operation)) << text;
  return operation;
}

struct AcceptedCase {
  absl::string_view name;
  std::string operation;
  std::vector<int64_t> bytes;
};

TEST(OperationInputsTest, CountsBytesOfEachTensor) {
  const AcceptedCase kCases[] = {
      {"leading dimensions are flattened",
       "forward { model: 'm' layer: 'l' input { shape: [2, 3, 32] data_type: DATA_TYPE_BF16 } }",
       {2 * 3 * 32 * 2}},
      {"one dimension is one token",
       "forward { model: 'm' layer: 'l' input { shape: 32 data_type: DATA_TYPE_F32 } }",
       {32 * 4}},
      {"no token has no bytes",
       "forward { model: 'm' layer: 'l' input { shape: [0, 32] data_type: DATA_TYPE_F16 } }",
       {0}},
      {"backward by handle brings dY",
       "backward { handle: 1 output_gradient { shape: [2, 64] data_type: DATA_TYPE_BF16 } "
       "input_gradient: true }",
       {2 * 64 * 2}},
      {"backward with X again brings X first",
       "backward { input { model: 'm' layer: 'l' version: 1 backward_override: "
       "BACKWARD_OVERRIDE_NONE input { shape: [2, 32] data_type: DATA_TYPE_BF16 } } "
       "output_gradient { shape: [2, 64] data_type: DATA_TYPE_BF16 } weight_gradient: true }",
       {2 * 32 * 2, 2 * 64 * 2}},
      {"end_step brings nothing", "end_step { step: 1 }", {}},
      {"release brings nothing", "release { handles: [1, 2] }", {}},
  };
  for (const AcceptedCase& c : kCases) {
    SCOPED_TRACE(std::string(c.name));
    PW_ASSERT_OK_AND_ASSIGN(const std::vector<FlatTensor> tensors,
                            InputTensors(Parse(c.operation), SessionLimits()));
    std::vector<int64_t> bytes;
    for (const FlatTensor& tensor : tensors) bytes.push_back(tensor.size_bytes);
    EXPECT_EQ(bytes, c.bytes);
  }
}

struct RefusedCase {
  absl::string_view name;
  std::string operation;
  Reason reason;
  std::string message;
};

TEST(OperationInputsTest, RefusesWhatIsMalformedByItself) {
  SessionLimits limits;
  limits.tensor_dimensions_max = 3;
  limits.tensor_bytes_max = 1 << 20;
  limits.handles_per_release_max = 2;
  limits.name_bytes_max = 4;
  const RefusedCase kCases[] = {
      {"no kind", "id: 1", Reason::kInvalidRequest, "operation.kind"},
      {"no model", "forward { layer: 'l' }", Reason::kInvalidRequest, "forward.model"},
      {"no layer", "forward { model: 'm' }", Reason::kInvalidRequest, "forward.layer"},
      {"long name", "forward { model: 'abcde' layer: 'l' }", Reason::kLimitExceeded,
       "forward.model: 5 is too many; name_bytes_max = 4"},
      {"no type", "forward { model: 'm' layer: 'l' input { shape: 32 } }",
       Reason::kInvalidRequest, "forward.input.data_type"},
      {"codes are no activation",
       "forward { model: 'm' layer: 'l' input { shape: 32 data_type: DATA_TYPE_F8_E4M3 } }",
       Reason::kDtypeUnsupported, "forward.input.data_type: F8_E4M3"},
      {"no dimension",
       "forward { model: 'm' layer: 'l' input { data_type: DATA_TYPE_BF16 } }",
       Reason::kInvalidRequest, "forward.input.shape"},
      {"negative dimension",
       "forward { model: 'm' layer: 'l' input { shape: [1, -32] data_type: DATA_TYPE_BF16 } }",
       Reason::kInvalidRequest, "forward.input.shape[1]: -32"},
      {"too many dimensions",
       "forward { model: 'm' layer: 'l' input { shape: [1, 1, 1, 1] data_type: DATA_TYPE_BF16 } }",
       Reason::kLimitExceeded, "tensor_dimensions_max = 3"},
      {"more elements than can be counted",
       "forward { model: 'm' layer: 'l' input { shape: [9223372036854775807, 3] "
       "data_type: DATA_TYPE_BF16 } }",
       Reason::kLimitExceeded, ""},
      {"too many bytes",
       "forward { model: 'm' layer: 'l' input { shape: [1048576, 1] data_type: DATA_TYPE_BF16 } }",
       Reason::kLimitExceeded, "tensor_bytes_max = 1048576"},
      {"no operand", "backward { input_gradient: true }", Reason::kInvalidRequest,
       "backward.operand"},
      {"no gradient wanted", "backward { handle: 1 }", Reason::kInvalidRequest,
       "no gradient is wanted"},
      {"X again without version",
       "backward { input { model: 'm' layer: 'l' } input_gradient: true }",
       Reason::kInvalidRequest, "backward.input.version"},
      {"X again without override",
       "backward { input { model: 'm' layer: 'l' version: 3 } input_gradient: true }",
       Reason::kInvalidRequest, "backward.input.backward_override"},
      {"too many handles", "release { handles: [1, 2, 3] }", Reason::kLimitExceeded,
       "handles_per_release_max = 2"},
  };
  for (const RefusedCase& c : kCases) {
    SCOPED_TRACE(std::string(c.name));
    EXPECT_THAT(InputTensors(Parse(c.operation), limits),
                HasReason(c.reason, HasSubstr(c.message)));
  }
}

}  // namespace
}  // namespace planewise
