#include "core/gemm/panel_product.h"

#include <dnnl.hpp>
#include <dnnl_debug.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/gemm/operand_tile.h"

// Of the OpenMP runtime that oneDNN is linked with. Declared here because not
// every compiler that builds this finds an omp.h of that runtime.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace planewise {

OneOpenMpThread::OneOpenMpThread() : callers_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneOpenMpThread::~OneOpenMpThread() { omp_set_num_threads(callers_); }

// What one worker passes to oneDNN. The memory objects are made once: a call
// only sets their pointers.
struct WorkerArguments {
  dnnl::stream stream;
  dnnl::memory panel;
  dnnl::memory tile;
  dnnl::memory c;
  dnnl::memory scratch;
};

struct PanelProduct::Primitive {
  dnnl::matmul matmul;
  std::vector<WorkerArguments> workers;
};

PanelProduct::PanelProduct(std::unique_ptr<Primitive> primitive)
    : primitive_(std::move(primitive)) {}
PanelProduct::~PanelProduct() = default;

absl::Status PanelProduct::Multiply(int worker, const void* panel, const void* tile, float* c,
                                    std::byte* scratch) {
  WorkerArguments& arguments = primitive_->workers[static_cast<size_t>(worker)];
  // The C functions report by value and need no map of arguments: some tenths
  // of a microsecond less, of a few that a product takes.
  const std::pair<dnnl_memory_t, void*> pointers[] = {
      {arguments.panel.get(), const_cast<void*>(panel)},
      {arguments.tile.get(), const_cast<void*>(tile)},
      {arguments.c.get(), c},
      {arguments.scratch.get(), scratch}};
  for (const auto& [memory, pointer] : pointers) {
    const dnnl_status_t status =
        dnnl_memory_set_data_handle_v2(memory, pointer, arguments.stream.get());
    if (status != dnnl_success) {
      return Error(Reason::kInternal, absl::StrCat("oneDNN refused a buffer: ",
                                                   dnnl_status2str(status)));
    }
  }
  const dnnl_exec_arg_t exec_arguments[] = {{DNNL_ARG_SRC, arguments.panel.get()},
                                            {DNNL_ARG_WEIGHTS, arguments.tile.get()},
                                            {DNNL_ARG_DST, arguments.c.get()},
                                            {DNNL_ARG_SCRATCHPAD, arguments.scratch.get()}};
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_->matmul.get(), arguments.stream.get(), 4, exec_arguments);
  if (status != dnnl_success) {
    return Error(Reason::kInternal, absl::StrCat("oneDNN failed to multiply a panel: ",
                                                 dnnl_status2str(status)));
  }
  return absl::OkStatus();
}

namespace {

struct Plan {
  dnnl::matmul matmul;
  dnnl::memory::desc panel;
  dnnl::memory::desc tile;
  dnnl::memory::desc c;
  dnnl::memory::desc scratch;
};

// Throws dnnl::error.
Plan PlanMatmul(const dnnl::engine& engine, DType compute, int64_t k, bool accumulate) {
  using Tag = dnnl::memory::format_tag;
  using Type = dnnl::memory::data_type;
  const bool bf16 = compute == DType::kBF16;
  const Type type = bf16 ? Type::bf16 : Type::f32;
  Plan plan;
  plan.panel = {{kPanelRows, k}, type, Tag::ab};
  // With 64 columns this tag is the order of operand_tile.h: one block across.
  plan.tile = {{k, kTileColumns}, type, bf16 ? Tag::BA16a64b2a : Tag::ab};
  plan.c = {{kPanelRows, kTileColumns}, Type::f32, Tag::ab};

  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc description(
      dnnl::matmul::desc(plan.panel, plan.tile, plan.c), attributes, engine);
  plan.scratch = description.scratchpad_desc();
  plan.matmul = dnnl::matmul(description);
  return plan;
}

}  // namespace

PanelProducts::PanelProducts(int workers) : workers_(workers) {}
PanelProducts::~PanelProducts() = default;

absl::StatusOr<PanelProduct*> PanelProducts::Get(DType compute, int64_t k, bool accumulate) {
  std::unique_ptr<PanelProduct>& kept = products_[{compute, k, accumulate}];
  if (kept != nullptr) return kept.get();

  // oneDNN plans for the threads that the planning thread would use.
  const OneOpenMpThread one_thread;
  const std::string what = absl::StrCat("oneDNN matmul [64,", k, "] * [", k, ",64] in ",
                                        Name(compute), accumulate ? ", accumulating" : "");
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const Plan plan = PlanMatmul(engine, compute, k, accumulate);
    const int64_t scratch_bytes = static_cast<int64_t>(plan.scratch.get_size());
    if (scratch_bytes > PanelProduct::kScratchBytes) {
      return Error(Reason::kInternal, absl::StrCat(what, ": needs ", scratch_bytes,
                                                   " bytes of scratch, ",
                                                   PanelProduct::kScratchBytes, " are kept"));
    }
    auto primitive = std::make_unique<PanelProduct::Primitive>();
    primitive->matmul = plan.matmul;
    for (int worker = 0; worker < workers_; ++worker) {
      primitive->workers.push_back({dnnl::stream(engine),
                                    dnnl::memory(plan.panel, engine, DNNL_MEMORY_NONE),
                                    dnnl::memory(plan.tile, engine, DNNL_MEMORY_NONE),
                                    dnnl::memory(plan.c, engine, DNNL_MEMORY_NONE),
                                    dnnl::memory(plan.scratch, engine, DNNL_MEMORY_NONE)});
    }
    kept.reset(new PanelProduct(std::move(primitive)));
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) {
      return Error(Reason::kMemoryShortfall, absl::StrCat(what, ": ", error.what()));
    }
    return Error(Reason::kArchUnsupported,
                 absl::StrCat(what, ": ", error.what(), " (", dnnl_status2str(error.status),
                              "); this CPU has no implementation"));
  }
  return kept.get();
}

}  // namespace planewise
