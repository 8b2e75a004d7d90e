// Random schedules of the daemon and its clients. A failure prints its seed;
// PLANEWISE_SEED=<seed> replays the first run with it.

#include "tests/sim/simulation.h"

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace planewise {
namespace {

struct Case {
  std::string name;
  LinkFaults faults;
  int runs;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class SimulationTest : public ::testing::TestWithParam<Case> {};

TEST_P(SimulationTest, EveryAnswerIsRightAndNothingIsLeft) {
  for (int run = 0; run < GetParam().runs; ++run) {
    SimulationOptions options;
    options.seed = TestSeed() + static_cast<uint64_t>(run);
    options.faults = GetParam().faults;
    SCOPED_TRACE(absl::StrCat("seed ", options.seed));
    const SimulationCounts counts = Simulation(options).Run();
    if (HasFailure()) return;
    std::cout << "seed " << options.seed << ": " << counts.forwards << " forwards, "
              << counts.backwards << " backwards, " << counts.failures << " refused, "
              << counts.sessions << " sessions, " << counts.switches << " switches ("
              << counts.refused_switches << " refused), " << counts.saves << " saves, "
              << counts.verifies << " verifies, " << counts.stalls << " stalled readers, "
              << counts.loads << " loads, " << counts.deletes << " deletes\n";
    // A run in which nothing happens proves nothing.
    EXPECT_GT(counts.forwards, 10);
    EXPECT_GT(counts.backwards, 3);
    EXPECT_GT(counts.switches, 0);
    EXPECT_GT(counts.verifies, 0);
    EXPECT_GT(counts.stalls, 0);
    EXPECT_GT(counts.loads, 0);
    EXPECT_GT(counts.deletes, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks, SimulationTest,
    ::testing::Values(Case{"perfect", {}, 3},
                      Case{"doubles", {.duplicate = 5}, 3},
                      Case{"reorders", {.delay = 5}, 3},
                      Case{"loses", {.drop = 60}, 3},
                      Case{"breaks", {.stream_break = 100}, 3},
                      Case{"everything",
                           {.drop = 100, .duplicate = 20, .delay = 20, .stream_break = 200},
                           4}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planewise
