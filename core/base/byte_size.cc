#include "core/base/byte_size.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {
namespace {

struct Unit {
  absl::string_view name;
  int64_t size_bytes;
};

// Binary units, largest first, are the ones that are written.
constexpr Unit kBinary[] = {{"TiB", int64_t{1} << 40},
                            {"GiB", int64_t{1} << 30},
                            {"MiB", int64_t{1} << 20},
                            {"KiB", int64_t{1} << 10},
                            {"B", 1}};
constexpr Unit kDecimal[] = {{"KB", 1'000},
                             {"MB", 1'000'000},
                             {"GB", 1'000'000'000},
                             {"TB", 1'000'000'000'000}};

// 0 if there is no such unit.
int64_t UnitBytes(absl::string_view name) {
  for (const Unit& unit : kBinary) {
    if (unit.name == name) return unit.size_bytes;
  }
  for (const Unit& unit : kDecimal) {
    if (unit.name == name) return unit.size_bytes;
  }
  return 0;
}

}  // namespace

absl::StatusOr<int64_t> ParseByteSize(absl::string_view text) {
  const size_t digits_end = text.find_first_not_of("0123456789");
  const absl::string_view digits = text.substr(0, digits_end);
  const absl::string_view unit_name =
      absl::StripLeadingAsciiWhitespace(text.substr(digits.size()));
  const int64_t unit = UnitBytes(unit_name);
  int64_t count = 0;
  int64_t size_bytes = 0;
  if (digits.empty() || unit == 0 || !absl::SimpleAtoi(digits, &count) ||
      __builtin_mul_overflow(count, unit, &size_bytes)) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("size \"", text, "\": required: a whole number below 2^63 bytes and "
                              "a unit, B, KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB "
                              "(powers of 1000), for example 8GiB"));
  }
  return size_bytes;
}

std::string ByteSizeText(int64_t size_bytes) {
  for (const Unit& unit : kBinary) {
    if (size_bytes != 0 && size_bytes % unit.size_bytes == 0) {
      return absl::StrCat(size_bytes / unit.size_bytes, unit.name);
    }
  }
  return "0B";
}

}  // namespace planewise
