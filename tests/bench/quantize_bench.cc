// How fast one core quantizes and dequantizes MXFP8, against memcpy.
//
//   bazel run -c opt //tests/bench:quantize_bench
//
// `of_memcpy` is the time memcpy takes to read and write as many bytes as the
// operation must, over the time the operation takes: medians of turns that the
// two take, so that a busy machine slows both. Every turn has the next set of
// buffers, which together exceed the caches. Target: row/BF16 at least 0.5.

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/numeric/bfloat16.h"
#include "core/numeric/float16.h"
#include "core/quant/quantizer.h"
#include "tests/bench/median.h"

namespace planewise {
namespace {

constexpr int64_t kRows = 1024;
constexpr int64_t kColumns = 4096;
constexpr QuantizeSpec kSpec = {.format = Format::kMxfp8};
constexpr int64_t kFootprintBytesMin = int64_t{512} << 20;

using Bytes = std::vector<uint8_t>;

struct Case {
  const char* name;
  const Quantizer& quantizer;
  DType dtype;
  bool row;
  bool column;
  bool dequantize = false;
  bool zeros = false;

  int64_t matrix_bytes() const { return kRows * kColumns * FactsOf(dtype).bits / 8; }
  // What must be read and written once; these shapes have no scale padding.
  int64_t ideal_bytes() const {
    const int64_t plane_bytes = kRows * kColumns + kRows * kColumns / kMxfp8Block;
    return matrix_bytes() + (row ? plane_bytes : 0) + (column ? plane_bytes : 0);
  }
};

struct PlaneBuffers {
  explicit PlaneBuffers(PlaneKind kind)
      : layout(*LayoutFor(kSpec, kind, {kRows, kColumns})),
        payload(static_cast<size_t>(layout.payload_bytes)),
        scales(static_cast<size_t>(layout.scale_bytes)),
        span{layout, payload.data(), scales.data()} {}

  PlaneLayout layout;
  Bytes payload;
  Bytes scales;
  PlaneSpan span;
};

// Numbers as weights are: nothing subnormal, nothing special.
Bytes MakeMatrix(const Case& test, std::mt19937_64& random) {
  Bytes bytes(static_cast<size_t>(test.matrix_bytes()));
  if (test.zeros) return bytes;
  const size_t size = static_cast<size_t>(FactsOf(test.dtype).bits / 8);
  for (size_t i = 0; i < bytes.size(); i += size) {
    const float value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
    const BFloat16 bfloat16 = BFloat16::FromFloat(value);
    const Float16 float16 = Float16::FromFloat(value);
    const void* element = test.dtype == DType::kF32    ? static_cast<const void*>(&value)
                          : test.dtype == DType::kBF16 ? static_cast<const void*>(&bfloat16)
                                                       : static_cast<const void*>(&float16);
    std::memcpy(&bytes[i], element, size);
  }
  return bytes;
}

// One turn's memory: the operation's, and memcpy's.
struct Set {
  Set(const Case& test, std::mt19937_64& random)
      : matrix(MakeMatrix(test, random)),
        row(PlaneKind::kRow),
        column(PlaneKind::kColumn),
        from(static_cast<size_t>(test.ideal_bytes() / 2), 1),
        to(from.size()) {
    const MatrixView view{matrix.data(), test.dtype, kRows, kColumns};
    // Dequantizing needs planes, and every page must have been touched.
    ok = test.quantizer.Quantize(view, kSpec, {}, AllRows(view), &row.span, &column.span).ok();
  }

  absl::Status Run(const Case& test) {
    const MutableMatrixView view{matrix.data(), test.dtype, kRows, kColumns};
    if (!test.dequantize) {
      return test.quantizer.Quantize(view, kSpec, {}, AllRows(view), test.row ? &row.span : nullptr,
                                     test.column ? &column.span : nullptr);
    }
    const PlaneSpan& plane = test.row ? row.span : column.span;
    return test.quantizer.Dequantize(ConstOf(plane), view, AllRows(view));
  }

  Bytes matrix;
  PlaneBuffers row;
  PlaneBuffers column;
  Bytes from;
  Bytes to;
  bool ok;
};

template <typename Function>
double SecondsOf(Function function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Run(benchmark::State& state, const Case& test) {
  std::mt19937_64 random(1);
  std::vector<std::unique_ptr<Set>> sets;
  for (int64_t bytes = 0; bytes < kFootprintBytesMin; bytes += test.ideal_bytes()) {
    sets.push_back(std::make_unique<Set>(test, random));
  }
  std::vector<double> copy_seconds;
  std::vector<double> operation_seconds;
  size_t turn = 0;
  for (auto _ : state) {
    Set& set = *sets[turn++ % sets.size()];
    copy_seconds.push_back(SecondsOf([&] {
      std::memcpy(set.to.data(), set.from.data(), set.from.size());
      benchmark::ClobberMemory();
    }));
    bool ok = set.ok;
    const double seconds = SecondsOf([&] {
      ok = set.Run(test).ok() && ok;
      benchmark::ClobberMemory();
    });
    if (!ok) state.SkipWithError("the operation failed");
    operation_seconds.push_back(seconds);
    state.SetIterationTime(seconds);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * test.ideal_bytes());
  state.counters["of_memcpy"] = Median(copy_seconds) / Median(operation_seconds);
}

const Case kCases[] = {
    {"row/BF16", VectorQuantizer(), DType::kBF16, true, false},
    {"column/BF16", VectorQuantizer(), DType::kBF16, false, true},
    {"both/BF16", VectorQuantizer(), DType::kBF16, true, true},
    {"row/F32", VectorQuantizer(), DType::kF32, true, false},
    {"both/F32", VectorQuantizer(), DType::kF32, true, true},
    {"row/F16", VectorQuantizer(), DType::kF16, true, false},
    {"row/BF16/zeros", VectorQuantizer(), DType::kBF16, true, false, false, true},
    {"dequantize_row/BF16", VectorQuantizer(), DType::kBF16, true, false, true},
    {"dequantize_column/BF16", VectorQuantizer(), DType::kBF16, false, true, true},
    {"dequantize_row/F32", VectorQuantizer(), DType::kF32, true, false, true},
    {"dequantize_row/BF16/zeros", VectorQuantizer(), DType::kBF16, true, false, true, true},
    {"scalar/row/BF16", ScalarQuantizer(), DType::kBF16, true, false},
};

}  // namespace
}  // namespace planewise

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  for (const planewise::Case& test : planewise::kCases) {
    benchmark::RegisterBenchmark(test.name, planewise::Run, test)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
