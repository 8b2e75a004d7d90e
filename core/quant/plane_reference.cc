#include "core/quant/plane_reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/base/checked_math.h"
#include "core/numeric/small_float_reference.h"
#include "core/quant/fp8_scale_reference.h"
#include "core/quant/mxfp8_reference.h"

namespace planewise {
namespace {

constexpr float kFloatMax = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

size_t At(int64_t index) { return static_cast<size_t>(index); }

// The product of two F32 numbers, which is exact in double, rounded to F32.
float Product(float a, float b) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b));
}

// A sum of two F32 numbers: rounding it to double first changes nothing, since
// double has more than twice the digits.
float Sum(float a, float b) {
  return static_cast<float>(static_cast<double>(a) + static_cast<double>(b));
}

// ---- Random words --------------------------------------------------------------

using Words = std::array<uint32_t, 4>;

// High and low half of a product, in 16-bit digits.
std::pair<uint32_t, uint32_t> LongProduct(uint32_t a, uint32_t b) {
  const uint32_t low = (a & 0xFFFF) * (b & 0xFFFF);
  const uint32_t cross = (a >> 16) * (b & 0xFFFF) + (low >> 16);  // below 2^32
  const uint32_t other = (a & 0xFFFF) * (b >> 16) + (cross & 0xFFFF);
  return {(a >> 16) * (b >> 16) + (cross >> 16) + (other >> 16), (other << 16) | (low & 0xFFFF)};
}

// Philox4x32 with the key of round n computed, not carried along.
Words PhiloxWords(std::array<uint32_t, 2> key, Words counter) {
  for (uint32_t round = 0; round < 10; ++round) {
    const auto [high0, low0] = LongProduct(0xD2511F53u, counter[0]);
    const auto [high2, low2] = LongProduct(0xCD9E8D57u, counter[2]);
    counter = {counter[1] ^ high2 ^ (key[0] + round * 0x9E3779B9u), low2,
               counter[3] ^ high0 ^ (key[1] + round * 0xBB67AE85u), low0};
  }
  return counter;
}

std::array<uint32_t, 2> Halves(uint64_t value) {
  return {static_cast<uint32_t>(value % 0x100000000u), static_cast<uint32_t>(value / 0x100000000u)};
}

uint32_t WordOf(const StochasticKey& key, uint32_t plane, int64_t element) {
  const auto request = Halves(key.request);
  const auto weight = Halves(key.weight);
  const Words mixed =
      PhiloxWords(Halves(key.session_seed), {request[0], request[1], weight[0], weight[1]});
  const auto group = Halves(static_cast<uint64_t>(element / 4));
  return PhiloxWords({mixed[0], mixed[1]}, {group[0], group[1], plane, 0})[At(element % 4)];
}

// ---- Hadamard transform --------------------------------------------------------

// Element `i` after `stage` of the sums of pairs 1, 2, 4, 8 apart.
float Transformed(const std::vector<float>& group, int stage, size_t i) {
  static constexpr char kSigns[] = "+++-+------+-+--";
  if (stage == 0) return Product(group[i], kSigns[i] == '+' ? 0.25f : -0.25f);
  const size_t apart = size_t{1} << (stage - 1);
  const float mine = Transformed(group, stage - 1, i);
  const float other = Transformed(group, stage - 1, i ^ apart);
  return (i & apart) == 0 ? Sum(mine, other) : Sum(other, -mine);
}

float RoundToBFloat16(float value) {
  return std::bit_cast<float>(ReferenceBits(value, DType::kBF16) << 16);
}

// ---- Matrices along their blocks -----------------------------------------------

// [lines, length]: blocks run along a line. Of a column plane, the lines are the
// matrix's columns.
struct Lines {
  int64_t lines = 0;
  int64_t length = 0;
  std::vector<float> values;

  float& At(int64_t line, int64_t position) {
    return values[static_cast<size_t>(line * length + position)];
  }
  float At(int64_t line, int64_t position) const {
    return values[static_cast<size_t>(line * length + position)];
  }
};

