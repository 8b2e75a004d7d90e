// A linear layer on the CPU, computed from stored MXFP8 planes, against oneDNN's
// BF16 matmul of the same shape.
//
//   bazel run -c opt //tests/bench:linear_bench [-- --help]
//
// Ours is the whole operation: quantizing X or dY, expanding planes, products,
// rounding. oneDNN's operands are ready. The two take turns; every turn has the
// next set of buffers, which together exceed the caches. `of oneDNN` is the
// median of the turns' ratios of times: 1 is as fast as oneDNN.

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/gemm/cpu_gemm.h"
#include "core/layer/linear.h"
#include "core/numeric/bfloat16.h"
#include "core/quant/quantizer.h"
#include "core/recipe/recipe.h"
#include "tests/bench/median.h"
#include "tests/bench/onednn_matmul.h"

namespace planewise {
namespace {

constexpr int64_t kFootprintBytesMin = int64_t{512} << 20;
constexpr int kMostSets = 12;

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

enum class Pass { kForward, kInputGradient, kWeightGradient };

struct Operation {
  const char* name;
  Pass pass;
  BackwardOverride backward_override;
};

constexpr Operation kOperations[] = {
    {"forward", Pass::kForward, BackwardOverride::kNone},
    {"dgrad", Pass::kInputGradient, BackwardOverride::kNone},
    {"dgrad_dequantized", Pass::kInputGradient, BackwardOverride::kDequantized},
    {"wgrad", Pass::kWeightGradient, BackwardOverride::kNone},
    {"wgrad_dequantized", Pass::kWeightGradient, BackwardOverride::kDequantized},
};

struct Options {
  std::vector<std::string> shapes = {"4096x4096"};
  std::vector<int64_t> tokens = {1, 16, 64, 256, 1024, 4096};
  std::vector<std::string> operations = {"forward", "dgrad", "dgrad_dequantized", "wgrad"};
  int repeats = 15;
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  bool processor_time = false;
};

struct Case {
  Operation operation;
  MatrixShape weight;
  int64_t tokens;

  // What the operation multiplies is [m, k] by [k, n].
  int64_t m() const { return is(Pass::kWeightGradient) ? weight.out : tokens; }
  int64_t n() const { return is(Pass::kForward) ? weight.out : weight.in; }
  int64_t k() const {
    return is(Pass::kForward) ? weight.in : is(Pass::kInputGradient) ? weight.out : tokens;
  }
  bool is(Pass pass) const { return operation.pass == pass; }
  DType output() const { return is(Pass::kWeightGradient) ? DType::kF32 : DType::kBF16; }
  double operations() const { return 2.0 * m() * n() * k(); }
};

struct Engine {
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::Create(int64_t{1} << 40);
  std::unique_ptr<CpuGemm> gemm;

  explicit Engine(int threads) : gemm(Must(CpuGemm::Create(threads, *budget))) {}
  ComputeContext context() { return {gemm.get(), &VectorQuantizer(), budget.get()}; }

