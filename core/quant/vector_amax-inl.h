// Largest magnitudes in vectors, compiled for each instruction set as part of the
// files that include it.
//
// The bits of a magnitude are in its order as an integer, with NaN above infinity.
// Adding what is left between infinity and the largest integer carries NaN over
// into the negative numbers: a maximum then skips it.
//
// Not here: which elements are a block (vector_quantize-inl.h).

// Highway's guard: included once for each target.
#if defined(PLANEWISE_CORE_QUANT_VECTOR_AMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLANEWISE_CORE_QUANT_VECTOR_AMAX_INL_H_
#undef PLANEWISE_CORE_QUANT_VECTOR_AMAX_INL_H_
#else
#define PLANEWISE_CORE_QUANT_VECTOR_AMAX_INL_H_
#endif

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/quant/mxfp8_block.h"
#include "core/quant/vector_small_float-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace planewise {
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <typename HighPrecision>
using RankOf = std::make_signed_t<BitsOf<HighPrecision>>;

template <typename HighPrecision>
constexpr RankOf<HighPrecision> kRankOfZero =
    std::numeric_limits<RankOf<HighPrecision>>::max() - kInfinityBits<HighPrecision>;

// The elements at `values` by magnitude; NaN below zero.
template <typename HighPrecision, class D>
HWY_INLINE hn::Vec<D> LoadRanks(D d, const HighPrecision* values) {
  const hn::RebindToUnsigned<D> bits;
  const auto magnitudes =
      hn::And(hn::LoadU(bits, Bits(values)), hn::Set(bits, kMagnitudeMask<HighPrecision>));
  return hn::Add(hn::BitCast(d, magnitudes), hn::Set(d, kRankOfZero<HighPrecision>));
}

// The larger ones of neighbours of kBits, lane by lane: a's in even lanes of that
// width, b's in odd ones.
template <size_t kBits, class D>
HWY_INLINE hn::Vec<D> MaxOfNeighbours(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (kBits == 64) {
    const hn::Repartition<uint64_t, D> u64;
    return hn::Max(
        hn::BitCast(d, hn::InterleaveLower(u64, hn::BitCast(u64, a), hn::BitCast(u64, b))),
        hn::BitCast(d, hn::InterleaveUpper(u64, hn::BitCast(u64, a), hn::BitCast(u64, b))));
  } else {
    const hn::Repartition<hwy::UnsignedFromSize<kBits / 8>, D> one;
    const hn::Repartition<hwy::UnsignedFromSize<kBits / 4>, D> two;
    const auto of_b = hn::BitCast(one, hn::ShiftLeft<kBits>(hn::BitCast(two, b)));
    const auto of_a = hn::BitCast(one, hn::ShiftRight<kBits>(hn::BitCast(two, a)));
    return hn::Max(hn::BitCast(d, hn::OddEven(of_b, hn::BitCast(one, a))),
                   hn::BitCast(d, hn::OddEven(hn::BitCast(one, b), of_a)));
  }
}

// Of each 2 * kBits of as many vectors as lanes fit into them, the largest lane, in
// the vectors' order.
template <size_t kBits, class D>
HWY_INLINE hn::Vec<D> MaxOfEach(D d, const hn::Vec<D>* vectors) {
  constexpr size_t kLaneBits = 8 * sizeof(hn::TFromD<D>);
  if constexpr (kBits == kLaneBits) {
    return MaxOfNeighbours<kBits>(d, vectors[0], vectors[1]);
  } else {
    return MaxOfNeighbours<kBits>(d, MaxOfEach<kBits / 2>(d, vectors),
                                  MaxOfEach<kBits / 2>(d, vectors + kBits / kLaneBits));
  }
}

// The 16 bytes that are left of a vector when its halves are folded upon each other.
template <class D, class V>
HWY_INLINE auto MaxOfParts(D /*d*/, V lanes) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return MaxOfParts(half, hn::Max(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  } else {
    return lanes;
  }
}

// Of each run of kRun elements in `rows` rows of `columns`, a multiple of kRun. As
// many runs as 16 bytes hold elements are reduced together, and written: up to that
// many more than there are.
template <int64_t kRun, typename HighPrecision>
void LargestOfRuns(const HighPrecision* source, int64_t stride, int64_t rows, int64_t columns,
                   HighPrecision* largest) {
  const hn::CappedTag<RankOf<HighPrecision>, kRun> d;
  constexpr int64_t kTogether = 16 / sizeof(HighPrecision);
  const hn::CappedTag<RankOf<HighPrecision>, kTogether> each;
  const hn::RebindToUnsigned<decltype(each)> bits;
  int64_t left = columns / kRun * rows;
  const HighPrecision* row = source;
  int64_t column = 0;
  for (; left > 0; left -= kTogether, largest += kTogether) {
    hn::Vec<decltype(d)> ranks[kTogether];
    HWY_UNROLL(8)
    for (int64_t k = 0; k < kTogether; ++k) {
      const HighPrecision* run = row + column;
      ranks[k] = LoadRanks(d, run);
      for (int64_t i = static_cast<int64_t>(hn::Lanes(d)); i < kRun;
           i += static_cast<int64_t>(hn::Lanes(d))) {
        ranks[k] = hn::Max(ranks[k], LoadRanks(d, run + i));
      }
      if (k + 1 >= left) continue;
      column += kRun;
      if (column == columns) {
        column = 0;
        row += stride;
      }
    }
    const auto of_runs = MaxOfParts(d, MaxOfEach<64>(d, ranks));
    const auto rank_of_zero = hn::Set(each, kRankOfZero<HighPrecision>);
    const auto magnitudes = hn::Sub(hn::Max(of_runs, rank_of_zero), rank_of_zero);
    hn::StoreU(hn::BitCast(bits, magnitudes), bits, Bits(largest));
  }
}

// Of each of `columns` columns, a multiple of kPairLanesMax.
template <typename HighPrecision>
void LargestOfColumns(const HighPrecision* source, int64_t stride, int64_t rows, int64_t columns,
                      HighPrecision* largest) {
  const hn::CappedTag<RankOf<HighPrecision>, kPairLanesMax> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto rank_of_zero = hn::Set(d, kRankOfZero<HighPrecision>);
  for (int64_t i = 0; i < columns; i += static_cast<int64_t>(hn::Lanes(d))) {
    auto ranks = rank_of_zero;
    for (int64_t row = 0; row < rows; ++row) {
      ranks = hn::Max(ranks, LoadRanks(d, source + row * stride + i));
    }
    hn::StoreU(hn::BitCast(bits, hn::Sub(ranks, rank_of_zero)), bits, Bits(largest + i));
  }
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace HWY_NAMESPACE
}  // namespace planewise
HWY_AFTER_NAMESPACE();

#endif  // PLANEWISE_CORE_QUANT_VECTOR_AMAX_INL_H_
