#ifndef PLANEWISE_TESTS_BENCH_ONEDNN_MATMUL_H_
#define PLANEWISE_TESTS_BENCH_ONEDNN_MATMUL_H_
// What linear layers are measured against: oneDNN's own matmul in BF16, on all
// the threads it is given, with both operands ready: converted beforehand to the
// layout that turns out the fastest, in memory of the same kind as Planewise's.
//
// Not here: what Planewise computes with (core/gemm/).

#include <cstdint>
#include <functional>
#include <memory>

#include "core/numeric/dtype.h"
#include "core/tensor/host_buffer.h"

namespace planewise {

// C [m, n] = A [m, k] * B [k, n]. Ends the process if oneDNN fails.
class OneDnnMatmul {
 public:
  // Of a number of bytes.
  using Allocate = std::function<HostBuffer(int64_t)>;

  // Tries the layouts of B, a few products each: what oneDNN asks for, row-major
  // and transposed. `output` is BF16 or F32. Threads beyond `threads` stay idle.
  OneDnnMatmul(int64_t m, int64_t n, int64_t k, DType output, int threads,
               const Allocate& allocate);
  ~OneDnnMatmul();

  // The operand in the layout that Run reads, from row-major BF16 [m, k] and
  // [k, n]; or [k, m] and [n, k] if `transposed`.
  HostBuffer MakeA(const void* data, bool transposed, const Allocate& allocate) const;
  HostBuffer MakeB(const void* data, bool transposed, const Allocate& allocate) const;

  void Run(HostBuffer& a, HostBuffer& b, HostBuffer& c) const;

 private:
  struct Primitive;
  std::unique_ptr<Primitive> primitive_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_BENCH_ONEDNN_MATMUL_H_