Lines EmptyLines(const QuantizeSpec& spec, PlaneKind kind, int64_t rows, int64_t columns) {
  if (kind == PlaneKind::kRow) return {rows, columns, {}};
  return {columns, spec.hadamard_column ? RoundUp(rows, 16) : rows, {}};
}

Lines LinesOf(const QuantizeSpec& spec, const ReferenceMatrix& matrix, PlaneKind kind) {
  Lines lines = EmptyLines(spec, kind, matrix.rows, matrix.columns);
  lines.values.resize(At(lines.lines * lines.length), 0.0f);
  for (int64_t i = 0; i < matrix.rows; ++i) {
    for (int64_t j = 0; j < matrix.columns; ++j) {
      const float value = matrix.values[At(i * matrix.columns + j)];
      (kind == PlaneKind::kRow ? lines.At(i, j) : lines.At(j, i)) = value;
    }
  }
  if (kind == PlaneKind::kRow || !spec.hadamard_column) return lines;
  for (size_t first = 0; first < lines.values.size(); first += 16) {
    const std::vector<float> group(lines.values.begin() + static_cast<std::ptrdiff_t>(first),
                                   lines.values.begin() + static_cast<std::ptrdiff_t>(first + 16));
    for (size_t i = 0; i < 16; ++i) {
      lines.values[first + i] = RoundToBFloat16(Transformed(group, 4, i));
    }
  }
  return lines;
}

float LargestOf(const Lines& lines, int64_t first_line, int64_t line_count, int64_t first,
                int64_t count) {
  float amax = 0;
  for (int64_t line = first_line; line < std::min(first_line + line_count, lines.lines); ++line) {
    for (int64_t position = first; position < std::min(first + count, lines.length); ++position) {
      const float value = lines.At(line, position);
      if (!std::isnan(value)) amax = std::fmax(amax, std::fabs(value));
    }
  }
  return amax;
}

}  // namespace

// ---- The rules of a format -----------------------------------------------------

class PlaneReference::Rules {
 public:
  explicit Rules(const QuantizeSpec& spec)
      : spec_(spec),
        mxfp8_(spec.element),
        codes_(spec.element == DType::kF4E2M1   ? SmallFloatReference(1, 1, 7)
               : spec.element == DType::kF8E5M2 ? SmallFloatReference(2, 15, 0x7B)
                                                : SmallFloatReference(3, 7, 0x7E)),
        e4m3_(3, 7, 0x7E) {}

  const QuantizeSpec& spec() const { return spec_; }
  const SmallFloatReference& codes() const { return codes_; }
  uint32_t code_max() const {
    return spec_.element == DType::kF4E2M1 ? 7 : spec_.element == DType::kF8E5M2 ? 0x7B : 0x7E;
  }

  // Elements along a line that share a scale, and the lines that do.
  int64_t BlockLength() const {
    switch (spec_.format) {
      case Format::kMxfp8:
        return 32;
      case Format::kNvfp4:
        return 16;
      case Format::kFp8Block:
        return 128;
      default:
        return int64_t{1} << 40;
    }
  }
  int64_t BlockLines() const {
    if (IsPerTensor(spec_.format)) return BlockLength();
    return spec_.geometry == BlockGeometry::k2D ? BlockLength() : 1;
  }

  struct Scale {
    uint32_t stored;  // a byte, or the bits of an F32 number
    float multiplier;
  };

  Scale ScaleOf(float amax, float tensor_amax, DType source) const {
    switch (spec_.format) {
      case Format::kMxfp8: {
        const uint32_t b = mxfp8_.ScaleOf(amax);
        return {b, static_cast<float>(std::ldexp(1.0, 127 - static_cast<int>(b)))};
      }
      case Format::kNvfp4:
        return Nvfp4ScaleOf(amax, tensor_amax);
      case Format::kFp8Delayed:
        return {Bits(NearestQuotient(1, spec_.delayed_scale)), spec_.delayed_scale};
      default:
        break;
    }
    const Fp8ScaleReference rule(spec_.element, spec_.power_of_two_scales, spec_.amax_epsilon,
                                 spec_.format == Format::kFp8Block, source);
    return {Bits(rule.Decode(amax)), rule.Encode(amax)};
  }

