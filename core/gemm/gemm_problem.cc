#include "core/gemm/gemm_problem.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

absl::string_view Name(OperandKind kind) {
  switch (kind) {
    case OperandKind::kDense: return "";
    case OperandKind::kCodes: return " codes";
    case OperandKind::kValues: return " values";
  }
  return " invalid";
}

// For example "A[50,96] F8_E4M3 codes"; stored transposed, "A[96,50]^T BF16".
std::string Describe(absl::string_view name, const OperandFormat& format, int64_t outer,
                     int64_t k) {
  const std::string shape = format.contracted == Contracted::kColumns
                                ? absl::StrCat("[", outer, ",", k, "]")
                                : absl::StrCat("[", k, ",", outer, "]^T");
  return absl::StrCat(name, shape, " ", Name(format.dtype), Name(format.kind));
}

absl::Status CheckOperand(absl::string_view name, const OperandFormat& format, int64_t outer,
                          int64_t k) {
  const bool dense = format.kind == OperandKind::kDense;
  const bool legal = dense ? IsHighPrecision(format.dtype)
                           : format.dtype == DType::kF8E4M3 || format.dtype == DType::kF8E5M2;
  if (!legal) {
    return Error(Reason::kDtypeUnsupported,
                 absl::StrCat("operand ", name, " of ", Name(format.dtype), "; required ",
                              dense ? "F32, BF16 or F16" : "F8_E4M3 or F8_E5M2"));
  }
  const int64_t columns = format.contracted == Contracted::kColumns ? k : outer;
  if (!dense && columns % kMxfp8Block != 0) {
    return Error(Reason::kShapeNotDivisible,
                 absl::StrCat("operand ", name, ": columns ", columns, " % ", kMxfp8Block, " = ",
                              columns % kMxfp8Block, "; MXFP8 requires a multiple of ",
                              kMxfp8Block));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status GemmProblem::Validate() const {
  if (m < 0 || n < 0 || k < 0) {
    return Error(Reason::kShapeMismatch, absl::StrCat(ToString(), ": sizes must not be negative"));
  }
  absl::Status status = CheckOperand("A", a, m, k);
  if (status.ok()) status = CheckOperand("B", b, n, k);
  if (!status.ok()) return Annotate(status, ToString());
  if ((a.kind == OperandKind::kCodes) != (b.kind == OperandKind::kCodes)) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(ToString(), ": codes are multiplied by codes only; dequantize the "
                                          "other operand's partner"));
  }
  if (!IsHighPrecision(value_dtype) || !IsHighPrecision(output)) {
    return Error(Reason::kDtypeUnsupported,
                 absl::StrCat(ToString(), ": values and output must be F32, BF16 or F16"));
  }
  const bool fits = compute == DType::kF32 ||
                    (compute == DType::kBF16 &&
                     (multiplies_codes() || value_dtype == DType::kBF16));
  if (!fits) {
    return Error(Reason::kDtypeUnsupported, absl::StrCat(ToString(), ": cannot multiply ",
                                                         Name(value_dtype), " values in ",
                                                         Name(compute)));
  }
  return absl::OkStatus();
}

std::string GemmProblem::ToString() const {
  return absl::StrCat("C[", m, ",", n, "] ", Name(output), " = ", Describe("A", a, m, k), " * ",
                      Describe("B", b, n, k), " in ", Name(compute));
}

std::ostream& operator<<(std::ostream& out, const GemmProblem& problem) {
  return out << problem.ToString();
}

}  // namespace planewise
