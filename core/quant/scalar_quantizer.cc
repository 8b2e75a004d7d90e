// The normative quantizer: every other one must give its bytes. One block after
// another, nothing clever.
//
// A format is a scaling (what scale a largest magnitude gives, and what elements
// under it are multiplied by) and a geometry (plane_geometry.h). Everything else
// is the same for all of them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/status_macros.h"
#include "core/numeric/default_float_environment.h"
#include "core/numeric/float4_e2m1.h"
#include "core/numeric/float8_e4m3.h"
#include "core/numeric/scale_e8m0.h"
#include "core/numeric/stochastic_rounding.h"
#include "core/quant/fp8_scale.h"
#include "core/quant/hadamard.h"
#include "core/quant/mxfp8_block.h"
#include "core/quant/nvfp4_block.h"
#include "core/quant/plane_geometry.h"
#include "core/quant/quantize_request.h"
#include "core/quant/quantizer.h"
#include "core/quant/visit_dtype.h"

namespace planewise {
namespace {

// ---- Blocks ------------------------------------------------------------------

// Rows [row, row + rows) and columns [column, column + columns) of a matrix.
struct Block {
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

// The blocks of the plane that begin in `rows`.
template <typename Function>
void ForEachBlock(const PlaneGeometry& plane, MatrixView src, RowRange rows, Function function) {
  // A plane of transformed elements has more rows than the matrix.
  const int64_t end = rows.end() == src.rows ? plane.rows : rows.end();
  for (int64_t i = rows.first; i < end; i += plane.block_rows) {
    for (int64_t j = 0; j < plane.columns; j += plane.block_columns) {
      function(Block{i, j, std::min(plane.block_rows, end - i),
                     std::min(plane.block_columns, plane.columns - j)});
    }
  }
}

// The elements of a block, row by row. Rows that the matrix lacks are 0.
template <typename Source>
void Gather(MatrixView src, const Block& block, std::vector<float>& values) {
  const auto* source = static_cast<const Source*>(src.data);
  values.clear();
  for (int64_t i = block.row; i < block.row + block.rows; ++i) {
    for (int64_t j = block.column; j < block.column + block.columns; ++j) {
      values.push_back(i < src.rows ? Widen(source[i * src.columns + j]) : 0.0f);
    }
  }
}

float Amax(const std::vector<float>& values) {
  float amax = 0.0f;
  for (const float value : values) {
    const float magnitude = std::fabs(value);
    if (magnitude > amax) amax = magnitude;  // Never true of NaN, which is skipped.
  }
  return amax;
}

void Transform(std::vector<float>& values) {
  std::array<float, kHadamardBlock> block;
  std::copy(values.begin(), values.end(), block.begin());
  block = HadamardTransform(block);
  std::copy(block.begin(), block.end(), values.begin());
}

// ---- Scalings ----------------------------------------------------------------

template <typename Element>
void Store(Element code, int64_t index, uint8_t* payload) {
  payload[index] = code.bits;
}
void Store(Float4E2M1 code, int64_t index, uint8_t* payload) { StorePacked(payload, index, code); }

template <typename ElementType>
struct Mxfp8Scaling {
  using Element = ElementType;
  using Scale = ScaleE8M0;

  ScaleE8M0 ScaleOf(float amax) const { return Mxfp8Scale<Element>(amax); }
  float Multiplier(ScaleE8M0 scale) const { return scale.EncodeMultiplier(); }
  ScaleE8M0 Stored(ScaleE8M0 scale) const { return scale; }
  Element Round(float scaled, int64_t, int64_t) const { return Element::FromFloat(scaled); }
};

template <typename ElementType>
struct Fp8BlockScaling {
  using Element = ElementType;
  using Scale = float;

  Fp8ScaleRule rule;

  float ScaleOf(float amax) const { return EncodeScale(amax, rule); }
  float Multiplier(float scale) const { return scale; }
  float Stored(float scale) const { return DecodeScale(scale); }
  Element Round(float scaled, int64_t, int64_t) const { return Element::FromFloat(scaled); }
};

struct Nvfp4PlaneScaling {
  using Element = Float4E2M1;
  using Scale = Float8E4M3;

  Nvfp4Scaling scaling;
  std::optional<StochasticWords> words;
  PlaneGeometry plane;

  Float8E4M3 ScaleOf(float amax) const { return scaling.ScaleOf(amax); }
  float Multiplier(Float8E4M3 scale) const { return scaling.Multiplier(scale); }
  Float8E4M3 Stored(Float8E4M3 scale) const { return scale; }
  Float4E2M1 Round(float scaled, int64_t i, int64_t j) const {
    if (!words) return Float4E2M1::FromFloat(scaled);
    return RoundStochastically<Float4E2M1>(scaled, words->Of(WordIndex(i, j)));
  }