  HostBuffer Buffer(int64_t size_bytes) {
    return Must(HostBuffer::Allocate(*budget, MemoryUse::kTransport, size_bytes, "bench"));
  }
};

// Numbers as weights are: BF16 around 1, nothing special.
HostBuffer RandomMatrix(Engine& engine, int64_t rows, int64_t columns, std::mt19937_64& random) {
  HostBuffer buffer = engine.Buffer(rows * columns * 2);
  BFloat16* to = reinterpret_cast<BFloat16*>(buffer.data());
  for (int64_t i = 0; i < rows * columns; ++i) {
    to[i] = BFloat16::FromFloat(static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f);
  }
  return buffer;
}

HostBuffer CopyOf(Engine& engine, const HostBuffer& from) {
  HostBuffer to = engine.Buffer(from.size_bytes());
  std::memcpy(to.data(), from.data(), static_cast<size_t>(from.size_bytes()));
  return to;
}

HostedLayer MakeLayer(Engine& engine, const Case& test, const HostBuffer& w) {
  auto weight = std::make_shared<PrimaryWeight>();
  weight->name = "w";
  weight->shape = test.weight;
  weight->format = Format::kMxfp8;
  const QuantizedPlanes planes = Must(
      QuantizeToPlanes(VectorQuantizer(), *engine.budget, MemoryUse::kWeights,
                       {w.data(), DType::kBF16, test.weight.out, test.weight.in},
                       {.format = Format::kMxfp8}, {.row = true, .column = true},
                       weight->epoch, "w"));
  weight->row = planes.row;
  weight->column = planes.column;
  HostedLayer layer;
  layer.name = "layer";
  layer.weight = std::move(weight);
  return layer;
}

LinearMode ModeOf(const Case& test) {
  LinearMode mode;
  mode.recipe = DefaultRecipe(Format::kMxfp8);
  mode.recipe.backward_override = test.operation.backward_override;
  mode.save_for_backward = !test.is(Pass::kForward);
  mode.weight_gradient = test.is(Pass::kWeightGradient);
  return mode;
}

// One turn's memory. `x` is W's other operand in the forward, `dy` in the
// backward; the weight gradient reads both.
class Set {
 public:
  Set(Engine& engine, const OneDnnMatmul& matmul, const Case& test, std::mt19937_64& random)
      : engine_(engine), test_(test) {
    const auto [out, in] = test.weight;
    const HostBuffer w = RandomMatrix(engine, out, in, random);
    layer_ = MakeLayer(engine, test, w);
    x_ = RandomMatrix(engine, test.tokens, in, random);
    dy_ = RandomMatrix(engine, test.tokens, out, random);
    const LinearMode mode = ModeOf(test);
    const auto allocate = [&engine](int64_t bytes) { return engine.Buffer(bytes); };
    forward_plan_ =
        Must(PlanLinearForward("layer", *layer_.weight, mode, test.tokens, DType::kBF16));
    if (test.is(Pass::kForward)) {
      a_ = matmul.MakeA(x_.data(), false, allocate);
      b_ = matmul.MakeB(w.data(), true, allocate);
      next_x_ = CopyOf(engine, x_);
    } else {
      saved_ = Must(SaveOperand(engine.context(), forward_plan_, layer_, CopyOf(engine, x_)));
      backward_plan_ = Must(PlanLinearBackward(
          "layer", *saved_,
          {.input = test.is(Pass::kInputGradient), .weight = test.is(Pass::kWeightGradient)}));
      const bool weight_gradient = test.is(Pass::kWeightGradient);
      a_ = matmul.MakeA(dy_.data(), weight_gradient, allocate);
      b_ = matmul.MakeB(weight_gradient ? x_.data() : w.data(), false, allocate);
    }
    const int64_t output_bytes = test.m() * test.n() * FactsOf(test.output()).bits / 8;
    ours_ = engine.Buffer(output_bytes);
    theirs_ = engine.Buffer(output_bytes);
    size_bytes_ = layer_.stored_bytes() + w.size_bytes() + x_.size_bytes() + dy_.size_bytes() +
                  2 * output_bytes;
  }

  void RunOurs() {
    const MutableMatrixView c = {ours_.data(), test_.output(), test_.m(), test_.n()};
    if (test_.is(Pass::kForward)) {
      Must(RunLinearForward(engine_.context(), forward_plan_, layer_, std::move(next_x_), c));
      return;
    }
    const MatrixView dy = {dy_.data(), DType::kBF16, test_.tokens, test_.weight.out};
    Must(RunLinearBackward(engine_.context(), backward_plan_, *saved_, dy, c, c, {}));
  }

  void RunTheirs(const OneDnnMatmul& matmul) { matmul.Run(a_, b_, theirs_); }

  // A forward consumes its X: the next one gets a copy, made out of the time.
  void Prepare() {
    if (test_.is(Pass::kForward)) next_x_ = CopyOf(engine_, x_);
  }

  // Quantized operands make results differ, by no more than some per cent.
  void CheckAgreement() const {
    double difference = 0;
    double size = 0;
    for (int64_t i = 0; i < test_.m() * test_.n(); i += 7) {
      const double ours = At(ours_, i);
      const double theirs = At(theirs_, i);
      difference += (ours - theirs) * (ours - theirs);
      size += theirs * theirs;
    }
    Require(difference <= 0.01 * size, "the two results are not of the same product");
  }

  int64_t size_bytes() const { return size_bytes_; }

 private:
  double At(const HostBuffer& c, int64_t i) const {
    if (test_.output() == DType::kF32) return reinterpret_cast<const float*>(c.data())[i];
    return reinterpret_cast<const BFloat16*>(c.data())[i].ToFloat();
  }

