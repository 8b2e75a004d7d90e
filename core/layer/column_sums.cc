#include "core/layer/column_sums.h"

#include <algorithm>
#include <type_traits>

#include "core/base/checked_math.h"
#include "core/numeric/default_float_environment.h"
#include "core/quant/visit_dtype.h"

namespace planewise {

void SumColumns(ThreadPool& pool, MatrixView matrix, float* sums) {
  constexpr int64_t kBlock = 256;
  pool.ForEach(CeilDivide(matrix.columns, kBlock), [&](int64_t block, int) {
    const DefaultFloatEnvironment environment;
    const int64_t first = block * kBlock;
    const int64_t count = std::min(kBlock, matrix.columns - first);
    float* block_sums = sums + first;
    std::fill_n(block_sums, count, 0.0f);
    VisitHighPrecision(matrix.dtype, [&](auto tag) {
      using Element = decltype(tag);
      const Element* row = static_cast<const Element*>(matrix.data) + first;
      for (int64_t i = 0; i < matrix.rows; ++i, row += matrix.columns) {
        for (int64_t j = 0; j < count; ++j) {
          if constexpr (std::is_same_v<Element, float>) {
            block_sums[j] += row[j];
          } else {
            block_sums[j] += row[j].ToFloat();
          }
        }
      }
    });
  });
}

}  // namespace planewise
