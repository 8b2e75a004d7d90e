#include "core/gemm/cpu_gemm.h"

#include <dnnl.hpp>
#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/gemm/expansion.h"
#include "core/gemm/operand_tile.h"
#include "core/gemm/tile_kernels.h"
#include "core/gemm/wide_gemm.h"
#include "core/numeric/default_float_environment.h"
#include "core/quant/visit_dtype.h"

namespace planewise {
namespace {

// A block of A's rows is packed whole, then every tile of B meets all of it.
// Larger blocks expand B less often; B's tiles and the sums of a block must fit
// the scratch of a thread.
constexpr int64_t kMaxBlockRows = 4096;
constexpr int64_t kMaxBlockBytes = 32 << 20;

// The sum over k is cut into chunks of this length, and B into tiles of as many
// columns as make a chunk of it fill half of a 2 MiB second-level cache.
constexpr int64_t kMaxChunk = 2048;
constexpr int64_t kTileBytes = 1 << 20;
constexpr int64_t kMaxTileColumns = 256;
constexpr int64_t kMaxSingleChunkColumns = 1024;
constexpr int64_t kTilesPerThread = 3;
constexpr int64_t kSumsBytes = kMaxBlockRows * kMaxTileColumns * 4;

constexpr int64_t kThreadScratchBytes = kTileBytes + kSumsBytes + PanelProduct::kScratchBytes;

// Larger results leave every cache before anybody reads them.
constexpr int64_t kCachedResultBytes = 16 << 20;

constexpr int64_t kPanelSums = kPanelRows * kTileColumns;

int64_t ElementBytes(const GemmProblem& problem) {
  return problem.compute == DType::kBF16 ? 2 : 4;
}

int64_t PaddedK(const GemmProblem& problem) { return RoundUp(problem.k, kSumStep); }

int64_t BlockRows(const GemmProblem& problem) {
  const int64_t row_bytes = PaddedK(problem) * ElementBytes(problem);
  const int64_t fitting = kMaxBlockBytes / std::max<int64_t>(row_bytes, 1);
  const int64_t most = std::clamp(fitting / kPanelRows * kPanelRows, kPanelRows, kMaxBlockRows);
  return std::min(most, RoundUp(problem.m, kPanelRows));
}

// Wide tiles read A less often; narrow ones give every thread its share. Where
// the sum is one chunk, no sums wait, and what fits is as wide as it can be.
int64_t TileColumns(const GemmProblem& problem, int threads) {
  const int64_t column_bytes =
      std::max<int64_t>(std::min(PaddedK(problem), kMaxChunk) * ElementBytes(problem), 1);
  const int64_t most = problem.k > kMaxChunk ? kMaxTileColumns : kMaxSingleChunkColumns;
  const int64_t fitting = std::min(kTileBytes / column_bytes, most);
  const int64_t share = problem.n / (kTilesPerThread * threads);
  return std::max(std::min(fitting, share) / kTileColumns * kTileColumns, kTileColumns);
}

absl::Status CheckOperand(absl::string_view name, const OperandFormat& format,
                          const GemmOperand& operand, int64_t outer, int64_t k) {
  const bool along_columns = format.contracted == Contracted::kColumns;
  const int64_t rows = along_columns ? outer : k;
  const int64_t columns = along_columns ? k : outer;
  const PlaneLayout& layout = operand.plane.layout;
  bool fits = false;
  switch (format.kind) {
    case OperandKind::kDense:
      fits = operand.dense.rows == rows && operand.dense.columns == columns &&
             operand.dense.dtype == format.dtype;
      break;
    case OperandKind::kCodes:
      fits = layout.kind == (along_columns ? PlaneKind::kRow : PlaneKind::kColumn) &&
             layout.payload_rows == rows && layout.payload_columns == columns &&
             layout.payload_dtype == format.dtype;
      break;
    case OperandKind::kValues:
      fits = layout.kind == PlaneKind::kRow && layout.payload_rows == rows &&
             layout.payload_columns == columns && layout.payload_dtype == format.dtype;
      break;
  }
  if (fits) return absl::OkStatus();
  return Error(Reason::kShapeMismatch,
               absl::StrCat("operand ", name, " is stored otherwise than the problem says"));
}

// BF16 multiplies values as it multiplies codes: exact and normal.
absl::Status CheckValues(absl::string_view name, const GemmProblem& problem,
                         const OperandFormat& format, const GemmOperand& operand) {
  if (format.kind != OperandKind::kValues || problem.compute != DType::kBF16 ||
      ValuesAreExact(operand.exponents, format.dtype, DType::kBF16)) {
    return absl::OkStatus();
  }
  return Error(Reason::kInvalidRequest,
               absl::StrCat("operand ", name, ": its exponents, ", operand.exponents->min, " to ",
                            operand.exponents->max, ", have values that BF16 does not hold as "
                            "normal numbers; compute in F32"));
}

// First failure of several threads.
class FirstError {
 public:
  void Note(const absl::Status& status) {
    if (status.ok()) return;
    MutexLock lock(mutex_);
    status_.Update(status);
  }
  absl::Status status() {
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

bool CpuMultipliesBf16() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto bf16 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (isa & bf16) == bf16;
}

// A part of the sum over k, and the product that computes it.
struct CpuGemm::Chunk {
  int64_t first_p = 0;
  int64_t count = 0;
  int64_t padded_count = 0;
  PanelProduct* product = nullptr;
};

// One Run.
class CpuGemm::Product {
 public:
  Product(CpuGemm& gemm, const GemmProblem& problem, const GemmOperand& a, const GemmOperand& b,
          MatrixView bias, MutableMatrixView c, std::vector<Chunk> chunks, HostBuffer block)
      : gemm_(gemm),
        problem_(problem),
        a_{problem.a, problem.value_dtype, a},
        b_{problem.b, problem.value_dtype, b},
        bias_(bias),
        c_(c),
        chunks_(std::move(chunks)),
        block_(std::move(block)) {
    b_shifts_.fill(problem.multiplies_codes() ? ShiftOfB(problem, b.exponents) : int16_t{0});
  }

