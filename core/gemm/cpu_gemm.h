#ifndef PLANEWISE_CORE_GEMM_CPU_GEMM_H_
#define PLANEWISE_CORE_GEMM_CPU_GEMM_H_
// GEMMs on the CPU, straight from stored planes: tiles of B are expanded into
// scratch that stays in cache and multiplied by oneDNN with panels of A.
//
// A row of C depends on its row of A, on B and on nothing else, bit for bit:
// however many rows there are, wherever it stands among them, and however many
// threads work. Every product of a panel and a tile is the same oneDNN
// primitive, of fixed size and single-threaded; the sum over k is cut at fixed
// places and never across threads; how a row of codes is expanded is decided
// from that row and B's range alone (expansion.h).
//
// BF16 subnormals among kDense elements count as zero where the CPU flushes
// them (AMX and AVX512-BF16 do); codes and values never meet that, expansion
// keeps them normal.
//
// Not here: which planes a layer multiplies (core/layer/linear.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/thread_pool.h"
#include "core/gemm/gemm_operand.h"
#include "core/gemm/gemm_path.h"
#include "core/gemm/gemm_problem.h"
#include "core/gemm/panel_product.h"
#include "core/gemm/row_placement.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/matrix_view.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

// Whether this CPU multiplies BF16 in hardware; if not, F32 is the type to
// compute in.
bool CpuMultipliesBf16();

// Thread-compatible: one Run at a time. Keeps oneDNN primitives and per-thread
// scratch between runs.
class CpuGemm {
 public:
  // Reserves ScratchBytes(threads) of kTransient for as long as the object
  // lives. `threads` >= 1 counts the caller of Run. RESOURCE_EXHAUSTED if the
  // scratch does not fit.
  static absl::StatusOr<std::unique_ptr<CpuGemm>> Create(int threads, MemoryBudget& budget);
  ~CpuGemm();

  static int64_t ScratchBytes(int threads);

  // What Run takes from its budget, as kTransient, while it runs.
  static int64_t WorkspaceBytes(const GemmProblem& problem);

  // Computes problem's C into c [m, n], every element. `bias` is [1, n] or has
  // no data; it is added in F32 before the result is rounded. With k == 0, C is
  // the bias, or zeros. Says how codes were multiplied: kExpandedFp32 if any row
  // of A was.
  // INVALID_ARGUMENT if operands or c do not fit the problem, RESOURCE_EXHAUSTED
  // if the workspace does not fit, FAILED_PRECONDITION / ARCH_UNSUPPORTED if
  // oneDNN has no implementation: c is untouched then.
  absl::StatusOr<GemmPath> Run(const GemmProblem& problem, const GemmOperand& a,
                               const GemmOperand& b, MatrixView bias, MutableMatrixView c,
                               MemoryBudget& budget);

  // For work around GEMMs, between runs.
  ThreadPool& pool() { return pool_; }

 private:
  class Product;
  struct Chunk;

  CpuGemm(int threads, HostBuffer scratch);

  absl::StatusOr<std::vector<Chunk>> ChunksOf(const GemmProblem& problem);
  std::byte* ScratchOf(int worker);

  ThreadPool pool_;
  PanelProducts products_;
  HostBuffer scratch_;
  std::vector<RowPlacement> placements_;  // of the rows of one block
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_CPU_GEMM_H_