 private:
  // An element's index if every stored row were padded to whole blocks.
  uint64_t WordIndex(int64_t i, int64_t j) const {
    const int64_t row = plane.payload_transposed ? j : i;
    const int64_t column = plane.payload_transposed ? i : j;
    const int64_t columns = plane.payload_transposed ? plane.rows : plane.columns;
    return static_cast<uint64_t>(row * RoundUp(columns, kNvfp4Block) + column);
  }
};

// ---- Planes ------------------------------------------------------------------

// A plane and how it lies; its codes are not written if they are another's.
struct Target {
  PlaneGeometry geometry;
  PlaneSpan span;

  bool stores_codes() const { return !span.layout.shares_row_payload; }
};

template <typename Scale>
void StoreScale(const Target& target, const Block& block, Scale scale) {
  const PlaneGeometry& geometry = target.geometry;
  for (int64_t i = 0; i < block.rows; i += int64_t{1} << geometry.scale_rows_log2) {
    for (int64_t j = 0; j < block.columns; j += int64_t{1} << geometry.scale_columns_log2) {
      const int64_t index = geometry.ScaleIndex(block.row + i, block.column + j);
      std::memcpy(target.span.scales + index * int64_t{sizeof(Scale)}, &scale, sizeof(Scale));
    }
  }
}

template <typename Source, typename Scaling>
void QuantizeBlocks(MatrixView src, RowRange rows, bool transform, const Scaling& scaling,
                    const Target& target) {
  std::vector<float> values;
  ForEachBlock(target.geometry, src, rows, [&](const Block& block) {
    Gather<Source>(src, block, values);
    if (transform) Transform(values);
    const auto scale = scaling.ScaleOf(Amax(values));
    StoreScale(target, block, scaling.Stored(scale));
    if (!target.stores_codes()) return;
    const float multiplier = scaling.Multiplier(scale);
    const float* value = values.data();
    for (int64_t i = block.row; i < block.row + block.rows; ++i) {
      for (int64_t j = block.column; j < block.column + block.columns; ++j, ++value) {
        Store(scaling.Round(*value * multiplier, i, j), target.geometry.PayloadIndex(i, j),
              target.span.payload);
      }
    }
  });
}

// One scale for all elements, which is known.
template <typename Source, typename Element>
void QuantizePerTensor(MatrixView src, RowRange rows, float scale, const Target& target) {
  if (!target.stores_codes()) return;
  const auto* source = static_cast<const Source*>(src.data);
  for (int64_t i = rows.first; i < rows.end(); ++i) {
    for (int64_t j = 0; j < src.columns; ++j) {
      Store(Element::FromFloat(Widen(source[i * src.columns + j]) * scale),
            target.geometry.PayloadIndex(i, j), target.span.payload);
    }
  }
}

template <typename Source>
void QuantizeNvfp4(MatrixView src, const QuantizeSpec& spec, const TensorAmax& amax, RowRange rows,
                   const Target& target) {
  const bool is_row = target.span.layout.kind == PlaneKind::kRow;
  Nvfp4PlaneScaling scaling{Nvfp4Scaling(is_row ? amax.row : amax.column), {}, target.geometry};
  if (spec.stochastic) scaling.words.emplace(*spec.stochastic, is_row ? 0 : 1);
  QuantizeBlocks<Source>(src, rows, !is_row && spec.hadamard_column, scaling, target);
}

template <typename Source, typename Element>
void QuantizeFp8(MatrixView src, const QuantizeSpec& spec, const TensorAmax& amax, RowRange rows,
                 const Target& target) {
  if (spec.format == Format::kMxfp8) {
    QuantizeBlocks<Source>(src, rows, false, Mxfp8Scaling<Element>{}, target);
  } else if (spec.format == Format::kFp8Block) {
    const Fp8ScaleRule rule = {Element::kMax, spec.power_of_two_scales, spec.amax_epsilon,
                               LargestBlockScale(src.dtype)};
    QuantizeBlocks<Source>(src, rows, false, Fp8BlockScaling<Element>{rule}, target);
  } else {
    QuantizePerTensor<Source, Element>(src, rows, PerTensorScale(spec, amax), target);
  }
}

template <typename Source>
void QuantizePlane(MatrixView src, const QuantizeSpec& spec, const TensorAmax& amax, RowRange rows,
                   const PlaneSpan& plane) {
  const Target target = {GeometryOf(spec.format, spec.geometry, plane.layout), plane};
  if (spec.format == Format::kNvfp4) {
    QuantizeNvfp4<Source>(src, spec, amax, rows, target);
  } else {
    VisitFloat8(spec.element, [&](auto element_tag) {
      QuantizeFp8<Source, decltype(element_tag)>(src, spec, amax, rows, target);
    });
  }
  WriteOnce(spec, amax, rows, plane);
}

// The largest magnitude of what the column plane is made of.
template <typename Source>
float TransformedAmax(MatrixView src, RowRange rows) {
  PlaneGeometry groups;
  groups.rows = RoundUp(src.rows, kHadamardBlock);
  groups.columns = src.columns;
  groups.block_rows = kHadamardBlock;
  float amax = 0;
  std::vector<float> values;
  ForEachBlock(groups, src, rows, [&](const Block& block) {
    Gather<Source>(src, block, values);
    Transform(values);
    amax = std::max(amax, Amax(values));
  });
  return amax;
}

template <typename Source>
float PlainAmax(MatrixView src, RowRange rows) {
  const auto* source = static_cast<const Source*>(src.data);
  float amax = 0;
  for (int64_t at = rows.first * src.columns; at < rows.end() * src.columns; ++at) {
    const float magnitude = std::fabs(Widen(source[at]));
    if (magnitude > amax) amax = magnitude;
  }
  return amax;
}

// ---- Back --------------------------------------------------------------------

template <typename Scale>
Scale LoadScale(const ConstPlaneSpan& plane, int64_t index) {
  Scale scale;
  std::memcpy(&scale, plane.scales + index * int64_t{sizeof(Scale)}, sizeof(Scale));
  return scale;
}

// What the codes under the scale at `index` are multiplied by.
float Factor(const PlaneGeometry& geometry, const ConstPlaneSpan& plane, int64_t index) {
  switch (geometry.format) {
    case Format::kMxfp8:
      return LoadScale<ScaleE8M0>(plane, index).ToFloat();
    case Format::kNvfp4:
      return Nvfp4Factor(LoadScale<Float8E4M3>(plane, index), *plane.state);
    default:
      return LoadScale<float>(plane, index);
  }
}

template <typename Element>
float Load(const uint8_t* payload, int64_t index) {
  if constexpr (std::is_same_v<Element, Float4E2M1>) {
    return LoadPacked(payload, index).ToFloat();
  } else {
    return Element{payload[index]}.ToFloat();
  }
}

template <typename Element, typename Target>
void DequantizeRows(const PlaneGeometry& geometry, const ConstPlaneSpan& plane,
                    MutableMatrixView dst, RowRange rows) {
  auto* target = static_cast<Target*>(dst.data);
  const int64_t columns_per_scale = int64_t{1} << geometry.scale_columns_log2;
  for (int64_t i = rows.first; i < rows.end(); ++i) {
    for (int64_t first = 0; first < dst.columns; first += columns_per_scale) {
      const float factor = Factor(geometry, plane, geometry.ScaleIndex(i, first));
      const int64_t end = std::min(columns_per_scale, dst.columns - first) + first;
      for (int64_t j = first; j < end; ++j) {
        const float value = Load<Element>(plane.payload, geometry.PayloadIndex(i, j)) * factor;
        target[i * dst.columns + j] = Narrow<Target>(value);
      }
    }
  }
}

template <typename Function>
void VisitElement(DType dtype, Function function) {
  if (dtype == DType::kF4E2M1) return function(Float4E2M1{});
  VisitFloat8(dtype, function);
}

class Scalar final : public Quantizer {
 public:
  absl::string_view name() const override { return "scalar"; }