  Engine& engine_;
  const Case test_;
  HostedLayer layer_;
  HostBuffer x_;
  HostBuffer next_x_;
  HostBuffer dy_;
  LinearForwardPlan forward_plan_;
  LinearBackwardPlan backward_plan_;
  std::shared_ptr<const SavedOperand> saved_;
  HostBuffer a_;
  HostBuffer b_;
  HostBuffer ours_;
  HostBuffer theirs_;
  int64_t size_bytes_ = 0;
};

double Seconds(const Options& options) {
  timespec now = {};
  clock_gettime(options.processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double SecondsOf(const Options& options, const std::function<void()>& function) {
  const double begin = Seconds(options);
  function();
  return Seconds(options) - begin;
}

const char* TargetOf(int64_t tokens) {
  if (tokens >= 1024) return "0.90";
  return tokens >= 256 ? "0.65" : "-";
}

void Measure(Engine& engine, const Case& test, const Options& options) {
  std::mt19937_64 random(1);
  const OneDnnMatmul matmul(test.m(), test.n(), test.k(), test.output(), options.threads,
                            [&](int64_t size_bytes) { return engine.Buffer(size_bytes); });
  std::vector<std::unique_ptr<Set>> sets;
  int64_t bytes = 0;
  while (bytes < kFootprintBytesMin && sets.size() < kMostSets) {
    sets.push_back(std::make_unique<Set>(engine, matmul, test, random));
    bytes += sets.back()->size_bytes();
  }
  std::vector<double> ours, theirs, ratios;
  for (int turn = -1; turn < options.repeats; ++turn) {  // The first is not counted.
    Set& set = *sets[static_cast<size_t>(turn + 1) % sets.size()];
    const double their_seconds = SecondsOf(options, [&] { set.RunTheirs(matmul); });
    const double our_seconds = SecondsOf(options, [&] { set.RunOurs(); });
    set.Prepare();
    if (turn < 0) {
      set.CheckAgreement();
      continue;
    }
    theirs.push_back(their_seconds);
    ours.push_back(our_seconds);
    ratios.push_back(their_seconds / our_seconds);
  }
  std::printf("%-18s %6lld %6lld %6lld %10.3f %10.3f %10.2f %10.2f %10.2f %7s\n",
              test.operation.name, static_cast<long long>(test.tokens),
              static_cast<long long>(test.weight.out), static_cast<long long>(test.weight.in),
              Median(theirs) * 1e3, Median(ours) * 1e3,
              test.operations() / Median(theirs) * 1e-12, test.operations() / Median(ours) * 1e-12,
              Median(ratios), TargetOf(test.tokens));
  std::fflush(stdout);
}

MatrixShape ParseShape(const std::string& text) {
  MatrixShape shape;
  long long out = 0;
  long long in = 0;
  char rest = 0;
  Require(std::sscanf(text.c_str(), "%lldx%lld%c", &out, &in, &rest) == 2 && out > 0 && in > 0 &&
              out % kMxfp8Block == 0 && in % kMxfp8Block == 0,
          "--shapes: OUTxIN is required, both multiples of 32; for example 4096x14336");
  shape.out = out;
  shape.in = in;
  return shape;
}

int Run(const Options& options) {
  Engine engine(options.threads);
  std::printf("%d threads, median of %d turns; times in ms%s, rates in TFLOP/s\n", options.threads,
              options.repeats, options.processor_time ? " on processors" : "");
  std::printf("%-18s %6s %6s %6s %10s %10s %10s %10s %10s %7s\n", "operation", "tokens", "out",
              "in", "oneDNN ms", "ours ms", "oneDNN", "ours", "of oneDNN", "target");
  for (const std::string& shape : options.shapes) {
    for (const Operation& operation : kOperations) {
      if (std::count(options.operations.begin(), options.operations.end(), operation.name) == 0) {
        continue;
      }
      for (const int64_t tokens : options.tokens) {
        Measure(engine, {operation, ParseShape(shape), tokens}, options);
      }
    }
  }
  return 0;
}

// OpenMP's threads spin for a while when their work is done, and would take the
// processor from the turn that follows. The runtime reads its environment once,
// when it is loaded.
void StartAgainWithOpenMpAsleep(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);
  std::perror("execv");
}

}  // namespace
}  // namespace planewise

int main(int argc, char** argv) {
  planewise::StartAgainWithOpenMpAsleep(argv);
  planewise::Options options;
  CLI::App app("Times linear layers from stored MXFP8 planes against oneDNN's BF16 matmul.",
               "linear_bench");
  std::vector<std::string> names;
  for (const planewise::Operation& operation : planewise::kOperations) {
    names.push_back(operation.name);
  }
  app.add_option("--shapes", options.shapes, "of W, as OUTxIN; several with commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "rows of X and dY; several with commas")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--operations", options.operations, "what to time; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "turns that are counted")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", options.threads, "of each of the two")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--processor-time", options.processor_time,
               "time of all threads on processors instead of elapsed time, for a busy machine; "
               "hides threads that wait");
  CLI11_PARSE(app, argc, argv);
  return planewise::Run(options);
}