  // The code of a product, `random` being the element's word if it is rounded so.
  uint8_t CodeOf(float scaled, std::optional<uint32_t> random) const {
    const bool four_bits = spec_.element == DType::kF4E2M1;
    if (std::isnan(scaled)) return four_bits ? 7 : 0x7F;
    const double magnitude = std::fabs(static_cast<double>(scaled));
    uint32_t code = codes_.Nearest(magnitude);
    if (random && magnitude < codes_.Value(code_max())) {
      code = 0;
      while (codes_.Value(code + 1) <= magnitude) ++code;
      const double step = codes_.Value(code + 1) - codes_.Value(code);
      const double words_up = std::floor((magnitude - codes_.Value(code)) / step * 0x1p32);
      if (static_cast<double>(*random) < words_up) ++code;
    }
    const uint32_t sign = !std::signbit(scaled) ? 0 : four_bits ? 0x8 : 0x80;
    return static_cast<uint8_t>(sign | code);
  }

  float ValueOf(uint8_t code) const {
    switch (spec_.element) {
      case DType::kF4E2M1:
        return Signed(codes_.Value(code & 7u), (code & 8u) != 0);
      case DType::kF8E5M2:
        if ((code & 0x7Fu) == 0x7C) return Signed(kInfinity, (code & 0x80u) != 0);
        break;
      default:
        break;
    }
    if ((code & 0x7Fu) > code_max()) return kNan;
    return Signed(codes_.Value(code & 0x7Fu), (code & 0x80u) != 0);
  }

  // What codes under a stored scale are multiplied by.
  float FactorOf(uint32_t stored, float tensor_amax) const {
    switch (spec_.format) {
      case Format::kMxfp8:
        return stored == 255 ? kNan
                             : static_cast<float>(std::ldexp(1.0, static_cast<int>(stored) - 127));
      case Format::kNvfp4: {
        const uint32_t magnitude = stored & 0x7F;
        if (magnitude == 0x7F) return kNan;
        const float scale = Signed(e4m3_.Value(magnitude), (stored & 0x80) != 0);
        return Product(Product(scale, tensor_amax), Quotient(1, 448.0f * 6.0f));
      }
      default:
        return std::bit_cast<float>(stored);
    }
  }

 private:
  static uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }
  static float Signed(double magnitude, bool negative) {
    return static_cast<float>(negative ? -magnitude : magnitude);
  }

  // Searched for once.
  float Quotient(float numerator, float denominator) const {
    const auto [at, is_new] = quotients_.try_emplace({numerator, denominator}, 0.0f);
    if (is_new) at->second = NearestQuotient(numerator, denominator);
    return at->second;
  }

  Scale Nvfp4ScaleOf(float amax, float tensor_amax) const {
    float encode = 1;  // also of a plane of zeros, or with an infinity
    if (tensor_amax > 0 && std::isfinite(tensor_amax)) {
      encode = std::fmin(Quotient(448.0f * 6.0f, tensor_amax), kFloatMax);
    }
    const float wanted = Product(amax, Product(encode, Quotient(1, 6)));
    const uint32_t stored = e4m3_.Nearest(std::fmin(wanted, kFloatMax));
    const float product = Product(static_cast<float>(e4m3_.Value(stored)), Quotient(1, encode));
    float multiplier = kFloatMax;
    if (product > 0) multiplier = std::fmin(Quotient(1, product), kFloatMax);
    return {stored, multiplier};
  }

  QuantizeSpec spec_;
  Mxfp8Reference mxfp8_;
  SmallFloatReference codes_;
  SmallFloatReference e4m3_;
  mutable std::map<std::pair<float, float>, float> quotients_;
};

namespace {

// ---- Storage -------------------------------------------------------------------

// Where elements and scales lie, from the formulas for each format's bytes.
class Storage {
 public:
  Storage(const QuantizeSpec& spec, PlaneKind kind, const Lines& lines)
      : format_(spec.format),
        square_(spec.geometry == BlockGeometry::k2D),
        keeps_order_(kind == PlaneKind::kColumn && spec.format == Format::kMxfp8),
        lines_(lines.lines),
        length_(lines.length) {}