  absl::StatusOr<GemmPath> Run() {
    GemmPath path =
        problem_.multiplies_codes() ? GemmPath::kExpanded : GemmPath::kHighPrecision;
    const int64_t block_rows = BlockRows(problem_);
    for (int64_t first_row = 0; first_row < problem_.m; first_row += block_rows) {
      const int64_t rows = std::min(block_rows, problem_.m - first_row);
      PackBlock(first_row, rows);
      std::vector<int64_t> wide_rows;
      for (int64_t row = 0; row < rows; ++row) {
        if (PlacementOf(row).shift == kLeaveOut) wide_rows.push_back(first_row + row);
      }
      if (static_cast<int64_t>(wide_rows.size()) < rows) {
        PW_RETURN_IF_ERROR(MultiplyBlock(first_row, rows));
      }
      if (!wide_rows.empty()) {
        path = GemmPath::kExpandedFp32;
        MultiplyWideRows(wide_rows);
      }
    }
    return path;
  }

 private:
  RowPlacement& PlacementOf(int64_t row_of_block) {
    return gemm_.placements_[static_cast<size_t>(row_of_block)];
  }

  std::byte* PanelAt(int64_t panel, const Chunk& chunk) {
    const int64_t elements = panel * kPanelRows * PaddedK(problem_) + kPanelRows * chunk.first_p;
    return block_.data() + elements * ElementBytes(problem_);
  }

  // Tile `index` of the tiles of 64 columns that a thread holds of one chunk.
  std::byte* TileAt(std::byte* scratch, int64_t index, const Chunk& chunk) {
    return scratch + index * kTileColumns * chunk.padded_count * ElementBytes(problem_);
  }

  void PackBlock(int64_t first_row, int64_t rows) {
    gemm_.pool_.ForEach(CeilDivide(rows, kPanelRows), [&](int64_t panel, int) {
      const DefaultFloatEnvironment environment;
      const int64_t row = panel * kPanelRows;
      const int64_t count = std::min(kPanelRows, rows - row);
      RowPlacement* placements = &PlacementOf(row);
      if (problem_.multiplies_codes()) {
        PlaceRows(problem_, a_.data.plane, b_.data.exponents, first_row + row, count, placements);
      } else {
        std::fill_n(placements, count, RowPlacement{});
      }
      std::array<int16_t, kPanelRows> shifts = {};
      for (int64_t i = 0; i < count; ++i) shifts[static_cast<size_t>(i)] = placements[i].shift;
      for (const Chunk& chunk : chunks_) {
        const OperandPart part = {first_row + row, count, chunk.first_p, chunk.count};
        std::byte* to = PanelAt(panel, chunk);
        if (problem_.compute == DType::kBF16) {
          PackPanel(a_, part, shifts.data(), reinterpret_cast<uint16_t*>(to));
        } else {
          PackPanel(a_, part, shifts.data(), reinterpret_cast<float*>(to));
        }
      }
    });
  }

  absl::Status MultiplyBlock(int64_t first_row, int64_t rows) {
    FirstError first_error;
    const int64_t tile_columns = TileColumns(problem_, gemm_.pool_.thread_count());
    gemm_.pool_.ForEach(CeilDivide(problem_.n, tile_columns), [&](int64_t tile, int worker) {
      const DefaultFloatEnvironment environment;
      const OneOpenMpThread one_thread;
      const int64_t column = tile * tile_columns;
      const int64_t columns = std::min(tile_columns, problem_.n - column);
      first_error.Note(MultiplyTile(first_row, rows, column, columns, worker));
      hwy::FlushStream();
    });
    return first_error.status();
  }

