#ifndef PLANEWISE_CORE_TENSOR_PRIMARY_WEIGHT_H_
#define PLANEWISE_CORE_TENSOR_PRIMARY_WEIGHT_H_
// A hosted weight: its identity and the planes that are stored of it. No math.
//
// Invariants, cited by tests:
//  1. A quantized weight has a row plane; a high-precision one has exactly the
//     high-precision plane.
//  2. Every plane's layout is PlaneLayoutFor(format, geometry, kind, shape), and
//     its buffers have that many bytes.
//  3. Padding bytes of scales are 0.
//  4. A plane is read only if its epoch equals its weight's.
//  5. Planes are immutable once shared.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/strong_int.h"
#include "core/recipe/recipe.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/plane_layout.h"

namespace planewise {

// Biased E8M0 exponents over the blocks that hold a non-zero code.
struct ExponentRange {
  int min = 0;
  int max = 0;

  bool operator==(const ExponentRange&) const = default;
};

struct Plane {
  PlaneLayout layout;
  WeightVersion epoch;  // the version it was made from
  HostBuffer payload;   // layout.payload_bytes
  HostBuffer scales;    // layout.scale_bytes, compact order
  HostBuffer state;     // layout.state_bytes, F32

  HostBuffer& buffer(PlanePart part);
  const HostBuffer& buffer(PlanePart part) const;
  int64_t stored_bytes() const;
  // MXFP8 only; nullopt if every block is zero.
  std::optional<ExponentRange> exponents;
};

struct PrimaryWeight {
  std::string name;  // for example "encoder.layer.0.attention.self.query.weight"
  MatrixShape shape;
  DType nominal = DType::kBF16;  // the type the weight stands for
  Format format = Format::kNone;
  BlockGeometry geometry = BlockGeometry::k1D;
  int64_t amax_history_length = 0;  // of fp8_delayed
  WeightVersion epoch;              // the version that last changed it
  std::shared_ptr<const Plane> row;
  std::shared_ptr<const Plane> column;
  std::shared_ptr<const Plane> high_precision;

  // The plane of that kind if it is stored and fresh, else nullptr.
  const Plane* Fresh(PlaneKind kind) const;
  // Allocated bytes of all stored planes.
  int64_t stored_bytes() const;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_PRIMARY_WEIGHT_H_
