#include "core/tensor/primary_weight.h"

namespace planewise {

const HostBuffer& Plane::buffer(PlanePart part) const {
  switch (part) {
    case PlanePart::kPayload:
      return payload;
    case PlanePart::kScales:
      return scales;
    case PlanePart::kState:
      break;
  }
  return state;
}

HostBuffer& Plane::buffer(PlanePart part) {
  return const_cast<HostBuffer&>(static_cast<const Plane*>(this)->buffer(part));
}

int64_t Plane::stored_bytes() const {
  return payload.size_bytes() + scales.size_bytes() + state.size_bytes();
}

const Plane* PrimaryWeight::Fresh(PlaneKind kind) const {
  const Plane* plane = nullptr;
  switch (kind) {
    case PlaneKind::kRow:
      plane = row.get();
      break;
    case PlaneKind::kColumn:
      plane = column.get();
      break;
    case PlaneKind::kHighPrecision:
      plane = high_precision.get();
      break;
  }
  return plane != nullptr && plane->epoch == epoch ? plane : nullptr;
}

int64_t PrimaryWeight::stored_bytes() const {
  int64_t total = 0;
  for (const Plane* plane : {row.get(), column.get(), high_precision.get()}) {
    if (plane != nullptr) total += plane->stored_bytes();
  }
  return total;
}

}  // namespace planewise
