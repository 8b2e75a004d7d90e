#include "core/checkpoint/scale_check.h"

#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

constexpr uint8_t kE8M0NaN = 255;

std::string RangeText(const std::optional<ExponentRange>& range) {
  return range ? absl::StrCat(range->min, " to ", range->max) : "none";
}

// How many bytes are at fault, and the first.
struct Count {
  int64_t bytes = 0;
  int64_t first = 0;

  void Add(int64_t offset) {
    if (bytes++ == 0) first = offset;
  }
};

}  // namespace

std::vector<ScaleFault> ScaleFaultsOf(const ConstPlaneSpan& plane,
                                      const std::optional<ExponentRange>& recorded) {
  const PlaneLayout& layout = plane.layout;
  Count not_numbers;
  Count padding;
  for (int64_t row = 0; row < layout.scale_rows; ++row) {
    const int64_t used = row < layout.used_scale_rows ? layout.used_scale_columns : 0;
    for (int64_t column = 0; column < layout.scale_columns; ++column) {
      const int64_t offset = row * layout.scale_columns + column;
      const uint8_t scale = plane.scales[offset];
      if (column < used && scale == kE8M0NaN) not_numbers.Add(offset);
      if (column >= used && scale != 0) padding.Add(offset);
    }
  }
  std::vector<ScaleFault> faults;
  if (not_numbers.bytes > 0) {
    faults.push_back({not_numbers.first, absl::StrCat(not_numbers.bytes,
                                                      " scales are 255, which is no number")});
  }
  if (padding.bytes > 0) {
    faults.push_back(
        {padding.first, absl::StrCat(padding.bytes, " bytes of padding are not 0")});
  }
  const std::optional<ExponentRange> exponents = NonZeroExponents(plane);
  if (exponents != recorded) {
    faults.push_back({0, absl::StrCat("exponents over non-zero blocks are ", RangeText(exponents),
                                      "; recorded are ", RangeText(recorded))});
  }
  return faults;
}

}  // namespace planewise
