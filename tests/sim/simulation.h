#ifndef PLANEWISE_TESTS_SIM_SIMULATION_H_
#define PLANEWISE_TESTS_SIM_SIMULATION_H_
// A daemon, its trainers and an operator who switches, saves and verifies, all
// stepped by chance from one seed. Later capabilities add their events here.
//
// Invariants checked while it runs: session memory stays within windows, result
// budget and one operation a session. At the end: every session is gone, no
// lease is held, and memory is what the models alone take.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "service/session/session_limits.h"
#include "tests/sim/sim_daemon.h"
#include "tests/sim/sim_oracle.h"
#include "tests/sim/sim_random.h"
#include "tests/sim/sim_trainer.h"

namespace planewise {

struct SimulationOptions {
  uint64_t seed = 0;
  int trainers = 3;
  int64_t steps = 20000;
  LinkFaults faults;
  bool operator_at_work = true;
  bool one_vanishes = true;
};

struct SimulationCounts {
  int64_t forwards = 0;
  int64_t backwards = 0;
  int64_t failures = 0;
  int64_t sessions = 0;
  int64_t switches = 0;
  int64_t refused_switches = 0;
  int64_t saves = 0;
  int64_t verifies = 0;
  int64_t stalls = 0;
  int64_t loads = 0;
  int64_t deletes = 0;
};

// Windows so small that operations cross them all the time.
SessionLimits SmallLimits();

// One thread.
class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation();

  // Runs to the end. Failures are the test's.
  SimulationCounts Run();

 private:
  bool Step();
  bool AnyStep();
  void AdvanceTime();
  void Operate();
  void SwitchByChance();
  void CreateOrDelete();
  void RecordVersion();
  void StallOrResume();
  void CheckMemory();
  void FinishTrainers();
  void CheckNothingIsLeft();

  const SimulationOptions options_;
  const SessionLimits limits_ = SmallLimits();
  SimRandom random_;
  SimDaemon daemon_;
  SimOracle oracle_;
  VersionHistory history_;
  int64_t idle_bytes_ = 0;  // of the daemon without models
  std::vector<std::unique_ptr<SimTrainer>> trainers_;
  bool other_asked_for_ = false;
  SimulationCounts counts_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_SIM_SIMULATION_H_