  // All rows of the block, some columns of C. With one chunk, sums are stored
  // as they come; else they wait in scratch for the last chunk.
  absl::Status MultiplyTile(int64_t first_row, int64_t rows, int64_t column, int64_t columns,
                            int worker) {
    std::byte* tiles = gemm_.ScratchOf(worker);
    float* sums = reinterpret_cast<float*>(tiles + kTileBytes);
    std::byte* product_scratch = tiles + kTileBytes + kSumsBytes;
    float bias[kMaxSingleChunkColumns];
    ReadBias(column, columns, bias);
    const int64_t tile_count = CeilDivide(columns, kTileColumns);
    const int64_t panel_count = CeilDivide(rows, kPanelRows);
    if (chunks_.empty()) {
      std::fill_n(sums, kPanelSums, 0.0f);
      for (int64_t panel = 0; panel < panel_count; ++panel) {
        for (int64_t tile = 0; tile < tile_count; ++tile) {
          StoreTile(sums, bias + tile * kTileColumns, first_row, panel * kPanelRows, rows,
                    column + tile * kTileColumns);
        }
      }
    }
    for (const Chunk& chunk : chunks_) {
      PackTilesOfB({column, columns, chunk.first_p, chunk.count}, tiles);
      for (int64_t panel = 0; panel < panel_count; ++panel) {
        for (int64_t tile = 0; tile < tile_count; ++tile) {
          float* tile_sums =
              chunks_.size() == 1 ? sums : sums + (panel * tile_count + tile) * kPanelSums;
          PW_RETURN_IF_ERROR(chunk.product->Multiply(worker, PanelAt(panel, chunk),
                                                     TileAt(tiles, tile, chunk), tile_sums,
                                                     product_scratch));
          if (&chunk != &chunks_.back()) continue;
          StoreTile(tile_sums, bias + tile * kTileColumns, first_row, panel * kPanelRows, rows,
                    column + tile * kTileColumns);
        }
      }
    }
    return absl::OkStatus();
  }

  void PackTilesOfB(const OperandPart& part, std::byte* to) {
    if (problem_.compute == DType::kBF16) {
      PackTiles(b_, part, b_shifts_.data(), reinterpret_cast<uint16_t*>(to));
    } else {
      PackTiles(b_, part, b_shifts_.data(), reinterpret_cast<float*>(to));
    }
  }

  void ReadBias(int64_t column, int64_t columns, float* out) {
    if (bias_.data == nullptr) return;
    VisitHighPrecision(bias_.dtype, [&](auto tag) {
      using Element = decltype(tag);
      const Element* in = static_cast<const Element*>(bias_.data) + column;
      for (int64_t j = 0; j < columns; ++j) {
        if constexpr (std::is_same_v<Element, float>) {
          out[j] = in[j];
        } else {
          out[j] = in[j].ToFloat();
        }
      }
    });
  }

  // Rows [row, row + 64) of the block as far as it has them, 64 columns of C
  // as far as it has them. Rows that were left out are not touched.
  void StoreTile(const float* sums, const float* bias, int64_t first_row, int64_t row,
                 int64_t rows, int64_t column) {
    const int64_t end = std::min(row + kPanelRows, rows);
    float undone[kTileColumns];
    for (int64_t i = row; i < end;) {
      const float* from = sums + (i - row) * kTileColumns;
      const int64_t first = i++;
      const RowPlacement& placement = PlacementOf(first);
      if (placement.shift == kLeaveOut) continue;
      if (placement.undo != 0) {
        for (int64_t j = 0; j < kTileColumns; ++j) {
          undone[j] = static_cast<float>(
              std::ldexp(static_cast<double>(from[j]), placement.undo));
        }
        StoreRowsOfC(undone, bias, first_row + first, 1, column);
        continue;
      }
      while (i < end && PlacementOf(i).undo == 0 && PlacementOf(i).shift != kLeaveOut) ++i;
      StoreRowsOfC(from, bias, first_row + first, i - first, column);
    }
  }

  void StoreRowsOfC(const float* sums, const float* bias, int64_t row, int64_t rows,
                    int64_t column) {
    const int64_t columns = std::min(kTileColumns, problem_.n - column);
    const int64_t bytes = problem_.output == DType::kF32 ? 4 : 2;
    std::byte* to = static_cast<std::byte*>(c_.data) + (row * problem_.n + column) * bytes;
    StoreRows({sums, kTileColumns, bias_.data != nullptr ? bias : nullptr, rows, columns},
              problem_.output, to, problem_.n * bytes,
              problem_.m * problem_.n * bytes > kCachedResultBytes);
  }

