#include "core/quant/cuda/mxfp8_quantize_problem.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/reason.h"
#include "core/base/status_macros.h"
#include "core/quant/quantizer.h"

namespace planewise {

int64_t Mxfp8QuantizeProblem::source_bytes() const {
  return rows() * columns() * FactsOf(source).bits / 8;
}

std::string Mxfp8QuantizeProblem::ToString() const {
  return absl::StrCat("mxfp8 row quantize [", rows(), ", ", columns(), "] ", Name(source), " to ",
                      Name(row.payload_dtype));
}

absl::StatusOr<Mxfp8QuantizeProblem> MakeMxfp8QuantizeProblem(int64_t rows, int64_t columns,
                                                              DType source, DType element) {
  if (!IsHighPrecision(source)) {
    return Error(Reason::kDtypeUnsupported, absl::StrCat("mxfp8 row quantize of ", Name(source),
                                                         ": required F32, BF16 or F16"));
  }
  Mxfp8QuantizeProblem problem;
  problem.source = source;
  PW_ASSIGN_OR_RETURN(problem.row, Mxfp8LayoutFor(PlaneKind::kRow, {rows, columns}, element));
  if (columns % kMxfp8Block != 0) {
    return Error(Reason::kShapeNotDivisible,
                 absl::StrCat(problem.ToString(), ": columns ", columns, " % ", kMxfp8Block, " = ",
                              columns % kMxfp8Block, "; required 0: pad to ",
                              (columns / kMxfp8Block + 1) * kMxfp8Block));
  }
  if (problem.row.scale_bytes > kMxfp8QuantizeScalesMax) {
    return Error(Reason::kLimitExceeded,
                 absl::StrCat(problem.ToString(), ": ", problem.row.scale_bytes,
                              " scale bytes; at most ", kMxfp8QuantizeScalesMax,
                              " in one launch: quantize fewer rows at a time"));
  }
  return problem;
}

}  // namespace planewise
