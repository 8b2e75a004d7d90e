#ifndef PLANEWISE_TESTS_SIM_SIM_DAEMON_H_
#define PLANEWISE_TESTS_SIM_SIM_DAEMON_H_
// The daemon in one thread: the real catalog, store, sessions and CPU compute on
// a simulated clock, executor, lanes and disk.
//
// Not here: clients (sim_trainer.h) and what lies between (sim_link.h).

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/memory_file_system.h"
#include "core/checkpoint/model_store.h"
#include "core/gemm/cpu_gemm.h"
#include "service/compute/cpu_linear_compute.h"
#include "service/compute/linear_executor.h"
#include "service/session/session_table.h"
#include "service/weights/model_catalog.h"
#include "tests/sim/sim_random.h"
#include "tests/testing/sim_background_runner.h"
#include "tests/testing/sim_clock.h"
#include "tests/testing/sim_executor.h"

namespace planewise {

// One thread.
class SimDaemon {
 public:
  // `random` outlives it.
  SimDaemon(const SessionLimits& limits, SimRandom& random);

  // Writes the tiny BERT of `seed`, which may be hosted as `name` from then on.
  void WriteModel(const std::string& name, uint64_t seed);
  // Begins to host it in both planes.
  void Host(const std::string& name, bool trainable, DoneCallback<ModelDescription> done);

  // One step of the executor or a lane, by chance; false if all are idle.
  bool Step();
  // Until all are idle; time stands still.
  void Settle() { runner_.RunUntilIdle(); }

  SimClock& clock() { return clock_; }
  SimExecutor& executor() { return executor_; }
  ModelCatalog& catalog() { return *catalog_; }
  SessionTable& sessions() { return *sessions_; }
  MemoryBudget& budget() { return *budget_; }
  const Principal& principal() const { return principal_; }

 private:
  bool CopyAnyChunk();

  const Principal principal_{"sim"};
  SimRandom& random_;
  SimClock clock_;
  SimExecutor executor_{clock_};
  SimBackgroundRunner runner_{executor_};
  MemoryFileSystem files_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 30);
  std::unique_ptr<CpuGemm> gemm_;
  std::unique_ptr<LinearCompute> compute_;
  std::unique_ptr<LinearExecutor> linear_;
  std::unique_ptr<ModelStore> store_;
  std::unique_ptr<ModelCatalog> catalog_;
  std::unique_ptr<SessionTable> sessions_;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_SIM_SIM_DAEMON_H_