  void MultiplyWideRows(absl::Span<const int64_t> rows) {
    gemm_.pool_.ForEach(CeilDivide(problem_.n, kTileColumns), [&](int64_t tile, int worker) {
      const DefaultFloatEnvironment environment;
      float* sums = reinterpret_cast<float*>(gemm_.ScratchOf(worker) + kTileBytes);
      const int64_t column = tile * kTileColumns;
      const int64_t columns = std::min(kTileColumns, problem_.n - column);
      float bias[kTileColumns];
      ReadBias(column, columns, bias);
      MultiplyWide(a_, b_, problem_.k, rows, column, columns, sums, kTileColumns);
      for (size_t i = 0; i < rows.size(); ++i) {
        StoreRowsOfC(sums + i * kTileColumns, bias, rows[i], 1, column);
      }
      hwy::FlushStream();
    });
  }

  CpuGemm& gemm_;
  const GemmProblem& problem_;
  const OperandSource a_;
  const OperandSource b_;
  std::array<int16_t, kTileColumns> b_shifts_;
  const MatrixView bias_;
  const MutableMatrixView c_;
  const std::vector<Chunk> chunks_;
  HostBuffer block_;
};

absl::StatusOr<std::unique_ptr<CpuGemm>> CpuGemm::Create(int threads, MemoryBudget& budget) {
  PW_ASSIGN_OR_RETURN(HostBuffer scratch,
                      HostBuffer::AllocateUninitialized(budget, MemoryUse::kTransient,
                                                        ScratchBytes(threads), "GEMM scratch"));
  return std::unique_ptr<CpuGemm>(new CpuGemm(threads, std::move(scratch)));
}

CpuGemm::CpuGemm(int threads, HostBuffer scratch)
    : pool_(threads),
      products_(threads),
      scratch_(std::move(scratch)),
      placements_(kMaxBlockRows) {}

CpuGemm::~CpuGemm() = default;

int64_t CpuGemm::ScratchBytes(int threads) { return threads * kThreadScratchBytes; }

std::byte* CpuGemm::ScratchOf(int worker) {
  return scratch_.data() + worker * kThreadScratchBytes;
}

int64_t CpuGemm::WorkspaceBytes(const GemmProblem& problem) {
  if (problem.n == 0) return 0;
  return BlockRows(problem) * PaddedK(problem) * ElementBytes(problem);
}

absl::StatusOr<std::vector<CpuGemm::Chunk>> CpuGemm::ChunksOf(const GemmProblem& problem) {
  std::vector<Chunk> chunks;
  for (int64_t p = 0; p < problem.k; p += kMaxChunk) {
    Chunk chunk;
    chunk.first_p = p;
    chunk.count = std::min(kMaxChunk, problem.k - p);
    chunk.padded_count = RoundUp(chunk.count, kSumStep);
    PW_ASSIGN_OR_RETURN(chunk.product,
                        products_.Get(problem.compute, chunk.padded_count, p > 0));
    chunks.push_back(chunk);
  }
  return chunks;
}

absl::StatusOr<GemmPath> CpuGemm::Run(const GemmProblem& problem, const GemmOperand& a,
                                      const GemmOperand& b, MatrixView bias,
                                      MutableMatrixView c, MemoryBudget& budget) {
  PW_RETURN_IF_ERROR(problem.Validate());
  absl::Status status = CheckOperand("A", problem.a, a, problem.m, problem.k);
  if (status.ok()) status = CheckOperand("B", problem.b, b, problem.n, problem.k);
  if (status.ok()) status = CheckValues("A", problem, problem.a, a);
  if (status.ok()) status = CheckValues("B", problem, problem.b, b);
  if (!status.ok()) return Annotate(status, problem.ToString());
  if (c.rows != problem.m || c.columns != problem.n || c.dtype != problem.output) {
    return Error(Reason::kShapeMismatch,
                 absl::StrCat(problem.ToString(), ": C is [", c.rows, ",", c.columns, "] ",
                              Name(c.dtype)));
  }
  if (bias.data != nullptr && bias.elements() != problem.n) {
    return Error(Reason::kShapeMismatch, absl::StrCat(problem.ToString(), ": bias has ",
                                                      bias.elements(), " elements"));
  }
  if (problem.m == 0 || problem.n == 0) {
    return problem.multiplies_codes() ? GemmPath::kExpanded : GemmPath::kHighPrecision;
  }
  PW_ASSIGN_OR_RETURN(std::vector<Chunk> chunks, ChunksOf(problem));
  PW_ASSIGN_OR_RETURN(HostBuffer block,
                      HostBuffer::AllocateUninitialized(budget, MemoryUse::kTransient,
                                                        WorkspaceBytes(problem),
                                                        "GEMM workspace"));
  return Product(*this, problem, a, b, bias, c, std::move(chunks), std::move(block)).Run();
}

}  // namespace planewise