  bool packed() const { return format_ == Format::kNvfp4; }
  int64_t PayloadBytes() const {
    return packed() ? lines_ * CeilDivide(length_, 2) : lines_ * length_;
  }
  // In elements.
  int64_t PayloadIndex(int64_t line, int64_t position) const {
    if (keeps_order_) return position * lines_ + line;
    return line * (packed() ? RoundUp(length_, 2) : length_) + position;
  }

  int64_t ScaleSize() const {
    return format_ == Format::kMxfp8 || format_ == Format::kNvfp4 ? 1 : 4;
  }
  int64_t ScaleCount() const {
    switch (format_) {
      case Format::kMxfp8:
        return RoundUp(lines_, 128) * RoundUp(CeilDivide(length_, 32), 4);
      case Format::kNvfp4:
        return RoundUp(lines_, 128) * RoundUp(CeilDivide(length_, 16), 4);
      case Format::kFp8Block:
        if (square_) return CeilDivide(lines_, 128) * RoundUp(CeilDivide(length_, 128), 4);
        return CeilDivide(length_, 128) * RoundUp(lines_, 4);
      default:
        return 1;
    }
  }
  int64_t ScaleIndex(int64_t line, int64_t position) const {
    switch (format_) {
      case Format::kMxfp8:
        if (keeps_order_) return position / 32 * RoundUp(lines_, 128) + line;
        return line * RoundUp(CeilDivide(length_, 32), 4) + position / 32;
      case Format::kNvfp4:
        return line * RoundUp(CeilDivide(length_, 16), 4) + position / 16;
      case Format::kFp8Block:
        if (square_) return line / 128 * RoundUp(CeilDivide(length_, 128), 4) + position / 128;
        return position / 128 * RoundUp(lines_, 4) + line;
      default:
        return 0;
    }
  }

 private:
  Format format_;
  bool square_;
  bool keeps_order_;  // the payload is the matrix's, not its transpose
  int64_t lines_;
  int64_t length_;
};

}  // namespace

// ---- PlaneReference ------------------------------------------------------------

PlaneReference::PlaneReference(const QuantizeSpec& spec)
    : rules_(std::make_unique<const Rules>(spec)) {}
PlaneReference::~PlaneReference() = default;

float PlaneReference::Amax(const ReferenceMatrix& matrix, PlaneKind kind) const {
  const Lines lines = LinesOf(rules_->spec(), matrix, kind);
  return LargestOf(lines, 0, lines.lines, 0, lines.length);
}

ReferencePlane PlaneReference::Quantize(const ReferenceMatrix& matrix, PlaneKind kind) const {
  const QuantizeSpec& spec = rules_->spec();
  const Lines lines = LinesOf(spec, matrix, kind);
  const Storage storage(spec, kind, lines);
  const float tensor_amax = LargestOf(lines, 0, lines.lines, 0, lines.length);
  ReferencePlane plane;
  plane.payload.resize(At(storage.PayloadBytes()), 0);
  plane.scales.resize(At(storage.ScaleCount() * storage.ScaleSize()), 0);
  if (spec.format == Format::kNvfp4) plane.state = {tensor_amax};
  if (IsPerTensor(spec.format)) {  // also of no elements
    const uint32_t stored = rules_->ScaleOf(tensor_amax, tensor_amax, matrix.source).stored;
    std::memcpy(plane.scales.data(), &stored, sizeof(stored));
  }
  const int64_t block_lines = rules_->BlockLines();
  const int64_t block_length = rules_->BlockLength();
  for (int64_t first_line = 0; first_line < lines.lines; first_line += block_lines) {
    for (int64_t first = 0; first < lines.length; first += block_length) {
      const Rules::Scale scale =
          rules_->ScaleOf(LargestOf(lines, first_line, block_lines, first, block_length),
                          tensor_amax, matrix.source);
      const int64_t end_line = std::min(first_line + block_lines, lines.lines);
      const int64_t end = std::min(first + block_length, lines.length);
      for (int64_t line = first_line; line < end_line; ++line) {
        for (int64_t position = first; position < end; ++position) {
          const int64_t scale_at = storage.ScaleIndex(line, position) * storage.ScaleSize();
          std::memcpy(plane.scales.data() + scale_at, &scale.stored, At(storage.ScaleSize()));
          std::optional<uint32_t> random;
          if (spec.stochastic) {
            random = WordOf(*spec.stochastic, kind == PlaneKind::kRow ? 0 : 1,
                            line * RoundUp(lines.length, 16) + position);
          }
          const uint8_t code =
              rules_->CodeOf(Product(lines.At(line, position), scale.multiplier), random);
          const int64_t index = storage.PayloadIndex(line, position);
          if (!storage.packed()) {
            plane.payload[At(index)] = code;
          } else {
            plane.payload[At(index / 2)] += static_cast<uint8_t>(index % 2 == 0 ? code : 16 * code);
          }
        }
      }
    }
  }
  return plane;
}

