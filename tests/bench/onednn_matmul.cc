#include "tests/bench/onednn_matmul.h"

#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

// Of the OpenMP runtime that oneDNN is linked with.
extern "C" void omp_set_num_threads(int count);

namespace planewise {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr int kTrials = 4;

}  // namespace

struct OneDnnMatmul::Primitive {
  dnnl::engine engine;
  mutable dnnl::stream stream;
  dnnl::matmul::primitive_desc description;
  dnnl::matmul matmul;

  Primitive(int64_t m, int64_t n, int64_t k, DType output, Tag layout_of_b)
      : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    const Type type = output == DType::kF32 ? Type::f32 : Type::bf16;
    const dnnl::matmul::desc desc({{m, k}, Type::bf16, Tag::ab}, {{k, n}, Type::bf16, layout_of_b},
                                  {{m, n}, type, Tag::ab});
    description = {desc, engine};
    matmul = dnnl::matmul(description);
  }

  HostBuffer Convert(const void* data, bool transposed, const dnnl::memory::desc& wanted,
                     const Allocate& allocate) const {
    const dnnl::memory::desc given(wanted.dims(), Type::bf16, transposed ? Tag::ba : Tag::ab);
    HostBuffer buffer = allocate(static_cast<int64_t>(wanted.get_size()));
    dnnl::memory from(given, engine, const_cast<void*>(data));
    dnnl::memory to(wanted, engine, buffer.data());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return buffer;
  }

  void Run(HostBuffer& a, HostBuffer& b, HostBuffer& c) const {
    const dnnl::memory a_memory(description.src_desc(), engine, a.data());
    const dnnl::memory b_memory(description.weights_desc(), engine, b.data());
    const dnnl::memory c_memory(description.dst_desc(), engine, c.data());
    matmul.execute(stream, {{DNNL_ARG_SRC, a_memory},
                            {DNNL_ARG_WEIGHTS, b_memory},
                            {DNNL_ARG_DST, c_memory}});
    stream.wait();
  }

  // Of zeros, which take no longer than other numbers.
  double SecondsOfOne(const Allocate& allocate) const {
    HostBuffer a = allocate(static_cast<int64_t>(description.src_desc().get_size()));
    HostBuffer b = allocate(static_cast<int64_t>(description.weights_desc().get_size()));
    HostBuffer c = allocate(static_cast<int64_t>(description.dst_desc().get_size()));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTrials; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      Run(a, b, c);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      best = std::min(best, taken.count());
    }
    return best;
  }
};

OneDnnMatmul::OneDnnMatmul(int64_t m, int64_t n, int64_t k, DType output, int threads,
                           const Allocate& allocate) {
  omp_set_num_threads(threads);
  double best = std::numeric_limits<double>::infinity();
  for (const Tag layout : {Tag::any, Tag::ab, Tag::ba}) {
    auto candidate = std::make_unique<Primitive>(m, n, k, output, layout);
    const double seconds = candidate->SecondsOfOne(allocate);
    if (seconds >= best) continue;
    best = seconds;
    primitive_ = std::move(candidate);
  }
}

OneDnnMatmul::~OneDnnMatmul() = default;

HostBuffer OneDnnMatmul::MakeA(const void* data, bool transposed,
                               const Allocate& allocate) const {
  return primitive_->Convert(data, transposed, primitive_->description.src_desc(), allocate);
}

HostBuffer OneDnnMatmul::MakeB(const void* data, bool transposed,
                               const Allocate& allocate) const {
  return primitive_->Convert(data, transposed, primitive_->description.weights_desc(), allocate);
}

void OneDnnMatmul::Run(HostBuffer& a, HostBuffer& b, HostBuffer& c) const {
  primitive_->Run(a, b, c);
}

}  // namespace planewise
