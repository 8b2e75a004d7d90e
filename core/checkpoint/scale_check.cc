#include "core/checkpoint/scale_check.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/scale_e8m0.h"

namespace planewise {
namespace {

std::string RangeText(const std::optional<ExponentRange>& range) {
  return range ? absl::StrCat(range->min, " to ", range->max) : "none";
}

// How many values are at fault, and where the first is.
struct Count {
  int64_t values = 0;
  int64_t first_byte = 0;

  void Add(int64_t byte_offset) {
    if (values++ == 0) first_byte = byte_offset;
  }
};

// NaN and infinity are no scale, nor is a number below 0. That an F32 scale is not
// 0 either, core/numeric/NUMERICS.md says.
bool IsScale(float value) { return value > 0 && std::isfinite(value); }

float FloatAt(const uint8_t* bytes) {
  float value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

bool IsScale(DType dtype, const uint8_t* scale) {
  switch (dtype) {
    case DType::kF8E8M0:
      return *scale != ScaleE8M0::kNan;
    case DType::kF8E4M3:
      return *scale == 0 || ((*scale & 0x80) == 0 && IsScale(Float8E4M3{*scale}.ToFloat()));
    default:
      return IsScale(FloatAt(scale));
  }
}

bool IsZero(const uint8_t* bytes, int64_t size_bytes) {
  for (int64_t i = 0; i < size_bytes; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

}  // namespace

std::vector<ScaleFault> ScaleFaultsOf(const ConstPlaneSpan& plane,
                                      const std::optional<ExponentRange>& recorded) {
  const PlaneLayout& layout = plane.layout;
  const int64_t scale_size = layout.scale_dtype == DType::kF32 ? 4 : 1;
  Count not_scales;
  Count padding;
  for (int64_t row = 0; row < layout.scale_rows; ++row) {
    const int64_t used = row < layout.used_scale_rows ? layout.used_scale_columns : 0;
    for (int64_t column = 0; column < layout.scale_columns; ++column) {
      const int64_t offset = (row * layout.scale_columns + column) * scale_size;
      const uint8_t* scale = plane.scales + offset;
      if (column < used && !IsScale(layout.scale_dtype, scale)) not_scales.Add(offset);
      if (column >= used && !IsZero(scale, scale_size)) padding.Add(offset);
    }
  }
  std::vector<ScaleFault> faults;
  if (not_scales.values > 0) {
    absl::string_view what = " scales are not above 0 and finite";
    if (layout.scale_dtype == DType::kF8E8M0) what = " scales are 255, which is no number";
    if (layout.scale_dtype == DType::kF8E4M3) what = " scales are NaN or negative";
    faults.push_back({not_scales.first_byte, absl::StrCat(not_scales.values, what)});
  }
  if (padding.values > 0) {
    faults.push_back(
        {padding.first_byte, absl::StrCat(padding.values, " scales of padding are not 0")});
  }
  if (layout.scale_dtype != DType::kF8E8M0) return faults;
  const std::optional<ExponentRange> exponents = NonZeroExponents(plane);
  if (exponents != recorded) {
    faults.push_back({0, absl::StrCat("exponents over non-zero blocks are ", RangeText(exponents),
                                      "; recorded are ", RangeText(recorded))});
  }
  return faults;
}

std::optional<ScaleFault> StateFaultOf(Format format, absl::Span<const std::byte> state) {
  Count faults;
  const auto* bytes = reinterpret_cast<const uint8_t*>(state.data());
  const int64_t size_bytes = static_cast<int64_t>(state.size());
  for (int64_t offset = 0; offset + 4 <= size_bytes; offset += 4) {
    const float value = FloatAt(bytes + offset);
    const bool is_scale = format == Format::kFp8Delayed && offset == 0;
    if (is_scale ? !IsScale(value) : !(value >= 0)) faults.Add(offset);
  }
  if (faults.values == 0) return std::nullopt;
  return ScaleFault{faults.first_byte, absl::StrCat(faults.values,
                                                    " values of state are NaN or negative, or a "
                                                    "scale that is not above 0 and finite")};
}

}  // namespace planewise
