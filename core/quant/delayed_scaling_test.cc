#include "core/quant/delayed_scaling.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/quant/delayed_scaling_reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

using testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr DelayedScalingRule kE4M3 = {.element_max = 448};

TEST(DelayedScalingTest, BeginsWithScaleOneAndNoHistory) {
  std::vector<float> state(static_cast<size_t>(DelayedStateWords(3)), 7.0f);
  InitializeDelayedState(absl::MakeSpan(state));
  EXPECT_THAT(state, ElementsAre(1, 0, 0, 0));
}

TEST(DelayedScalingTest, RecordingRaisesTheLiveEntryOnly) {
  std::vector<float> state = {5, 2, 9, 9};
  RecordAmax(absl::MakeSpan(state), 1);
  EXPECT_THAT(state, ElementsAre(5, 2, 9, 9));
  RecordAmax(absl::MakeSpan(state), std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(state, ElementsAre(5, 2, 9, 9));
  RecordAmax(absl::MakeSpan(state), 3);
  EXPECT_THAT(state, ElementsAre(5, 3, 9, 9));
}

TEST(DelayedScalingTest, UpdatesByTheRule) {
  const struct {
    const char* name;
    DelayedScalingRule rule;
    std::vector<float> before, after;
  } cases[] = {
      {"the largest of the history counts, the live entry moves to the end",
       kE4M3,
       {1, 2, 8, 4},
       {56, 0, 4, 2}},
      {"the live entry may be the largest", kE4M3, {1, 16, 8, 4}, {28, 0, 4, 16}},
      {"most recent: the live entry counts alone",
       {.element_max = 448, .most_recent = true},
       {1, 2, 8, 4},
       {224, 0, 4, 2}},
      {"a margin leaves binary places free", {.element_max = 448, .margin = 3}, {1, 2}, {28, 0}},
      {"a negative margin takes them", {.element_max = 448, .margin = -1}, {1, 2}, {448, 0}},
      {"nothing cast: nothing moves", kE4M3, {3, 0, 8, 4}, {3, 0, 8, 4}},
      {"an infinity keeps the scale and is remembered",
       kE4M3,
       {3, kInfinity, 8},
       {3, 0, kInfinity}},
      {"while an infinity is remembered the scale stays", kE4M3, {3, 2, kInfinity}, {3, 0, 2}},
      {"a scale beyond F32 is cut", kE4M3, {3, 1e-40f}, {kLargest, 0}},
      {"a scale whose inverse is infinite is not taken",
       {.element_max = 448, .margin = 20},
       {3, kLargest},
       {3, 0}},
  };
  for (const auto& c : cases) {
    std::vector<float> state = c.before;
    UpdateDelayedState(c.rule, absl::MakeSpan(state));
    EXPECT_EQ(state, c.after) << c.name;
  }
}

TEST(DelayedScalingTest, MovesAsTheReferenceThroughAnyEvents) {
  std::mt19937_64 random(TestSeed());
  for (int run = 0; run < 200; ++run) {
    const DelayedScalingRule rule = {random() % 2 == 0 ? 448.0f : 57344.0f,
                                     static_cast<int>(random() % 3), random() % 2 == 0};
    const size_t length = 1 + random() % 5;
    DelayedScalingReference reference(length, rule);
    std::vector<float> state(length + 1);
    InitializeDelayedState(absl::MakeSpan(state));
    for (int event = 0; event < 60; ++event) {
      const uint64_t kind = random() % 20;
      if (kind < 11) {
        float amax =
            std::ldexp(static_cast<float>(random() % 1000), static_cast<int>(random() % 60) - 30);
        if (kind == 0) amax = kInfinity;
        if (kind == 1) amax = 0x1p-149f;
        reference.Record(amax);
        RecordAmax(absl::MakeSpan(state), amax);
      } else if (kind < 19) {
        reference.Update();
        UpdateDelayedState(rule, absl::MakeSpan(state));
      } else {
        const size_t other = 1 + random() % 6;
        reference.Resize(other);
        state = ResizedDelayedState(state, static_cast<int64_t>(other));
      }
      ASSERT_EQ(state, reference.State()) << "run " << run << " event " << event;
    }
  }
}

TEST(DelayedScalingTest, ResizingKeepsTheMostRecent) {
  EXPECT_THAT(ResizedDelayedState({5, 1, 2, 3, 4}, 2), ElementsAre(5, 1, 4));
  EXPECT_THAT(ResizedDelayedState({5, 1, 2, 3, 4}, 6), ElementsAre(5, 1, 0, 0, 2, 3, 4));
  EXPECT_THAT(ResizedDelayedState({5, 1, 2, 3, 4}, 1), ElementsAre(5, 1));
  EXPECT_THAT(ResizedDelayedState({5, 1, 2, 3, 4}, 4), ElementsAre(5, 1, 2, 3, 4));
}

}  // namespace
}  // namespace planewise
