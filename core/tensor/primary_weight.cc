#include "core/tensor/primary_weight.h"

namespace planewise {

const Plane* PrimaryWeight::Fresh(PlaneKind kind) const {
  const Plane* plane = nullptr;
  switch (kind) {
    case PlaneKind::kRow: plane = row.get(); break;
    case PlaneKind::kColumn: plane = column.get(); break;
    case PlaneKind::kHighPrecision: plane = high_precision.get(); break;
  }
  return plane != nullptr && plane->epoch == epoch ? plane : nullptr;
}

int64_t PrimaryWeight::stored_bytes() const {
  int64_t total = 0;
  for (const Plane* plane : {row.get(), column.get(), high_precision.get()}) {
    if (plane != nullptr) total += plane->payload.size_bytes() + plane->scales.size_bytes();
  }
  return total;
}

}  // namespace planewise
