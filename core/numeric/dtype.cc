#include "core/numeric/dtype.h"

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

constexpr DTypeFacts kFacts[] = {
    {DType::kBool, "BOOL", 8},       {DType::kF4E2M1, "F4", 4},      {DType::kU8, "U8", 8},
    {DType::kI8, "I8", 8},           {DType::kF8E5M2, "F8_E5M2", 8}, {DType::kF8E4M3, "F8_E4M3", 8},
    {DType::kF8E8M0, "F8_E8M0", 8},  {DType::kI16, "I16", 16},       {DType::kU16, "U16", 16},
    {DType::kF16, "F16", 16},        {DType::kBF16, "BF16", 16},     {DType::kI32, "I32", 32},
    {DType::kU32, "U32", 32},        {DType::kF32, "F32", 32},       {DType::kF64, "F64", 64},
    {DType::kI64, "I64", 64},        {DType::kU64, "U64", 64},
};

}  // namespace

absl::Span<const DTypeFacts> AllDTypes() { return kFacts; }

const DTypeFacts& FactsOf(DType dtype) { return kFacts[static_cast<size_t>(dtype)]; }

absl::string_view Name(DType dtype) { return FactsOf(dtype).name; }

std::optional<DType> ParseDType(absl::string_view name) {
  for (const DTypeFacts& facts : kFacts) {
    if (facts.name == name) return facts.dtype;
  }
  return std::nullopt;
}

absl::StatusOr<int64_t> SizeBytes(DType dtype, int64_t elements) {
  PW_ASSIGN_OR_RETURN(const int64_t bits, CheckedMultiply(elements, FactsOf(dtype).bits));
  if (bits % 8 != 0) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(elements, " elements of ", Name(dtype), " do not fill whole bytes"));
  }
  return bits / 8;
}

bool IsHighPrecision(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  const absl::string_view name = Name(dtype);
  return out.write(name.data(), static_cast<std::streamsize>(name.size()));
}

}  // namespace planewise
