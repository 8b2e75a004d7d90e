#ifndef PLANEWISE_CORE_GEMM_ERROR_BOUND_H_
#define PLANEWISE_CORE_GEMM_ERROR_BOUND_H_
// How far a computed element of a GEMM may be from the exact one. Derived, not
// tuned:
//   sum       products are exact in F32, and each of k - 1 additions errs by
//             2^-24 of a partial sum, which sum |a * b| bounds; AMX adds
//             products in pairs and may round twice: k * 2^-23 * sum |a * b|
//   underflow products of BF16 or F32 elements that are not codes may fall
//             below what is kept, 2^-126 in BF16 hardware, each lost whole;
//             and BF16 subnormals among those elements count as zero
//   output    undoing a shift and adding the bias round to F32, storing rounds
//             to the output type, each to nearest, subnormals included
//
// Not here: the exact element (reference_gemm.h).

#include "core/gemm/gemm_problem.h"
#include "core/gemm/reference_gemm.h"

namespace planewise {

// Of the element whose exact sum is `exact`, with `bias` added.
double GemmErrorBound(const GemmProblem& problem, const ReferenceElement& exact, double bias);

// Whether `actual` may be the computed element: within the bound; infinite only
// where the bound reaches beyond the output type; NaN exactly where the exact
// element is.
bool MayBe(const GemmProblem& problem, const ReferenceElement& exact, double bias, double actual);

}  // namespace planewise

#endif  // PLANEWISE_CORE_GEMM_ERROR_BOUND_H_
