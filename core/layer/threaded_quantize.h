#ifndef PLANEWISE_CORE_LAYER_THREADED_QUANTIZE_H_
#define PLANEWISE_CORE_LAYER_THREADED_QUANTIZE_H_
// Quantizes the matrices of one call, on all threads.
//
// Not here: weights at load (service/weights/), the arithmetic (core/quant/).

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/thread_pool.h"
#include "core/quant/quantizer.h"

namespace planewise {

// What each wanted plane is charged to; nullopt = not wanted.
struct PlaneUses {
  std::optional<MemoryUse> row;
  std::optional<MemoryUse> column;
};

// As QuantizeToPlanes of core/quant, byte for byte, but by rows on the threads
// of `pool` and with a use for each plane. The planes' epoch is 0: they belong
// to a call, not to a weight.
absl::StatusOr<QuantizedPlanes> QuantizeOnThreads(const Quantizer& quantizer, ThreadPool& pool,
                                                  MemoryBudget& budget, MatrixView src,
                                                  const QuantizeSpec& spec, PlaneUses uses,
                                                  absl::string_view what);

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_THREADED_QUANTIZE_H_