std::vector<float> PlaneReference::Dequantize(const ReferencePlane& plane, PlaneKind kind,
                                              int64_t rows, int64_t columns) const {
  const QuantizeSpec& spec = rules_->spec();
  const Storage storage(spec, kind, EmptyLines(spec, kind, rows, columns));
  const float tensor_amax = plane.state.empty() ? 0 : plane.state[0];
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t line = kind == PlaneKind::kRow ? i : j;
      const int64_t position = kind == PlaneKind::kRow ? j : i;
      uint32_t stored = 0;
      std::memcpy(&stored,
                  plane.scales.data() + storage.ScaleIndex(line, position) * storage.ScaleSize(),
                  At(storage.ScaleSize()));
      const int64_t index = storage.PayloadIndex(line, position);
      uint8_t code = plane.payload[At(storage.packed() ? index / 2 : index)];
      if (storage.packed()) code = index % 2 == 0 ? code % 16 : code / 16;
      const float value = Product(rules_->ValueOf(code), rules_->FactorOf(stored, tensor_amax));
      values.push_back(value);
    }
  }
  return values;
}

std::vector<PlaneReference::Scaling> PlaneReference::RowScalings(
    const ReferenceMatrix& matrix) const {
  const Lines lines = LinesOf(rules_->spec(), matrix, PlaneKind::kRow);
  const float tensor_amax = LargestOf(lines, 0, lines.lines, 0, lines.length);
  const int64_t block_lines = rules_->BlockLines();
  const int64_t block_length = rules_->BlockLength();
  std::vector<Scaling> scalings(lines.values.size());
  for (int64_t i = 0; i < matrix.rows; i += block_lines) {
    for (int64_t j = 0; j < matrix.columns; j += block_length) {
      const float amax = LargestOf(lines, i, block_lines, j, block_length);
      const float multiplier = rules_->ScaleOf(amax, tensor_amax, matrix.source).multiplier;
      for (int64_t row = i; row < std::min(i + block_lines, matrix.rows); ++row) {
        for (int64_t k = j; k < std::min(j + block_length, matrix.columns); ++k) {
          scalings[At(row * matrix.columns + k)] = {amax, multiplier};
        }
      }
    }
  }
  return scalings;
}

double PlaneReference::Midpoint(uint32_t code) const {
  return (rules_->codes().Value(code) + rules_->codes().Value(code + 1)) / 2;
}

uint32_t PlaneReference::CodeMax() const { return rules_->code_max(); }

uint32_t PlaneReference::ScaleBits(float block_amax, float tensor_amax, DType source) const {
  return rules_->ScaleOf(block_amax, tensor_amax, source).stored;
}

uint32_t ReferenceBits(float value, DType dtype) {
  if (dtype == DType::kF32) return std::isnan(value) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return 0x7FFF;
  static const SmallFloatReference kBFloat16(7, 127, 0x7F80);
  static const SmallFloatReference kFloat16(10, 15, 0x7C00);
  const SmallFloatReference& codes = dtype == DType::kBF16 ? kBFloat16 : kFloat16;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  return sign | codes.Nearest(std::fabs(static_cast<double>(value)));
}

}  // namespace planewise
