#ifndef PLANEWISE_CORE_LAYER_COLUMN_SUMS_H_
#define PLANEWISE_CORE_LAYER_COLUMN_SUMS_H_
// The gradient of a bias.

#include "core/base/thread_pool.h"
#include "core/tensor/matrix_view.h"

namespace planewise {

// sums[j] = the sum over rows of matrix [rows, columns], added in F32 from the
// first row to the last: the same bits for any number of threads. `sums` holds
// `columns` values; zero rows give zeros.
void SumColumns(ThreadPool& pool, MatrixView matrix, float* sums);

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_COLUMN_SUMS_H_
