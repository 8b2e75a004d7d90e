#ifndef PLANEWISE_CORE_GEMM_PANEL_PRODUCT_H_
#define PLANEWISE_CORE_GEMM_PANEL_PRODUCT_H_
// One panel of A times one tile of B: the only multiplication there is, by a
// oneDNN primitive of fixed size. oneDNN's exceptions end here.
//
// Not here: what is in a panel or a tile (operand_tile.h).

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/numeric/dtype.h"

namespace planewise {

// While it lives, oneDNN uses the calling thread alone: every thread of ours
// multiplies its own tiles. (oneDNN asks OpenMP, thread by thread.)
class OneOpenMpThread {
 public:
  OneOpenMpThread();
  ~OneOpenMpThread();
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int callers_;
};

// C [64, 64] = A [64, k] * tile, or C += that, in F32.
class PanelProduct {
 public:
  ~PanelProduct();

  // What `scratch` of Multiply must hold.
  static constexpr int64_t kScratchBytes = 256 << 10;

  // Inside a OneOpenMpThread; several workers may multiply at once. Buffers are
  // aligned as HostBuffer's. INTERNAL, with what oneDNN says, if it fails.
  absl::Status Multiply(int worker, const void* panel, const void* tile, float* c,
                        std::byte* scratch);

 private:
  friend class PanelProducts;
  struct Primitive;
  explicit PanelProduct(std::unique_ptr<Primitive> primitive);

  std::unique_ptr<Primitive> primitive_;
};

// Makes products and keeps them. Thread-compatible.
class PanelProducts {
 public:
  explicit PanelProducts(int workers);
  ~PanelProducts();

  // The product of length k (% 32 == 0) of BF16 or F32 operands; valid as long
  // as this object. FAILED_PRECONDITION / ARCH_UNSUPPORTED if oneDNN has none
  // for this CPU.
  absl::StatusOr<PanelProduct*> Get(DType compute, int64_t k, bool accumulate);

 private:
  using Key = std::tuple<DType, int64_t, bool>;

  const int workers_;
  std::map<Key, std::unique_ptr<PanelProduct>> products_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_PANEL_PRODUCT_H_
