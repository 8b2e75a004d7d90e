#ifndef PLANEWISE_CORE_QUANT_DELAYED_SCALING_H_
#define PLANEWISE_CORE_QUANT_DELAYED_SCALING_H_
// Delayed scaling: codes are made with a scale that earlier largest magnitudes
// gave, so that one reading of the matrix suffices. This is the state between
// two casts, and how it moves on.
//
// The state is F32 words: the encode scale, then a history of magnitudes. The
// history's first entry is live: casts since the last update raise it. The rest
// are those of earlier updates, the oldest first.
//
// Not here: when an update happens. Forward and backward only record; the end of
// a step or a commit updates, and what failed does not.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace planewise {

struct DelayedScalingRule {
  float element_max = 0;
  int margin = 0;  // binary places kept free above the largest magnitude
  // The last step's magnitude alone decides, not the largest of the history.
  bool most_recent = false;
};

// The words of a state with a history of `history_length` >= 1 entries.
constexpr int64_t DelayedStateWords(int64_t history_length) { return 1 + history_length; }

// A scale of 1 and a history of zeros.
void InitializeDelayedState(absl::Span<float> state);

// Raises the live entry to `amax`; NaN is skipped.
void RecordAmax(absl::Span<float> state, float amax);

// Ends a step:
//  1. A live entry of 0 (nothing was cast, or zeros only) changes nothing.
//  2. The magnitude that counts is the largest of the history, or the live entry
//     if the rule says most_recent.
//  3. The history moves one place towards its beginning: the live entry goes to
//     the end, the oldest is dropped, the new live entry is 0.
//  4. scale = fl(max * 2^-margin / magnitude), cut to F32's largest number; if the
//     magnitude is infinite, or the scale so small that its inverse is, it stays.
void UpdateDelayedState(const DelayedScalingRule& rule, absl::Span<float> state);

// The state with a history of another length. The scale, the live entry and as
// many of the most recent entries as fit are kept; new entries are 0 and older
// than every other. `state` is one, and history_length >= 1.
std::vector<float> ResizedDelayedState(absl::Span<const float> state, int64_t history_length);

}  // namespace planewise

#endif  // PLANEWISE_CORE_QUANT_DELAYED_SCALING_H_