  absl::Status MeasureAmax(MatrixView src, const QuantizeSpec& spec, PlaneWishes wishes,
                           RowRange rows, TensorAmax* amax) const override {
    PW_RETURN_IF_ERROR(CheckMeasureAmax(src, spec, rows));
    const DefaultFloatEnvironment environment;
    VisitHighPrecision(src.dtype, [&](auto source_tag) {
      using Source = decltype(source_tag);
      TensorAmax part;
      if (!spec.hadamard_column) {
        part.row = PlainAmax<Source>(src, rows);
        part.column = part.row;
      } else {
        if (wishes.row) part.row = PlainAmax<Source>(src, rows);
        if (wishes.column) part.column = TransformedAmax<Source>(src, rows);
      }
      amax->Raise(part);
    });
    return absl::OkStatus();
  }

  absl::Status Quantize(MatrixView src, const QuantizeSpec& spec, const TensorAmax& amax,
                        RowRange rows, const PlaneSpan* row,
                        const PlaneSpan* column) const override {
    PW_RETURN_IF_ERROR(CheckQuantize(src, spec, rows, row, column));
    const DefaultFloatEnvironment environment;
    VisitHighPrecision(src.dtype, [&](auto source_tag) {
      for (const PlaneSpan* plane : {row, column}) {
        if (plane == nullptr) continue;
        QuantizePlane<decltype(source_tag)>(src, spec, amax, rows, *plane);
      }
    });
    return absl::OkStatus();
  }

  absl::Status Dequantize(const ConstPlaneSpan& plane, MutableMatrixView dst,
                          RowRange rows) const override {
    PW_ASSIGN_OR_RETURN(const PlaneGeometry geometry, CheckDequantize(plane, dst, rows));
    const DefaultFloatEnvironment environment;
    VisitHighPrecision(dst.dtype, [&](auto target_tag) {
      VisitElement(plane.layout.payload_dtype, [&](auto element_tag) {
        DequantizeRows<decltype(element_tag), decltype(target_tag)>(geometry, plane, dst, rows);
      });
    });
    return absl::OkStatus();
  }
};

}  // namespace

const Quantizer& ScalarQuantizer() {
  static const Scalar quantizer;
  return quantizer;
}

}  // namespace planewise
